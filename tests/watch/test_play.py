"""The page on which a person plays: one has the controls, what is saved is true, and nothing brings it down."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

import warpzone
from tests.watch.panel_server import Panel, serving_app
from warpzone.cli.play import build_app
from warpzone.envs.actions import parse_buttons
from warpzone.envs.replays import load_replay, play_back
from warpzone.errors import ConfigError
from warpzone.watch.play.cabinet import HOLD_S, Cabinet
from warpzone.watch.play.saves import Saves
from warpzone.watch.play.server import MOST_VIEWERS, PAGE

ACCESS = "a-long-access-token"
RIGHT, WALK, LEFT = (parse_buttons(names) for names in ("RIGHT+B", "RIGHT", "LEFT"))
PATIENCE_S = 90.0


@contextmanager
def playing(out: Path, *, access: str = "", **console: Any) -> Iterator[tuple[Panel, Cabinet]]:
    cabinet = Cabinet(warpzone.rom(), **console)
    try:
        with serving_app(build_app(cabinet, out, access)) as panel:
            yield panel, cabinet
    finally:
        cabinet.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "secret.replay.json").write_text("outside")
    return tmp_path / "plays"


@pytest.fixture
def served(out: Path) -> Iterator[tuple[Panel, Cabinet]]:
    with playing(out) as both:
        yield both


def sit_down(panel: Panel, **options: Any) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{panel.port}/api/play", **options)


def ask(page: ClientConnection, **order: Any) -> None:
    page.send(json.dumps(order))


def facts_of(message: str | bytes) -> dict[str, Any]:
    assert isinstance(message, bytes)
    length = int.from_bytes(message[:4], "big")
    assert message[4 + length :].startswith(b"\xff\xd8")  # a JPEG
    facts: dict[str, Any] = json.loads(message[4 : 4 + length])
    return facts


def wait_for(
    page: ClientConnection,
    is_it: Callable[[dict[str, Any]], bool],
    held: int = 0,
    by: ClientConnection | None = None,
) -> dict[str, Any]:
    """Read until a picture's facts, or what was said, is what is waited for, with these buttons held by a page."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if held:
            ask(by or page, held=held)
        message = page.recv(timeout=PATIENCE_S)
        told: dict[str, Any] = json.loads(message) if isinstance(message, str) else facts_of(message)
        if is_it(told):
            return told
    pytest.fail("it did not come true")


def said(page: ClientConnection) -> dict[str, Any]:
    return wait_for(page, lambda told: told.get("type") == "said")


def test_held_buttons_move_mario_and_the_telemetry_says_so(served: tuple[Panel, Cabinet]) -> None:
    with sit_down(served[0]) as page:
        first = wait_for(page, lambda told: "x" in told)
        assert (first["stage"], first["end"], first["lives"]) == ("1-1", "", 3)
        there = first["x"] + 40
        moved = wait_for(page, lambda told: told.get("x", 0) > there and told["buttons"] == RIGHT, held=RIGHT)
        assert {"time", "score", "coins", "status", "frames", "pace"} <= set(moved)


def test_the_console_runs_at_its_own_speed(served: tuple[Panel, Cabinet]) -> None:
    panel, cabinet = served
    with sit_down(panel) as page:
        wait_for(page, lambda told: "frames" in told)
        began = time.monotonic()
        before = len(cabinet.recording().buttons)
        wait_for(page, lambda told: told.get("frames", 0) >= before + 120)
        after = len(cabinet.recording().buttons)
        ended = time.monotonic()
    # A busy machine makes it slower, and at most a tenth of a second is caught up.
    assert 2 < (after - before) / (ended - began) < 70


