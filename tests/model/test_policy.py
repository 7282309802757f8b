"""The policy gives the same numbers in acting and learning, forgets at episode starts, fits any picture."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from warpzone.errors import ConfigError
from warpzone.model.config import ModelConfig
from warpzone.model.encoder import FrameConv, _patch_weight, _patches
from warpzone.model.policy import Policy

MEMORIES = ["none", "gru", "lstm", "transformer"]
ENCODERS = ["tiny", "small", "nature", "impala", "strided"]


def make_policy(recurrent_type: str = "none", **settings: object) -> Policy:
    torch.manual_seed(0)
    config = ModelConfig(
        encoder="tiny",
        hidden=16,
        recurrent_type=recurrent_type,  # type: ignore[arg-type]
        memory_length=4,
        transformer_layers=2,
        transformer_heads=2,
        **settings,  # type: ignore[arg-type]
    )
    policy = Policy(config, (2, 12, 14), num_actions=5)
    # The heads start almost flat; widen them so that a wrong memory shows in the numbers.
    torch.nn.init.normal_(policy.logits.weight)
    return policy


def pictures(steps: int, n: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (steps, n, 2, 12, 14), dtype=torch.uint8, generator=generator)


def act_repeatedly(policy: Policy, obs: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    state = policy.initial_state(obs.shape[1])
    logits, values = [], []
    for t in range(obs.shape[0]):
        step_logits, value, state = policy.act(obs[t], state, starts[t])
        logits.append(step_logits)
        values.append(value)
    return torch.stack(logits), torch.stack(values)


@pytest.mark.parametrize("recurrent_type", MEMORIES)
@settings(max_examples=15, deadline=None)
@given(starts=st.lists(st.booleans(), min_size=22, max_size=22))
def test_unroll_gives_the_numbers_of_repeated_act(recurrent_type: str, starts: list[bool]) -> None:
    policy = make_policy(recurrent_type)
    obs, flags = pictures(11, 2), torch.tensor(starts).view(11, 2)
    with torch.no_grad():
        logits, values = policy.unroll(obs, policy.initial_state(2), flags)
        expected_logits, expected_values = act_repeatedly(policy, obs, flags)
    torch.testing.assert_close(logits, expected_logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(values, expected_values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("recurrent_type", ["gru", "lstm", "transformer"])
def test_unroll_from_a_stored_state_continues_the_sequence(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    obs, starts = pictures(9, 3), torch.zeros(9, 3, dtype=torch.bool)
    starts[6, 1] = True
    state = policy.initial_state(3)
    with torch.no_grad():
        whole, _ = policy.unroll(obs, state, starts)
        for t in range(5):
            _, _, state = policy.act(obs[t], state, starts[t])
        rest, _ = policy.unroll(obs[5:], state, starts[5:])
    torch.testing.assert_close(rest, whole[5:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("recurrent_type", ["gru", "lstm", "transformer"])
def test_a_new_episode_remembers_nothing_of_the_last(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    obs = pictures(8, 1)
    starts = torch.zeros(8, 1, dtype=torch.bool)
    starts[5] = True
    other_past = obs.clone()
    other_past[:5] = pictures(5, 1, seed=9)
    with torch.no_grad():
        logits, _ = policy.unroll(obs, policy.initial_state(1), starts)
        other, _ = policy.unroll(other_past, policy.initial_state(1), starts)
    assert torch.equal(logits[5:], other[5:])
    assert not torch.allclose(logits[4], other[4])


def test_a_transformer_drops_steps_older_than_its_memory() -> None:
    policy = make_policy("transformer")
    reach = 2 * policy.config.memory_length  # two blocks, each looking back memory_length steps
    obs = pictures(reach + 2, 1)
    other = obs.clone()
    other[0] = 255 - other[0]
    starts = torch.zeros(reach + 2, 1, dtype=torch.bool)
    with torch.no_grad():
        logits, _ = policy.unroll(obs, policy.initial_state(1), starts)
        changed, _ = policy.unroll(other, policy.initial_state(1), starts)
    assert not torch.allclose(logits[reach], changed[reach])
    assert torch.equal(logits[reach + 1], changed[reach + 1])
    assert policy.initial_state(1)[0].shape == (1, 2, 4, 16)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("size", [(26, 32), (84, 84), (61, 47)])
def test_every_encoder_takes_any_picture(encoder: str, size: tuple[int, int]) -> None:
    if encoder == "nature" and size == (26, 32):
        pytest.skip("checked below: it is too small")
    policy = Policy(ModelConfig(encoder=encoder), (4, *size), num_actions=7)  # type: ignore[arg-type]
    logits, value, state = policy.act(torch.randint(0, 256, (3, 4, *size), dtype=torch.uint8))
    assert logits.shape == (3, 7)
    assert value.shape == (3,)
    assert state == ()


def test_a_frame_too_small_for_the_encoder_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="26x32 frame is too small for the nature encoder"):
        Policy(ModelConfig(encoder="nature"), (4, 26, 32), num_actions=7)


@pytest.mark.parametrize("encoder", ["impala", "strided"])
def test_global_pooling_makes_the_size_of_the_net_independent_of_the_picture(encoder: str) -> None:
    def weights(size: int) -> int:
        config = ModelConfig(encoder=encoder, width=0.5, global_pool=True)  # type: ignore[arg-type]
        return sum(p.numel() for p in Policy(config, (4, size, size), 7).parameters())

    assert weights(48) == weights(84)


def test_the_tiny_encoder_is_the_one_of_the_cpu_study() -> None:
    policy = Policy(ModelConfig(encoder="tiny"), (4, 26, 32), num_actions=7)
    assert 70_000 < sum(p.numel() for p in policy.parameters()) < 80_000


def test_fresh_policies_act_almost_uniformly() -> None:
    policy = Policy(ModelConfig(encoder="tiny"), (4, 26, 32), num_actions=7)
    logits, _, _ = policy.act(torch.randint(0, 256, (8, 4, 26, 32), dtype=torch.uint8))
    assert logits.softmax(-1).sub(1 / 7).abs().max() < 0.02


@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_training_mode_changes_nothing(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    obs, starts = pictures(6, 2), torch.zeros(6, 2, dtype=torch.bool)
    training, _ = policy.train().unroll(obs, policy.initial_state(2), starts)
    acting, _ = policy.eval().unroll(obs, policy.initial_state(2), starts)
    assert torch.equal(training, acting)


def test_each_stage_has_its_own_value_head() -> None:
    policy = Policy(ModelConfig(encoder="tiny"), (2, 12, 14), num_actions=5, num_value_heads=3)
    obs = pictures(1, 1)[0].expand(3, -1, -1, -1)
    _, by_stage, _ = policy.act(obs, stage=torch.tensor([0, 1, 2]))
    _, first, _ = policy.act(obs)
    assert len(set(by_stage.tolist())) == 3
    assert torch.equal(first, by_stage[:1].expand(3))


@pytest.mark.parametrize("field", ["width", "memory_length", "transformer_layers"])
def test_settings_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        ModelConfig(**{field: 0})  # type: ignore[arg-type]


def test_attention_heads_must_divide_the_memory() -> None:
    with pytest.raises(ConfigError, match="must divide"):
        Policy(ModelConfig(encoder="tiny", hidden=30, recurrent_type="transformer"), (1, 12, 14), 2)


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (4, 4), (6, 2)])
def test_patches_as_channels_give_the_same_convolution(kernel: int, stride: int) -> None:
    pictures = torch.randint(0, 256, (3, 2, 24, 16), dtype=torch.uint8)
    weight = torch.randn(5, 2, kernel, kernel)
    expected = F.conv2d(pictures.float(), weight, stride=stride)
    got = F.conv2d(_patches(pictures, stride, torch.float32), _patch_weight(weight, stride))
    torch.testing.assert_close(got, expected, atol=1e-2, rtol=1e-5)


def test_pictures_are_scaled_to_one_by_the_first_convolution() -> None:
    convolution = FrameConv(1, 2, 4, stride=2)
    white = torch.full((1, 1, 8, 8), 255, dtype=torch.uint8)
    expected = nn.Conv2d.forward(convolution, torch.ones(1, 1, 8, 8))
    torch.testing.assert_close(convolution(white), expected)


@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_weights_are_drawn_on_one_thread_whatever_torch_may_use(
    recurrent_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more threads than cores the decomposition takes half a minute instead of a tenth of a second."""
    seen = []
    draw = torch.nn.init.orthogonal_

    def watched(weight: Tensor, gain: float = 1.0) -> Tensor:
        seen.append(torch.get_num_threads())
        return draw(weight, gain)

    monkeypatch.setattr(torch.nn.init, "orthogonal_", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_policy(recurrent_type)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
