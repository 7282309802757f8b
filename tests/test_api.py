"""Training and playing from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpzone
from warpzone.api import resolve
from warpzone.run.presets import CPU

TINY: dict[str, Any] = {
    **{"preset": "cpu", "device": "cpu", "torch_threads": 1, "env_threads": 1},
    **{"num_envs": 8, "rollout_steps": 16, "minibatch_size": 64, "log_interval": 1},
    **{"until_clear_rate": 0.0, "total_updates": 2},
}
AGENTS = Path(__file__).parents[1] / "agents"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> warpzone.Outcome:
    runs = tmp_path_factory.mktemp("runs")
    return warpzone.train("1-1", runs_dir=runs, run_name="tiny", **TINY)


def test_training_is_quiet_and_says_what_it_led_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = warpzone.train(["1-1", "1-2"], runs_dir=tmp_path, run_name="two", **TINY)
    assert capfd.readouterr() == ("", "")
    assert outcome.folder == tmp_path / "two"
    assert outcome.reason == "all updates are done"
    assert (outcome.exit_code, outcome.progress.update, outcome.progress.global_step) == (0, 2, 256)
    assert outcome.confirmed == {}
    assert json.loads((outcome.folder / "config.json").read_text())["stage"]["stages"] == "1-1,1-2"
    assert outcome.agent is not None
    assert outcome.agent.stages() == ["1-1", "1-2"]


def test_a_run_that_exists_is_resumed_with_its_own_settings(tmp_path: Path) -> None:
    warpzone.train("1-2", runs_dir=tmp_path, run_name="r", gamma=0.5, **TINY)
    lines: list[str] = []

    class Display:
        def update(self, record: dict[str, Any]) -> None: ...

        def say(self, line: str) -> None:
            lines.append(line)

    outcome = warpzone.train(runs_dir=tmp_path, run_name="r", total_updates=3, display=Display())
    assert outcome.progress.update == 3
    assert any("resuming" in line for line in lines)
    assert json.loads((tmp_path / "r" / "config.json").read_text())["learn"]["gamma"] == 0.5


def test_settings_have_flat_names_and_values_as_people_write_them(tmp_path: Path) -> None:
    config = resolve(
        {"runs_dir": tmp_path, "size": 42, "total_steps": 2e5, "gamma": 1, "stages": ["1-1"]}, "cpu"
    )
    assert (config.run.runs_dir, config.view.size, config.run.total_steps) == (
        str(tmp_path),
        (42, 42),
        200_000,
    )
    assert config.learn.gamma == 1.0
    assert config.collect.num_envs == CPU.collect.num_envs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_env": 8}, "no setting 'num_env': did you mean num_envs"),
        ({"total_steps": "many"}, "total_steps can't be 'many'"),
        ({"num_envs": True}, "num_envs can't be True"),
        ({"algo": "dqn"}, "algo can't be 'dqn'"),
        ({"preset": "tpu"}, "Unknown preset 'tpu'"),
        ({"stages": "9-9"}, "9-9"),
        ({"encoder": "natur"}, "Unknown encoder 'natur'"),
        ({"encoder": "missing.py:Net", "run_name": "x"}, "missing.py can't be read"),
        ({"reward_function": lambda before, after: 0}, "top level of a .py file"),
        ({"dry_run": True}, "dry_run"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(warpzone.ConfigError, match=message):
        warpzone.train(**{"runs_dir": tmp_path, "preset": "cpu", "device": "cpu", **settings})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["name", "folder", "checkpoint"])
def test_an_agent_is_loaded_by_run_folder_or_checkpoint(outcome: warpzone.Outcome, kind: str) -> None:
    folder = outcome.folder
    given = {"name": folder.name, "folder": folder, "checkpoint": folder / "checkpoints" / "latest.pt"}[kind]
    agent = warpzone.load_agent(given, runs_dir=folder.parent, device="cpu")
    envs = agent.make_env(3, "1-1", seed=0)
    assert envs.view == agent.view
    observations, _ = envs.reset()
    actions, probabilities, values = agent.act(observations)
    assert actions.shape == values.shape == (3,)
    assert probabilities.shape == (3, agent.view.num_actions)
    assert outcome.agent is not None
    _, expected, _ = outcome.agent.act(observations, np.ones(3, np.bool_))
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    envs.step(actions)
    envs.close()


@pytest.mark.parametrize("agent", sorted(AGENTS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_every_agent_of_the_repository_loads(agent: Path) -> None:
    loaded = warpzone.load_agent(agent, device="cpu")
    assert loaded.meta is not None
    assert loaded.meta.global_step > 0


def test_a_weights_file_plays_evaluates_and_records(tmp_path: Path) -> None:
    agent = warpzone.load_agent(AGENTS / "maze-4-4.safetensors", device="cpu")
    (result,) = agent.evaluate(["4-4"], episodes=4, noop_max=0)
    low, high = result.interval
    assert 0 <= low <= result.clear_rate <= high <= 1
    assert (result.stage, result.episodes) == ("4-4", 4)
    assert agent.evaluate("4-4", episodes=1, mode="sticky")[0].episodes == 1
    video = agent.record("4-4", tmp_path / "mario.mp4", tries=1, overlay=False, scale=1)
    assert (tmp_path / "mario.mp4").stat().st_size > 1000
    assert video.x_max > 0
    for wrong in ({"mode": "best"}, {"episodes": 0}, {"sead": 1}):
        with pytest.raises(warpzone.ConfigError):
            agent.evaluate("4-4", **wrong)
    with pytest.raises(warpzone.ConfigError, match="mp4"):
        agent.record("4-4", tmp_path / "mario.avi")


def test_a_missing_agent_is_named() -> None:
    with pytest.raises(warpzone.CheckpointError, match="nobody"):
        warpzone.load_agent("nobody")


def test_a_stage_that_ends_behind_a_pipe_gets_actions_with_down() -> None:
    assert resolve({"stages": "8-4"}, "cpu").view.action_type == "complex"
    assert resolve({"stages": "1-1"}, "cpu").view.action_type == "simple"
    assert resolve({"stages": "8-4", "action_type": "right"}, "cpu").view.action_type == "right"


def test_castles_and_mazes_have_settings_of_their_own_unless_others_are_given() -> None:
    def flat(**given: Any) -> dict[str, Any]:
        parts = resolve(given, "cpu").as_dict()
        return {name: value for part in parts.values() for name, value in part.items()}

    def differs(**given: Any) -> dict[str, Any]:
        """Settings that differ from those of 1-1, beside the stages themselves."""
        usual = flat(stages="1-1")
        return {
            name: value for name, value in flat(**given).items() if value != usual[name] and name != "stages"
        }

    assert differs(stages="4-4") == {"gamma": 0.985, "trail_patience": 0}
    assert differs(stages="4-4,8-4") == {"gamma": 0.985, "trail_patience": 0, "action_type": "complex"}
    assert differs(stages="4-4,6-4") == {"trail_patience": 0}
    assert differs(stages="4-4,1-1") == {}
    assert differs(stages="6-4", trail_patience=7) == {"trail_patience": 7}
    assert differs(stages="7-4", gamma=0.9) == {"gamma": 0.9, "trail_patience": 0}


def test_generated_levels_have_a_recipe_of_their_own_on_a_gpu() -> None:
    def chosen(preset: str, **given: Any) -> tuple[str, bool, int, float, float]:
        config = resolve({"levels": "endless", **given}, preset)
        model, learn = config.model, config.learn
        return (
            model.encoder,
            model.global_pool,
            learn.epochs,
            learn.learning_rate,
            config.collect.noisy_sticky,
        )

    assert chosen("gpu") == ("strided", True, 2, 5e-4, 0.25)
    assert chosen("gpu", encoder="nature") == ("nature", False, 4, 1e-3, 0.25)
    assert chosen("gpu", num_envs=7, minibatch_size=32) == ("strided", True, 2, 5e-4, 0.0)
    assert chosen("gpu", double_buffer=False, epochs=1) == ("strided", True, 1, 5e-4, 0.0)
    assert chosen("cpu") == ("tiny", False, 4, 1e-3, 0.0)
    assert resolve({"stages": "1-1"}, "gpu").model.encoder == "nature"


def test_a_run_on_generated_levels_is_recorded_and_evaluated(tmp_path: Path) -> None:
    settings = {**TINY, "total_updates": 1, "record_video": True, "step_limit": 20}
    outcome = warpzone.train(levels="2", runs_dir=tmp_path, run_name="levels", **settings)
    assert (outcome.folder / "videos" / "final_levels@0.3.mp4").exists()
    agent = outcome.agent
    assert isinstance(agent, warpzone.Agent)
    assert agent.stages() == ["levels@0.3"]
    results = agent.evaluate(["levels-7-8@0.3", "1-1"], episodes=1)
    assert [result.stage for result in results] == ["1-1", "levels-7-8@0.3"]
    assert agent.record("levels-7@0.3", tmp_path / "seven.gif", tries=1).path.exists()
    envs = agent.make_env(2, "levels-7@0.3")
    assert envs.stage_names == ["seed 7 at 0.3 (overworld)"]
    envs.close()
    for bad in ("levels@2", "other@0.3", 5, []):
        with pytest.raises(warpzone.ConfigError):
            agent.evaluate(bad, episodes=1)
    with pytest.raises(warpzone.ConfigError, match="give that mode"):
        agent.evaluate("1-1", sticky=0.5)


def test_a_name_that_its_module_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warpzone._LAZY, "Lost", "warpzone.envs.single")
    with pytest.raises(AttributeError, match="Lost"):
        warpzone.Lost  # type: ignore[attr-defined]  # noqa: B018
    assert warpzone.levels.__name__ == "warpzone.levels"
