"""Training on generated levels: counted as one stage, resumed with the same levels, refused where it can't be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpzone
from tests.run.small_runs import Quiet, differences, lasting_state, measured, small_config, small_run
from warpzone import ConfigError, levels
from warpzone.agents.evaluation import Trial, evaluate_stage
from warpzone.envs import level_pool
from warpzone.envs.level_pool import LevelPoolEnv, LevelSource, named_levels
from warpzone.envs.level_replay import LevelReplay
from warpzone.envs.make import make_envs
from warpzone.watch.metrics import read_metrics


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that is quick to fill and soon changed."""
    monkeypatch.setattr(level_pool, "SLOTS", 3)
    monkeypatch.setattr(level_pool, "REFRESH_DECISIONS", 64)


@pytest.mark.usefixtures("few")
def test_an_interrupted_run_on_endless_levels_ends_in_the_same_bits(tmp_path: Path) -> None:
    flags = ("--levels", "endless", "--difficulty", "0.2", "--total-updates", "6")
    straight = small_run(tmp_path / "a", *flags)
    small_run(tmp_path / "b", *flags, display=Quiet(interrupt_after=3))
    resumed = small_run(tmp_path / "b", *flags)
    assert resumed.progress.update == 6
    assert differences(lasting_state(straight.folder), lasting_state(resumed.folder)) == []
    assert measured(straight.folder) == measured(resumed.folder)
    pool = lasting_state(resumed.folder)["envs"][0]["levels"]
    assert pool["next"] == 3 + pool["decisions"] // 64
    assert len(set(pool["numbers"])) == 3
    assert [*read_metrics(resumed.folder)][-1]["stage_share"] == {"levels@0.2": 1.0}
    # What was trained is evaluated on levels that no run trains on.
    assert resumed.agent is not None
    result = evaluate_stage(
        resumed.agent, "levels-5000-5002@0.2", Trial(episodes=4, mode="greedy", threads=1)
    )
    assert result is not None
    assert result.episodes == 4


@pytest.mark.usefixtures("few")
def test_a_run_resumes_with_more_levels(tmp_path: Path) -> None:
    for updates, count in enumerate(("2", "3", "endless"), 1):
        display = Quiet()
        run = small_run(tmp_path, "--levels", count, "--total-updates", str(updates), display=display)
        assert run.progress.update == updates
        began_anew = any("other levels: episodes start over" in line for line in display.lines)
        assert began_anew == (count == "3")


def pool_of(source: LevelSource, stages: tuple[str, ...] = ()) -> LevelPoolEnv:
    return LevelPoolEnv(4, source, stages, threads=1, size=(16, 16), autoreset_mode="same_step", seed=0)


