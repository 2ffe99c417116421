"""How fluid the workshop is in a browser, how soon it is there, and how many learners one core serves.

    python tests/benchmarks/bench_workshop.py steps --count 60
    python tests/benchmarks/bench_workshop.py first --count 10
    python tests/benchmarks/bench_workshop.py load --seconds 300

A step is timed inside the browser, from the slider's event to the end of the drawing of every chart. Beside it stand
two things that no page can be faster than together: the browser drawing the same figures once more, and a round trip
of a request that is answered with next to nothing. Needs Chromium and chromedriver, but for `load`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time

import workshop_first
import workshop_load
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from app import create_app

PAGES = {
    "": "size",
    "?ops=gelu*8&device=h200-sxm&model=calibrated": "size",
    "plans/": "tokens-slider",
    "roofline/": "tokens-slider",
    "plans/?pattern=transformer_block": "seq-slider",
}
SCRIPT = """
const [control, count, done] = arguments;
const charts = [...document.querySelectorAll('.js-plotly-plot')];
const drawn = () => Promise.all(charts.map((chart) => new Promise((ready) => {
    chart.once ? chart.once('plotly_afterplot', ready) : ready();
})));
const timed = async (deed) => {
    const start = performance.now();
    await deed();
    return performance.now() - start;
};
const slider = document.getElementById(control);
const rest = (time) => new Promise((ready) => setTimeout(ready, time));
const step = (value) => timed(async () => {
    const ready = drawn();
    slider.value = value;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    await ready;
});
const redraw = () => timed(async () => {
    const ready = drawn();
    const other = figures[turn++ % figures.length];
    charts.forEach((chart, place) => window.Plotly.react(chart, other[place].data, other[place].layout, config));
    await ready;
});
const figures = [];
const config = JSON.parse(document.getElementById('main').dataset.charts);
let turn = 0;
const keep = () => figures.push(charts.map(({data, layout}) => structuredClone({data, layout})));
const outputs = window.benchOutputs;
const inputs = [{id: 'request', property: 'data', value: {}}];
const body = JSON.stringify({...outputs, inputs, changedPropIds: ['request.data'], state: []});
const headers = {'Content-Type': 'application/json'};
const trip = () => timed(async () => {
    const address = `${window.location.pathname}_dash-update-component`;
    const answer = await fetch(address, {method: 'POST', body, headers});
    await answer.json();
});
(async () => {
    const found = {step: [], redraw: [], trip: []};
    const middle = Number(slider.value);
    for (const away of [1, 2, 3]) { // figures of three steps, to be drawn again in turn
        await step(String(middle - away));
        await rest(100);
        keep();
    }
    for (let place = 0; place < count; place += 1) {
        found.step.push(await step(String(middle - 1 - place % 3)));
        await rest(30);
        found.redraw.push(await redraw());
        await rest(30);
        found.trip.push(await trip());
        await rest(30);
    }
    done(found);
})();
"""


def percentile(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100)[round(share * 100) - 1]


def outputs_of() -> dict:
    """Return how Dash names the callback of a page."""
    return {"output": "answer.data", "outputs": {"id": "answer", "property": "data"}}


def steps(browser: webdriver.Chrome, count: int) -> None:
    """Print how long steps of a slider take on each page."""
    with workshop_first.served(create_app().server) as ours:
        for page, control in PAGES.items():
            browser.get(f"{ours}{page}")
            WebDriverWait(browser, 30).until(lambda each: each.execute_script("return document.body.dataset.answered"))
            time.sleep(2)  # what takes longer comes once the page stands still
            browser.execute_script("window.benchOutputs = arguments[0]", outputs_of())
            found = browser.execute_async_script(SCRIPT, control, count)
            print(f"/{page}, {count} steps [ms]")
            for name, values in found.items():
                marks = "  ".join(f"p{share * 100:.0f} {percentile(values, share):6.1f}" for share in (0.05, 0.5, 0.95))
                print(f"  {name:7} {marks}  worst {max(values):6.1f}")
            limit = 1.5 * (percentile(found["redraw"], 0.95) + percentile(found["trip"], 0.95))
            step = percentile(found["step"], 0.95)
            print(f"  a step's p95 is {step:.1f} ms; 1.5 x (redraw + round trip) are {limit:.1f} ms", flush=True)


def started() -> webdriver.Chrome:
    """Start a browser."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1440,1000"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    browser.set_script_timeout(300)
    return browser


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("steps", "first", "load"))
    parser.add_argument("--count", type=int, default=20, help="steps of a slider, or openings of a page")
    parser.add_argument("--seconds", type=float, default=300, help="how long a class works")
    parser.add_argument("--pages", default="chain,plans,roofline,chain+plans+roofline", help="classes, for load")
    asked = parser.parse_args()
    if asked.what == "load":
        for pages in asked.pages.split(","):
            workshop_load.measure(pages.split("+"), asked.seconds)
        return
    with started() as browser:
        (steps if asked.what == "steps" else workshop_first.main)(browser, asked.count)


if __name__ == "__main__":
    main()
