"""The end of a master's run: the agent as a file, evaluated, with a card that says how it was made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from warpzone.agents.weights_file import SUFFIX, TEMPERATURE, save_weights
from warpzone.checkpoints.finding import best_checkpoint
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.envs.stages import ALL_STAGES, GAME
from warpzone.master.state import State
from warpzone.master.work import Failed, Work
from warpzone.watch.durable import write_durably
from warpzone.watch.jsonl import json_file

AGENT = f"agent{SUFFIX}"
GAMES = "game.json"
RANDOM = "random start"
RANDOM_FILE = "random-start.json"
CORES_OF_AN_EVALUATION = 2
RESULTS = ("eval.json", "eval.md", "eval.png")
SHARPER, SHARPER_TEMPERATURE = "/sharper", 0.5
"""An agent with a lower temperature, in a folder below its run's: what is left of exploration in the policy is mostly
noise by then (docs/research/2026-11-18-temperature.md)."""
DECIDING = ("sampled", "sticky", RANDOM)
"""Modes whose mean decides which policy is the agent."""
MUST_REACH = ("sampled", RANDOM)
"""Modes in which a stage has to reach the target."""


def finish(work: Work) -> None:
    """Evaluate the policy before and after polishing, and the better one with less randomness; keep the best, and write
    its card."""
    state, folder = work.state, work.folder
    runs = dict.fromkeys((work.first_policy(), *state.policies))
    evaluate(work, unevaluated(state, runs))
    evaluate(work, unevaluated(state, [best_of(state).partition("/")[0] + SHARPER]))
    best = best_of(state)
    state.short = short_of_target(state, state.evaluations[best])
    state.chosen = best
    for name in (*RESULTS, AGENT):
        shutil.copyfile(folder / best / name, folder / name)
    document = {**json_file((folder / best / AGENT).with_suffix(".json")), "name": folder.resolve().name}
    document["master"] = {**asdict(state), "status": "done"}
    if plays_the_game(work):
        document["game"] = whole_game(work, best)
    write_durably((folder / AGENT).with_suffix(".json"), (json.dumps(document, indent=2) + "\n").encode())


def unevaluated(state: State, agents: Iterable[str]) -> list[str]:
    return [name for name in agents if not state.evaluations.get(name, {}).keys() >= {*DECIDING}]


def best_of(state: State) -> str:
    return max(state.evaluations, key=lambda name: mean_rate(state.evaluations[name]))


def plays_the_game(work: Work) -> bool:
    return set(ALL_STAGES) <= set(work.plan.stages)


def evaluate(work: Work, agents: Sequence[str]) -> None:
    """Export agents (the best checkpoints of runs, or sharper ones) and play fresh episodes, and whole games, with them
    in every mode."""
    jobs = {}
    for name in agents:
        folder, job = work.folder / name, job_of(name)
        export(work.folder, name)
        (folder / GAMES).unlink(missing_ok=True)
        stages = ",".join(work.plan.stages)
        jobs[job] = eval_words(work, name, stages, folder, "all")
        jobs[f"{job}-random-start"] = [
            *eval_words(work, name, stages, folder / RANDOM_FILE, "sampled"), "--random-start", "1",
        ]  # fmt: skip
        if plays_the_game(work):
            jobs[f"{job}-game"] = eval_words(work, name, GAME, folder / GAMES, "all")
    _eval(work, jobs)
    for name in agents:
        folder = work.folder / name
        randomly = by_stage(folder / RANDOM_FILE)["sampled"]
        work.state.evaluations[name] = {**by_stage(folder / "eval.json"), RANDOM: randomly}
    work.save()


def job_of(name: str) -> str:
    return f"eval-{name.replace('/', '-')}"


def export(folder: Path, name: str) -> None:
    """Write the agent of a run's best checkpoint, or with `SHARPER` behind the run's name a sharper one."""
    run, _, sharper = name.partition("/")
    temperature = SHARPER_TEMPERATURE if sharper else 1.0
    checkpoint = load_checkpoint(best_checkpoint(folder / run))
    weights = checkpoint.of_training()["learner"]["policy"]
    card = {"name": run, TEMPERATURE: temperature}
    save_weights(folder / name / AGENT, weights, checkpoint.meta, card, bits=16)


def whole_game(work: Work, run: str) -> dict[str, Any]:
    """Mode -> what became of games from power-on with a run's agent."""
    out = work.folder / run / GAMES
    if not out.exists():
        _eval(work, {f"{job_of(run)}-game": eval_words(work, run, GAME, out, "all")})
    shutil.copyfile(out, work.folder / GAMES)
    return {
        mode: {k: v for k, v in told.items() if k != "each"} for mode, told in json_file(out)["game"].items()
    }


def eval_words(work: Work, run: str, stages: str, out: Path, mode: str) -> list[str]:
    """The command that evaluates a run's agent, into a folder or file."""
    return [
        "eval", "--checkpoint", str(work.folder / run / AGENT), "--runs-dir", str(work.folder), "--out", str(out),
        "--stages", stages, "--episodes", str(work.config.episodes), "--mode", mode,
        "--device", "cuda" if work.plan.preset == "gpu" else "cpu", "--trust-code",
    ]  # fmt: skip


def _eval(work: Work, jobs: Mapping[str, Sequence[str]]) -> None:
    # Stages are played one after the other, which leaves many cores idle.
    over = work.run_all(jobs, max(1, work.plan.cores // CORES_OF_AN_EVALUATION), limited=False)
    for name, child in over.items():
        if child.process.returncode:
            raise Failed(f"{name} failed: see {child.log}")


def by_stage(path: Path) -> dict[str, dict[str, Any]]:
    """Mode -> stage -> result, from an evaluation's file."""
    results = json_file(path)["results"]
    return {mode: {row["stage"]: row for row in rows} for mode, rows in results.items()}


def mean_rate(evaluation: dict[str, dict[str, Any]]) -> float:
    return fmean(row["clear_rate"] for mode in DECIDING for row in evaluation[mode].values())


def short_of_target(state: State, evaluation: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Stages that the agent clears less often than the target, sampled or from random starts, and why."""
    target, short = state.settings["target"], {}
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
