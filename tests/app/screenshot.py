"""Take pictures of all pages: python tests/app/screenshot.py http://127.0.0.1:8050/ [folder].

The workshop has to be running at that address (`fusesim workshop`), and Chromium and chromedriver be on PATH. Without a
folder the pictures of the README are taken anew; with one, every page is taken wide and on a phone, light and dark, and
as it is printed.
"""

from __future__ import annotations

import base64
import shutil
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

WIDTHS = {"wide": 1440, "phone": 320}
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

SHOWN = """
const style = document.createElement('style');
style.textContent = '* { content-visibility: visible !important; }';
document.head.append(style);
"""
"""Browsers leave unpainted what lies below the window, which a picture of the whole page holds too."""


def take(browser: webdriver.Chrome, address: str, *, width: int, height: int, theme: str = "light", media: str = ""):
    """Open a page, wait for its charts and for what comes later, and return the picture; 0 is as high as the page."""
    window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 1000}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    browser.get(address)
    browser.execute_script(SHOWN)
    WebDriverWait(browser, 20).until(lambda opened: opened.execute_script(DRAWN))
    time.sleep(2)
    tall = height or browser.execute_script("return document.documentElement.scrollHeight")
    part = {"x": 0, "y": 0, "width": width, "height": tall, "scale": 1}
    picture = {"format": "png", "captureBeyondViewport": True, "clip": part}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", picture)["data"])


def main(address: str, folder: Path | None) -> None:
    """Take all pictures."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        for name, (path, height) in PAGES.items():
            if folder is None:
                home = Path(__file__).parents[2] / "app" / "screenshots"
                (home / f"{name}.png").write_bytes(take(browser, address + path, width=1425, height=height))
                continue
            for look, width in WIDTHS.items():
                for theme in ("light", "dark"):
                    picture = take(browser, address + path, width=width, height=0, theme=theme)
                    (folder / f"{name}-{look}-{theme}.png").write_bytes(picture)
            printed = take(browser, address + path, width=1000, height=0, media="print")
            (folder / f"{name}-print.png").write_bytes(printed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
