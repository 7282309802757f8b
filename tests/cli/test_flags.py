"""Flags come from the command line, then from environment variables of their names, then from the preset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.small_runs import small_run
from warpzone.cli.commands import flags_of_commands, misspelt_variables
from warpzone.cli.control import ControlConfig
from warpzone.cli.flags import SEED_NAMES, blank, command_help, flags_of, parse, with_environment
from warpzone.cli.train import COMMON, changes, flag_groups, settings
from warpzone.errors import ConfigError, nearest
from warpzone.run.config import TrainConfig


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
    return parse(Outer(), argv, "test", environ)


def test_an_environment_variable_sets_the_flag_of_its_name() -> None:
    changed = parsed(
        [],
        WARPZONE_RATE="0.25",
        WARPZONE_KIND="b",
        WARPZONE_COUNT="0x10",
        WARPZONE_IS_ON="yes",
        WARPZONE_SIZE="26x32",
        WARPZONE_OUT="/tmp/x",
    )
    assert changed == Outer(Inner(0.25, "b"), 16, True, (26, 32), Path("/tmp/x"))


def test_an_explicit_flag_wins_over_the_environment() -> None:
    assert parsed(["--rate", "0.75"], WARPZONE_RATE="0.25").inner.rate == 0.75


@pytest.mark.parametrize(
    ("name", "text"),
    [("RATE", "fast"), ("COUNT", "many"), ("IS_ON", "maybe"), ("KIND", "c"), ("SIZE", "a,b")],
)
def test_an_environment_variable_that_is_no_value_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"WARPZONE_{name} takes .*, not '{text}'"):
        parsed([], **{f"WARPZONE_{name}": text})


@given(st.floats(min_value=0, max_value=1))
def test_every_rate_survives_being_written_as_a_variable(rate: float) -> None:
    assert with_environment(Outer(), {"WARPZONE_RATE": repr(rate)}).inner.rate == rate


def test_what_a_setting_refuses_is_raised_as_its_own_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"^rate can't be more than 1\.$"):
        parsed(["--rate", "2"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--nonsense", "1"], "test has no flag --nonsense: see test --help-all."),
        (["--cuont", "1"], "test has no flag --cuont: did you mean --count?"),
        (["--no-rate"], "test has no flag --no-rate"),
        (["--count", "many"], "--count takes a whole number such as 64 or 1e6, not 'many'."),
        (["--count", "1.5e0"], "--count takes a whole number such as 64 or 1e6, not '1.5e0'."),
        (["--kind=c"], "--kind takes {a,b}, not 'c'."),
    ],
)
def test_a_flag_or_value_that_does_not_exist_is_refused_in_a_sentence(argv: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(argv)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("text", ["1e6", "1.0E6", "1_000_000", "0xf4240"])
def test_a_whole_number_can_be_written_in_several_ways(text: str) -> None:
    assert parsed(["--count", text]).count == parsed([f"--count={text}"]).count == 1_000_000
    assert parsed([], WARPZONE_COUNT=text).count == 1_000_000


COMMON_NAMES = (
    *(
        "STAGE",
        "SEED",
        "OUT",
        "WIDTH",
        "CLIP",
        "PROFILE",
        "KEEP",
        "DEVICE",
        "WORLD",
        "PRESET",
        "GAMMA",
        "OPEN",
    ),
    *("RESUME", "HIDDEN", "TOKEN", "NUM_ENVS", "LEARNING_RATE"),
)


def test_unprefixed_variables_have_no_effect(tmp_path: Path) -> None:
    runs = ["--preset", "cpu", "--runs-dir", str(tmp_path)]
    assert settings(runs, dict.fromkeys(COMMON_NAMES, "prod")) == settings(runs, {})


def test_the_seed_systems_own_names_need_no_prefix(tmp_path: Path) -> None:
    seeds = {
        "RUN_NAME": "bootstrap",
        "ACTION_TYPE": "extended",
        "PROBE_FORWARD": "1",
        "RAM_X_HIGH": "0x10",
        "SCRIPTED_SEQUENCE": "START:8,RIGHT+B:180",
    }
    assert seeds.keys() <= SEED_NAMES.keys()
    config = settings(["--preset", "cpu", "--runs-dir", str(tmp_path)], seeds)
    assert config.run.run_name == "bootstrap"
    assert config.view.action_type == "extended"
    assert config.script.probe_forward_actions
    assert config.backend.ram_x_high_addr == "0x10"
    assert config.script.scripted_sequence == seeds["SCRIPTED_SEQUENCE"]


def test_every_seed_name_is_a_flag_of_train() -> None:
    assert set(SEED_NAMES.values()) <= {flag.field for flag in flags_of(TrainConfig())}


def test_a_misspelt_variable_is_named_with_what_was_meant() -> None:
    known = {
        "WARPZONE_SEED": "1",
        "WARPZONE_OUT": "x",
        "WARPZONE_ROM": "x",
        "WARPZONE_TRIALS": "3",
        "HOME": "/",
    }
    assert misspelt_variables(known) == []
    [warning] = misspelt_variables({**known, "WARPZONE_NUM_ENV": "3"})
    assert "WARPZONE_NUM_ENV: did you mean WARPZONE_NUM_ENVS?" in warning


@pytest.mark.parametrize("command", flags_of_commands())
def test_the_help_of_every_flag_is_one_short_phrase(command: str) -> None:
    for flag in flags_of_commands()[command]:
        assert 1 <= len(flag.help.split()) <= 15, f"{command} {flag.name}: {flag.help}"
        assert flag.help.endswith((".", "...")), f"{command} {flag.name}: {flag.help}"


def test_every_command_that_takes_a_run_takes_the_folder_of_runs() -> None:
    takes_runs = {"run", "runs", "checkpoint", "run_name", "paths", "path"}
    for command, flags in flags_of_commands().items():
        fields = {flag.field for flag in flags}
        assert "runs_dir" in fields or not fields & takes_runs, command


@pytest.mark.parametrize(
    ("word", "meant"), [("lr", "learning-rate"), ("envs", "num-envs"), ("total-step", "total-steps")]
)
def test_the_nearest_name_is_found_by_initials_parts_and_typing_errors(word: str, meant: str) -> None:
    names = ["adaptive-lr", "learning-rate", "lr-schedule", "num-envs", "total-steps", "total-updates"]
    assert nearest(word, names) == meant


def test_the_reward_weight_of_the_contract_is_read_from_the_environment(tmp_path: Path) -> None:
    runs = ["--preset", "cpu", "--runs-dir", str(tmp_path)]
    assert settings(runs, {"REWARD_DISTANCE_WEIGHT": "0.05"}).reward.reward_distance_weight == 0.05
    explicit = settings([*runs, "--reward-distance-weight", "2"], {"REWARD_DISTANCE_WEIGHT": "0.05"})
    assert explicit.reward.reward_distance_weight == 2


def test_the_preset_can_come_from_the_environment_and_a_flag_still_wins(tmp_path: Path) -> None:
    runs = ["--runs-dir", str(tmp_path)]
    assert (
        settings(runs, {"WARPZONE_PRESET": "gpu"}).model.encoder
        == settings([*runs, "--preset=gpu"], {}).model.encoder
    )
    assert settings([*runs, "--preset", "cpu"], {"WARPZONE_PRESET": "gpu"}).run.preset == "cpu"


def test_a_flag_turned_off_is_not_overruled_by_the_recipe_for_levels(tmp_path: Path) -> None:
    words = ["--runs-dir", str(tmp_path), "--preset", "gpu", "--levels", "endless"]
    recipe, without = settings(words, {}), settings([*words, "--no-global-pool", "--no-double-buffer"], {})
    assert recipe.model.global_pool
    assert recipe.collect.double_buffer
    assert not without.model.global_pool
    assert not without.collect.double_buffer
    assert without.model.encoder == recipe.model.encoder


FLAGS_OF_THE_CONTRACT = """
--world --stage --random-stage --stage-span --action-type --backend --async-env --force-sync --parent-prewarm
--parent-prewarm-all --worker-start-delay --env-reset-timeout --enable-ram-x-parse --ram-x-high-addr --ram-x-low-addr
--reward-distance-weight --reward-scale-start --reward-scale-final --reward-scale-anneal-steps
--scripted-sequence --scripted-forward-frames --probe-forward-actions --forward-action-id --curriculum
--recurrent-type --memory-length --algo --amp --compile --grad-accum --per --per-sample-interval
--per-gpu-sample --overlap-collect --num-envs --rollout-steps --total-updates --log-interval --seed --device --resume
--enable-tensorboard --wandb-project --heartbeat-path --heartbeat-timeout --slow-step-trace-threshold
--slow-step-trace-window --monitor-interval --profile --adaptive-entropy --adaptive-lr --keep --checkpoint-envs
--preset --total-steps --time-limit --until-clear-rate --on-stall --dry-run --fresh
"""


def test_train_has_every_flag_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        settings(["--preset", "cpu", "--help-all"], {})
    assert leaving.value.code == 0
    words = set(capsys.readouterr().out.replace("[no-]", "").split())
    assert [flag for flag in FLAGS_OF_THE_CONTRACT.split() if flag not in words] == []


def test_help_shows_the_flags_that_people_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings(["--preset", "cpu", "-h"], {})
    shown = capsys.readouterr().out
    listed = [line for line in shown.splitlines() if line.startswith("  --")]
    assert 20 <= len(listed) <= 30
    for title in COMMON:
        assert f"\n{title}\n" in shown
    assert "--help-all shows all" in shown


def test_help_shows_the_defaults_of_this_machine_or_says_whose_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--runs-dir", str(tmp_path), "-h"]
    with pytest.raises(SystemExit):
        settings(argv, {})
    shown = " ".join(capsys.readouterr().out.split())
    assert "auto (gpu if CUDA is available). (default: auto)" in shown
    assert "The defaults are those" not in shown
    small_run(tmp_path, "--run-name", "mario", "--total-updates", "1", "--gamma", "0.5")
    with pytest.raises(SystemExit):
        settings(argv, {})
    shown = " ".join(capsys.readouterr().out.split())
    assert "(default: 0.5)" in shown
    assert shown.endswith("The defaults are those of the run 'mario', which this command would resume.")


def test_help_says_what_a_flag_takes_and_where_a_word_goes() -> None:
    usage = {
        command: {flag.field: flag.usage for flag in flags} for command, flags in flags_of_commands().items()
    }
    assert usage["eval"]["checkpoint"] == "--checkpoint RUN|FILE"
    assert usage["eval"]["out"] == "--out FILE"
    assert usage["explore"]["out"] == "--out DIR"
    assert usage["explore"]["arrivals"] == "--arrivals INT"
    shown = command_help(blank(ControlConfig), "warpzone control").splitlines()
    assert shown[0] == "usage: warpzone control RUN [REQUESTS ...] [FLAGS]"
    assert [line for line in shown if line in ("arguments", "flags")] == ["arguments", "flags"]


def test_all_flags_of_teachers_stand_together() -> None:
    groups = flag_groups(flags_of(TrainConfig()))
    assert {"teachers", "teacher_rate", "teacher_coef", "teacher_final", "teacher_temperature"} == {
        flag.field for flag in groups["teachers"]
    }


@pytest.mark.parametrize(
    ("flags", "stages"),
    [
        (["--stage", "1-2"], ["1-2"]),
        (["--world", "3", "--stage", "2"], ["3-2"]),
        (["--world", "4", "--stage", "4-4"], ["4-4"]),
        (["--stage", "1-3", "--stage-span", "2"], ["1-3", "1-4"]),
        (["--stages", "8-1,8-2"], ["8-1", "8-2"]),
    ],
)
def test_stages_can_be_chosen_in_several_ways(flags: list[str], stages: list[str], tmp_path: Path) -> None:
    assert settings(["--preset", "cpu", "--runs-dir", str(tmp_path), *flags], {}).stage.names() == stages


def test_a_resumed_run_takes_the_stages_of_the_flags_whichever_way_it_had_them_before(tmp_path: Path) -> None:
    for first, then, stages in (
        (["--stages", "1-2,1-3"], ["--world", "4", "--stage", "1"], ["4-1"]),
        (["--random-stage"], ["--stages", "1-1"], ["1-1"]),
        (["--stages", "1-2"], [], ["1-2"]),
    ):
        saved = settings(["--preset", "cpu", *first], {})
        (tmp_path / "mario" / "checkpoints").mkdir(parents=True, exist_ok=True)
        (tmp_path / "mario" / "checkpoints" / "latest.pt").touch()
        (tmp_path / "mario" / "config.json").write_text(json.dumps(saved.as_dict()))
        assert settings(["--runs-dir", str(tmp_path), *then], {}).stage.names() == stages


def test_what_a_resumed_run_does_otherwise_is_named() -> None:
    before, now = (settings(["--preset", "cpu", "--stages", name], {}) for name in ("1-1", "2-2"))
    assert changes(before, now) == ["stages 1-1 -> 2-2"]
    named = settings(["--preset", "cpu", "--reward-function", "mine.py:reward"], {})
    kept = named.changed("reward", reward_function=f"mine.py:reward#{'b6' * 32}")
    assert changes(kept, named) == []
