"""Flags come from the command line, then from environment variables of their names, then from the preset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpzone.cli.flags import parse, with_environment
from warpzone.cli.train import settings
from warpzone.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    """Settings of a part."""

    rate: float = 0.5
    """A rate."""
    kind: Literal["a", "b"] = "a"
    """A choice."""

    def __post_init__(self) -> None:
        if self.rate > 1:
            raise ConfigError("rate can't be more than 1.")


@dataclass(frozen=True)
class Outer:
    """Settings."""

    inner: Inner = Inner()
    count: int | None = None
    """A number."""
    is_on: bool = False
    """A switch."""
    size: tuple[int, int] = (2, 3)
    """A pair."""
    out: Path | None = None
    """A path."""


def parsed(argv: list[str], **environ: str) -> Outer:
    return parse(Outer(), argv, "test", "", environ)


def test_an_environment_variable_sets_the_flag_of_its_name() -> None:
    changed = parsed([], RATE="0.25", KIND="b", COUNT="0x10", IS_ON="yes", SIZE="26x32", OUT="/tmp/x")
    assert changed == Outer(Inner(0.25, "b"), 16, True, (26, 32), Path("/tmp/x"))


def test_an_explicit_flag_wins_over_the_environment() -> None:
    assert parsed(["--rate", "0.75"], RATE="0.25").inner.rate == 0.75


@pytest.mark.parametrize(
    ("name", "text"),
    [("RATE", "fast"), ("COUNT", "many"), ("IS_ON", "maybe"), ("KIND", "c"), ("SIZE", "a,b")],
)
def test_an_environment_variable_that_is_no_value_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}='{text}'"):
        parsed([], **{name: text})


@given(st.floats(min_value=0, max_value=1))
def test_every_rate_survives_being_written_as_a_variable(rate: float) -> None:
    assert with_environment(Outer(), {"RATE": repr(rate)}).inner.rate == rate


def test_what_a_setting_refuses_is_raised_as_its_own_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"^rate can't be more than 1\.$"):
        parsed(["--rate", "2"])
    assert capsys.readouterr().err == ""


def test_an_unknown_flag_is_named_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        parsed(["--nonsense", "1"])
    assert leaving.value.code == 2
    assert "--nonsense" in capsys.readouterr().err


def test_the_reward_weight_of_the_contract_is_read_from_the_environment(tmp_path: Path) -> None:
    runs = ["--preset", "cpu", "--runs-dir", str(tmp_path)]
    assert settings(runs, {"REWARD_DISTANCE_WEIGHT": "0.05"}).reward.reward_distance_weight == 0.05
    explicit = settings([*runs, "--reward-distance-weight", "2"], {"REWARD_DISTANCE_WEIGHT": "0.05"})
    assert explicit.reward.reward_distance_weight == 2


def test_the_preset_can_come_from_the_environment_and_a_flag_still_wins(tmp_path: Path) -> None:
    runs = ["--runs-dir", str(tmp_path)]
    assert (
        settings(runs, {"PRESET": "gpu"}).model.encoder == settings([*runs, "--preset=gpu"], {}).model.encoder
    )
    assert settings([*runs, "--preset", "cpu"], {"PRESET": "gpu"}).run.preset == "cpu"


FLAGS_OF_THE_CONTRACT = """
--world --stage --random-stage --stage-span --action-type --backend --async-env --force-sync --parent-prewarm
--parent-prewarm-all --worker-start-delay --env-reset-timeout --enable-ram-x-parse --ram-x-high-addr --ram-x-low-addr
--reward-distance-weight --reward-scale-start --reward-scale-final --reward-scale-anneal-steps
--scripted-sequence --scripted-forward-frames --probe-forward-actions --forward-action-id --curriculum
--recurrent-type --memory-length --algo --no-amp --no-compile --grad-accum --per --per-sample-interval
--per-gpu-sample --overlap-collect --num-envs --rollout-steps --total-updates --log-interval --seed --device --resume
--enable-tensorboard --wandb-project --heartbeat-path --heartbeat-timeout --slow-step-trace-threshold
--slow-step-trace-window --monitor-interval --profile --adaptive-entropy --adaptive-lr --keep --checkpoint-envs
--preset --total-steps --time-limit --until-clear-rate --on-stall --dry-run --fresh
"""


def test_train_has_every_flag_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings(["--preset", "cpu", "-h"], {})
    words = set(capsys.readouterr().out.replace(",", " ").replace("|", " ").split())
    assert [flag for flag in FLAGS_OF_THE_CONTRACT.split() if flag not in words] == []
