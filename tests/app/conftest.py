"""What the workshop's tests share: the devices, and a real browser on a really served app."""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
import waitress.server
from selenium import webdriver

from app import create_app
from app.catalogue import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
    "--window-size=1440,1000",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def catalogue():
    return shipped()


@pytest.fixture(scope="session")
def client():
    return create_app().server.test_client()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The app behind waitress on a free port of this machine."""
    served = waitress.server.create_server(create_app().server, host="127.0.0.1", port=0, threads=4)
    thread = threading.Thread(target=served.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.effective_port}/"
    served.close()
    thread.join(timeout=10)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A headless Chromium; where there is none the tests are skipped, on CI they fail."""
    driver_path, browser_path = shutil.which("chromedriver"), next(filter(None, map(shutil.which, BROWSERS)), None)
    if driver_path is None or browser_path is None:
        missing = "chromedriver" if driver_path is None else "Chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(f"no {missing} on PATH, and CI must test the workshop in a browser")
        pytest.skip(f"no {missing} on PATH: the workshop is not tested in a browser")
    chrome = _start(driver_path, browser_path, tmp_path_factory.mktemp("profile"))
    yield chrome
    chrome.quit()


def _start(driver_path: str, browser_path: str, profile: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = browser_path
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    chrome.set_script_timeout(30)
    return chrome
