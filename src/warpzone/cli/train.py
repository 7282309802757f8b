"""`warpzone train`: train an agent."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from warpzone.cli.display import TrainDisplay
from warpzone.cli.flags import parse
from warpzone.errors import ConfigError
from warpzone.run.config import PRESETS, TrainConfig, preset
from warpzone.run.loop import Outcome
from warpzone.run.memory import train_within_memory
from warpzone.run.recording import record_best
from warpzone.run.stopping import EXIT_OK

DESCRIPTION = (
    "Train an agent on Super Mario Bros. Every flag can also be set by an environment variable of its name in "
    "capitals."
)


def settings(argv: list[str], environ: dict[str, str] | None = None) -> TrainConfig:
    """The resolved configuration: preset, then environment variables, then flags."""
    import os

    environment = dict(os.environ) if environ is None else environ
    wanted = environment.get("PRESET", "auto")
    for at, word in enumerate(argv):
        if word == "--preset" and at + 1 < len(argv):
            wanted = argv[at + 1]
        elif word.startswith("--preset="):
            wanted = word.partition("=")[2]
    if wanted not in ("auto", *PRESETS):
        raise ConfigError(f"Unknown preset {wanted!r}: choose auto, cpu or gpu.")
    environment.pop("PRESET", None)
    config = parse(preset(wanted), argv, "warpzone train", DESCRIPTION, environment)  # type: ignore[arg-type]
    recurrent = config.model.recurrent_type != "none"
    config.learn.decisions_per_minibatch(config.collect.num_envs, config.collect.rollout_steps, recurrent)
    config.stage.names()
    return config


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
        _film(config, outcome, console)
    _summarise(config, outcome, console)
    return outcome.exit_code


def _film(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    assert outcome.agent is not None
    stage = config.stage.names()[0]
    path = outcome.folder / "videos" / f"final_{stage}.mp4"
    with console.status(f"recording an episode of {stage}"):
        film = record_best(outcome.agent, stage, path, seed=config.run.seed)
    verdict = "cleared" if film.cleared else f"reached x={film.x_max}"
    console.print(
        f"[train] video: {film.path} ({verdict}, {film.decisions} decisions)", markup=False, soft_wrap=True
    )


def _summarise(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    progress = outcome.progress
    table = Table(title=f"{outcome.folder}: {outcome.reason or 'ended'}", show_header=False)
    table.add_row("updates", f"{progress.update:,}")
    table.add_row("decisions", f"{progress.global_step:,}")
    table.add_row("training time", f"{progress.elapsed_s:.1f} s")
    if progress.elapsed_s:
        table.add_row("decisions/s", f"{progress.global_step / progress.elapsed_s:,.0f}")
    for stage, rate in progress.clear_rate.items():
        table.add_row(f"clear rate {stage}, last 100 episodes", f"{rate:.1%}")
    for stage, result in outcome.confirmed.items():
        table.add_row(f"clear rate {stage}, {result.episodes} fresh episodes", f"{result.clear_rate:.1%}")
    console.print(table)
    runs = "" if config.run.runs_dir == "runs" else f" --runs-dir {config.run.runs_dir}"
    name = Path(outcome.folder).name
    for line in (
        f"[train] go on:    warpzone train --run-name {name}{runs}",
        f"[train] evaluate: warpzone eval --checkpoint {outcome.folder}",
        f"[train] film:     warpzone record --checkpoint {outcome.folder}",
        f"[train] curves:   warpzone report {outcome.folder}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
