"""Learners that share a batch: the same gradients and weights as one learner with all of it."""

from __future__ import annotations

import multiprocessing
import os
import socket
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.learn.rollouts import make_policy, random_rollout
from tests.run.small_runs import Quiet, lasting_state, saved_state, small_config
from warpzone.cluster.ranks import learners, train_together
from warpzone.cluster.train import train
from warpzone.errors import ClusterError, ConfigError
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.ranks import ALONE, Ranks, joined
from warpzone.learn.rollout import Final, Rollout

CONFIGS: dict[str, dict[str, Any]] = {
    "ppo": {"minibatches": 1, "epochs": 2},
    "popart": {"minibatches": 1, "normalise_values": True, "normalise_advantages": "stage"},
    "vtrace": {"algo": "appo", "minibatches": 1, "epochs": 3, "target_kl": 1e-4},
}
UPDATES = 10


def half(rollout: Rollout, rank: int) -> Rollout:
    """The columns of one of two ranks."""
    n = rollout.num_envs // 2
    columns = slice(rank * n, (rank + 1) * n)
    parts: dict[str, Any] = {}
    for field in fields(Rollout):
        value = getattr(rollout, field.name)
        if field.name == "finals":
            parts[field.name] = [
                Final(f.steps[own], f.envs[own] - columns.start, f.obs[own], tuple(m[own] for m in f.state))
                for f in value
                if len(own := ((f.envs >= columns.start) & (f.envs < columns.stop)).nonzero().flatten())
            ]
        elif field.name in ("bootstrap", "state0"):
            parts[field.name] = value[columns] if torch.is_tensor(value) else tuple(m[columns] for m in value)
        else:
            parts[field.name] = value[:, columns].contiguous()
    return Rollout(**parts)


def learn(kind: str, ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """The first gradient, the last weights and the passes of each update, from rank's part of the same rollouts."""
    policy = make_policy(heads=2)
    learner = Learner(policy, LearnConfig(**CONFIGS[kind]), total_updates=20, seed=ranks.rank, ranks=ranks)
    gradient, epochs = torch.zeros(0), []
    for update in range(UPDATES):
        rollout = random_rollout(policy, num_envs=8, stages=2, seed=update)
        numbers = learner.update(rollout if ranks.size == 1 else half(rollout, ranks.rank))
        epochs.append(int(numbers["epochs"]))
        if update == 0:
            gradient = torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])
    return gradient, torch.cat([p.detach().flatten() for p in policy.parameters()]), epochs


def learn_as_rank(rank: int, port: int, results: Any) -> None:
    torch.set_num_threads(1)
    with joined(rank, 2, torch.device("cpu"), f"tcp://127.0.0.1:{port}") as ranks:
        # As lists: tensors would be shared by a file descriptor that goes with this process.
        found = {
            kind: [x.tolist() if torch.is_tensor(x) else x for x in learn(kind, ranks)] for kind in CONFIGS
        }
        results.put((rank, found))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_two_ranks_on_halves_of_a_batch_learn_what_one_learns_on_the_whole() -> None:
    spawn, port = multiprocessing.get_context("spawn"), free_port()
    results = spawn.Queue()
    processes = [spawn.Process(target=learn_as_rank, args=(rank, port, results)) for rank in (0, 1)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=240) for _ in processes)
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    for kind in CONFIGS:
        gradient, weights, epochs = learn(kind, ALONE)
        for rank in (0, 1):
            its_gradient, its_weights, its_epochs = found[rank][kind]
            assert (torch.tensor(its_gradient) - gradient).abs().max() < 1e-6, kind
            assert (torch.tensor(its_weights) - weights).abs().max() < 1e-4, kind
            assert its_epochs == epochs, kind
        # Between the ranks not a bit may differ, or they would drift apart.
        assert found[0][kind][1] == found[1][kind][1], kind


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_one_learner_over_nccl_learns_what_it_learns_alone(tmp_path: Path) -> None:
    weights = []
    for name in ("alone", "nccl"):
        flags = ["--device", "cuda", "--no-amp", "--run-name", name, "--total-updates", "2"]
        config = small_config(tmp_path, *flags)
        outcome = train(config, Quiet()) if name == "alone" else train_together(config, Quiet(), 1)
        policy = saved_state(outcome.folder)["learner"]["policy"]
        weights.append(torch.cat([weight.double().flatten().cpu() for weight in policy.values()]))
    assert weights[0].isfinite().all()
    assert (weights[0] - weights[1]).norm() < 1e-4 * weights[0].norm()


def test_a_run_of_two_learners_counts_all_decisions_and_resumes(tmp_path: Path) -> None:
    flags = ["--gpus", "2", "--stages", "1-1,1-2", "--curriculum", "progress", "--num-envs", "8"]
    display = Quiet()
    train(small_config(tmp_path, *flags, "--total-updates", "3"), display)
    outcome = train(small_config(tmp_path, *flags, "--total-updates", "5"), display)
    assert outcome.progress.update == 5
    assert outcome.progress.global_step == 5 * 8 * 16
    # The trails of the preset are one learner's own.
    assert not any(record["trail_share"] for record in display.records)
    state = lasting_state(tmp_path / "mario")
    assert state["learner"]["decisions"] == 5 * 8 * 16
    assert [record["global_step"] for record in display.records] == [128 * n for n in range(1, 6)]


def test_what_does_not_divide_or_is_not_there_is_refused(tmp_path: Path) -> None:
    for flags, says in (
        (["--gpus", "0"], "at least 1"),
        (["--gpus", "3"], "--num-envs 8 does not divide among 3 learners"),
        (["--gpus", "2", "--minibatch-size", "33"], "33"),
        (["--gpus", "2", "--cluster", "local"], "ray start --head"),
        (["--gpus", "2", "--learner", "native"], "learns alone"),
        (["--gpus", "2", "--teachers", "x"], "one learner"),
    ):
        with pytest.raises(ConfigError, match=says):
            small_config(tmp_path, *flags)
    config = small_config(tmp_path, "--gpus", "2", "--device", "cuda")
    if torch.cuda.device_count() < 2:
        with pytest.raises(ConfigError, match="more GPUs than there are"):
            learners(config, {})
    with pytest.raises(ConfigError, match="torchrun started 4"):
        learners(config, {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "x", "MASTER_PORT": "1"})


def lose_a_rank(rank: int, port: int, results: Any) -> None:
    with joined(rank, 2, torch.device("cpu"), f"tcp://127.0.0.1:{port}") as ranks:
        ranks.sum(torch.ones(1))
        if rank == 1:
            # As a process that is killed: nothing is said to the other.
            os._exit(1)
        try:
            ranks.sum(torch.ones(1))
        except ClusterError as error:
            results.put(str(error))


def test_a_rank_that_dies_ends_the_others_with_a_sentence() -> None:
    spawn, port = multiprocessing.get_context("spawn"), free_port()
    results = spawn.Queue()
    processes = [spawn.Process(target=lose_a_rank, args=(rank, port, results)) for rank in (0, 1)]
    for process in processes:
        process.start()
    assert "Another learner of this run is gone" in results.get(timeout=240)
    for process in processes:
        process.join(30)
