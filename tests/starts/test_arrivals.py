"""Episodes that begin as the stage before ended: collected from an agent's play, kept in files, used by a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.run.small_runs import differences, lasting_state, measured, small_config, small_run
from warpzone.agents.agent import Agent, load_agent
from warpzone.agents.arrivals import collect_arrivals
from warpzone.cli.explore import run as explore
from warpzone.envs.make import make_envs
from warpzone.errors import ConfigError
from warpzone.run.build import rom_digest
from warpzone.starts.arrivals import Arrivals, load_arrivals, save_arrivals
from warpzone.watch.jsonl import read_records

AGENT = Path(__file__).parents[2] / "agents" / "thirty-two.safetensors"
RIGHT = 3


@pytest.fixture(scope="module")
def agent() -> Agent:
    return load_agent(str(AGENT), Path("runs"), torch.device("cpu"), 2)


@pytest.fixture(scope="module")
def arrived(agent: Agent) -> dict[str, list[bytes]]:
    return collect_arrivals(agent, ["1-1", "1-2"], 2, seed=1, threads=1)


def test_an_agent_arrives_in_the_stage_after_the_one_it_began_in(arrived: dict[str, list[bytes]]) -> None:
    # Nothing leads into 1-1.
    assert {stage: len(moments) for stage, moments in arrived.items()} == {"1-2": 2}
    assert arrived["1-2"][0] != arrived["1-2"][1]


def test_a_moment_of_the_game_begins_an_episode_of_its_stage(
    agent: Agent, arrived: dict[str, list[bytes]]
) -> None:
    envs = make_envs(agent.view, 1, ["2-1", "1-2"], threads=1, noop_max=0, autoreset_mode="same_step")
    envs.queue_start(0, arrived["1-2"][0])
    _, info = envs.reset(seed=0)
    told = {
        name: int(info[name][0])
        for name in ("world", "stage", "stage_index", "from_snapshot", "steps", "progress")
    }
    assert told == {"world": 1, "stage": 2, "stage_index": 1, "from_snapshot": 1, "steps": 0, "progress": 0}
    reached = 0
    for _ in range(200):
        *_, terminated, truncated, info = envs.step(np.array([RIGHT]))
        if terminated[0] or truncated[0]:
            break
        reached = max(reached, int(info["progress"][0]))
    assert reached > 100
    envs.close()


def test_a_moment_of_a_stage_begins_a_game(agent: Agent) -> None:
    stage = make_envs(agent.view, 1, ["2-1"], threads=1, noop_max=0)
    stage.reset(seed=0)
    moment = stage.snapshot(0)
    stage.close()
    game = make_envs(agent.view, 1, ["game"], threads=1, noop_max=0, autoreset_mode="same_step")
    game.queue_start(0, moment)
    _, info = game.reset(seed=0)
    lives = int(info["life"][0])
    assert (info["world"][0], info["stage"][0]) == (2, 1)
    # A death does not end a game.
    while int(info["life"][0]) == lives:
        *_, terminated, truncated, info = game.step(np.array([RIGHT]))
        assert not terminated[0]
        assert not truncated[0]
    assert (info["world"][0], info["stage"][0]) == (2, 1)
    game.close()


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Two moments of a game in 1-1, as small runs see it."""
    view = small_config(tmp_path_factory.mktemp("none")).view
    envs = make_envs(view, 1, ["game"], threads=1, noop_max=0)
    envs.reset(seed=0)
    found = [envs.snapshot(0, whole_stack=False)]
    envs.step(np.array([RIGHT]))
    found.append(envs.snapshot(0, whole_stack=False))
    envs.close()
    return found


def test_arrivals_are_read_back_and_bad_ones_refused(
    tmp_path: Path, moments: list[bytes], arrived: dict[str, list[bytes]]
) -> None:
    view = small_config(tmp_path).view
    save_arrivals(tmp_path, "1-1", moments, "rom")
    assert load_arrivals(str(tmp_path), ["1-2", "1-1"], view, "rom") == {1: moments}
    assert load_arrivals("", ["1-1"], view, "rom") == {}
    with pytest.raises(ConfigError, match="of another ROM"):
        load_arrivals(str(tmp_path), ["1-1"], view, "other")
    with pytest.raises(ConfigError, match=r"has no arrivals in 1-2: collect some with `warpzone explore"):
        load_arrivals(str(tmp_path), ["1-2"], view, "rom")
    for damage in (b"", b"PK", (tmp_path / "1-1.npz").read_bytes()[:60]):
        (tmp_path / "1-3.npz").write_bytes(damage)
        with pytest.raises(ConfigError, match=r"1-3\.npz holds no arrivals"):
            load_arrivals(str(tmp_path), ["1-3"], view, "rom")
    for wrong in (arrived["1-2"], [b"nothing of the kind"], [moments[0][:-1]]):
        save_arrivals(tmp_path, "1-2", wrong, "rom")
        with pytest.raises(ConfigError, match=r"The arrivals of 1-2 in .* don't fit: "):
            load_arrivals(str(tmp_path), ["1-2"], view, "rom")


