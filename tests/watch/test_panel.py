"""The panel's addresses: what they show, whom they refuse, and that nothing brings them down."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect

from tests.watch.panel_server import TOKEN, Panel, add_record, serving, write_run
from warpzone.cli import watch
from warpzone.cli.watch import check_access, listen, run
from warpzone.errors import CheckpointError, ConfigError
from warpzone.watch.panel.guard import is_loopback
from warpzone.watch.panel.runs import Runs, is_plain_name, thinned
from warpzone.watch.panel.server import PAGE, STATIC

ACCESS = "a-long-access-token"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs")
    (tmp_path / "secret.mp4").write_text("outside")
    (tmp_path / "metrics.jsonl").write_text('{"update": 1}\n')
    return tmp_path / "runs"


@pytest.fixture
def panel(runs: Path) -> Iterator[Panel]:
    with serving(runs) as served:
        yield served


def test_the_page_and_all_it_needs_come_from_here_and_are_small(panel: Panel) -> None:
    total = 0
    for name in PAGE:
        status, body, headers = panel.ask(f"/{name}")
        assert status == 200
        assert "default-src 'self'" in headers["content-security-policy"]
        total += len(body)
    assert total < 150_000
    page = (STATIC / "index.html").read_text() + (STATIC / "panel.js").read_text()
    assert "https://" not in page
    assert "http://" not in page


def test_runs_are_listed_with_how_they_are(panel: Panel) -> None:
    listed = panel.json("/api/runs")
    assert listed["runs"] == [{"name": "demo", "state": "finished", "update": 5, "clear_rate_mean": 0.25}]
    assert listed["bounds"]["learning_rate"] == [1e-7, 0.1]


def test_the_state_of_a_master_is_given_out_if_there_is_one(panel: Panel, runs: Path) -> None:
    assert panel.json("/api/master") == {}
    (runs / "master.json").write_text('{"status": "running", "phases": {}}')
    assert panel.json("/api/master") == {"status": "running", "phases": {}}
    (runs / "master.json").write_text("{")
    assert panel.json("/api/master") == {}


def test_a_viewer_gets_all_there_is_and_then_what_is_new(panel: Panel, runs: Path) -> None:
    with connect(panel.live_address("demo")) as viewer:
        first = json.loads(viewer.recv(timeout=20))
        assert first["type"] == "all"
        assert first["curves"]["avg_return"] == [0.5, 1.0, 1.5, 2.0, 2.5]
        assert first["status"]["clear_rate"] == {"1-1": 0.25}
        assert first["episodes"][0]["x_max"] == 900
        assert first["videos"][0]["name"] == "final_1-1.mp4"
        assert "hello" in first["log"]
        add_record(runs / "demo", 6, avg_return=9.0)
        news = [json.loads(viewer.recv(timeout=60))]
        while 9.0 not in news[-1].get("curves", {}).get("avg_return", []):
            assert len(news) < 10, news
            news.append(json.loads(viewer.recv(timeout=60)))


def test_records_that_a_resumed_run_did_over_are_replaced(runs: Path) -> None:
    reader = Runs(runs).reader("demo")
    assert reader is not None
    reader.refresh()
    epoch = reader.epoch
    add_record(runs / "demo", 4, avg_return=7.0)
    reader.refresh()
    assert reader.curves()["update"] == [1, 2, 3, 4]
    assert reader.curves()["avg_return"][-1] == 7.0
    assert reader.epoch > epoch


def test_a_half_written_line_waits_for_its_end(runs: Path) -> None:
    reader = Runs(runs).reader("demo")
    assert reader is not None
    reader.refresh()
    with (runs / "demo" / "metrics.jsonl").open("a") as file:
        file.write('{"update": 6, "avg_')
    reader.refresh()
    assert reader.total == 5
    with (runs / "demo" / "metrics.jsonl").open("a") as file:
        file.write('return": 3.0}\n')
    reader.refresh()
    assert reader.curves()["avg_return"][-1] == 3.0


def test_long_histories_are_thinned_evenly_and_keep_the_last_record() -> None:
    records = [{"update": n} for n in range(10_001)]
    kept = [r["update"] for r in thinned(records, 600)]
    assert 500 <= len(kept) <= 601
    assert kept[-1] == 10_000
    assert len({b - a for a, b in itertools.pairwise(kept)}) == 1


def test_videos_of_the_run_are_served(panel: Panel) -> None:
    status, body, headers = panel.ask("/api/runs/demo/videos/final_1-1.mp4")
    assert (status, body, headers["content-type"]) == (200, b"film" * 100, "video/mp4")
    assert panel.ask("/api/runs/demo/videos/final_1-1.mp4", headers={"range": "bytes=2-5"})[1] == b"lmfi"


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/..%2f..%2fetc/curves",
        "/api/runs/../curves",
        "/api/runs/%2e%2e/config",
        "/api/runs/demo/videos/..%2f..%2f..%2fsecret.mp4",
        "/api/runs/demo/videos/%2e%2e%2fcontrol.token",
        "/api/runs/demo/videos/control.token",
        "/api/runs/demo/videos/link.mp4",
        "/api/runs/linked/curves",
        "/api/runs/demo%00/curves",
        "/..%2findex.html",
        "/static/../server.py",
        "//etc/passwd",
    ],
)
def test_no_path_outside_the_runs_can_be_read(panel: Panel, runs: Path, path: str) -> None:
    os.symlink(runs.parent / "secret.mp4", runs / "demo" / "videos" / "link.mp4")
    os.symlink(runs.parent, runs / "linked")
    status, body, _ = panel.ask(path)
    assert status in (400, 404)
    assert b"outside" not in body
    assert TOKEN.encode() not in body


def test_plain_names() -> None:
    assert all(map(is_plain_name, ["mario", "mario-2", "a.b", "x_1"]))
    assert not any(map(is_plain_name, ["", ".", "..", ".git", "a/b", "a\\b", "a\0", "a\n", "x" * 200]))


def test_controls_are_refused_without_the_runs_token(panel: Panel, runs: Path) -> None:
    (runs / "demo" / "control.jsonl").touch()
    body = json.dumps({"command": "pause"}).encode()
    for headers in ({}, {"x-run-token": "guess"}, {"x-run-token": TOKEN[:-1]}):
        assert panel.ask("/api/runs/demo/control", data=body, headers=headers)[0] == 403
    assert (runs / "demo" / "control.jsonl").read_bytes() == b""


def test_controls_with_the_token_reach_the_run(panel: Panel, runs: Path) -> None:
    (runs / "demo" / "control.jsonl").touch()
    body = json.dumps({"command": "set", "values": {"learning_rate": 1e-4}}).encode()
    status, _, _ = panel.ask("/api/runs/demo/control", data=body, headers={"x-run-token": TOKEN})
    assert status == 200
    request = json.loads((runs / "demo" / "control.jsonl").read_text())
    assert (request["command"], request["values"]) == ("set", {"learning_rate": 1e-4})


def test_a_control_out_of_bounds_or_of_a_finished_run_is_refused_in_a_sentence(panel: Panel) -> None:
    for values, words in (
        ({"learning_rate": 5}, "between"),
        ({"learning_rate": 1e-4}, "is not training now"),
    ):
        body = json.dumps({"command": "set", "values": values}).encode()
        status, answer, _ = panel.ask("/api/runs/demo/control", data=body, headers={"x-run-token": TOKEN})
        assert status == 400
        assert words in json.loads(answer)["detail"]


def test_other_sites_and_other_names_of_this_machine_are_refused(panel: Panel) -> None:
    assert panel.ask("/api/runs", headers={"host": "evil.example"})[0] == 403
    assert panel.ask("/api/runs", headers={"origin": "http://evil.example"})[0] == 403
    assert panel.ask("/api/runs", headers={"origin": panel.address})[0] == 200
    with pytest.raises(InvalidStatus):
        connect(panel.live_address("demo"), additional_headers={"origin": "http://evil.example"})


def test_with_an_access_token_nothing_is_shown_without_it(runs: Path) -> None:
    with serving(runs, access=ACCESS) as panel:
        assert panel.ask("/")[0] == 401
        assert panel.ask("/api/runs")[0] == 401
        assert panel.ask("/?token=wrong")[0] == 401
        with pytest.raises(InvalidStatus):
            connect(panel.live_address("demo"))
        cookie = {"cookie": f"warpzone_access={ACCESS}"}
        assert panel.ask("/api/runs", headers=cookie)[0] == 200
        assert panel.ask("/api/runs", headers={"authorization": f"Bearer {ACCESS}"})[0] == 200
        with connect(panel.live_address("demo"), additional_headers=cookie) as viewer:
            assert json.loads(viewer.recv(timeout=20))["type"] == "all"
        connection = http.client.HTTPConnection("127.0.0.1", panel.port)
        connection.request("GET", f"/?token={ACCESS}")
        reply = connection.getresponse()
        assert reply.status == 303
        assert "HttpOnly" in (reply.getheader("set-cookie") or "")


def test_listening_elsewhere_needs_a_token() -> None:
    with pytest.raises(ConfigError, match="lets others reach the page"):
        check_access("0.0.0.0", "")
    with pytest.raises(ConfigError, match="at least 16"):
        check_access("192.168.1.5", "short")
    check_access("127.0.0.1", "")
    check_access("0.0.0.0", ACCESS)
    assert [is_loopback(h) for h in ("localhost", "::1", "127.9.9.9", "10.0.0.1", "x")] == [True] * 3 + [
        False
    ] * 2


def test_a_port_in_use_and_a_run_that_is_not_there_are_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "WAIT_FOR_RUN_S", 0.2)
    with listen("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="choose another --port"):
        listen("127.0.0.1", taken.getsockname()[1])
    (tmp_path / "noop").mkdir()
    with pytest.raises(CheckpointError, match=r"'nope' .looked for .*/nope.: did you mean noop\?"):
        run(["nope", "--runs-dir", str(tmp_path)])


def test_a_run_that_is_being_started_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr(watch, "serve", lambda *arguments: served.append(arguments))
    threading.Timer(0.5, (tmp_path / "soon").mkdir).start()
    assert run(["soon", "--runs-dir", str(tmp_path), "--port", "0"]) == 0
    assert len(served) == 1


def test_viewers_that_vanish_leave_nothing_behind(panel: Panel) -> None:
    for _ in range(20):
        with connect(panel.live_address("demo")) as viewer:
            viewer.recv(timeout=20)
            # As if the browser had been killed: no closing handshake.
            viewer.socket.shutdown(socket.SHUT_RDWR)
    deadline = time.monotonic() + 30
    hub = panel.app._app.state.hubs["demo"]
    while hub.viewers and time.monotonic() < deadline:
        time.sleep(0.1)
    assert hub.viewers == 0


def test_a_thousand_malformed_requests_bring_no_server_error_and_no_leak(panel: Panel, runs: Path) -> None:
    (runs / "demo" / "control.jsonl").touch()
    draw = random.Random(5)
    statuses: set[int] = set()
    process = psutil.Process()
    _storm(panel, draw, 100, statuses)
    time.sleep(1.0)
    files, memory = process.num_fds(), process.memory_info().rss
    _storm(panel, draw, 900, statuses)
    deadline = time.monotonic() + 60
    while process.num_fds() > files + 10 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert statuses
    assert max(statuses) < 500
    assert process.num_fds() <= files + 10
    assert process.memory_info().rss < memory + (64 << 20)
    assert panel.json("/api/runs")["runs"]


def _storm(panel: Panel, draw: random.Random, count: int, statuses: set[int]) -> None:
    for number in range(count):
        kind = number % 4
        if kind == 0:
            statuses.add(_raw_request(panel.port, draw))
        elif kind == 1:
            words = draw.choice(
                [b"{", b"[]", b"null", b"\xff\xfe", b'{"command": 5}', b"[" * 10_000, b"x" * 20_000]
            )
            headers = {"x-run-token": draw.choice([TOKEN, "", "é" * 10])}
            headers = {k: v.encode("utf-8").decode("latin-1") for k, v in headers.items()}
            statuses.add(panel.ask("/api/runs/demo/control", data=words, headers=headers)[0])
        elif kind == 2:
            path = "".join(draw.choice("abc/.%20%ff%00?&=#-_~") for _ in range(draw.randrange(60)))
            statuses.add(panel.ask("/api/runs/" + path.replace("#", ""))[0])
        else:
            _bad_frames(panel, draw)


def _raw_request(port: int, draw: random.Random) -> int:
    """The status of an answer to bytes that are not quite HTTP; 0 if the connection is just closed."""
    start = draw.choice([b"GET", b"POST", b"\x00\x01", b"DELETE", b"OPTIONS", b"X" * 30])
    path = bytes(draw.randrange(33, 127) for _ in range(draw.randrange(1, 40)))
    fields = b"host: 127.0.0.1\r\ncontent-length: " + draw.choice([b"5", b"-1", b"x", b"99999999"])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(
            start + b" /" + path + b" HTTP/1.1\r\n" + fields + b"\r\nconnection: close\r\n\r\n12345"
        )
        connection.shutdown(socket.SHUT_WR)
        try:
            answer = connection.recv(200)
        except OSError:
            return 0
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def _bad_frames(panel: Panel, draw: random.Random) -> None:
    try:
        # Random bytes may begin a long frame: the server then waits for its end, not for our farewell.
        with connect(panel.live_address("demo"), open_timeout=20, close_timeout=0.5) as viewer:
            choice = draw.randrange(4)
            if choice == 0:
                viewer.send(draw.randbytes(draw.randrange(2000)))
            elif choice == 1:
                viewer.send("{" * draw.randrange(3000))
            elif choice == 2:
                viewer.socket.sendall(draw.randbytes(64))
            else:
                viewer.send("x" * 50_000)
    except (WebSocketException, OSError):
        return
