"""Ctrl+C once asks, twice stops; nothing stops a commit."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from warpzone.checkpoints.uninterrupted import uninterrupted
from warpzone.run import stopping
from warpzone.run.stopping import EXIT_INTERRUPTED, EXIT_STALLED, EXIT_TERMINATED, StopFlag


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGTERM, EXIT_TERMINATED)]
)
def test_the_first_signal_only_sets_the_flag(
    number: int, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with StopFlag() as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop
    assert stop.exit_code == code
    assert "[train][warn] interrupted" in capfd.readouterr().err


def test_the_second_signal_stops_at_once() -> None:
    with StopFlag() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert stop.exit_code == EXIT_INTERRUPTED


def test_a_sigterm_that_is_sent_twice_in_a_row_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with StopFlag() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.exit_code == EXIT_TERMINATED
        monkeypatch.setattr(stopping, "_SAME_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_commit_is_finished_before_the_second_signal_counts() -> None:
    done = []
    with StopFlag():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            with uninterrupted():
                with uninterrupted():
                    os.kill(os.getpid(), signal.SIGINT)
                    done.append("inner")
                done.append("outer")
            done.append("never")
    assert done == ["inner", "outer"]


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopFlag():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_a_stop_can_be_asked_for_from_any_thread_and_the_first_reason_stays() -> None:
    with StopFlag() as stop:
        thread = threading.Thread(target=stop.request, args=("stall",))
        thread.start()
        thread.join()
        stop.request("SIGINT")
    assert (stop.reason, stop.exit_code) == ("stall", EXIT_STALLED)
