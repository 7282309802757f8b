"""What `warpzone master` is asked for, how its time is divided, and who learns which stages."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpzone.envs.stages import GAME, parse_stages
from warpzone.errors import ConfigError
from warpzone.master.state import Learner
from warpzone.run.config import Preset
from warpzone.run.presets import preset

SHARES: Mapping[str, dict[str, float]] = {
    "cpu": {"explore": 0.08, "specialists": 0.5, "distil": 0.25, "polish": 0.12, "evaluate": 0.05},
    # Many specialists at once are soon done; the one policy was still far behind them (2026-11-18-more-minutes.md).
    "gpu": {"explore": 0.04, "specialists": 0.42, "distil": 0.34, "polish": 0.15, "evaluate": 0.05},
}
"""Of the whole time, by preset. What a phase leaves goes to the next, and exploration leaves most: it ends with the
last trail."""
LEAST_S = {"explore": 1.0, "specialists": 10.0, "distil": 10.0, "polish": 5.0, "evaluate": 2.0}
"""Seconds below which a phase, for specialists each turn, would hardly do more than start its processes."""
LEAST_NEED = 0.1
"""Of a whole turn, what a specialist has that is at the target but not yet with confidence."""
ALIKE = (("2-2", "7-2"), ("2-3", "7-3"))
"""Stages that look alike: their specialists would contradict each other, so each pair has one."""
OWN_FLAGS = (
    "--run-name", "--runs-dir", "--fresh", "--dry-run", "--stages", "--stage", "--world", "--random-stage", "--levels",
    "--seed", "--teachers", "--begin-with",
)  # fmt: skip
MINUTES_PER_STAGE, MINUTES_ON_A_GPU = 10.0, 90.0
MOST_ON_A_GPU = 8


@dataclass(frozen=True)
class MasterConfig:
    """Train one policy for several stages, from the ROM alone: search for trails, train specialists, distil them into
    one policy, fine-tune it under noise (polish), evaluate. The same command resumes after a stop or a crash."""

    stages: str = "all"
    """Stages: 'all', a world such as '1', or '1-1,4-4'."""
    minutes: float = 0.0
    """Total minutes of all sessions (0 = 90 on a GPU, else 10 per stage)."""
    out: Path = Path("master")
    """Folder of the state, the runs and the agent."""
    target: float = 0.9
    """Clear rate at which a specialist is done, shown with 95 % confidence."""
    parallel: int = 0
    """Specialists that train at once (0 = as many as the machine can run)."""
    episodes: int = 100
    """Episodes per stage and mode of the final evaluation."""
    seed: int = 0
    """Random seed."""
    preset: Preset = "auto"
    """Recipes for a machine: cpu, gpu, or auto (gpu if CUDA is available)."""
    rom: str = ""
    """Path of the ROM; by default $WARPZONE_ROM or the installed package's."""
    cluster: str = ""
    """Ray cluster for the specialists: local, auto or HEAD:PORT; needs --out on a shared disk."""
    train_flags: str = ""
    """Extra flags for every training, as in --train-flags='--num-envs 32'."""
    plain: bool = False
    """Print lines instead of the live board."""
    dry_run: bool = False
    """Print the plan and the commands, and exit."""

    def __post_init__(self) -> None:
        if not 0 <= self.minutes < math.inf:
            raise ConfigError(f"--minutes must be 0 or more, and finite, not {self.minutes:g}.")
        if self.parallel < 0:
            raise ConfigError(f"--parallel must be 0 or more, not {self.parallel}.")
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"--out must be a folder, and {self.out} is a file.")
        if not 0 < self.target < 1:
            raise ConfigError(f"--target is a rate between 0 and 1, not {self.target}.")
        if self.episodes < 1:
            raise ConfigError("--episodes must be at least 1.")


@dataclass(frozen=True)
class Plan:
    """The settings with everything decided."""

    stages: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    """Specialists by name, and the stages of each."""
    seconds: float
    cores: int
    parallel: int
    preset: str
    train_flags: tuple[str, ...]

    def shares(self) -> dict[str, float]:
        """A single specialist is the student: its time is that of both."""
        shares = SHARES[self.preset]
        if len(self.groups) > 1:
            return shares
        return {**shares, "specialists": shares["specialists"] + shares["distil"], "distil": 0.0}

    def ends_at(self, phase: str, from_s: float = 0.0) -> float:
        """Seconds of work, all phases together, at which a phase is to end if the time from `from_s` on is divided."""
        shares = self.shares()
        names = list(shares)
        return from_s + (self.seconds - from_s) * sum(
            shares[name] for name in names[: names.index(phase) + 1]
        )


def make_plan(config: MasterConfig, cores: int) -> Plan:
    """Decide what was left open; too little time is refused."""
    stages = parse_stages(config.stages)
    if GAME in stages:
        raise ConfigError("--stages game is not a stage to master: name stages, a world or 'all'.")
    chosen = preset(config.preset).run.preset
    groups = specialists_of(stages)
    parallel = config.parallel or default_parallel(chosen, cores)
    minutes = config.minutes or (MINUTES_ON_A_GPU if chosen == "gpu" else MINUTES_PER_STAGE * len(stages))
    plan = Plan(
        stages=tuple(stages), groups=groups, seconds=60 * minutes, cores=cores,
        parallel=min(parallel, len(groups)), preset=chosen, train_flags=split_flags(config.train_flags),
    )  # fmt: skip
    phase, needed = time_needed(plan)
    if plan.seconds < needed:
        raise ConfigError(
            f"{minutes:g} minutes are too few for the phase '{phase}': give --minutes "
            f"{math.ceil(needed / 6) / 10:g} or more, or fewer stages."
        )
    return plan


def split_flags(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"--train-flags {text!r} can't be read ({error}): check its quotes.") from error
    for word in words:
        if word.partition("=")[0].replace("_", "-") in OWN_FLAGS:
            raise ConfigError(f"--train-flags can't have {word}: `master` decides that itself.")
    return words


def time_needed(plan: Plan) -> tuple[str, float]:
    """The phase that needs the longest whole, and the seconds of that."""
    turns = math.ceil(len(plan.groups) / plan.parallel)
    least = {**LEAST_S, "specialists": LEAST_S["specialists"] * turns}
    needed = {phase: least[phase] / share for phase, share in plan.shares().items() if share}
    return max(needed.items(), key=lambda item: item[1])


def specialists_of(stages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """One for each stage, and one for two that look alike."""
    groups: dict[str, tuple[str, ...]] = {}
    for stage in stages:
        pair = next((pair for pair in ALIKE if stage in pair and set(pair) <= set(stages)), (stage,))
        groups.setdefault("+".join(pair), pair)
    return groups


def default_parallel(chosen: str, cores: int) -> int:
    return max(1, min(cores // 2, MOST_ON_A_GPU) if chosen == "gpu" else cores // 2)


def need(learner: Learner, target: float) -> float:
    """How far a specialist is below the target, from 1 (it clears nothing) to `LEAST_NEED`."""
    rates = [learner.clear_rate.get(stage, 0.0) for stage in learner.stages]
    return max(1.0 - min(rates) / target, LEAST_NEED)


def turn_s(wanted_s: float, left_s: float) -> float:
    """Seconds of a turn: neither too short to learn from, nor longer than the time that is left."""
    return min(max(wanted_s, LEAST_S["specialists"]), left_s)


def anneal_steps(steps: int, per_s: float, left_s: float) -> int:
    """The length of schedules that end with the time, in decisions: those made and those still to come."""
    return max(1, round(steps + per_s * left_s))
