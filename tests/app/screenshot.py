"""Take the pictures of all pages: python tests/app/screenshot.py http://127.0.0.1:8050/ [folder].

The workshop has to be running at that address (`fusesim workshop`), and Chromium and chromedriver be on PATH.
"""

from __future__ import annotations

import base64
import shutil
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

WINDOW = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PAGES = {
    "chain": ("", 1590),
    "roofline": ("roofline/?second=rtx-4090", 1500),
    "plans": ("plans/?pattern=transformer_block", 1700),
    "program": ("program/", 1500),
    "accuracy": ("accuracy/", 1500),
    "devices": ("devices/?third=rtx-4090", 1500),
}
DRAWN = """
return document.body.dataset.answered && [...document.querySelectorAll('figure.chart')]
    .every((chart) => chart.querySelector('.js-plotly-plot .main-svg'));
"""


def take(browser: webdriver.Chrome, address: str, height: int) -> bytes:
    """Open a page, wait for its charts and for what comes later, and return the picture."""
    browser.get(address)
    WebDriverWait(browser, 20).until(lambda opened: opened.execute_script(DRAWN))
    time.sleep(2)
    part = {"x": 0, "y": 0, "width": 1425, "height": height, "scale": 1}
    picture = {"format": "png", "captureBeyondViewport": True, "clip": part}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", picture)["data"])


def main(address: str, folder: Path) -> None:
    """Take all pictures."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", WINDOW)
        for name, (path, height) in PAGES.items():
            (folder / f"{name}.png").write_bytes(take(browser, address + path, height))


if __name__ == "__main__":
    here = Path(__file__).parents[2] / "app" / "screenshots"
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else here)
