"""`warpzone control` asks a run for something and prints the answer."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.run.small_runs import Quiet, small_config
from warpzone.cli.control import as_requests
from warpzone.cli.main import main
from warpzone.errors import ConfigError
from warpzone.run.loop import train


def test_words_become_requests() -> None:
    assert as_requests(("learning_rate=2e-4", "stage_mix=1-1:1,1-2:3", "checkpoint", "stop")) == [
        {"command": "set", "values": {"learning_rate": 2e-4, "stage_mix": {"1-1": 1.0, "1-2": 3.0}}},
        {"command": "checkpoint"},
        {"command": "stop"},
    ]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("halt", "There is no request 'halt'"),
        ("learning_rate=fast", "must be a number"),
        ("set", "no request"),
    ],
)
def test_other_words_are_refused(word: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        as_requests((word,))


def test_a_run_changes_its_learning_rate_and_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: list[int] = []
    run = ["control", "asked", "--runs-dir", str(tmp_path)]

    def ask() -> None:
        statuses.append(main([*run, "learning_rate=2e-4"]))
        statuses.append(main([*run, "gamma=0.5"]))
        statuses.append(main([*run, "stop"]))

    class Asking(Quiet):
        asking: threading.Thread | None = None

        def update(self, record: dict[str, Any]) -> None:
            super().update(record)
            if self.asking is None:
                self.asking = threading.Thread(target=ask)
                self.asking.start()

    display = Asking()
    outcome = train(small_config(tmp_path, "--run-name", "asked", "--total-updates", "100000"), display)
    assert display.asking is not None
    display.asking.join()
    assert statuses == [0, 2, 0]
    assert outcome.reason == "stopped by control"
    said = capsys.readouterr().out
    assert "-> 0.0002" in said
    assert "stopping after this update" in said
    assert main(run) == 0
    assert "learning_rate" in json.loads(capsys.readouterr().out)["values"]
    assert main([*run, "pause"]) == 2
    assert "asked is not training now" in capsys.readouterr().err
