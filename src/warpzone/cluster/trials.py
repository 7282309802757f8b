"""The trials of a sweep as Ray tasks, many at once. Ray runs one again elsewhere if its node is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from warpzone.cluster.connection import Cluster, check_nodes
from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.sweep import Cut, Referee, drawn, run_trial

RETRIES = 3
VERDICT_S = 120.0
"""How long the study may take to say whether a trial is worth going on with."""
WAIT_S = 1.0

Told = Callable[[Any, dict[str, Any], float, bool], None]
"""Called for every trial that ended: it, its settings, its score and whether it was cut off."""


class Umpire:
    """Has the study at hand, on the machine that searches: tells trials on any node whether to go on."""

    def __init__(self, name: str, storage: str, pruner: Any) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.load_study(study_name=name, storage=storage, pruner=pruner)

    def goes_on(self, trial_id: int, score: float, update: int) -> bool:
        """Whether a trial that has this score now is worth its time."""
        import optuna

        trial = optuna.trial.Trial(self._study, trial_id)
        trial.report(score, update)
        return not trial.should_prune()


def run_trials(
    cluster: Cluster, study: Any, storage: str, base: TrainConfig, names: tuple[str, ...], *,
    trials: int, every: int, cpus: int, gpus: float, told: Told,
) -> None:  # fmt: skip
    """Ask the study for settings, train with them wherever there is room, tell it how well that went."""
    check_nodes(cluster, base.stage.rom)
    largest = max(node["Resources"].get("CPU", 0) for node in cluster.nodes())
    if cpus > largest:
        raise ConfigError(
            f"No node has the {cpus} CPUs of a trial; the largest has {largest:g}: use --trial-cpus."
        )
    ray, at_once = cluster.ray, max(1, cluster.cpus() // cpus)
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    umpire = ray.remote(Umpire).options(
        num_cpus=0, scheduling_strategy=here, max_restarts=-1, max_task_retries=-1
    )
    judge = umpire.remote(study.study_name, storage, study.pruner)
    task = ray.remote(_trial).options(
        num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES, scheduling_strategy="SPREAD"
    )
    base = replace(base, run=replace(base.run, torch_threads=base.run.torch_threads or cpus))
    base = replace(base, stage=replace(base.stage, env_threads=base.stage.env_threads or cpus))
    running: dict[Any, tuple[Any, dict[str, Any]]] = {}
    left = trials
    try:
        while left or running:
            while left and len(running) < at_once:
                trial = study.ask()
                values = drawn(trial, names)
                running[task.remote(base, trial.number, trial._trial_id, values, every, judge)] = (
                    trial,
                    values,
                )
                left -= 1
            done, _ = ray.wait(list(running), num_returns=1, timeout=WAIT_S)
            cluster.refuse_if_gone()
            for ref in done:
                trial, values = running.pop(ref)
                told(trial, values, *_outcome(ray, ref))
    finally:
        for ref in running:
            ray.cancel(ref, force=True)


def _outcome(ray: Any, ref: Any) -> tuple[float, bool]:
    """The score of a trial and whether it was cut off. One that no node could finish is worth nothing."""
    try:
        score, was_cut = ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        raise ConfigError(f"A trial failed: {error.cause!r}") from error
    except ray.exceptions.RayError:
        return 0.0, False
    return float(score), bool(was_cut)


def _trial(
    base: TrainConfig, number: int, trial_id: int, values: dict[str, Any], every: int, umpire: Any
) -> tuple[float, bool]:
    """One training, on some node."""
    import ray

    def report(score: float, update: int) -> bool:
        return bool(ray.get(umpire.goes_on.remote(trial_id, score, update), timeout=VERDICT_S))

    referee = Referee(report, every)
    try:
        score, _ = run_trial(base, number, values, referee)
    except Cut:
        return referee.score, True
    return score, False
