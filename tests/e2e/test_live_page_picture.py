"""The live page of a run with the defaults, as `make train` starts it: the agent is there within seconds. Once it has
learned, a picture is taken, artifacts/panel/live-page.png: the one in the README, docs/media/live-page.png.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpzone.watch.metrics import read_metrics

from .browser import PATIENCE_S, By, chromium, needs_browser, resize, wait

PICTURE = Path(__file__).parents[2] / "artifacts" / "panel" / "live-page.png"
WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
CPU = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
LEARNED = 0.6
"""The clear rate at which the picture is taken: the curves show how it rises, and the agent gets far."""
FAR = 1500
SOON_S = 40.0
"""Seconds from the first line of a training until the agent plays on the page, on a busy machine."""
TRAINING_S = 1200.0

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500), needs_browser]


def test_the_agent_is_on_the_page_within_seconds_and_a_picture_is_taken_once_it_has_learned(
    tmp_path: Path,
) -> None:
    runs = ["--runs-dir", str(tmp_path)]
    training = subprocess.Popen([*WARPZONE, "train", *runs], cwd=tmp_path, env=CPU, stdout=subprocess.DEVNULL)
    folder = tmp_path / "mario"
    try:
        wait((folder / "config.json").exists)
        watch = subprocess.Popen(
            [*WARPZONE, "watch", "mario", *runs, "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert watch.stdout is not None
            address = watch.stdout.readline().split()[1]
            with chromium() as browser:
                resize(browser, 1280, 920)
                browser.get(address)
                screen = browser.find_element(By.ID, "screen")
                wait(lambda: int(screen.get_attribute("data-pictures") or 0) > 10)
                assert time.time() - (folder / "config.json").stat().st_mtime < SOON_S
                note = str(browser.find_element(By.ID, "play-note").text)
                assert re.fullmatch(r"checkpoint of update \d+", note), note

                def clear_rate() -> float:
                    records = read_metrics(folder)
                    return float((records[-1]["clear_rate_mean"] or 0.0) if records else 0.0)

                wait(lambda: clear_rate() >= LEARNED, TRAINING_S)

                def facts() -> list[str]:
                    return str(browser.find_element(By.ID, "facts").text).split()

                wait(lambda: int(facts()[facts().index("furthest") + 2]) > FAR)
                browser.execute_script("document.documentElement.style.overflow = 'hidden'")
                PICTURE.parent.mkdir(parents=True, exist_ok=True)
                browser.save_screenshot(str(PICTURE))
        finally:
            watch.terminate()
            watch.wait(PATIENCE_S)
    finally:
        training.send_signal(signal.SIGTERM)
        training.wait(PATIENCE_S)
    assert 20_000 < PICTURE.stat().st_size < 400_000