def test_a_saved_replay_gives_the_same_ram_and_a_saved_start_begins_an_environment(
    served: tuple[Panel, Cabinet], out: Path
) -> None:
    with sit_down(served[0]) as page:
        # Not far: he must not meet the first enemy before the pause.
        wait_for(page, lambda told: told.get("x", 0) > 60, held=WALK)
        ask(page, do="pause")
        paused = wait_for(page, lambda told: bool(told.get("paused")))
        ask(page, do="save", kind="replay", name="mine")
        assert said(page)["text"].startswith("saved mine.replay.json: ")
        listed = wait_for(page, lambda told: told.get("type") == "saves")
        assert [save["name"] for save in listed["saves"]] == ["mine.replay.json"]
        ask(page, do="save", kind="start")
        assert said(page)["good"]
    replay = load_replay(out / "mine.replay.json")
    assert len(replay.buttons) == paused["frames"]
    assert WALK in replay.buttons
    again = play_back(replay, warpzone.rom())
    assert (again.telemetry["x_pos"], again.telemetry["time"]) == (paused["x"], paused["time"])
    [start] = out.glob("1-1_x*.start.json")
    envs = warpzone.MarioVectorEnv(2, "1-1", size=(26, 32), observation="red")
    _, info = envs.reset(options={"snapshot": start})
    assert info["x_pos"].tolist() == [paused["x"]] * 2
    envs.close()


def test_a_save_can_be_opened_and_played_on(served: tuple[Panel, Cabinet]) -> None:
    with sit_down(served[0]) as page:
        wait_for(page, lambda told: told.get("x", 0) > 60, held=WALK)
        ask(page, do="pause")
        there = wait_for(page, lambda told: bool(told.get("paused")))
        ask(page, do="save", kind="start", name="here")
        assert said(page)["good"]
        ask(page, do="restart", stage="1-2")
        wait_for(page, lambda told: told.get("stage") == "1-2")
        ask(page, do="open", name="here.start.json")
        back = wait_for(page, lambda told: told.get("start") == "1-1")
        assert (back["x"], back["frames"], back["paused"]) == (there["x"], there["frames"], True)
        ask(page, do="resume")
        wait_for(page, lambda told: told.get("frames", 0) > there["frames"] + 5)


