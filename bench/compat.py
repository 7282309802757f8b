"""Trains and resumes with other versions of the dependencies, each set in its own environment: `make compat`.

    python bench/compat.py                     every row that needs no other torch
    python bench/compat.py --rows 1 6          only these
    python bench/compat.py --torch 2.9.1       and this torch, which pip will download

Every environment gets the same wheel. Rows with the torch of this environment share its files; everything else is
installed separately. Each row then resumes the checkpoint of every other. Results go to standard output and to
compat.json and compat.md in the folder of `--out`; exits with 1 if anything failed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import tyro

ROOT = Path(__file__).parents[1]
TRIAL = Path(__file__).with_name("compat_trial.py")
TORCH_HERE = version("torch")
WRITTEN = ("trains", "resumes", "GRU, replay", "nes-py backend", "Gymnasium API", "Parquet")


@dataclass(frozen=True)
class Row:
    """Versions as pip specifiers; by default the newest, and this environment's torch."""

    gymnasium: str = "==1.4.*"
    numpy: str = ">=2"
    nes_py: str = "==8.2.1"
    torch: str = ""

    def requirements(self) -> list[str]:
        numpy = [f"numpy{self.numpy}"]
        if self.numpy.startswith("==1"):
            # Newer versions refuse NumPy 1 at import, which pip does not know.
            numpy.append("pyarrow<26")
        torch = f"torch=={self.torch or TORCH_HERE}"
        return [f"gymnasium{self.gymnasium}", *numpy, f"nes-py{self.nes_py}", torch]


MATRIX = (
    Row(),
    Row(gymnasium="==1.3.*"),
    Row(gymnasium="==1.2.*"),
    Row(gymnasium="==1.1.*"),
    Row(numpy="==2.0.*"),
    Row(numpy="==1.26.*"),
    Row(numpy="==1.24.*", gymnasium="==1.1.*"),
    Row(numpy="==1.26.*", nes_py="==8.1.8"),
    Row(torch="2.15.0"),
    Row(torch="2.9.1"),
    Row(torch="2.4.1", numpy="==1.26.*", gymnasium="==1.1.*"),
)


@dataclass(frozen=True)
class Config:
    rows: tuple[int, ...] = ()
    """Only these rows, by number."""
    torch: tuple[str, ...] = ()
    """Also run rows with these torch versions; on Linux each downloads gigabytes."""
    out: Path = ROOT / "build" / "compat"
    """Folder for environments, runs and results. Environments are reused."""
    wheel: Path | None = None
    """An existing wheel; by default one is built from this checkout."""
    dry_run: bool = False
    """Print what would be run."""


@dataclass
class Result:
    """The outcome of a row: why it was not run, or what was tried."""

    row: Row
    not_run: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)
    resumed: dict[str, str] = field(default_factory=dict)
    took_s: float = 0.0

    def failures(self) -> list[str]:
        """Failures, each with the trials in which it occurred."""
        tried = {**self.tried, **{f"checkpoint of row {n}": said for n, said in self.resumed.items()}}
        wrong: dict[str, list[str]] = {}
        for name, said in tried.items():
            if said not in ("yes", "same"):
                wrong.setdefault(said, []).append(name)
        return [f"{', '.join(names)}: {said}" for said, names in wrong.items()]


def why_not(row: Row, asked: tuple[str, ...]) -> str:
    """Why a row runs only on request; wheels for Linux include CUDA, others are small."""
    if not row.torch or row.torch in (*asked, TORCH_HERE.partition("+")[0]) or sys.platform != "linux":
        return ""
    return f"torch {row.torch} is gigabytes to download: ask with --torch {row.torch}"


def say(line: str) -> None:
    print(f"[compat] {line}", file=sys.stderr, flush=True)


