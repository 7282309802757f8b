"""Lines are whole, whoever writes them and whatever happens to the process."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from warpzone.watch.jsonl import JsonLines, plain, read_records, without_rewound


def test_eight_threads_interleave_no_line(tmp_path: Path) -> None:
    threads, each = 8, 12_500
    lines = JsonLines(tmp_path / "m.jsonl")

    def write(thread: int) -> None:
        for n in range(each):
            lines.write({"thread": thread, "n": n, "filling": "x" * (n % 300)})

    workers = [threading.Thread(target=write, args=(t,)) for t in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines.close()
    records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    for thread in range(threads):
        assert [r["n"] for r in records if r["thread"] == thread] == list(range(each))


def test_rotation_compresses_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    lines = JsonLines(path, rotate_bytes=2000)
    for n in range(1000):
        lines.write({"n": n})
    lines.close()
    assert [r["n"] for r in read_records(path)] == list(range(1000))
    assert len(list(tmp_path.glob("m.*.jsonl.gz"))) > 3
    assert not list(tmp_path.glob("m.*.jsonl"))
    assert path.stat().st_size < 2000


def test_a_rotated_file_left_by_a_killed_process_is_compressed_later(tmp_path: Path) -> None:
    (tmp_path / "m.0001.jsonl").write_text('{"n":0}\n')
    lines = JsonLines(tmp_path / "m.jsonl")
    lines.write({"n": 1})
    lines.close()
    assert (tmp_path / "m.0001.jsonl.gz").exists()
    assert [r["n"] for r in read_records(tmp_path / "m.jsonl")] == [0, 1]


def test_a_torn_last_line_is_skipped_and_not_glued_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"n":0}\n{"n":1,"to')
    assert [r["n"] for r in read_records(path)] == [0]
    lines = JsonLines(path)
    lines.write({"n": 2})
    lines.close()
    assert [r["n"] for r in read_records(path)] == [0, 2]


def test_a_full_disk_is_one_warning_and_writing_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = JsonLines(tmp_path / "m.jsonl")
    lines.write({"n": 0})
    with monkeypatch.context() as patch:

        def full(descriptor: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        patch.setattr("warpzone.watch.jsonl.os.write", full)
        lines.write({"n": 1})
        lines.write({"n": 2})
    lines.write({"n": 3})
    lines.close()
    assert capsys.readouterr().out.count("No space left") == 1
    assert [r["n"] for r in read_records(tmp_path / "m.jsonl")] == [0, 3]


def test_what_a_resumed_run_did_again_replaces_what_it_did_before() -> None:
    records = [{"update": u, "take": t} for u, t in [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (4, 1)]]
    assert [(r["update"], r["take"]) for r in without_rewound(iter(records))] == [
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 1),
    ]


def test_values_become_plain_json() -> None:
    values = {
        "nan": float("nan"), "inf": np.float32("inf"), "numpy": np.int64(3), "torch": torch.tensor(0.5),
        "array": np.array([1.0, float("nan")]), "nested": {"a": (1, float("-inf"))}, "flag": np.bool_(True),
    }  # fmt: skip
    assert plain(values) == {
        "nan": None, "inf": None, "numpy": 3, "torch": 0.5, "array": [1.0, None], "nested": {"a": [1, None]},
        "flag": True,
    }  # fmt: skip