class Recorded:
    """Environments that only note the starts queued."""

    num_envs = 4

    def __init__(self) -> None:
        self.queued: list[tuple[int, bytes]] = []

    def queue_start(self, index: int, blob: bytes) -> None:
        self.queued.append((index, blob))


def ended(*, cleared: bool, from_arrival: bool) -> dict[str, Any]:
    final = {
        "stage_index": np.ones(4, np.int64), "flag_get": np.full(4, cleared),
        "from_snapshot": np.full(4, from_arrival),
    }  # fmt: skip
    return {"_final_info": np.ones(4, np.bool_), "final_info": final, "from_snapshot": np.zeros(4, np.bool_)}


def test_a_share_of_the_episodes_begins_so_and_their_clears_are_counted() -> None:
    def made() -> tuple[Arrivals, Recorded]:
        arrivals, envs = (
            Arrivals({1: [b"a", b"b"]}, ["1-1", "1-2"], 0.5, lambda: np.array([0.5, 0.5])),
            Recorded(),
        )
        arrivals.columns.attach([envs])
        return arrivals, envs

    arrivals, envs = made()
    for _ in range(500):
        arrivals.observe(slice(0, 4), ended(cleared=True, from_arrival=False))
    # Half of the episodes of the only stage that has arrivals, which is half of all.
    assert 0.2 < len(envs.queued) / 2000 < 0.3
    assert {blob for _, blob in envs.queued} == {b"a", b"b"}
    assert arrivals.metrics() == {"arrival_cleared": {"1-2": 0.0}}
    arrivals.observe(slice(0, 4), ended(cleared=True, from_arrival=True))
    assert arrivals.metrics()["arrival_cleared"]["1-2"] == pytest.approx(1 - 0.98**4, abs=1e-3)

    # An environment whose host was lost tells nothing, and what was queued there is gone.
    before = arrivals.metrics()
    lost = ended(cleared=False, from_arrival=True) | {"worker_lost": np.ones(4, np.bool_)}
    arrivals.observe(slice(0, 4), lost)
    assert arrivals.metrics() == before
    envs.queued = [(column, b"ab"[which : which + 1]) for column, _, which in arrivals.state_dict()["queued"]]

    again, others = made()
    again.load_state_dict(arrivals.state_dict())
    # What was queued is queued again.
    assert dict(others.queued) == dict(envs.queued)
    envs.queued.clear()
    others.queued.clear()
    for each in (arrivals, again):
        each.observe(slice(0, 4), ended(cleared=False, from_arrival=True))
    assert envs.queued == others.queued
    assert arrivals.metrics() == again.metrics()


def test_a_run_uses_them_and_resumes_to_the_same_bits(tmp_path: Path, moments: list[bytes]) -> None:
    save_arrivals(tmp_path / "arrivals", "1-1", moments, rom_digest(small_config(tmp_path)))
    flags = [
        *(
            "--stages",
            "1-1,1-2",
            "--arrivals",
            str(tmp_path / "arrivals"),
            "--arrival-share",
            "1",
            "--step-limit",
            "9",
        )
    ]
    small_run(tmp_path / "whole", *flags, "--total-updates", "6")
    small_run(tmp_path / "parts", *flags, "--total-updates", "3")
    small_run(tmp_path / "parts", *flags, "--total-updates", "6")
    runs = [tmp_path / name / "mario" for name in ("whole", "parts")]
    assert differences(*map(lasting_state, runs)) == []
    assert measured(runs[0]) == measured(runs[1])
    starts = [record["start"] for record in read_records(runs[0] / "episodes.jsonl")]
    assert 0.2 < starts.count("snapshot") / len(starts) < 0.8
    assert [list(record["arrival_cleared"]) for record in measured(runs[0])] == [["1-1"]] * 6


def test_the_command_keeps_the_arrivals_and_refuses_what_leads_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--checkpoint", str(AGENT), "--arrivals", "1", "--threads", "1", "--out", str(tmp_path / "kept")]
    assert explore([*given, "--stages", "1-2"]) == 0
    assert "[explore] 1-2: 1 arrivals in" in capsys.readouterr().out
    assert (tmp_path / "kept" / "1-2.npz").exists()
    # Too little time for any.
    assert explore([*given, "--stages", "1-3", "--minutes", "0.0001"]) == 1
    assert "no arrivals in 1-3" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--arrivals must be at least 1"):
        explore([*given, "--arrivals", "0"])
    with pytest.raises(ConfigError, match="Nothing leads into 1-1"):
        explore([*given, "--stages", "1-1"])
    with pytest.raises(ConfigError, match="leave one out"):
        small_config(tmp_path, "--arrivals", "x", "--trails", "y")
