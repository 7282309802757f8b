"""`warpzone info`: versions, ROM, processor and GPU, for bug reports."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import tyro

from warpzone import __version__
from warpzone.cli.flags import flags_of, parse
from warpzone.cli.help import as_text
from warpzone.engine.rom import identify, rom, rom_path
from warpzone.envs.nes_py.patches import installed
from warpzone.errors import RomError
from warpzone.run.config import TrainConfig
from warpzone.run.presets import PRESETS
from warpzone.run.stopping import EXIT_OK

PACKAGES = ("torch", "numpy", "gymnasium", "gym-super-mario-bros", "nes-py", "tyro", "rich", "pyarrow", "av")


@dataclass(frozen=True)
class InfoConfig:
    """Print the versions, ROM, processor and GPU of this installation; or, as Markdown, what the presets change."""

    topic: tyro.conf.Positional[Literal["installation", "presets"]] = "installation"
    """What to print."""
    as_json: bool = False
    """Print JSON."""


def processor() -> str:
    """The processor's name and its cores."""
    # Knows the names of ARM processors, too, which /proc/cpuinfo does not have.
    told = subprocess.run("LC_ALL=C lscpu", shell=True, capture_output=True, text=True).stdout
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("Model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def made() -> dict[str, str]:
    """How a file of results came about: the command, the date, the machine and the version."""
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    script = Path(sys.argv[0])
    program = ["python", f"bench/{script.name}"] if script.parent.name == "bench" else ["warpzone"]
    return {
        "command": shlex.join([*program, *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "hardware": ", ".join([f"{platform.machine()}: {processor()}", *gpus]),
        "version": __version__,
    }


def gather() -> dict[str, Any]:
    """Everything worth knowing."""
    import torch

    try:
        dump = identify(rom())
        found = f"{dump.name if dump else 'unknown dump'} ({rom_path().name})"
    except RomError as error:
        found = str(error)
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "warpzone": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": processor(),
        "gpu": ", ".join(gpus) or "none",
        "rom": found,
        **{name: installed(name) or "not installed" for name in PACKAGES},
    }


def preset_table() -> str:
    """The settings that a preset changes, as Markdown."""
    presets = [flags_of(config) for config in PRESETS.values()]
    rows = [
        f"| `{flag.name}` | {' | '.join(shown(one.default) for one in (flag, *others))} |"
        for flag, *others in zip(flags_of(TrainConfig()), *presets, strict=True)
        if any(one.default != flag.default for one in others)
    ]
    head = f"| flag | default | {' | '.join(PRESETS)} |"
    return "\n".join([head, "|---|---|" + "---|" * len(PRESETS), *rows])


def shown(value: Any) -> str:
    """A default as Markdown."""
    if value is tyro.MISSING:
        return "required"
    return "" if value in ("", None, ()) else f"`{as_text(value)}`"


SETTINGS = {"": InfoConfig}


def run(argv: list[str]) -> int:
    config = parse(InfoConfig(), argv, "warpzone info")
    if config.topic == "presets":
        print(preset_table())
        return EXIT_OK
    facts = gather()
    if config.as_json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in facts.items():
            print(f"{name:<22}{value}")
    return EXIT_OK
