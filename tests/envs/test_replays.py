"""Replays lead to the same RAM again, begin environments of any view, and damaged ones are refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpzone
from warpzone.envs.actions import parse_buttons
from warpzone.envs.button_env import ButtonEnv
from warpzone.envs.replays import Replay, load_replay, parse_replay, play_back, playing, recorded

RUN, JUMP = parse_buttons("RIGHT+B"), parse_buttons("RIGHT+B+A")


def run_and_jump(frames: int, **console: Any) -> tuple[ButtonEnv, Replay]:
    """Run through 1-1, jumping now and then, until the end of the episode or of the frames."""
    env, buttons = ButtonEnv("1-1", warpzone.rom(), **console), bytearray()
    while not env.over and len(buttons) < frames:
        buttons.append(JUMP if len(buttons) // 20 % 2 else RUN)
        env.press(buttons[-1])
    region = console.get("region", "ntsc")
    return env, recorded(env, "1-1", bytes(buttons), warpzone.rom(), region, lost_levels=False)


@pytest.mark.parametrize("region", ["ntsc", "pal"])
def test_a_replay_from_a_file_gives_the_same_ram(region: str, tmp_path: Path) -> None:
    env, replay = run_and_jump(300, region=region)
    path = tmp_path / "a.json"
    path.write_bytes(replay.to_json())
    again = play_back(load_replay(path), warpzone.rom())
    assert np.array_equal(again.ram, env.ram)
    assert again.telemetry == env.telemetry
    assert again.telemetry["x_pos"] > 400


def test_frame_by_frame_it_is_the_episode_that_the_vector_plays() -> None:
    _, replay = run_and_jump(10_000)
    *_, last = states = [dict(env.telemetry) for env in playing(replay, warpzone.rom())]
    envs = warpzone.MarioVectorEnv(1, "1-1", frame_skip=1, autoreset_mode="disabled")
    _, info = envs.reset(seed=0)
    actions = {RUN: 3, JUMP: 4}
    for held, state in zip(replay.buttons, states[1:], strict=True):
        *_, info = envs.step(np.array([actions[held]]))
        assert (info["x_pos"][0], info["time"][0]) == (state["x_pos"], state["time"])
    assert info["end"][0] == last["end"] == 1
    envs.close()


@pytest.mark.parametrize(
    "view",
    [
        {},
        {"size": (26, 32), "observation": "red"},
        {"observation": "rgb", "crop_hud": True, "frame_stack": 2, "palette": "measured"},
    ],
)
def test_an_environment_of_any_view_begins_where_a_replay_ends(view: dict[str, Any], tmp_path: Path) -> None:
    played, replay = run_and_jump(200)
    path = tmp_path / "a.start.json"
    path.write_bytes(replay.to_json())
    envs = warpzone.MarioVectorEnv(2, "1-1", **view)
    envs.reset(seed=0)
    for start in (path, str(path), path.read_bytes()):
        observations, info = envs.reset(options={"snapshot": start})
        assert np.array_equal(envs.ram[0], played.ram)
        assert info["from_snapshot"].tolist() == [1, 1]
    # The picture is the one that an environment of this view sees there.
    aside = warpzone.MarioVectorEnv(1, "1-1", **{**view, "frame_skip": 1, "frame_stack": 1})
    seen, _ = aside.reset(seed=0)
    for held in replay.buttons:
        seen, *_ = aside.step(np.array([{RUN: 3, JUMP: 4}[held]]))
    assert np.array_equal(observations[0][-len(seen[0]) :], seen[0])
    envs.step(np.ones(2, np.int64))
    aside.close()
    envs.close()


def test_the_single_environment_takes_it_too(tmp_path: Path) -> None:
    played, replay = run_and_jump(150)
    (tmp_path / "a.json").write_bytes(replay.to_json())
    env = warpzone.MarioEnv("1-1")
    _, info = env.reset(options={"snapshot": tmp_path / "a.json"})
    assert info["x_pos"] == played.telemetry["x_pos"]
    env.close()


@given(st.binary(max_size=300), st.sampled_from(["1-1", "8-4", "game"]), st.booleans())
def test_writing_and_reading_gives_the_same_replay(buttons: bytes, stage: str, pal: bool) -> None:
    replay = Replay(stage, buttons, "0" * 32, "f" * 64, "pal" if pal else "ntsc", False, {"x_pos": 7})
    assert parse_replay(replay.to_json()) == replay


@given(st.binary(max_size=200))
def test_bytes_that_are_no_replay_are_refused(data: bytes) -> None:
    with pytest.raises(warpzone.CheckpointError, match="a file that warpzone play saved"):
        parse_replay(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "movie"}, "is not a replay"),
        ({"version": 2}, "has format version 2, this program reads 1"),
        ({"stage": "9-1"}, "There is no stage '9-1'"),
        ({"region": "mars"}, "unknown region or stage"),
        ({"frames": 3}, "number of frames is wrong"),
        ({"buttons": [[256, 1]]}, "pairs of 0 to 255"),
        ({"buttons": [[1, 0]]}, "pairs of 0 to 255"),
        ({"buttons": [[1, 1 << 40]]}, "pairs of 0 to 255"),
        ({"buttons": [[1, 2, 3]]}, "is damaged"),
        ({"buttons": 5}, "is damaged"),
        ({"ram_sha256": "x"}, "a digest is malformed"),
        ({"rom_md5": None}, "a digest is malformed"),
        ({"telemetry": {"x": "y"}}, "telemetry is not made of numbers"),
    ],
)
def test_a_damaged_replay_is_refused_in_a_sentence(change: dict[str, Any], words: str) -> None:
    fields = json.loads(Replay("1-1", b"\x80\x80", "0" * 32, "f" * 64).to_json())
    with pytest.raises(warpzone.CheckpointError, match=words):
        parse_replay(json.dumps({**fields, **change}).encode())
    for name in set(fields) - {"telemetry"}:
        with pytest.raises(warpzone.CheckpointError):
            parse_replay(json.dumps({k: v for k, v in fields.items() if k != name}).encode())


def test_a_replay_that_does_not_fit_is_refused_in_a_sentence(tmp_path: Path) -> None:
    played, replay = run_and_jump(10_000)
    assert played.over
    rom, envs = warpzone.rom(), warpzone.MarioVectorEnv(1, "1-1")
    with pytest.raises(warpzone.CheckpointError, match="the RAM differs"):
        play_back(replace(replay, ram_sha256="0" * 64), rom)
    with pytest.raises(warpzone.CheckpointError, match="its episode ended 5 frames early"):
        play_back(replace(replay, buttons=replay.buttons + bytes(5)), rom)
    with pytest.raises(warpzone.CheckpointError, match="another ROM"):
        play_back(replace(replay, rom_md5="0" * 32), rom)
    with pytest.raises(warpzone.CheckpointError, match="its episode is over where it ends"):
        envs.reset(options={"snapshot": replay.to_json()})
    with pytest.raises(warpzone.CheckpointError, match="region='pal'"):
        envs.reset(options={"snapshot": replace(replay, region="pal").to_json()})
    with pytest.raises(warpzone.CheckpointError, match="can't be read"):
        envs.reset(options={"snapshot": tmp_path / "nothing.json"})
    with pytest.raises(warpzone.ConfigError, match="bytes or a file, not int"):
        envs.reset(options={"snapshot": 5})
    envs.close()
