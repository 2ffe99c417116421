"""Five tasks as somebody does them who has read nothing: by what is written on the page, and nothing else."""

from __future__ import annotations

import re

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

pytestmark = pytest.mark.browser

WORDS = "normalize-space(translate(., '\N{NO-BREAK SPACE}', ' '))"
FEW = 5
"""Clicks that a task may take; each is found and made in a few seconds."""


class Visitor:
    """Somebody at the page: sees what is written, and clicks it; counts the clicks."""

    def __init__(self, browser, address):
        self.browser, self.address, self.clicks = browser, address, 0
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.get(address)
        self.settled()

    def until(self, condition, message=""):
        wait = WebDriverWait(self.browser, 20, poll_frequency=0.05, ignored_exceptions=[StaleElementReferenceException])
        return wait.until(lambda _: condition(), message)

    def settled(self):
        self.until(lambda: self.browser.execute_script("return document.body.dataset.answered"), "no answer")

    def click(self, text, kinds=("a", "button", "label")):
        """Click what bears a text."""
        named = " or ".join(f"self::{kind}" for kind in kinds)
        found = self.browser.find_elements(By.XPATH, f"//*[{named}][{WORDS}='{text}']")
        shown = [part for part in found if part.is_displayed()]
        assert shown, f'nothing to click says "{text}"'
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", shown[0])
        shown[0].click()
        self.clicks += 1
        self.settled()

    def choose(self, label, option):
        """Choose from the menu with a label."""
        place = self.browser.find_element(By.XPATH, f"//label[normalize-space()='{label}']").get_attribute("for")
        Select(self.browser.find_element(By.ID, place)).select_by_visible_text(option)
        self.clicks += 1

    def read(self):
        """Return all that is in sight on the page."""
        text = self.browser.find_element(By.TAG_NAME, "main").text
        return text.translate(str.maketrans("\N{NO-BREAK SPACE}", " "))

    def reads(self, pattern):
        """Wait until the page says something; return it."""
        found = self.until(lambda: re.search(pattern, self.read()), f'nothing reads "{pattern}"')
        assert self.clicks <= FEW
        return found


@pytest.fixture
def visitor(browser, address):
    return Visitor(browser, address)


def test_where_fusing_stops_paying_for_4096_values(visitor):
    visitor.click("One decoded token, 4 096")
    visitor.reads(r"5.00x")
    visitor.reads(r"Where fusing stops paying: at one op, .* 2 ops gain 2.00x, 32 ops 32.00x")
    visitor.click("in a graph")
    visitor.reads(r"2 ops gain 1.17x, 32 ops 6.19x")


def test_which_of_two_gpus_decodes_better_and_why(visitor):
    visitor.click("Devices")
    visitor.choose("Device", "NVIDIA L40S")
    visitor.choose("beside", "NVIDIA A100 SXM4 80 GB")
    told = visitor.reads(r"Decoding token by token.*: NVIDIA A100 SXM4 80 GB is better, ([\d.]+)x\.(.*)")
    assert float(told[1]) == pytest.approx(2039 / 864, abs=0.01)  # the datasheets' bandwidths
    assert "the memory's bandwidth decides" in told[2]


def test_why_eight_gelus_gain_so_little(visitor):
    visitor.click("8 x GELU")
    visitor.click("Calibrated")
    visitor.choose("Device", "NVIDIA H200 SXM 141 GB")
    told = visitor.reads(r"([\d.]+)x and not 8x: the fused kernel still has to issue every op's instructions")
    assert 1.2 < float(told[1]) < 1.6
    visitor.reads(r"A gelu is \d+ instructions for each value, a multiplication is one")
    low, high = map(float, visitor.reads(r"That is a speedup of ([\d.]+)x to ([\d.]+)x").groups())
    assert low < 1.44 < high  # what was measured on one H200


def test_what_torch_compile_saves_in_the_sample(visitor):
    visitor.click("Your program")
    visitor.reads(r"Fused by torch.compile it takes [\d.]+ .s: [\d.]+ .s less")
    visitor.reads(r"Fusions worth making")


def test_a_view_is_shared(visitor):
    visitor.click("8 x GELU")
    visitor.until(lambda: "ops=gelu" in visitor.browser.current_url)
    address = visitor.browser.current_url
    visitor.click("Copy the link to this view")
    visitor.reads(r"Copied|select the text instead")
    before = visitor.browser.find_element(By.ID, "unfused-time").text
    visitor.browser.get("about:blank")
    visitor.browser.get(address)
    visitor.settled()
    visitor.until(lambda: visitor.browser.find_element(By.ID, "unfused-time").text == before)