def test_whoever_has_an_answer_may_ask_again_while_the_saves_are_still_listed(
    served: tuple[Panel, Cabinet], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Saves.listed

    def slowly(saves: Saves) -> list[dict[str, Any]]:
        time.sleep(0.5)
        return listed(saves)

    monkeypatch.setattr(Saves, "listed", slowly)
    with sit_down(served[0]) as page:
        wait_for(page, lambda told: told.get("frames", 0) > 5)
        for name in ("one", "two"):
            ask(page, do="save", kind="replay", name=name)
            assert said(page)["text"].startswith(f"saved {name}.replay.json")


def test_an_episode_that_is_over_waits_and_is_no_start(served: tuple[Panel, Cabinet], out: Path) -> None:
    with sit_down(served[0]) as page:
        ended = wait_for(page, lambda told: bool(told.get("end")), held=RIGHT)
        assert (ended["end"], ended["cleared"], ended["next"]) == ("death", False, "1-2")
        ask(page, do="save", kind="start")
        assert "a start must lie before its end" in said(page)["text"]
        ask(page, do="save", kind="replay", name="death")
        assert said(page)["good"]
        ask(page, do="restart")
        wait_for(page, lambda told: told.get("end") == "" and told["frames"] < ended["frames"])
    assert play_back(load_replay(out / "death.replay.json"), warpzone.rom()).over


def test_one_plays_and_a_second_only_watches_until_the_first_leaves(served: tuple[Panel, Cabinet]) -> None:
    panel, cabinet = served
    with sit_down(panel) as player:
        wait_for(player, lambda told: told.get("player") is True)
        with sit_down(panel) as viewer:
            assert wait_for(viewer, lambda told: "player" in told)["player"] is False
            ask(viewer, held=RIGHT)
            ask(viewer, do="restart", stage="4-4")
            assert said(viewer) == {
                "type": "said", "good": False,
                "text": "Somebody else is playing: you get the controls when they leave.",
            }  # fmt: skip
            shown = wait_for(viewer, lambda told: "x" in told)
            assert (shown["start"], shown["buttons"]) == ("1-1", 0)
            wait_for(viewer, lambda told: told.get("buttons") == LEFT, held=LEFT, by=player)
            # As if the tab had been killed: no closing handshake.
            player.socket.shutdown(socket.SHUT_RDWR)
            assert wait_for(viewer, lambda told: "player" in told)["player"] is True
            left = wait_for(viewer, lambda told: bool(told.get("paused")))
            ask(viewer, do="resume")
            on = wait_for(viewer, lambda told: told.get("frames", 0) > left["frames"] + 5)
            assert on["buttons"] == 0
    assert cabinet.viewers == 0 or _comes_true(lambda: cabinet.viewers == 0)


def _comes_true(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_true()


def test_a_page_that_falls_silent_has_let_go_of_its_keys(served: tuple[Panel, Cabinet]) -> None:
    with sit_down(served[0]) as page:
        told: dict[str, Any] = {}
        while told.get("buttons") != LEFT:
            last_held = time.monotonic()
            ask(page, held=LEFT)
            told = wait_for(page, lambda told: "buttons" in told)
        wait_for(page, lambda told: told.get("buttons") == 0)
        assert time.monotonic() - last_held > HOLD_S


def test_a_key_that_is_let_go_at_once_still_counts() -> None:
    cabinet = Cabinet(warpzone.rom())
    cabinet.hold(parse_buttons("A"))
    cabinet.hold(0)
    for _ in range(2):
        cabinet._frame()
    assert cabinet.recording().buttons == bytes([parse_buttons("A"), 0])


def test_with_nobody_there_the_game_stands_still_and_is_found_again(served: tuple[Panel, Cabinet]) -> None:
    panel, cabinet = served
    with sit_down(panel) as page:
        wait_for(page, lambda told: told.get("frames", 0) > 5)
    assert _comes_true(lambda: cabinet.viewers == 0)

    def stands_still() -> bool:
        frames = len(cabinet.recording().buttons)
        time.sleep(0.3)
        return len(cabinet.recording().buttons) == frames

    # The frame that was under way may end first.
    assert _comes_true(stands_still)
    frames = len(cabinet.recording().buttons)
    with sit_down(panel) as page:
        found = wait_for(page, lambda told: "frames" in told)
        assert (found["frames"], found["paused"]) == (frames, True)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"do": "restart", "stage": "9-9"}, "There is no stage '9-9'"),
        ({"do": "save", "kind": "film"}, "There is no kind 'film'"),
        ({"do": "save", "name": "../up"}, "A name has letters"),
        ({"do": "save", "name": "a/b"}, "A name has letters"),
        ({"do": "save", "name": "x" * 61}, "A name has letters"),
        ({"do": "open", "name": "../secret.replay.json"}, "There is no such file"),
        ({"do": "open", "name": "damaged.replay.json"}, "is not JSON"),
        ({"do": "open", "name": 5}, "There is no such file"),
        ({"do": "dance"}, "There is no command 'dance'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    order: dict[str, Any], words: str, served: tuple[Panel, Cabinet], out: Path
) -> None:
    out.mkdir()
    (out / "damaged.replay.json").write_text("[")
    with sit_down(served[0]) as page:
        ask(page, **order)
        told = said(page)
        assert words in told["text"]
        assert not told["good"]
        wait_for(page, lambda told: "x" in told)
    assert sorted(p.name for p in out.parent.rglob("*.json")) == ["damaged.replay.json", "secret.replay.json"]


def test_saving_never_overwrites_and_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    cabinet, saves = Cabinet(warpzone.rom()), Saves(tmp_path / "plays")
    names = [saves.write(cabinet.recording(), cabinet.rom, "replay", "a") for _ in range(3)]
    assert names == ["a.replay.json", "a-2.replay.json", "a-3.replay.json"]
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="Nothing can be saved"):
        Saves(tmp_path / "file" / "plays").write(cabinet.recording(), cabinet.rom, "replay")


@pytest.mark.parametrize(
    "path",
    [
        "/saves/..%2fsecret.replay.json",
        "/saves/%2e%2e%2fsecret.replay.json",
        "/saves/link.replay.json",
        "/saves/notes.txt",
        "/saves/.replay.json",
        "/saves/a%00.replay.json",
        "/..%2fplay.html",
        "//etc/passwd",
    ],
)
def test_no_path_outside_the_folder_can_be_read(path: str, served: tuple[Panel, Cabinet], out: Path) -> None:
    out.mkdir()
    (out / "notes.txt").write_text("outside")
    os.symlink(out.parent / "secret.replay.json", out / "link.replay.json")
    status, body, _ = served[0].ask(path)
    assert status in (400, 404)
    assert b"outside" not in body


