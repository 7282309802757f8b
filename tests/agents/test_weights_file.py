"""An agent to give away: what is packed comes back as it was, nearly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from warpzone.agents.weights_file import Bits, load_weights, save_weights
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError

META = CheckpointMeta(
    global_step=7, global_update=3, config={"view": {"size": [84, 84]}, "learn": {}}, architecture={"a": 1}
)


def weights() -> dict[str, torch.Tensor]:
    dice = torch.Generator().manual_seed(0)
    large = torch.randn(1024, 1100, generator=dice) * torch.logspace(-3, 1, 1024).unsqueeze(1)
    large[5] = 0
    return {
        "large": large,
        "small": torch.randn(7, 512, generator=dice),
        "filter": torch.randn(32, 4, 8, 8, generator=dice),
        "bias": torch.randn(7, generator=dice),
    }


def test_what_is_packed_comes_back_nearly(tmp_path: Path) -> None:
    given = weights()
    path = save_weights(tmp_path / "new" / "agent.safetensors", given, META, {"name": "agent"})
    found, meta = load_weights(path)
    assert found.keys() == given.keys()
    assert all(tensor.dtype == torch.float32 for tensor in found.values())
    # A row in bytes is off by half a step of its own largest value, whatever the other rows are.
    step = given["large"].abs().amax(dim=1, keepdim=True) / 127
    assert ((found["large"] - given["large"]).abs() <= 0.51 * step + 1e-9).all()
    step = given["filter"].abs().amax(dim=(1, 2, 3), keepdim=True) / 127
    assert ((found["filter"] - given["filter"]).abs() <= 0.51 * step).all()
    for name in ("small", "bias"):
        torch.testing.assert_close(found[name], given[name], rtol=1e-3, atol=1e-6)
    assert path.stat().st_size < 1.1 * given["large"].numel()
    assert (meta.global_step, meta.global_update, meta.architecture) == (7, 3, {"a": 1})
    assert meta.config == {"view": {"size": [84, 84]}}
    assert meta.extra["name"] == "agent"


def test_the_card_does_not_say_where_the_rom_was(tmp_path: Path) -> None:
    meta = CheckpointMeta(
        1, 1, config={"stage": {"stages": "1-1", "rom": "/home/somebody/rom.nes"}}, architecture={}
    )
    path = save_weights(tmp_path / "agent.safetensors", {}, meta, {})
    assert json.loads(path.with_suffix(".json").read_text())["config"] == {
        "stage": {"stages": "1-1", "rom": ""}
    }
    assert meta.config["stage"]["rom"] == "/home/somebody/rom.nes"


@pytest.mark.parametrize("bits", [4, 6])
def test_less_than_a_byte_comes_back_within_half_a_step_of_its_group(bits: Bits, tmp_path: Path) -> None:
    dice = torch.Generator().manual_seed(0)
    large = torch.randn(256, 3136, generator=dice) * torch.logspace(-3, 1, 256).unsqueeze(1)
    large[5] = 0
    odd = torch.randn(300, 1001, generator=dice)
    given = {"large": large, "odd": odd, **{k: v for k, v in weights().items() if k != "large"}}
    path = save_weights(tmp_path / "agent.safetensors", given, META, {}, bits=bits)
    found, _ = load_weights(path)
    step = large.view(256, -1, 112).abs().amax(2, keepdim=True) / (2 ** (bits - 1) - 1)
    off = (found["large"] - large).view(256, -1, 112).abs()
    assert (off <= 0.52 * step + 1e-6).all()
    assert (off > 0.3 * step).any()
    # A row that does not divide into groups is kept in bytes, as filters are.
    assert (found["odd"] - odd).abs().max() <= 0.51 * odd.abs().max() / 127
    assert (found["filter"] - given["filter"]).abs().max() <= 0.51 * given["filter"].abs().max() / 127
    for name in ("small", "bias"):
        torch.testing.assert_close(found[name], given[name], rtol=1e-3, atol=1e-6)
    assert path.stat().st_size < (bits / 8 + 0.02) * large.numel() + 1.05 * odd.numel() + 30_000
    exact = save_weights(tmp_path / "exact.safetensors", given, META, {}, bits=16)
    torch.testing.assert_close(load_weights(exact)[0]["large"], large, rtol=1e-3, atol=1e-6)


def test_a_missing_card_and_a_damaged_file_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = save_weights(tmp_path / "agent.safetensors", weights(), META, {})
    card = path.with_suffix(".json")
    kept = card.read_text()
    card.unlink()
    with pytest.raises(CheckpointError, match="choose another agent"):
        load_weights(path)
    card.write_text(kept)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="choose another agent"):
        load_weights(path)


def test_the_agent_in_the_repository_is_small_and_says_what_it_is() -> None:
    root = Path(__file__).parents[2]
    path = root / "agents" / "thirty-two.safetensors"
    assert path.stat().st_size < 10e6
    card = json.loads(path.with_suffix(".json").read_text())
    evaluated = card["master"]["evaluations"][card["master"]["chosen"]]
    published = json.loads((root / "docs" / "data" / "eval-32.json").read_text())["results"]
    for mode, rows in published.items():
        assert len(rows) == 32
        assert {row["stage"]: row["clear_rate"] for row in rows} == {
            stage: row["clear_rate"] for stage, row in evaluated[mode].items()
        }
    with safe_open(str(path), "pt") as file:
        assert file.get_tensor("logits.bias").shape == (card["architecture"]["num_actions"],)
