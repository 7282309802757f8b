"""`warpzone play` in a real Chromium: keys move Mario, a second tab only watches, saves are there and true.

Screenshots go to artifacts/play/.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import warpzone
from warpzone import levels
from warpzone.envs.actions import parse_buttons
from warpzone.envs.replays import load_replay, play_back

from .browser import ActionChains, By, Keys, chromium, needs_browser, overflow, resize
from .browser import wait as browser_wait

SCREENSHOTS = Path(__file__).parents[2] / "artifacts" / "play"
wait = partial(browser_wait, timeout_s=90.0)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    needs_browser,
]


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """The address of a page that a command serves on any free port."""
    command = [sys.executable, "-m", "warpzone.cli.main", *words, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait(90)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path, "play", "--out", "plays") as address:
        yield address


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def text(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


def tile(browser: Any, name: str) -> str:
    read = "return [...document.querySelectorAll('#tiles div')].find((t) => t.firstChild.textContent === arguments[0])"
    return str(browser.execute_script(f"{read}?.lastChild.textContent ?? ''", name))


PAUSE_BEYOND = """
const [place, wanted] = arguments;
new MutationObserver((_, watching) => {
  const x = [...document.querySelectorAll("#tiles div")].find((tile) => tile.firstChild.textContent === "x");
  const held = [...document.querySelectorAll("#pad .on")].map((pad) => pad.dataset.button);
  if (Number(x.lastChild.textContent) <= place || held.length < wanted) return;
  watching.disconnect();
  window.lit = held;
  dispatchEvent(new KeyboardEvent("keydown", { code: "KeyP" }));
}).observe(document.getElementById("tiles"), { childList: true });
"""
"""Presses P as soon as he is beyond a place with so many buttons held, and keeps which these are."""


def walk(browser: Any, to: int, *keys: str) -> set[str]:
    """Hold keys until he is beyond a place, where the game pauses. The buttons that were shown as held.

    The page itself sees where he is: the game does not wait for the browser's driver, and before a slow one let go he
    would have run into an enemy.
    """
    browser.execute_script(PAUSE_BEYOND, to, len(keys))
    hold, let_go = ActionChains(browser), ActionChains(browser)
    for key in keys:
        hold.key_down(key)
        let_go.key_up(key)
    hold.perform()
    wait(lambda: text(browser, "state") == "paused")
    let_go.perform()
    return set(browser.execute_script("return window.lit"))


def test_a_person_plays_saves_and_is_watched(browser: Any, page: str, tmp_path: Path) -> None:
    resize(browser, 1280)
    browser.get(page)
    wait(lambda: text(browser, "state") == "playing")
    start = int(wait(lambda: tile(browser, "x")))
    assert walk(browser, start + 20, Keys.ARROW_RIGHT, "z") == {"128", "2"}
    assert "paused" in text(browser, "screen-text")
    browser.find_element(By.ID, "name").send_keys("by hand")
    for kind in ("replay", "start"):
        browser.find_element(By.ID, f"save-{kind}").click()
        wait(lambda kind=kind: f"saved by hand.{kind}.json" in text(browser, "answer"))
    wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#saves li")) == 2)
    x = int(tile(browser, "x"))
    replay = load_replay(tmp_path / "plays" / "by hand.replay.json")
    assert parse_buttons("RIGHT+B") in replay.buttons
    assert play_back(replay, warpzone.rom()).telemetry["x_pos"] == x
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for width in (1280, 400):
        resize(browser, width)
        assert overflow(browser) == 0
        browser.save_screenshot(str(SCREENSHOTS / f"play_{width}.png"))
    resize(browser, 1280)

    # A second tab watches; when the first is closed it has the controls and finds the game paused.
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(page)
    wait(lambda: text(browser, "state") == "watching, 2 pages open")
    assert not browser.find_element(By.ID, "pause").is_enabled()
    watcher = browser.current_window_handle
    browser.switch_to.window(first)
    browser.close()
    browser.switch_to.window(watcher)
    wait(lambda: text(browser, "state") == "paused")
    select = browser.find_element(By.ID, "stage")
    select.find_element(By.CSS_SELECTOR, "option[value='4-2']").click()
    wait(lambda: tile(browser, "stage") == "4-2" and text(browser, "state") == "playing")
    wait(lambda: int(browser.find_element(By.ID, "screen").get_attribute("data-pictures")) > 30)
    browser.find_elements(By.CSS_SELECTOR, "#saves button")[0].click()
    wait(lambda: tile(browser, "stage") == "1-1" and tile(browser, "x") == str(x))
    # He is paused there, with no button held; P lets the game go on.
    ActionChains(browser).send_keys("p").perform()
    wait(lambda: text(browser, "state") == "playing")
    assert browser.find_elements(By.CSS_SELECTOR, "#pad .on") == []
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


WITHOUT_PICTURES = """
const Whole = WebSocket;
window.WebSocket = class extends Whole {
  addEventListener(type, hear) {
    super.addEventListener(type, (event) => type === "message" && typeof event.data !== "string" ? null : hear(event));
  }
};
"""
"""Pictures never arrive at a page in which this ran first."""


def test_a_page_is_connecting_until_there_is_a_picture(browser: Any, page: str) -> None:
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WITHOUT_PICTURES})
    browser.get(page)
    wait(lambda: "click one" in text(browser, "folder") and browser.find_element(By.ID, "pause").is_enabled())
    assert text(browser, "state") == "connecting"


@pytest.mark.parametrize("command", [("play", "--level", "own.json"), ("levels", "play", "own.json")])
def test_a_person_plays_a_level(browser: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    levels.save(levels.generate(3, difficulty=0.2), tmp_path / "own.json")
    with served(tmp_path, *command) as page:
        browser.get(page)
        wait(lambda: text(browser, "state") == "playing")
        select = browser.find_element(By.ID, "stage")
        assert select.get_attribute("value") == "level"
        start = int(wait(lambda: tile(browser, "x")))
        walk(browser, start + 20, Keys.ARROW_RIGHT)
        # What is played on a level can't be saved, and the page says so.
        browser.find_element(By.ID, "save-start").click()
        wait(lambda: "can't be saved" in text(browser, "answer"))
        # From the level to a stage and back to its beginning.
        select.find_element(By.CSS_SELECTOR, "option[value='1-2']").click()
        wait(lambda: tile(browser, "stage") == "1-2" and text(browser, "state") == "playing")
        select.find_element(By.CSS_SELECTOR, "option[value='level']").click()
        wait(lambda: tile(browser, "stage") != "1-2" and int(tile(browser, "x") or 999) <= start)
