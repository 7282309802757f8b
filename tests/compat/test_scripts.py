"""What scripts of others do, in one of them: run unchanged by `python -m warpzone.compat`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gym")

USES = {
    "a registered id of one's own, made by gym": """
        import gym, gym_super_mario_bros
        gym.register(id="Mine-v0", entry_point="gym_super_mario_bros:SuperMarioBrosEnv", kwargs={"target": (1, 2)})
        env = gym.make("Mine-v0", apply_api_compatibility=True)
        env.reset()
        assert len(env.step(3)) == 5
    """,
    "rules of one's own": """
        import gym
        from gym_super_mario_bros.smb_env import SuperMarioBrosEnv
        class Mine(SuperMarioBrosEnv):
            def __init__(self, **options):
                super().__init__(**options)
                self.steps = 0
            def _get_reward(self):
                return self._x_reward + self._time_penalty + self._death_penalty + 2
            def _get_done(self):
                return self._is_dying or self._is_dead or self.steps >= 5
            def _get_info(self):
                return dict(super()._get_info(), left=self._left_x_position)
            def _will_reset(self):
                super()._will_reset()
                self.steps = 0
            def _did_step(self, done):
                super()._did_step(done)
                self.steps += 1
        env = Mine(target=(1, 1))
        env.reset()
        steps = [env.step(0) for _ in range(6)]
        assert [s[2] for s in steps] == [False] * 5 + [True]
        assert steps[0][1] == 2 and steps[0][3]["left"] == 40
        gym.register(id="Other-v0", entry_point=Mine, kwargs={"target": (1, 1)})
        assert gym.make("Other-v0", apply_api_compatibility=True).reset()[0].shape == (240, 256, 3)
    """,
    "a wrapper that skips frames, and gym's own": """
        import gym, gym_super_mario_bros
        from gym.wrappers import FrameStack, RecordEpisodeStatistics, TransformObservation
        from nes_py.wrappers import JoypadSpace
        from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
        class SkipFrame(gym.Wrapper):
            def step(self, action):
                total = 0.0
                for _ in range(4):
                    frame, reward, done, truncated, info = self.env.step(action)
                    total += reward
                    if done:
                        break
                return frame, total, done, truncated, info
        env = gym_super_mario_bros.make("SuperMarioBros-1-1-v0", apply_api_compatibility=True, render_mode="rgb")
        env = SkipFrame(JoypadSpace(env, SIMPLE_MOVEMENT))
        env = TransformObservation(env, lambda frame: frame.mean(axis=-1))
        env = FrameStack(RecordEpisodeStatistics(env), num_stack=4)
        env.reset(seed=1)
        frames, reward, *_ = env.step(1)
        assert len(frames) == 4 and frames[0].shape == (240, 256)
        env.close()
    """,
    "the old name of JoypadSpace, and the private parts": """
        import gym_super_mario_bros, gym_super_mario_bros._registration
        from gym_super_mario_bros import SuperMarioBrosEnv, SuperMarioBrosRandomStagesEnv
        from gym_super_mario_bros._roms import decode_target
        from gym_super_mario_bros._roms.rom_path import rom_path
        from gym_super_mario_bros.actions import COMPLEX_MOVEMENT
        from nes_py import NESEnv
        from nes_py.nes_env import SCREEN_HEIGHT, SCREEN_WIDTH, ImageViewer
        from nes_py.app.play_human import play_human
        from nes_py.app.play_random import play_random
        from nes_py.wrappers import BinarySpaceToDiscreteSpaceEnv
        env = BinarySpaceToDiscreteSpaceEnv(gym_super_mario_bros.make("SuperMarioBros-v0"), COMPLEX_MOVEMENT)
        env.reset()
        frame, reward, done, info = env.step(1)
        game = env.unwrapped
        assert game._x_position == info["x_pos"] and not game._is_dying and game.ram[0x075A] == info["life"]
        game._backup(); env.step(2); game._restore(); game._frame_advance(0)
        rom = NESEnv(rom_path(False, "vanilla"))
        rom.reset()
        assert rom.step(0)[0].shape == (SCREEN_HEIGHT, SCREEN_WIDTH, 3)
        assert decode_target((1, 2), False) == (1, 2, 3)
    """,
    "several at once, by gym": """
        import gym, gym_super_mario_bros
        make = lambda: gym.make("SuperMarioBros-1-1-v0", apply_api_compatibility=True, max_episode_steps=3)
        envs = gym.vector.SyncVectorEnv([make] * 2)
        frames, _ = envs.reset()
        assert frames.shape == (2, 240, 256, 3)
        ends = [envs.step([128, 0])[3].tolist() for _ in range(3)]
        assert ends[-1] == [True, True]
    """,
}


@pytest.mark.parametrize("use", USES, ids=[use.replace(" ", "_") for use in USES])
def test_a_script(use: str, tmp_path: Path) -> None:
    lines = USES[use].splitlines()[1:]
    script = tmp_path / "script.py"
    script.write_text("\n".join(line[8:] for line in lines) + "\nprint('through')\n")
    run = subprocess.run(
        [sys.executable, "-m", "warpzone.compat", str(script)], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.endswith("through\n"), run.stderr


def test_the_command_line(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "warpzone.compat", "-m", "gym_super_mario_bros", "--help"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "--actionspace" in run.stdout, run.stderr
