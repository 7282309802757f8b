"""`warpzone export RUN`: the metrics of a run as one table, or its agent as one small file."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from safetensors import SafetensorError

from warpzone.agents.weights_file import SUFFIX, TEMPERATURE, Bits, save_weights
from warpzone.checkpoints.finding import best_checkpoint, find_place
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.cli.flags import blank, parse
from warpzone.cli.settings import DryRun, RunsFolder, writing
from warpzone.errors import ConfigError
from warpzone.run.custom_parts import share_code
from warpzone.run.stopping import EXIT_OK
from warpzone.watch.durable import write_durably
from warpzone.watch.metrics import METRICS_FILE, read_metrics
from warpzone.watch.tables import write_csv, write_parquet


@dataclass(frozen=True)
class Config(RunsFolder, DryRun):
    """Export all metrics of a run as Parquet or CSV, or the agent of its best checkpoint as safetensors with a card.

    With --bits 16, weights are in half precision. Fewer bits make a smaller file; with 4, agents play a little worse.
    """

    run: tyro.conf.Positional[Path]
    """Name or folder of the run."""
    format: Literal["parquet", "csv", "safetensors"] = "parquet"
    """File format: metrics as parquet or csv, the agent as safetensors."""
    out: Path | None = None
    """File to write; by default in the run's folder."""
    bits: Bits = 8
    """Bits per weight of an agent; 4 and 6 need a preset's network."""
    temperature: float = 1.0
    """What the agent's logits are divided by, in its card; try values with `eval`."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"--temperature is a number above 0, not {self.temperature!r}.")


SETTINGS = {"": Config}


def run(argv: list[str]) -> int:
    args = parse(blank(Config), argv, "warpzone export")
    folder = run_folder(args.run, args.runs_dir)
    if args.format == "safetensors":
        return _export_agent(args, folder)
    records = read_metrics(folder)
    if not records:
        raise ConfigError(f"{folder / METRICS_FILE} has no records; choose a run that has logged something")
    out = args.out or folder / "metrics" / f"history.{args.format}"
    if args.dry_run:
        print(f"would write {len(records)} records to {out}")
        return EXIT_OK
    with writing(out):
        if args.format == "parquet":
            write_parquet(records, out)
        else:
            text = io.StringIO()
            write_csv(records, text)
            write_durably(out, text.getvalue().encode())
    print(f"wrote {len(records)} records to {out}")
    return EXIT_OK


def _export_agent(args: Config, folder: Path) -> int:
    out = args.out or folder / f"agent{SUFFIX}"
    if out.suffix != SUFFIX:
        raise ConfigError(f"{out} does not end in {SUFFIX}: choose another --out")
    best = best_checkpoint(folder)
    if args.dry_run:
        print(f"would write the agent of {best} to {out}")
        return EXIT_OK
    checkpoint: Any = load_checkpoint(best)
    with writing(out):
        weights = checkpoint.state["learner"]["policy"]
        meta = replace(checkpoint.meta, config=share_code(checkpoint.meta.config, folder, out.parent))
        try:
            card = {"name": folder.name, TEMPERATURE: args.temperature}
            save_weights(out, weights, meta, card, args.bits)
        except SafetensorError as error:
            raise OSError(str(error)) from error
    size = f"{out.stat().st_size / 1e6:.2f} MB"
    print(f"wrote the agent of {best} to {out} ({size}); try: warpzone eval --checkpoint {out}")
    return EXIT_OK


def run_folder(run: Path, runs_dir: Path) -> Path:
    """The folder of a run given as a path or a name."""
    folder = find_place(str(run), runs_dir)
    if not (folder / METRICS_FILE).exists():
        raise ConfigError(f"{folder} is not a run: there is no {METRICS_FILE} in it.")
    return folder
