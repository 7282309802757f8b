"""A real Chromium for the tests of the pages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install 'warpzone[dev]'")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

__all__ = ["ActionChains", "By", "Keys", "chromium", "needs_browser", "overflow", "resize", "wait"]

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE_S = 180.0
"""A busy machine may give a training very little time."""
needs_browser = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="there is no browser: install the packages chromium and chromium-driver",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A window without a screen that keeps what its console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_page_load_timeout(PATIENCE_S)
    try:
        yield driver
    finally:
        driver.quit()


def wait(is_true: Callable[[], Any], timeout_s: float = PATIENCE_S) -> Any:
    """Look again and again until it is, and give what it was."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = is_true()
        if value:
            return value
        time.sleep(0.1)
    pytest.fail(f"did not come true within {timeout_s:.0f} s")


def resize(browser: Any, width: int, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def overflow(browser: Any) -> int:
    """Pixels by which the page is wider than the window."""
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(browser.execute_script(script))
