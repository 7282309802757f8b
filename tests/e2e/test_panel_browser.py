"""The live page in a real Chromium beside a real training: it loads, moves, steers and fits the screen.

Screenshots go to artifacts/panel/.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .browser import PATIENCE_S, By, chromium, needs_browser, overflow, resize, wait

SCREENSHOTS = Path(__file__).parents[2] / "artifacts" / "panel"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    needs_browser,
]

WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
TRAIN = [
    *("train", "--run-name", "live", "--preset", "cpu", "--device", "cpu", "--stages", "1-1,1-2", "--plain"),
    *("--num-envs", "8", "--rollout-steps", "16", "--minibatch-size", "64", "--log-interval", "1"),
    *("--latest-every-updates", "5", "--torch-threads", "1", "--env-threads", "1", "--until-clear-rate", "0"),
    *("--no-record-video", "--no-enable-tensorboard", "--time-limit", "30"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def training(runs: Path) -> Iterator[subprocess.Popen[str]]:
    with (runs.parent / "train.out").open("w") as out:
        process = subprocess.Popen(
            [*WARPZONE, *TRAIN, "--runs-dir", str(runs)], stdout=out, stderr=subprocess.STDOUT, text=True
        )
        try:
            wait(lambda: (runs / "live" / "metrics.jsonl").exists() and _records(runs) >= 2)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def page(runs: Path, training: subprocess.Popen[str]) -> Iterator[str]:
    """The address, without the run's token."""
    process = subprocess.Popen(
        [*WARPZONE, "watch", "live", "--runs-dir", str(runs), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        yield address.partition("&token=")[0]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def _records(runs: Path) -> int:
    return len((runs / "live" / "metrics.jsonl").read_text().splitlines())


def points(browser: Any, chart: str) -> int:
    return int(
        browser.find_element(By.CSS_SELECTOR, f"[data-chart={chart}]").get_attribute("data-points") or 0
    )


def text(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def keep_screenshot(browser: Any, name: str, width: int) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    resize(browser, width, browser.execute_script("return document.documentElement.scrollHeight"))
    browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_follows_the_training_and_fits_the_screen(browser: Any, page: str, width: int) -> None:
    resize(browser, width)
    browser.get(page)
    wait(lambda: text(browser, "state") == "running")
    before = wait(lambda: points(browser, "speed"))
    wait(lambda: points(browser, "speed") > before)
    wait(lambda: points(browser, "clear") > 0)
    for chart in ("entropy", "loss", "split"):
        assert points(browser, chart) > 0
    # A run without replay and teachers has no lines for them, and small numbers are written out.
    legend = browser.find_element(By.CSS_SELECTOR, "[data-chart=loss] .legend").text
    assert legend.split() == ["total", "policy", "value"]
    assert browser.find_element(By.CSS_SELECTOR, "[data-chart=rate] h3 span").text.startswith("0.00")
    # The board fills for the stages that were played, and only for those.
    wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".tile.seen")) == 2)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".tile")) == 32
    # Two stages sampled evenly: their bars are as long as can be, all others have none.
    drawn = "return [...document.querySelectorAll('.tile')].filter((t) => t.title.includes('50 %')).length"
    assert browser.execute_script(drawn) == 2
    bars = "return [...document.querySelectorAll('.tile i')].filter((b) => b.offsetWidth > 0).length"
    assert browser.execute_script(bars) == 2
    # The agent plays, and the policy's outputs are beside the frame.
    pictures = browser.find_element(By.ID, "screen")
    wait(lambda: int(pictures.get_attribute("data-pictures") or 0) > 10)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#probabilities em")) == 7
    # Of the rewards those are listed that were ever different from 0.
    wait(lambda: "reward: distance" in text(browser, "facts"))
    assert "reward: coin" not in text(browser, "facts")
    wait(lambda: browser.find_elements(By.CSS_SELECTOR, "#episodes tr"))
    wait(lambda: "constructing env" in text(browser, "log"))
    # Nothing sticks out of the page, and no card out of the screen.
    assert overflow(browser) == 0
    boxes = "[...document.querySelectorAll('.card, .chart, header')]"
    right = f"return Math.max(...{boxes}.map((box) => box.getBoundingClientRect().right))"
    assert browser.execute_script(right) <= width
    keep_screenshot(browser, f"panel_{width}", width)
    assert errors(browser) == []


def test_controls_are_refused_without_the_token_and_obeyed_with_it(
    browser: Any, page: str, runs: Path, training: subprocess.Popen[str]
) -> None:
    resize(browser, 1280)
    browser.get(page)
    wait(lambda: text(browser, "state") == "running")
    pause = browser.find_element(By.ID, "pause")
    wait(pause.is_enabled)
    pause.click()
    wait(lambda: "Controls need this run's token" in text(browser, "answer"))
    assert errors(browser)  # the browser itself reports the refused request

    browser.find_element(By.ID, "token").send_keys((runs / "live" / "control.token").read_text().strip())
    rate = browser.find_element(By.ID, "set-learning_rate")
    wait(lambda: rate.get_attribute("value"))
    rate.clear()
    rate.send_keys("0.00025")
    browser.find_element(By.ID, "apply").click()
    wait(lambda: "-> 0.00025" in text(browser, "answer"))
    rate.clear()
    rate.send_keys("7")
    browser.find_element(By.ID, "apply").click()
    wait(lambda: "must lie between" in text(browser, "answer"))

    pause.click()
    wait(lambda: pause.text == "Resume")
    held = _records(runs)
    time.sleep(3)
    assert _records(runs) == held
    keep_screenshot(browser, "panel_paused", 1280)
    resize(browser, 1280)
    pause.click()
    wait(lambda: _records(runs) > held)

    stop = browser.find_element(By.ID, "stop")
    # Both clicks at once: the page asks whether it is meant for four seconds only.
    browser.execute_script("arguments[0].click(); arguments[0].click()", stop)
    assert training.wait(PATIENCE_S) == 0
    wait(lambda: text(browser, "state") == "finished")
    said = (runs / "live" / "train.log").read_text()
    for line in ("-> 0.00025", ": paused", ": resumed", ": stopping after this update"):
        assert line in said
    state = json.loads((runs / "live" / "control_state.json").read_text())
    assert [result["accepted"] for result in state["results"]] == [True] * 4
