"""The end of a master's run: the agent as a file, evaluated, with a card that says how it was made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpzone.agents.weights_file import TEMPERATURE, save_weights
from warpzone.checkpoints.finding import best_checkpoint
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.envs.stages import ALL_STAGES, GAME
from warpzone.master.state import AGENT, State
from warpzone.master.verdict import DECIDING, RANDOM, best_of, short_of_target
from warpzone.master.work import Failed, Work
from warpzone.watch.durable import write_durably
from warpzone.watch.jsonl import json_file

GAMES = "game.json"
RANDOM_FILE = "random-start.json"
CORES_OF_AN_EVALUATION = 2
RESULTS = ("eval.json", "eval.md", "eval.png")
SHARPER, SHARPER_TEMPERATURE = "/sharper", 0.5
"""An agent with a lower temperature, in a folder below its run's: what is left of exploration in the policy is mostly
noise by then (docs/research/2026-11-18-temperature.md)."""


def finish(work: Work) -> None:
    """Evaluate the policy before and after polishing, and the better one with less randomness; keep the best, and write
    its card."""
    state, folder = work.state, work.folder
    evaluate(work, unevaluated(state, candidates(work)))
    run = best_of(state).partition("/")[0]
    if run in work.learners():
        evaluate(work, unevaluated(state, [run + SHARPER]))
    best = best_of(state)
    state.short = short_of_target(state, best)
    state.chosen = best
    for name in (*RESULTS, AGENT):
        shutil.copyfile(folder / best / name, folder / name)
    document = {**json_file((folder / best / AGENT).with_suffix(".json")), "name": folder.resolve().name}
    document["master"] = {**asdict(state), "status": "done"}
    if plays_the_game(work):
        document["game"] = whole_game(work, best)
    write_durably((folder / AGENT).with_suffix(".json"), (json.dumps(document, indent=2) + "\n").encode())


def candidates(work: Work) -> list[str]:
    """The runs whose policies may become the agent."""
    runs = dict.fromkeys((work.first_policy(), work.state.polished_run))
    return [run for run in runs if any((work.folder / run / "checkpoints").glob("*.pt"))]


def unevaluated(state: State, agents: Iterable[str]) -> list[str]:
    return [name for name in agents if not state.evaluations.get(name, {}).keys() >= {*DECIDING}]


def plays_the_game(work: Work) -> bool:
    return set(ALL_STAGES) <= set(work.plan.stages)


def evaluate(work: Work, agents: Sequence[str]) -> None:
    """Export agents (the best checkpoints of runs, or sharper ones) and play fresh episodes in every mode, with sharper
    ones whole games too."""
    jobs = {}
    for name in agents:
        folder, job = work.folder / name, job_of(name)
        export(work.folder, name)
        (folder / GAMES).unlink(missing_ok=True)  # of other weights
        stages = ",".join(work.plan.stages)
        jobs[job] = eval_words(work, name, stages, folder, "all")
        jobs[f"{job}-random-start"] = [
            *eval_words(work, name, stages, folder / RANDOM_FILE, "sampled"), "--random-start", "1",
        ]  # fmt: skip
        if plays_the_game(work) and name.endswith(SHARPER):
            # It is likely to be the best, and games take the longest; another agent plays them once it is chosen.
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