@pytest.mark.usefixtures("few")
def test_levels_count_as_one_stage_and_change_while_they_are_played() -> None:
    envs = pool_of(LevelSource(0, 0.3), ("1-1",))
    _, info = envs.reset(seed=1)
    seen, seeds = set(info["stage_index"].tolist()), set(envs.level_seeds())
    for _ in range(150):
        _, _, _, _, info = envs.step(np.full(4, 4))
        seen |= set(info["stage_index"].tolist())
        if "final_info" in info:
            assert info["final_info"]["stage_index"].max() <= 1
        seeds |= set(envs.level_seeds())
    assert seen == {0, 1}
    assert seeds == set(range(3 + 600 // 64))
    envs.set_stage_weights([1.0, 0.0])
    envs.reset()
    assert set(envs.step(np.zeros(4, np.int64))[4]["stage_index"].tolist()) == {0}
    envs.close()


@pytest.mark.usefixtures("few")
def test_many_environments_wait_for_a_new_level_once_in_four_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_pool, "REFRESH_DECISIONS", 2)
    envs = pool_of(LevelSource(0, 0.3))
    envs.reset(seed=1)
    newest = []
    for _ in range(9):
        envs.step(np.full(4, 1))
        newest.append(max(envs.level_seeds()))
    assert newest == [2, 2, 2, 3, 3, 3, 3, 4, 4]
    envs.close()


@pytest.mark.usefixtures("few")
def test_a_given_number_of_levels_comes_round_again() -> None:
    few_levels, more = pool_of(LevelSource(2, 0.3)), pool_of(LevelSource(5, 0.3))
    for envs in (few_levels, more):
        envs.reset(seed=1)
        for _ in range(80):
            envs.step(np.full(4, 1))
    assert few_levels.level_seeds() == [0, 1]
    assert set(more.level_seeds()) <= set(range(5))
    assert more.level_seeds() != [0, 1, 2]
    few_levels.close()
    more.close()


def test_names_stand_for_generated_levels() -> None:
    rom = warpzone.rom()
    assert named_levels("levels-7@0.4", rom) == [levels.generate(7, 0.4, rom=rom)]
    assert [level.name for level in named_levels("levels-3-4@0", rom) or []] == [
        levels.generate(seed, 0, rom=rom).name for seed in (3, 4)
    ]
    assert named_levels("1-1", rom) is None
    with pytest.raises(ConfigError, match="range of seeds"):
        named_levels("levels-9-3@0.3", rom)
    config = small_config(Path("runs"), "--levels", "16", "--stages", "1-1,1-2")
    assert config.stage.names() == ["1-1", "1-2", "levels@0.3"]
    envs = make_envs(config.view, 1, ["levels-7@0.4"], threads=1)
    envs.reset(seed=0)
    envs.close()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--levels", "many"), "--levels is a number"),
        (("--levels", "0"), "--levels is a number"),
        (("--levels", "8", "--difficulty", "2"), "--difficulty is a number"),
        (("--levels", "8", "--trails", "folder"), "no trails"),
        (("--levels", "8", "--backend", "nes-py"), "native engine"),
        (("--level-replay",), "add --levels"),
    ],
)
def test_what_does_not_go_with_levels_is_refused(flags: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        small_config(Path("runs"), *flags)


def test_levels_that_are_cleared_half_of_the_time_are_played_more_often_and_kept() -> None:
    replay = LevelReplay(3)
    replay.weigh()
    assert replay.shares.tolist() == pytest.approx([1 / 3] * 3)
    assert replay.least(oldest=2) == 2
    always, half, never = (np.full(12, slot) for slot in range(3))
    replay.count(always, np.ones(12))
    replay.count(half, np.arange(12) % 2)
    replay.count(never, np.zeros(12))
    replay.weigh()
    shares = replay.shares
    assert shares.sum() == pytest.approx(1)
    assert shares[1] > 1.5 * shares[0]
    assert shares[1] > 1.5 * shares[2]
    assert replay.least(oldest=1) in (0, 2)
    replay.forget(2)
    assert replay.least(oldest=1) == 0
    other = LevelReplay(3)
    other.load_state_dict(replay.state_dict())
    assert other.shares.tolist() == replay.shares.tolist()
    assert other.scores().tolist() == replay.scores().tolist()


@pytest.mark.usefixtures("few")
def test_level_replay_replaces_the_level_that_teaches_least() -> None:
    envs = LevelPoolEnv(
        4, LevelSource(0, 0.3), threads=1, size=(16, 16), autoreset_mode="same_step", seed=0, replay=True
    )
    envs.reset(seed=1)
    # Slot 0 is cleared half of the time, slot 1 always, and of slot 2 nothing is known.
    assert envs._replay is not None
    envs._replay.count(np.zeros(12, np.int64), np.arange(12) % 2)
    envs._replay.count(np.ones(12, np.int64), np.ones(12))
    for _ in range(64 // 4):
        envs.step(np.full(4, 1))
    assert envs.level_seeds() == [0, 3, 2]
    restored = envs.state_dict()["level_replay"]
    assert restored["episodes"][0] > 8
    envs.close()


@pytest.mark.usefixtures("few")
def test_a_run_with_level_replay_resumes_to_the_same_bits(tmp_path: Path) -> None:
    flags = ["--levels", "endless", "--level-replay", "--total-updates", "20", "--stall-limit", "10"]
    whole = small_run(tmp_path / "whole", *flags).folder
    parts = small_run(tmp_path / "parts", *flags, display=Quiet(interrupt_after=9)).folder
    small_run(tmp_path / "parts", *flags)
    assert differences(lasting_state(whole), lasting_state(parts)) == []
