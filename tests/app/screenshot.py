"""Take the README's picture of the chain page: python tests/app/screenshot.py http://127.0.0.1:8050/ out.png.

The workshop has to be running at that address (`fusesim workshop`), and Chromium and chromedriver be on PATH.
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WINDOW = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PART = {"x": 0, "y": 0, "width": 1425, "height": 1590, "scale": 1}
BARS = ".js-plotly-plot .barlayer .point"


def take(address: str) -> bytes:
    """Open the page, wait for its charts, and return the picture."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", WINDOW)
        browser.get(address)
        WebDriverWait(browser, 20).until(lambda opened: opened.find_elements(By.CSS_SELECTOR, BARS))
        picture = {"format": "png", "captureBeyondViewport": True, "clip": PART}
        return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", picture)["data"])


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(take(sys.argv[1]))
