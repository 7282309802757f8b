"""The flags of `warpzone train` in every phase, by preset, and what they rest on (docs/research)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warpzone.run.presets import CASTLES, MAZES

Flags = Mapping[str, Any]
"""Flag without its dashes -> value; True is the flag alone, False its `--no-` form."""

ALWAYS: Flags = {
    "until-clear-rate": 0,
    "time-limit": 0,  # `master` ends its runs itself
    "record-video": False,
    "plain": True,
    "action-type": "complex",  # 8-4 needs down, and the larger set cost nothing on 8-3 (45 s against 43 s)
    # Sticky buttons in half of the environments from the first decision on: 1-1 then took 1.2 million decisions instead
    # of 1.0, and cleared 80 % with sticky buttons instead of 53 (2026-11-17-noise-from-the-start.md).
    "double-buffer": True,
    "noisy-sticky": 0.25,
    # A policy without it knows the random sequences of 31 starts by heart: with others, 32 stages fell from 94 to 81 %
    # and 5-4 from 90 to 48, and whole games ended early (2026-11-18-random-starts.md).
    "random-start": 0.5,
}
EVERY_RUN: Mapping[str, Flags] = {
    "cpu": ALWAYS,
    # A stroke in water, as a jump, needs its button released before, and the picture does not show that, nor what
    # sticks. On small frames three seeds of 2-2 were no better with it; on a GPU it is not yet known whether it helps
    # (2026-11-20-eighteen-minutes.md).
    "gpu": {**ALWAYS, "show-buttons": True},
}

SPECIALIST: Mapping[str, Flags] = {
    # Two cores, the tiny network: the preset's own recipe (2026-11-16-one-recipe.md).
    "cpu": {},
    # Measured on one H200: PPO that takes turns, so that several specialists share the GPU; progress counts where Mario
    # stood, 0.97 because 0.9 never passes the trees of 1-3 (1-3 and 5-4 at 95 to 98 % within 21 s). 256 environments
    # annealed by success were the best or nearly so on 7-1, 2-2, 8-1, 5-3 and 7-2 (2026-11-16-one-recipe.md).
    "gpu": {
        "algo": "ppo", "overlap-collect": False, "max-grad-norm": 5, "ground": "stood", "reward-death": 10,
        "reward-flag": 300, "stall-limit": 120, "gamma": 0.97, "num-envs": 256, "minibatch-size": 512,
        "anneal-by-success": True, "hidden": 256,
    },
}  # fmt: skip
# Bowser's bridge: with 0.97 it pays to rush past him even if that succeeds in two of three tries only, as waiting for
# his jump costs more; 5-4 and 6-4 ended at 64 % then (2026-11-17-bowser.md).
CASTLE: Mapping[str, Flags] = {"cpu": {}, "gpu": {"gamma": 0.985}}
# The way back from a wrong turn is long. Noise would delay the reverse curriculum, which moves its start back once most
# episodes from there succeed.
MAZE: Flags = {"noisy-sticky": 0, "gamma": 0.985}
KEPT: Flags = {"go-back": 0.5}  # for what was seen to be lost within a minute
# Two seeds that began with a learning rate of 0.001 stood below 8-4's hidden block until schedules had brought it below
# 0.0002, and entropy down with it. Without imitation two of two later stood there again. With the trail imitated where
# it is stuck, and no gap in it, three of three cleared 8-4 within ten million decisions. Larger batches learned less. A
# stall that is worth nothing, and ends sooner, kept two of three on their way (2026-11-18-hard-stages.md,
# 2026-11-19-eight-four.md).
LAST_MAZE: Mapping[str, Flags] = {
    "cpu": {},
    "gpu": {
        "gamma": 0.99, "stall-limit": 60, "bootstrap-stalls": False, "anneal-steps": 18_000_000, "learning-rate": 3e-4,
        "entropy-coef": 0.003, "trail-imitation": 8, **KEPT,
    },
}  # fmt: skip
# Fish at random: larger batches and one long schedule, as the rates rise while the learning rate falls and are lost
# when it begins anew (2026-11-18-hard-stages.md).
WATER: Mapping[str, Flags] = {
    "cpu": {},
    "gpu": {
        "num-envs": 1024, "minibatch-size": 2048, "trail-patience": 0, "anneal-steps": 30_000_000, **KEPT,
    },
}  # fmt: skip

DISTILLED: Flags = {
    # The run that made the 32-stage policy: 90 % sampled after 16 minutes on one H200. The teachers know the way:
    # no trails. The schedules end with the time.
    "trails": "", "anneal-by-success": False,
    "hidden": 256, "curriculum": "progress", "normalise-advantages": "stage", "learning-rate": 1e-3,
    "lr-final-fraction": 0.05, "warmup-updates": 10, "entropy-coef": 0.001, "entropy-final": 0.0003,
    "max-grad-norm": 5, "target-kl": 0, "teacher-coef": 5, "teacher-final": 0.5, "teacher-temperature": 0.5,
    "ground": "stood", "gamma": 0.985, "reward-death": 10, "reward-flag": 300,
    "reward-scale-start": 0.0045, "reward-scale-final": 0.0045, "stall-limit": 120,
}  # fmt: skip
SIZES: Mapping[str, Flags] = {
    "cpu": {"num-envs": 64, "minibatch-size": 256},
    "gpu": {"num-envs": 2048, "minibatch-size": 2048},
}
STUDENT: Mapping[str, Flags] = {preset: {**DISTILLED, **sizes} for preset, sizes in SIZES.items()}

WARMED_UP: Flags = {"warmup-updates": 20}  # for known weights: the optimiser's moments are empty

POLISH: Flags = {
    **WARMED_UP,
    # Noise without teachers forgot six stages within a minute (sampled 90 -> 61 %, learning rate 3e-4): the teachers
    # stay, the learning rate is lower, half of the play is clean.
    "learning-rate": 2e-4, "lr-final-fraction": 0.05, "entropy-coef": 0.0002,
    "entropy-final": 0.0, "teacher-coef": 1, "teacher-final": 0.5, "noisy-sticky": 0.25,
}  # fmt: skip


WATERS = {"2-2", "7-2"}
SLOW = MAZES | WATERS
"""Stages that take by far the longest: the mazes, and fish at random in the water (84 million decisions, and still
short: 2026-11-18-more-minutes.md)."""
SEVERAL_TRAILS = SLOW | {"6-4"}
"""Stages with trails of several seeds, where there are cores for them: the above, and Bowser with his hammers."""


def is_maze(stages: Iterable[str]) -> bool:
    return not MAZES.isdisjoint(stages)


def specialist(preset: str, stages: Sequence[str]) -> Flags:
    """The recipe of a specialist."""
    flags = dict(SPECIALIST[preset])
    if set(stages) <= CASTLES:
        flags |= CASTLE[preset]
    if is_maze(stages):
        flags |= MAZE
    if set(stages) == {"8-4"}:
        flags |= LAST_MAZE[preset]
    if set(stages) <= WATERS:
        flags |= WATER[preset]
    return flags


def words(*parts: Flags) -> list[str]:
    """Flags as the words of a command line; a later part wins over an earlier one."""
    together: dict[str, Any] = {}
    for part in parts:
        together |= part
    argv: list[str] = []
    for name, value in together.items():
        argv += (
            [f"--{name}"]
            if value is True
            else [f"--no-{name}"]
            if value is False
            else [f"--{name}", str(value)]
        )
    return argv