def test_the_page_comes_from_here_and_saves_can_be_downloaded(
    served: tuple[Panel, Cabinet], out: Path
) -> None:
    panel, cabinet = served
    total = 0
    for name in PAGE:
        status, body, headers = panel.ask(f"/{name}")
        assert status == 200
        assert "default-src 'self'" in headers["content-security-policy"]
        assert b"https://" not in body
        total += len(body)
    assert total < 150_000
    name = Saves(out).write(cabinet.recording(), cabinet.rom, "replay", "a b")
    status, body, headers = panel.ask("/saves/a%20b.replay.json")
    assert (status, body) == (200, (out / name).read_bytes())
    assert "attachment" in headers["content-disposition"]


def test_strangers_are_refused(served: tuple[Panel, Cabinet], out: Path) -> None:
    panel, _ = served
    assert panel.ask("/", headers={"host": "evil.example"})[0] == 403
    with pytest.raises(InvalidStatus):
        sit_down(panel, additional_headers={"origin": "http://evil.example"})
    with playing(out, access=ACCESS) as (guarded, _):
        assert guarded.ask("/")[0] == 401
        assert guarded.ask("/saves/a.replay.json")[0] == 401
        with pytest.raises(InvalidStatus):
            sit_down(guarded)
        with sit_down(guarded, additional_headers={"cookie": f"warpzone_access={ACCESS}"}) as page:
            wait_for(page, lambda told: "x" in told)


def test_there_are_only_so_many_seats(served: tuple[Panel, Cabinet]) -> None:
    panel, cabinet = served
    with ExitStack() as open_pages:
        pages = [open_pages.enter_context(sit_down(panel)) for _ in range(MOST_VIEWERS)]
        assert _comes_true(lambda: cabinet.viewers == MOST_VIEWERS)
        with pytest.raises(InvalidStatus):
            sit_down(panel)
        for page in pages:
            page.socket.shutdown(socket.SHUT_RDWR)
    assert _comes_true(lambda: cabinet.viewers == 0)


def test_malformed_frames_bring_no_error_and_leave_nothing_behind(served: tuple[Panel, Cabinet]) -> None:
    panel, cabinet = served
    draw = random.Random(7)
    words = [
        "{" * 3000, "[]", "null", '{"held": true}', '{"held": 256}', '{"held": 1e999}', '{"do": {}}',
        '{"do": "restart", "stage": [1]}', '{"do": "open", "name": "\\u0000"}', '{"do": "save", "kind": 3}',
        "\ud7ff", "x" * 50_000, '{"do": "' + "y" * 9000 + '"}',
    ]  # fmt: skip
    files = 0
    for number in range(200):
        try:
            with sit_down(panel) as page:
                if number % 3 == 0:
                    page.send(draw.randbytes(draw.randrange(2000)))
                elif number % 3 == 1:
                    page.socket.sendall(draw.randbytes(64))
                for _ in range(3):
                    page.send(draw.choice(words))
        except (WebSocketException, OSError):
            pass
        if number == 50:
            files = psutil.Process().num_fds()
    assert _comes_true(lambda: cabinet.viewers == 0)
    assert _comes_true(lambda: psutil.Process().num_fds() <= files + 10)
    with sit_down(panel) as page:
        wait_for(page, lambda told: "x" in told)


def test_a_pal_console_is_slower_and_keeps_to_its_region(out: Path) -> None:
    with playing(out, region="pal", stage="2-1") as (panel, cabinet):
        with sit_down(panel) as page:
            assert wait_for(page, lambda told: told.get("type") == "console")["region"] == "pal"
            assert wait_for(page, lambda told: "x" in told)["stage"] == "2-1"
            ask(page, do="save", name="slow")
            assert said(page)["good"]
        assert load_replay(out / "slow.replay.json").region == "pal"
        other = Cabinet(warpzone.rom())
        with pytest.raises(ConfigError, match="recorded with --region pal"):
            other.open(cabinet.recording())
