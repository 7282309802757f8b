"""The native net gives torch's numbers: forward, gradients, Adam, whole updates, checkpoints."""

from __future__ import annotations

import copy
import importlib
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.losses import action_logp, approximate_kl, clip_fraction, clipped_loss, value_loss
from warpzone.learn.rollout import Final, Rollout, allocate_rollout
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

try:
    native: Any = importlib.import_module("warpzone.engine._native")
except ImportError:
    native = None
if not hasattr(native, "Net"):
    pytest.skip("the compiled module has no native net", allow_module_level=True)

from warpzone.learn.native import NativeLearner, NativePolicy

TINY = ModelConfig(encoder="tiny")
SHAPE = (4, 26, 32)
KERNELS = native.net_kernels()


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """Pictures this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class ReferenceNet(nn.Module):
    """Any net the native one can be, in torch."""

    def __init__(self, shape, convolutions, hidden, actions, values) -> None:
        super().__init__()
        channels = [shape[0], *(c for c, _, _ in convolutions)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel, stride)
            for (before, after), (_, kernel, stride) in zip(pairwise(channels), convolutions, strict=True)
        )
        features = self.pictures(torch.zeros(1, *shape, dtype=torch.uint8)).shape[1]
        sizes = [features, *hidden]
        self.dense = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.logits = nn.Linear(sizes[-1], actions)
        self.value = nn.Linear(sizes[-1], values)

    def pictures(self, obs: Tensor) -> Tensor:
        x = obs.float() / 255
        for layer in self.convolutions:
            x = torch.relu(layer(x))
        return x.flatten(1)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        x = self.pictures(obs)
        for layer in self.dense:
            x = torch.relu(layer(x))
        return self.logits(x), self.value(x)

    def tensors(self) -> list[Tensor]:
        body = [p for layer in [*self.convolutions, *self.dense] for p in (layer.weight, layer.bias)]
        return [*body, self.logits.weight, self.value.weight, self.logits.bias, self.value.bias]


def twins(shape, convolutions, hidden, actions, values=1, **options) -> tuple[Any, ReferenceNet]:
    """A native net and a torch net with the same weights."""
    torch.manual_seed(0)
    reference = ReferenceNet(shape, convolutions, hidden, actions, values)
    net = native.Net(shape, convolutions, hidden, actions, values, **options)
    flat = torch.cat([p.detach().flatten() for p in reference.tensors()])
    net.weights[:] = flat.numpy()
    net.weights_changed()
    return net, reference


def random_batch(reference: ReferenceNet, shape, count: int) -> dict[str, Tensor]:
    """Samples near enough to the policy that some ratios and values are clipped and some are not."""
    generator = torch.Generator().manual_seed(1)
    obs = torch.randint(0, 256, (count, *shape), generator=generator, dtype=torch.uint8)
    with torch.no_grad():
        logits, heads = reference(obs)
    actions = torch.randint(logits.shape[1], (count,), generator=generator)
    stages = torch.randint(heads.shape[1], (count,), generator=generator)
    noise = torch.randn(4, count, generator=generator)
    return {
        "frames": obs,
        "actions": actions,
        "stages": stages,
        "old_logp": action_logp(logits, actions)[0] + 0.2 * noise[0],
        "advantages": noise[1],
        "targets": noise[2],
        "old_values": heads.gather(1, stages[:, None])[:, 0] + 0.3 * noise[3],
    }


def as_native(batch: dict[str, Tensor], indices: Tensor | None = None) -> Any:
    arrays = {name: column.numpy() for name, column in batch.items()}
    return native.NetBatch(**arrays, indices=None if indices is None else indices.numpy())


def torch_loss(
    reference: ReferenceNet, batch: dict[str, Tensor], clipped: bool = True, value_clip: float = 0.2
):
    """The loss with coefficients 0.5 and 0.01 and clip 0.2, and its statistics."""
    logits, heads = reference(batch["frames"])
    values = heads.gather(1, batch["stages"][:, None])[:, 0]
    logp, entropy = action_logp(logits, batch["actions"])
    policy = (
        clipped_loss(logp, batch["old_logp"], batch["advantages"], 0.2)
        if clipped
        else -logp * batch["advantages"]
    ).mean()
    value = value_loss(values, batch["targets"], batch["old_values"], value_clip or None).mean()
    statistics = {
        "policy_loss": policy,
        "value_loss": value,
        "entropy": entropy.mean(),
        "approx_kl": approximate_kl(logp, batch["old_logp"]).mean(),
        "clip_fraction": clip_fraction(logp, batch["old_logp"], 0.2).mean(),
    }
    return policy + 0.5 * value - 0.01 * entropy.mean(), {k: v.item() for k, v in statistics.items()}


def objective(clipped: bool = True, value_clip: float = 0.2) -> Any:
    return native.NetObjective(
        clipped=clipped, clip=0.2, value_coefficient=0.5, value_clip=value_clip, entropy_coefficient=0.01
    )


ARCHITECTURES = {
    "tiny": (SHAPE, [(8, 4, 2), (16, 3, 2)], [128], 7, 1),
    "small": (SHAPE, [(16, 4, 2), (32, 3, 2)], [256], 12, 1),
    "three convolutions, a head per stage": ((4, 42, 42), [(16, 8, 4), (32, 4, 2), (32, 2, 1)], [64], 7, 5),
    "sizes that divide by nothing": ((3, 21, 19), [(5, 3, 2), (7, 3, 1), (9, 2, 3)], [33, 17], 5, 2),
    "one pixel at the end": ((1, 7, 7), [(3, 3, 2), (5, 3, 1)], [6], 3, 1),
    "no convolutions": ((2, 3, 5), [], [20], 4, 1),
}


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_forward_is_that_of_torch(architecture, kernels):
    shape, _, _, actions, heads = architecture
    net, reference = twins(*architecture, threads=2, kernels=kernels)
    obs = torch.randint(0, 256, (37, *shape), dtype=torch.uint8)
    logits, values = torch.empty(37, actions), torch.empty(37, heads)
    net.forward(obs.numpy(), logits.numpy(), values.numpy())
    expected = reference(obs)
    torch.testing.assert_close(logits, expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values, expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("count", [1, 16, 77])
@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_gradient_is_that_of_autograd(architecture, count, kernels):
    net, reference = twins(*architecture, threads=2, kernels=kernels)
    batch = random_batch(reference, architecture[0], count)
    loss, statistics = torch_loss(reference, batch)
    loss.backward()
    found = net.compute_gradient(as_native(batch), np.arange(count), objective=objective())
    for (name, offset, shape), tensor in zip(net.parameters, reference.tensors(), strict=True):
        assert tuple(tensor.shape) == shape
        gradient = torch.from_numpy(net.gradient[offset : offset + tensor.numel()]).view(shape)
        error = (gradient - tensor.grad).norm() / tensor.grad.norm().clamp(min=1e-6)
        assert error < 1e-4, f"{name}: relative error {error:.2g}"
    assert {name: found[name] for name in statistics} == pytest.approx(statistics, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("clipped", "value_clip"), [(True, 0.0), (False, 0.0), (False, 0.2)])
def test_every_objective_has_the_gradient_of_autograd(clipped, value_clip):
    net, reference = twins(*ARCHITECTURES["tiny"])
    batch = random_batch(reference, SHAPE, 64)
    loss, statistics = torch_loss(reference, batch, clipped, value_clip)
    loss.backward()
    found = net.compute_gradient(as_native(batch), np.arange(64), objective=objective(clipped, value_clip))
    expected = torch.cat([p.grad.flatten() for p in reference.tensors()])
    torch.testing.assert_close(torch.from_numpy(net.gradient), expected, rtol=1e-3, atol=1e-6)
    assert found["policy_loss"] == pytest.approx(statistics["policy_loss"], rel=1e-4)


def test_steps_are_those_of_torch_adam_with_clipped_gradients():
    net, reference = twins(*ARCHITECTURES["tiny"], threads=2)
    batch = random_batch(reference, SHAPE, 96)
    optimizer = torch.optim.Adam(reference.parameters(), lr=1e-3, eps=1e-5)
    order = torch.randperm(96, generator=torch.Generator().manual_seed(2))
    norms = []
    for _ in range(3):
        for rows in order.split(32):
            loss, _ = torch_loss(reference, {name: column[rows] for name, column in batch.items()})
            optimizer.zero_grad()
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.3).item())
            optimizer.step()
    assert min(norms) < 0.3 < max(norms) or min(norms) > 0.3
    for _ in range(3):
        found = net.train(
            as_native(batch),
            order.numpy(),
            minibatch=32,
            objective=objective(),
            learning_rate=1e-3,
            epsilon=1e-5,
            max_gradient_norm=0.3,
        )
    expected = torch.cat([p.detach().flatten() for p in reference.tensors()])
    error = (torch.from_numpy(net.weights) - expected).norm() / expected.norm()
    assert error < 1e-4
    assert found["grad_norm"] == pytest.approx(np.mean(norms[-3:]), rel=1e-3)
    assert net.adam_steps == 9


def train_twice(threads: int) -> np.ndarray:
    net, reference = twins(*ARCHITECTURES["small"], threads=threads)
    batch = as_native(random_batch(reference, SHAPE, 200))
    for seed in range(2):
        net.train(
            batch,
            np.random.default_rng(seed).permutation(200),
            minibatch=72,
            objective=objective(),
            learning_rate=1e-3,
            epsilon=1e-5,
            max_gradient_norm=0.5,
        )
    return net.weights.copy()


def test_the_same_bits_whatever_the_number_of_threads():
    one = train_twice(1)
    for threads in (2, 2, 5):
        np.testing.assert_array_equal(one, train_twice(threads))


def test_stacks_are_gathered_from_frames_and_negative_rows_are_black():
    net, _ = twins(*ARCHITECTURES["tiny"], threads=2)
    frames = np.random.default_rng(0).integers(0, 256, (9, 1, 26, 32), dtype=np.uint8)
    indices = np.random.default_rng(1).integers(-1, 9, (40, 4), dtype=np.int32)
    stacked = np.concatenate([frames, np.zeros_like(frames[:1])])[indices].reshape(40, *SHAPE)
    by_index, direct = ((np.empty((40, 7), np.float32), np.empty((40, 1), np.float32)) for _ in range(2))
    net.forward(frames, *by_index, indices)
    net.forward(stacked, *direct)
    np.testing.assert_array_equal(by_index[0], direct[0])
    np.testing.assert_array_equal(by_index[1], direct[1])


def test_bad_arrays_are_refused():
    net, _ = twins(*ARCHITECTURES["tiny"])
    logits, values = np.empty((2, 7), np.float32), np.empty((2, 1), np.float32)
    with pytest.raises(ValueError, match="26 x 32"):
        net.forward(np.zeros((2, 4, 26, 31), np.uint8), logits, values)
    with pytest.raises(ValueError, match="logits must hold 21 entries"):
        net.forward(np.zeros((3, *SHAPE), np.uint8), logits, values)
    with pytest.raises(ValueError, match="past the last frame"):
        net.forward(np.zeros((3, 1, 26, 32), np.uint8), logits, values, np.full((2, 4), 3, np.int32))
    with pytest.raises(ValueError, match="too small"):
        native.Net((4, 5, 5), [(8, 4, 2), (16, 3, 2)], [8], 7)
    with pytest.raises(ValueError, match="no kernels named"):
        native.Net(SHAPE, [(8, 4, 2)], [8], 7, kernels="abacus")


def policy_pair(heads: int = 1, **options) -> tuple[NativePolicy, Policy]:
    torch.manual_seed(3)
    reference = Policy(TINY, SHAPE, 7, heads)
    with torch.no_grad():
        reference.logits.weight.mul_(100)  # the initial policy is all but uniform, which hides mistakes
    policy = NativePolicy(TINY, SHAPE, 7, heads, threads=2, **options)
    policy.load_state_dict(reference.state_dict())
    return policy, reference


@pytest.mark.parametrize("heads", [1, 3])
@torch.no_grad()
def test_native_policy_acts_as_the_torch_policy(heads):
    policy, reference = policy_pair(heads)
    for each in (policy, reference):
        each.value.mean.fill_(0.5)
        each.value.std.fill_(2.0)
    obs = torch.randint(0, 256, (64, *SHAPE), dtype=torch.uint8)
    stage = torch.arange(64) % heads
    logits, values, state = policy.act(obs, stage=stage)
    expected_logits, expected_values, _ = reference.act(obs, stage=stage)
    torch.testing.assert_close(logits, expected_logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values, expected_values, rtol=1e-4, atol=1e-5)
    assert state == ()


def test_native_policy_has_gradients_where_they_are_wanted():
    policy, _ = policy_pair()
    logits, values, _ = policy.act(torch.zeros(2, *SHAPE, dtype=torch.uint8))
    (logits.sum() + values.sum()).backward()
    assert all(p.grad is not None for p in policy.parameters())


@torch.no_grad()
def test_native_policy_notices_new_weights():
    policy, _ = policy_pair()
    other = NativePolicy(TINY, SHAPE, 7)
    obs = torch.randint(0, 256, (3, *SHAPE), dtype=torch.uint8)
    before = other.act(obs)[0]
    copied = copy.deepcopy(policy)
    other.install(NativeLearner(policy, LearnConfig()).policy_snapshot())
    torch.testing.assert_close(other.act(obs)[0], policy.act(obs)[0], rtol=0, atol=0)
    torch.testing.assert_close(copied.act(obs)[0], policy.act(obs)[0], rtol=0, atol=0)
    assert not torch.allclose(before, other.act(obs)[0])


def test_replaced_parameters_are_noticed():
    policy, _ = policy_pair()
    policy.to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="not replaced"):
        policy.evaluate(torch.zeros(1, *SHAPE, dtype=torch.uint8))


def random_rollout(policy: Policy, seed: int = 0, version: int = 0) -> Rollout:
    """Twelve steps of eight environments with everything that can happen in them."""
    generator = torch.Generator().manual_seed(seed)
    rollout = allocate_rollout(12, 8, (1, 26, 32), stack=4)

    def fill(tensor: Tensor, values: Tensor) -> None:
        tensor.copy_(values)

    fill(rollout.frames, torch.randint(0, 256, rollout.frames.shape, generator=generator))
    ends = torch.rand(12, 8, generator=generator)
    fill(rollout.terminated, ends < 0.1)
    fill(rollout.truncated, ends > 0.93)
    rollout.age[0] = 5
    for t in range(12):
        rollout.age[t + 1] = torch.where(rollout.ends[t], 0, rollout.age[t] + 1)
    rollout.stage_ahead[:, ::2] = policy.num_value_heads - 1
    fill(rollout.rewards, torch.randn(12, 8, generator=generator))
    fill(rollout.truncation_value, torch.randn(12, 8, generator=generator) * rollout.truncated)
    fill(rollout.bootstrap, torch.randn(8, generator=generator))
    rollout.version.fill_(version)
    with torch.no_grad():
        logits, values = Policy.unroll(
            policy, rollout.sequences(torch.arange(8)), (), rollout.starts, stage=rollout.stage
        )
        probabilities = logits.softmax(-1).flatten(0, 1)
        actions = torch.multinomial(probabilities, 1, generator=generator).view(12, 8)
        fill(rollout.actions, actions)
        fill(rollout.logp, action_logp(logits, actions)[0])
        fill(rollout.values, values)
    return rollout


def assert_same_weights(policy: Policy, reference: Policy) -> None:
    for (name, found), expected in zip(
        policy.state_dict().items(), reference.state_dict().values(), strict=True
    ):
        error = (found - expected).norm() / expected.norm().clamp(min=1e-3)
        assert error < 1e-4, f"{name}: relative error {error:.2g}"


# Small steps: a sample on the edge of the clip range could fall on either side of it, and the two part ways.
CONFIGS = {
    "ppo": (LearnConfig(minibatch_size=24, learning_rate=1e-4), 1),
    "values clipped": (
        LearnConfig(minibatch_size=32, learning_rate=1e-4, value_clip=0.2, max_grad_norm=0.0),
        1,
    ),
    "impala": (LearnConfig(algo="impala", learning_rate=1e-4, minibatches=3, entropy_coef=0.02), 1),
    "appo with PopArt": (LearnConfig(algo="appo", learning_rate=1e-4, normalise_values=True), 3),
    "a3c": (LearnConfig(algo="a3c", learning_rate=1e-4, nstep=5), 1),
}


@pytest.mark.parametrize(("config", "heads"), CONFIGS.values(), ids=CONFIGS.keys())
def test_updates_are_those_of_the_torch_learner(config, heads):
    policy, reference = policy_pair(heads)
    learner = NativeLearner(policy, config, total_updates=5, seed=7)
    torch_learner = Learner(reference, config, total_updates=5, seed=7)
    for update in range(3):
        rollout = random_rollout(reference, update, version=max(0, update - 1))  # V-trace corrects a lag of 1
        steps, envs = rollout.truncated.nonzero(as_tuple=True)
        rollout.finals.append(Final(steps, envs, rollout.stacks(steps, envs), ()))
        found, expected = learner.update(rollout), torch_learner.update(rollout)
        assert found.keys() == expected.keys()
        for name in found.keys() - {"learn_time"}:
            assert found[name] == pytest.approx(expected[name], rel=1e-3, abs=1e-4), name
    assert_same_weights(policy, reference)


def test_passes_stop_at_the_target_divergence():
    policy, _ = policy_pair()
    config = LearnConfig(minibatch_size=24, learning_rate=1e-2, epochs=6, target_kl=1e-4)
    assert NativeLearner(policy, config).update(random_rollout(policy))["epochs"] < 6


@pytest.mark.parametrize("first", ["native", "torch"])
def test_either_learner_continues_the_checkpoint_of_the_other(first):
    config = LearnConfig(minibatch_size=24, learning_rate=1e-4)
    policy, reference = policy_pair()
    learners = [NativeLearner(policy, config, seed=1), Learner(reference, config, seed=1)]
    if first == "torch":
        learners.reverse()
    writer, reader = learners
    for update in range(2):
        writer.update(random_rollout(reference, update))
    checkpoint = copy.deepcopy(writer.state_dict())
    reader.load_state_dict(checkpoint)
    assert reader.version == 2
    rollout = random_rollout(reference, 2)
    written, read = writer.update(rollout), reader.update(rollout)
    assert_same_weights(policy, reference)
    assert read["loss_total"] == pytest.approx(written["loss_total"], rel=1e-3, abs=1e-5)


def test_a_native_learner_resumes_bit_by_bit():
    config = LearnConfig(minibatch_size=24)
    policy, _ = policy_pair()
    learner = NativeLearner(policy, config, seed=1)
    learner.update(random_rollout(policy, 0))
    resumed = NativeLearner(NativePolicy(TINY, SHAPE, 7), config, seed=2)
    resumed.load_state_dict(copy.deepcopy(learner.state_dict()))
    rollout = random_rollout(policy, 1)
    found, expected = resumed.update(rollout), learner.update(rollout)
    assert {**found, "learn_time": 0.0} == {**expected, "learn_time": 0.0}
    for a, b in zip(resumed.policy.parameters(), policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_what_the_net_cannot_do_is_said_at_once():
    for config, reason in [
        (replace(TINY, encoder="impala"), "encoders"),
        (replace(TINY, recurrent_type="gru"), "memory"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            NativePolicy(config, SHAPE, 7)
    with pytest.raises(ConfigError, match="CPU"):
        NativeLearner(NativePolicy(TINY, SHAPE, 7), LearnConfig(), device="cuda")
