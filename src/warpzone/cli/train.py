"""`warpzone train`: train an agent."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from warpzone.agents.recording import Style, record_best
from warpzone.cli.display import TrainDisplay
from warpzone.cli.flags import parse
from warpzone.errors import ConfigError
from warpzone.run.config import PRESETS, RunConfig, TrainConfig, preset
from warpzone.run.folder import saved_settings
from warpzone.run.loop import Outcome
from warpzone.run.memory_ladder import train_within_memory
from warpzone.run.progress import Progress
from warpzone.run.stopping import EXIT_OK

DESCRIPTION = (
    "Train an agent on Super Mario Bros. Every flag can also be set by an environment variable of its name in "
    "capitals."
)


def settings(argv: list[str], environ: Mapping[str, str] | None = None) -> TrainConfig:
    """The resolved configuration: preset or the settings of the run that goes on, then environment variables, then
    flags."""
    environment = dict(os.environ if environ is None else environ)
    wanted = given("preset", argv, environment)
    if wanted not in (None, "auto", *PRESETS):
        raise ConfigError(f"Unknown preset {wanted!r}: choose auto, cpu or gpu.")
    environment.pop("PRESET", None)
    default = None if wanted else _settings_of_run(argv, environment)
    default = default or preset(wanted or "auto")  # type: ignore[arg-type]
    config = parse(default, argv, "warpzone train", DESCRIPTION, environment)
    config.check()
    return config


def given(name: str, argv: list[str], environ: Mapping[str, str]) -> str | None:
    """What a flag will be, before all of them are parsed; None if it is not given."""
    value = environ.get(name.upper())
    for at, word in enumerate(argv):
        flag, equals, text = word.partition("=")
        if flag.replace("_", "-") == "--" + name.replace("_", "-"):
            value = text if equals else next(iter(argv[at + 1 : at + 2]), "")
    return value


def _settings_of_run(argv: list[str], environ: Mapping[str, str]) -> TrainConfig | None:
    """The settings of the run that these flags name, if there is one to go on with."""
    if given("fresh", argv, environ) is not None:
        return None
    runs = given("runs_dir", argv, environ) or RunConfig.runs_dir
    name = given("run_name", argv, environ) or RunConfig.run_name
    saved = saved_settings(Path(runs) / name)
    return saved and dataclasses.replace(
        saved, run=dataclasses.replace(saved.run, run_name=name, runs_dir=runs)
    )


def run(argv: list[str]) -> int:
    """Parse and train; the exit code."""
    config = settings(argv)
    if config.run.dry_run:
        print(json.dumps(config.as_dict(), indent=2))
        return EXIT_OK
    console = Console()
    with TrainDisplay(config, console) as display:
        outcome = train_within_memory(config, display)
    if (
        config.run.record_video
        and outcome.agent is not None
        and outcome.progress.update > 0
        and not outcome.exit_code
    ):
        _record(config, outcome, console)
    _summarise(config, outcome, console)
    return outcome.exit_code


def _record(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    assert outcome.agent is not None
    stage = config.stage.names()[0]
    path = outcome.folder / "videos" / f"final_{stage}.mp4"
    with console.status(f"recording an episode of {stage}"):
        style, rom = Style(overlay=True), config.stage.rom or None
        video = record_best(outcome.agent, stage, path, style, seed=config.run.seed, rom=rom)
    line = f"[train] video: {video.path} ({video.verdict}, {video.decisions} decisions)"
    console.print(line, markup=False, soft_wrap=True)


def _summarise(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    progress = outcome.progress
    console.print(
        f"[train] {outcome.folder}: {outcome.reason}", markup=False, highlight=False, soft_wrap=True
    )
    table = Table(show_header=False)
    table.add_row("updates", f"{progress.update:,}")
    table.add_row("decisions", f"{progress.global_step:,}")
    table.add_row("training time", f"{progress.elapsed_s:.1f} s")
    if progress.elapsed_s:
        table.add_row("decisions/s", f"{progress.global_step / progress.elapsed_s:,.0f}")
    for stage, rate in progress.clear_rate.items():
        table.add_row(f"clear rate {stage}, last 100 episodes", f"{rate:.1%}")
    for stage, result in outcome.confirmed.items():
        low, high = result.interval
        shown = f"{result.clear_rate:.1%} ({low:.1%} to {high:.1%})"
        table.add_row(f"clear rate {stage}, {result.episodes} fresh episodes", shown)
    console.print(table)
    runs = "" if config.run.runs_dir == "runs" else f" --runs-dir {config.run.runs_dir}"
    name = Path(outcome.folder).name
    for line in (
        f"[train] go on:    warpzone train --run-name {name}{runs}{_further(config, progress)}",
        f"[train] evaluate: warpzone eval --checkpoint {outcome.folder}",
        f"[train] film:     warpzone record --checkpoint {outcome.folder}",
        f"[train] curves:   warpzone report {outcome.folder}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _further(config: TrainConfig, progress: Progress) -> str:
    """Flags that raise the limits which the run has reached, as otherwise it would end at once."""
    run, flags = config.run, ""
    if run.total_updates and progress.update >= run.total_updates:
        flags += f" --total-updates {2 * run.total_updates}"
    if run.total_steps and progress.global_step >= run.total_steps:
        flags += f" --total-steps {2 * run.total_steps}"
    if run.time_limit and progress.elapsed_s >= 60 * run.time_limit:
        flags += f" --time-limit {2 * run.time_limit:g}"
    return flags
