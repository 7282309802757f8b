"""`warpzone train`: train an agent."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from warpzone.cli.display import TrainDisplay
from warpzone.cli.flags import FALSE, Flag, flags_of, given, parse, with_environment
from warpzone.cli.help import as_text, help_text
from warpzone.errors import ConfigError
from warpzone.run.config import RunConfig, TrainConfig
from warpzone.run.presets import PRESETS, preset, suited_to_stages
from warpzone.run.saved_settings import STAGE_CHOICES, settings_to_resume
from warpzone.run.stopping import EXIT_OK
from warpzone.watch.episodes import window_of

if TYPE_CHECKING:
    from warpzone.run.loop import Outcome
    from warpzone.run.progress import Progress

SETTINGS = {"": TrainConfig}
ABOUT = (
    "Train an agent on Super Mario Bros. An existing run is resumed with its own settings; flags override them. "
    "Every flag can be set by an environment variable too: WARPZONE_NUM_ENVS=32 is --num-envs 32. "
)
COMMON = {
    "what to learn": "stages stage levels difficulty curriculum action_type trails teachers",
    "rewards": "reward_function reward_death",
    "how long": "until_clear_rate time_limit total_steps",
    "the run": "run_name runs_dir fresh resume video_interval dry_run",
    "resources": "preset device num_envs seed",
    "algorithm": "algo learning_rate gamma entropy_coef rollout_steps encoder recurrent_type",
}
"""The flags that people use, by what they are for."""


def settings(argv: list[str], environ: Mapping[str, str] | None = None) -> TrainConfig:
    """The resolved configuration: preset or the settings of the run to resume, then environment variables, then
    flags."""
    environment = dict(os.environ if environ is None else environ)
    wanted = given("preset", argv, environment)
    if wanted not in (None, "auto", *PRESETS):
        raise ConfigError(f"Unknown preset {wanted!r}: choose auto, cpu or gpu.")
    environment.pop("WARPZONE_PRESET", None)
    saved = None if wanted else settings_of_run(argv, environment)
    default = saved or preset(wanted or "auto")  # type: ignore[arg-type]
    if "--help-all" in argv or {"-h", "--help"} & set(argv):
        shown = saved or default.changed("run", preset=wanted or "auto")
        print(train_help(shown, everything="--help-all" in argv))
        if saved is not None:
            print(
                f"\nThe defaults are those of the run {saved.run.run_name!r}, which this command would resume."
            )
        raise SystemExit(EXIT_OK)
    config = parse(default, argv, "warpzone train", environment).resolved()
    check_world(argv)
    if saved is None:
        config = suited_to_stages(config, lambda name: given(name, argv, environment) is not None)
    config.check()
    return config


def check_world(argv: list[str]) -> None:
    """Refuse a world beside the whole name of a stage elsewhere."""
    world, stage = given("world", argv, {}), given("stage", argv, {})
    if world and stage and not stage.isdecimal() and stage.partition("-")[0] != world:
        raise ConfigError(f"--stage {stage} names its own world: leave --world {world} out.")


def train_help(default: TrainConfig, *, everything: bool) -> str:
    """The flags that people use, or all of them."""
    flags = flags_of(with_environment(default, {}))
    if everything:
        groups = {title: [flag.row for flag in part] for title, part in flag_groups(flags).items()}
        return help_text("warpzone train", ABOUT, groups)
    by_field = {flag.field: flag for flag in flags}
    common = {title: [by_field[name].row for name in names.split()] for title, names in COMMON.items()}
    shown = help_text("warpzone train", ABOUT, common)
    return f"{shown}\n\nThese are the common flags; warpzone train --help-all shows all {len(flags)}."


def flag_groups(flags: Sequence[Flag]) -> dict[str, list[Flag]]:
    """Flags by the part of the settings they belong to, those of teachers together."""
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        groups.setdefault("teachers" if flag.field.startswith("teacher") else flag.part, []).append(flag)
    return groups


def settings_of_run(argv: list[str], environ: Mapping[str, str]) -> TrainConfig | None:
    """The settings of the run that these flags name, if there is one to resume."""
    fresh = given("fresh", argv, environ)
    if fresh is not None and fresh.lower() not in FALSE:
        return None
    runs = given("runs_dir", argv, environ) or RunConfig.runs_dir
    name = given("run_name", argv, environ) or RunConfig.run_name
    chosen = [field for field in STAGE_CHOICES if given(field, argv, environ) is not None]
    return settings_to_resume(Path(runs) / name, chosen)


def changes(before: TrainConfig, now: TrainConfig) -> list[str]:
    """What a resumed run will do otherwise than before, such as `stages 1-1 -> 2-2`."""
    # Behind a '#', a run keeps the SHA-256 of custom code.
    old, new = ({f.field: as_text(f.default).partition("#")[0] for f in flags_of(of)} for of in (before, now))
    return [
        f"{name} {old[name] or 'none'} -> {new[name] or 'none'}" for name in new if old[name] != new[name]
    ]


def check_name(before: TrainConfig, now: TrainConfig, argv: list[str], environ: Mapping[str, str]) -> None:
    """Refuse to train a run that was not named on other stages or with another reward function: it would lose what it
    has learned."""
    if given("run_name", argv, environ) or now.run.resume:
        return
    name = now.run.run_name
    (was, old), (wanted, new) = (
        (",".join(config.stage.names()), config.reward.reward_function.partition("#")[0])
        for config in (before, now)
    )
    if was != wanted:
        raise ConfigError(
            f"The run {name!r} is of stages {was}: give this one a name (--run-name NAME), --run-name {name} to train "
            f"that one on {wanted}, or --fresh to start anew."
        )
    if Path(old).name != Path(new).name:
        raise ConfigError(
            f"The run {name!r} was trained with {old or 'the built-in rewards'}: give this one a name "
            f"(--run-name NAME), --run-name {name} to train that one with {new or 'the built-in rewards'}, "
            "or --fresh to start anew."
        )


def run(argv: list[str]) -> int:
    config = settings(argv)
    if config.run.dry_run:
        print(json.dumps(config.as_dict(), indent=2))
        return EXIT_OK
    console = Console()
    before = settings_of_run(argv, os.environ)
    if before is not None:
        check_name(before, config, argv, os.environ)
    with TrainDisplay(config, console) as display:
        display.say(f"[train] {display.where}, {config.collect.num_envs} environments: loading torch")
        if before is not None and (changed := changes(before, config)):
            display.say(f"[train] changed since the last session: {', '.join(changed)}")
        if config.stage.levels and config.run.preset == "cpu":
            display.say("[train][warn] the cpu preset learns little on generated levels: use --preset gpu")
        # Only now, as torch takes seconds to load: help, refused flags and the first line need not wait for it.
        from warpzone.cluster.train import train as train_anywhere
        from warpzone.run.memory_ladder import train_within_memory

        outcome = train_within_memory(config, display, train_anywhere)
    if config.run.record_video and outcome.agent and outcome.updates and not outcome.exit_code:
        _record(config, outcome, console)
    _summarise(config, outcome, console)
    return outcome.exit_code


def _record(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    from warpzone.agents.recording import TRIES, Style, record_best

    assert outcome.agent is not None
    stage = config.stage.names()[0]
    path = outcome.folder / "videos" / f"final_{stage}.mp4"
    try:
        with console.status(f"recording an episode of {stage}"):
            style, rom = Style(overlay=True), config.stage.rom or None
            video = record_best(outcome.agent, stage, path, style, seed=config.run.seed, rom=rom)
        line = f"[train] video: {video.path} (best of {TRIES} episodes: {video.verdict}, {video.decisions} decisions)"
    except (OSError, ConfigError) as error:
        line = f"[train][warn] no video: {error}"
    console.print(line, markup=False, soft_wrap=True)


def _summarise(config: TrainConfig, outcome: Outcome, console: Console) -> None:
    from warpzone.run.custom_parts import references

    progress = outcome.progress
    print(f"[train] {outcome.folder}: {outcome.reason}")
    if not outcome.updates:
        why = "the run has reached its limit, " if _further(config, progress) else ""
        print(f"[train][warn] {why}nothing was trained: the run and its settings are as they were")
    table = Table(show_header=False)
    table.add_row("updates", f"{progress.update:,}")
    table.add_row("decisions", f"{progress.global_step:,}")
    table.add_row("training time", f"{progress.elapsed_s:.1f} s")
    if progress.elapsed_s:
        table.add_row("decisions/s", f"{progress.global_step / progress.elapsed_s:,.0f}")
    for stage, rate in progress.clear_rate.items():
        table.add_row(f"clear rate {stage}, last {window_of(stage):,} episodes", f"{rate:.1%}")
    for stage, result in outcome.confirmed.items():
        low, high = result.interval
        shown = f"{result.clear_rate:.1%} ({low:.1%} to {high:.1%})"
        table.add_row(f"clear rate {stage}, {result.episodes} fresh episodes", shown)
    console.print(table)
    runs = "" if config.run.runs_dir == "runs" else f" --runs-dir {config.run.runs_dir}"
    name = Path(outcome.folder).name
    code = references(config)
    play = " --trust-code" * (("model", "encoder") in code)
    again = " --trust-code" if code and config.run.trust_code else _named(code)
    if best := _evaluated_before(outcome):
        print(best)
    if activate := _not_active():
        print(f"[train] first:    source {activate}")
    print(f"[train] evaluate: warpzone eval --checkpoint {outcome.folder}{play}")
    print(f"[train] record:   warpzone record --checkpoint {outcome.folder}{play}")
    print(f"[train] curves:   warpzone report {outcome.folder}")
    print(f"[train] resume:   warpzone train --run-name {name}{runs}{_further(config, progress)}{again}")


def _evaluated_before(outcome: Outcome) -> str:
    """A line about the best checkpoint, if it is older than the newest because it did better on fresh episodes."""
    from warpzone.checkpoints.saving import described_metas

    checkpoints = outcome.folder / "checkpoints"
    for best in described_metas(checkpoints / "best.pt")[:1]:
        if best.fresh_clear_rate and best.global_update < outcome.progress.update:
            rates = ", ".join(f"{stage} {rate:.1%}" for stage, rate in best.fresh_clear_rate.items())
            return (
                f"[train] best checkpoint: update {best.global_update:,}, the best on fresh episodes ({rates}); "
                f"the newest: {checkpoints / 'latest.pt'}"
            )
    return ""


def _not_active() -> str:
    """The script that activates this virtual environment, if the shell would not find the commands below."""
    script = Path(sys.prefix) / "bin" / "activate"
    if shutil.which("warpzone") or not script.exists():
        return ""
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def _named(code: Mapping[tuple[str, str], str]) -> str:
    """Flags that name the user's code."""
    return "".join(
        f" --{field.replace('_', '-')} {shlex.quote(text.partition('#')[0])}"
        for (_, field), text in code.items()
    )


def _further(config: TrainConfig, progress: Progress) -> str:
    """Flags that raise the limits which the run has reached, as otherwise it would end at once."""
    run, flags = config.run, ""
    if run.total_updates and progress.update >= run.total_updates:
        flags += f" --total-updates {progress.update + run.total_updates}"
    if run.total_steps and progress.global_step >= run.total_steps:
        flags += f" --total-steps {progress.global_step + run.total_steps}"
    if run.time_limit and progress.elapsed_s >= 60 * run.time_limit:
        flags += f" --time-limit {max(round(progress.elapsed_s / 60 + run.time_limit, 1), 0.1):g}"
    return flags
