"""On a GPU: a recorded gradient step equals a plain one, and every mode of learning and collecting runs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.collect.fake_envs import DelayedCredit, TMaze
from tests.learn.rollouts import copy_of, make_policy, random_rollout
from warpzone.collect.config import CollectConfig
from warpzone.collect.env_group import Listeners
from warpzone.collect.graphed import GraphedActor
from warpzone.collect.make import make_collector
from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.distillation import Teachers
from warpzone.learn.learner import Learner
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy
from warpzone.model.snapshot import take_snapshot
from warpzone.run.device import named_device

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def trained_weights(
    graphs: bool, resume_after: int | None = None, taught: bool = False, amp: bool = False
) -> torch.Tensor:
    teachers = Teachers({0: make_policy(seed=5).to("cuda")}) if taught else None

    def fresh() -> Learner:
        config = LearnConfig(cuda_graphs=graphs, amp=amp, minibatches=4, epochs=2, target_kl=0)
        return Learner(make_policy(), config, teachers=teachers, total_updates=6, device="cuda", seed=1)

    learner = fresh()
    for update in range(6):
        if update == resume_after:
            state = learner.state_dict()
            learner = fresh()
            learner.load_state_dict(state)
        rollout = random_rollout(make_policy(), steps=8, num_envs=8, seed=update)
        learner.update(copy_of(rollout, "cuda"))
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()]).cpu()


@pytest.mark.parametrize("taught", [False, True])
def test_a_recorded_step_equals_a_plain_one(taught: bool) -> None:
    recorded, plain = trained_weights(True, taught=taught), trained_weights(False, taught=taught)
    torch.testing.assert_close(recorded, plain, atol=2e-4, rtol=1e-3)


def test_a_recorded_step_in_bfloat16_equals_a_plain_one() -> None:
    recorded, plain = trained_weights(True, amp=True), trained_weights(False, amp=True)
    start = torch.cat([p.detach().flatten() for p in make_policy().parameters()])
    # Rounding differs between kernels, and Adam makes whole steps of the smallest gradients.
    assert (recorded - plain).norm() < 0.2 * (plain - start).norm()
    assert not torch.equal(recorded, trained_weights(True)), "bfloat16 was not used"


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@torch.no_grad()
def test_a_recorded_decision_equals_a_plain_one(dtype: torch.dtype | None) -> None:
    policy = make_policy(heads=3).to("cuda")
    policy.autocast_dtype = dtype
    actor = GraphedActor(policy, {4})
    generator = torch.Generator("cuda").manual_seed(0)
    for seed, size in ((1, 4), (2, 4), (3, 3), (4, 4)):
        actor.install(take_snapshot(make_policy(heads=3, seed=seed).to("cuda"), seed))
        obs = torch.randint(0, 256, (size, 2, 8, 9), dtype=torch.uint8, device="cuda", generator=generator)
        stage = torch.randint(0, 3, (size,), device="cuda", generator=generator)
        starts = torch.zeros(size, dtype=torch.bool, device="cuda")
        logits, values, _ = actor.act(obs, (), starts, stage=stage)
        expected_logits, expected_values, _ = policy.act(obs, stage=stage)
        torch.testing.assert_close(logits, expected_logits, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(values, expected_values, atol=1e-5, rtol=1e-4)
    assert set(actor.recordings) == {4}


def test_a_run_resumes_with_recorded_steps() -> None:
    torch.testing.assert_close(trained_weights(True, 3), trained_weights(True), atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("settings", "recurrent_type", "replay", "overlap"),
    [
        ({"algo": "ppo"}, "none", None, False),
        ({"algo": "appo"}, "none", None, True),
        ({"algo": "appo", "amp_dtype": "float16"}, "none", None, True),
        ({"algo": "ppo"}, "none", ReplayConfig(per=True, per_capacity=4096), False),
        ({"algo": "ppo"}, "none", ReplayConfig(per=True, per_capacity=4096, per_gpu_sample=True), False),
        ({"algo": "ppo", "minibatches": 4}, "gru", None, False),
        ({"algo": "appo", "minibatches": 4}, "transformer", None, True),
    ],
)
def test_every_mode_learns(
    settings: dict[str, Any], recurrent_type: str, replay: ReplayConfig | None, overlap: bool
) -> None:
    torch.manual_seed(0)
    task = TMaze if recurrent_type != "none" else DelayedCredit
    model = ModelConfig(encoder="tiny", hidden=32, recurrent_type=recurrent_type, memory_length=8)  # type: ignore[arg-type]
    policy = Policy(model, (1, 8, 8), task.num_actions)
    config = LearnConfig(learning_rate=3e-3, gamma=0.95, **settings)
    learner = Learner(policy, config, replay=replay, total_updates=60, device="cuda")
    episodes: list[dict[str, Any]] = []
    collector = make_collector(
        CollectConfig(num_envs=32, rollout_steps=10, overlap_collect=overlap),
        [task(32)],
        policy,
        learner.policy_snapshot,
        stack=1,
        device="cuda",
    )
    collector.start(Listeners(on_episodes=episodes.extend))
    for _ in range(60):
        metrics = learner.update(collector.collect())
    collector.close()
    learner.close()
    assert all(math.isfinite(value) for value in metrics.values())
    assert sum(episode["return"] for episode in episodes[-100:]) / 100 > 0.8


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="There is no cuda:77"):
        named_device("cuda:77")
