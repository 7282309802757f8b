"""Which policy is the agent, and which stages it is short of."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from warpzone.master.state import State

RANDOM = "random start"
DECIDING = ("sampled", "sticky", RANDOM)
"""Modes whose mean decides which policy is the agent."""
MUST_REACH = ("sampled", RANDOM)
"""Modes in which a stage has to reach the target."""


def best_of(state: State) -> str:
    return max(state.evaluations, key=lambda name: mean_rate(state.evaluations[name]))


def mean_rate(evaluation: dict[str, dict[str, Any]]) -> float:
    return fmean(row["clear_rate"] for mode in DECIDING for row in evaluation[mode].values())


def short_of_target(state: State, agent: str) -> dict[str, str]:
    """Stages that an agent clears less often than the target, sampled or from random starts, and why."""
    evaluation, target, short = state.evaluations[agent], state.settings["target"], {}
    for stage in evaluation["sampled"]:
        rates = {mode: evaluation[mode][stage]["clear_rate"] for mode in MUST_REACH}
        rate = min(rates.values())
        if rate >= target:
            continue
        told = ", ".join(f"{mode} {rate:.0%}" for mode, rate in rates.items())
        one = next(one for one in state.specialists.values() if stage in one.stages)
        learned = one.clear_rate.get(stage, 0.0)
        if one.status == "failed":
            why = f"its specialist failed: {one.error}"
        elif rate == 0 and learned == 0:
            why = "never cleared"
        elif one.status == "done" or learned >= target:
            why = f"lost in distillation: its specialist clears {learned:.0%}"
        else:
            why = f"clears, but too seldom: its specialist {learned:.0%}"
        short[stage] = f"{told}: {why}"
    return short