def pip(*arguments: str) -> None:
    """Raises RuntimeError with the last line of pip's output."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise RuntimeError((errors or ["pip failed"])[0].removeprefix("ERROR: "))


def build_wheel(out: Path) -> Path:
    """The native build is kept so that the next one is quick; it is not the editable install's."""
    folder = out / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    build_folder = f"--config-settings=build-dir={out / 'native'}"
    pip("wheel", "--no-deps", build_folder, "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("warpzone-*.whl"))


def make_environment(folder: Path, row: Row, wheel: Path) -> Path:
    """The row's Python, with everything installed."""
    requirements = row.requirements()
    python = folder / "bin" / "python"
    installed = folder / "requirements.txt"
    target = ["--python", str(python), "install", "--quiet", "--no-compile"]
    if not installed.exists() or installed.read_text().splitlines() != requirements:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        if requirements[-1] == f"torch=={TORCH_HERE}":
            link_torch(folder)
        pip(*target, *requirements, f"{wheel}[train]")
        installed.write_text("\n".join(requirements) + "\n")
    pip(*target, "--force-reinstall", "--no-deps", str(wheel))
    return python


def link_torch(folder: Path) -> None:
    """Link the files of torch, and of the CUDA libraries it came with, instead of installing them again."""
    here = Path(sysconfig.get_path("purelib"))
    (there,) = folder.glob("lib/python*/site-packages")
    required = [re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in distribution("torch").requires or []]
    for name in ("torch", *(r for r in required if r.startswith(("nvidia", "cuda", "triton")))):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (there / top).is_symlink():
                (there / top).symlink_to(here / top)


def run_trial(python: Path, *arguments: str) -> dict[str, Any]:
    environ = {
        k: v for k, v in os.environ.items() if k.startswith(("PATH", "HOME", "LANG", "TMP", "WARPZONE"))
    }
    command = [str(python), "-I", str(TRIAL), *arguments]
    done = subprocess.run(command, env=environ, cwd=python.parents[2], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    print(done.stderr, end="", file=sys.stderr)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def run_rows(config: Config, results: dict[int, Result]) -> None:
    """Run every selected row and fill in its outcome."""
    out = config.out.resolve()
    say("building the wheel" if config.wheel is None else f"using {config.wheel}")
    wheel = config.wheel.resolve() if config.wheel else build_wheel(out)
    pythons: dict[int, Path] = {}
    for number, result in results.items():
        if result.not_run:
            continue
        began = time.monotonic()
        say(f"row {number}: {', '.join(result.row.requirements())}")
        try:
            python = make_environment(out / f"environment_{number}", result.row, wheel)
            answer = run_trial(python, "write", str(out / "runs" / str(number)))
        except RuntimeError as error:
            result.tried = {"trains": str(error)}
        else:
            result.versions, result.tried = answer["versions"], answer["tried"]
            pythons[number] = python
        result.took_s = time.monotonic() - began
        say(f"row {number}: {'; '.join(result.failures()) or 'ok'} ({result.took_s:.0f} s)")
    left = [n for n in pythons if (out / "runs" / str(n) / "left").is_dir()]
    for number, python in pythons.items():
        others = [str(out / "runs" / str(n)) for n in left if n != number]
        say(f"row {number} resumes the checkpoints of {len(others)} others")
        try:
            results[number].resumed = run_trial(python, "read", str(out / "runs" / str(number)), *others)[
                "tried"
            ]
        except RuntimeError as error:
            results[number].resumed = {"all": str(error)}


def table(results: dict[int, Result]) -> str:
    """As Markdown."""
    head = ["row", "torch", "gymnasium", "NumPy", "nes-py", *WRITTEN, "resumes others", "same bits"]
    lines = [head, ["---"] * len(head)]
    for number, result in results.items():
        row = result.row
        asked = [row.torch or TORCH_HERE, row.gymnasium, row.numpy, row.nes_py]
        found = [result.versions.get(name) for name in ("torch", "gymnasium", "numpy", "nes-py")]
        versions = [f or a.lstrip("=") for f, a in zip(found, asked, strict=True)]
        if result.not_run:
            cells = [f"not run: {result.not_run}", *[""] * (len(WRITTEN) + 1)]
        else:
            tried = ["yes" if result.tried.get(name) == "yes" else "no" for name in WRITTEN]
            resumed, n = list(result.resumed.values()), len(result.resumed)
            good, same = sum(s in ("yes", "same") for s in resumed), resumed.count("same")
            cells = [*tried, f"{good} of {n}", f"{same} of {n}"]
        lines.append([str(number), *versions, *cells])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main(config: Config) -> int:
    unknown = sorted(set(config.torch) - {row.torch for row in MATRIX})
    matrix = [*MATRIX, *(Row(torch=v) for v in unknown)]
    results = {
        n: Result(row, why_not(row, config.torch))
        for n, row in enumerate(matrix, start=1)
        if not config.rows or n in config.rows
    }
    if config.dry_run:
        for number, result in results.items():
            print(f"row {number}: {result.not_run or ', '.join(result.row.requirements())}")
        return 0
    config.out.mkdir(parents=True, exist_ok=True)
    run_rows(config, results)
    where = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    text = f"{time.strftime('%Y-%m-%d')}, {where}, {os.cpu_count()} cores\n\n{table(results)}\n"
    print(text)
    failures = [f"row {n}: {f}" for n, result in results.items() for f in result.failures()]
    print("\n".join(failures) or "nothing failed")
    (config.out / "compat.md").write_text(text + "".join(f"\n- {line}" for line in failures))
    record = {n: dataclasses.asdict(result) for n, result in results.items()}
    (config.out / "compat.json").write_text(json.dumps(record, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
