"""The section of `warpzone master` on the live page, in a real Chromium."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.watch.panel_server import serving, write_run
from warpzone.master.opening import open_state
from warpzone.master.plan import MasterConfig, make_plan
from warpzone.master.state import Learner, State

from .browser import By, Keys, chromium, needs_browser, overflow, resize, wait

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_browser]

CONTRAST = """
const channel = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (text) => {
  const [r, g, b] = rgb(text).map((c) => channel(c / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (e) => {
  while (rgb(getComputedStyle(e).backgroundColor)[3] === 0) e = e.parentElement;
  return getComputedStyle(e).backgroundColor;
};
const texts = [...document.querySelectorAll("#master b, #master span, #master small, #master li")];
return texts.filter((e) => e.textContent).map((e) => {
  const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
});
"""


def save(folder: Path, state: State, age_s: float) -> None:
    saved = {**asdict(state), "updated_unix_s": time.time() - age_s}
    (folder / "master.json").write_text(json.dumps(saved))


def test_phases_stages_and_the_time_that_is_left_are_on_the_page(tmp_path: Path) -> None:
    write_run(tmp_path, "specialist-1-1")
    write_run(tmp_path, "specialist-1-2")
    config = MasterConfig(stages="1", minutes=40, preset="cpu", out=tmp_path)
    state = open_state(config, make_plan(config, cores=2), "abc")
    state.phases["explore"].status, state.phases["explore"].note = "done", "no trail of 1-4"
    state.phases["specialists"].status, state.phases["specialists"].spent_s = "running", 600.0
    state.specialists["1-1"] = Learner(["1-1"], status="done", clear_rate={"1-1": 0.97}, spent_s=120)
    state.specialists["1-3"] = Learner(["1-3"], status="failed", error="no space left")
    for name, rate in (("student", 0.3), ("polished", 0.4), ("polished-2", 0.5)):
        state.policies[name] = Learner(["1-1"], clear_rate={"1-1": rate})
    state.short = {"1-3": "0%, its specialist failed: no space left"}
    save(tmp_path, state, age_s=-3600)  # however slow the machine is, it seems alive
    with serving(tmp_path) as panel, chromium() as browser:
        resize(browser, 1280)
        browser.get(panel.address)
        section = browser.find_element(By.ID, "master")
        wait(section.is_displayed)
        note = browser.find_element(By.ID, "master-note")
        wait(lambda: re.fullmatch(r"\d[\w ]* left", note.text))
        # In one call: the page replaces them every two seconds.
        classes = "return [...document.querySelectorAll('#master-phases li')].map((one) => one.className)"
        assert browser.execute_script(classes) == ["done", "running", *["waiting"] * 3]
        stages = browser.find_elements(By.CSS_SELECTOR, "#master-board button")
        assert [stage.get_attribute("data-stage") for stage in stages] == ["1-1", "1-2", "1-3", "1-4"]
        assert stages[0].text.splitlines() == ["1-1", "done", "specialist 97 %", "policy 50 %"]
        assert stages[2].get_attribute("title") == "no space left"
        assert "1-3 is short of the target" in section.text
        assert min(browser.execute_script(CONTRAST)) >= 4.5
        # The keyboard reaches a stage and shows its run.
        browser.execute_script("arguments[0].focus()", stages[1])
        stages[1].send_keys(Keys.ENTER)
        wait(lambda: browser.find_element(By.ID, "run").get_attribute("value") == "specialist-1-2")
        for width in (1280, 400):
            resize(browser, width)
            assert overflow(browser) == 0
        # A master that does not save its state any more is not running.
        save(tmp_path, state, age_s=60)
        wait(lambda: "not running" in section.text)
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert errors == []
