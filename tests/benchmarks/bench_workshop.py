"""How long a slider step takes on each page, beside what the browser and an empty request take anyway.

    python tests/benchmarks/bench_workshop.py [--steps 60]

A step is timed inside the browser, from the slider's event to the end of the drawing of every chart. Beside it stand
two things that no page can be faster than together: the browser drawing the same figures once more, and a round trip
of a request that is answered with next to nothing. Needs Chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import threading
import time

import waitress.server
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from app import create_app

DRAWN = ".js-plotly-plot .main-svg"
PAGES = {"plans/": "tokens-slider", "roofline/": "tokens-slider", "plans/?pattern=transformer_block": "seq-slider"}
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
    charts.forEach((chart, place) => window.Plotly.react(chart, other[place].data, other[place].layout));
    await ready;
});
const figures = [];
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


def outputs_of(page: str) -> dict:
    """Return how Dash's page names the callback of a page."""
    charts = {"plans": ("timeline-chart", "memory-chart"), "roofline": ("roof-chart",)}[page.split("/", maxsplit=1)[0]]
    parts = [{"id": name, "property": "figure"} for name in charts] + [{"id": "answer", "property": "data"}]
    spelt = "..{}..".format("...".join(f"{each['id']}.{each['property']}" for each in parts))
    return {"output": spelt, "outputs": parts}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    count = parser.parse_args().steps
    app = create_app()
    server = waitress.server.create_server(app.server, host="127.0.0.1", port=0, threads=4)
    threading.Thread(target=server.run, daemon=True).start()
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1440,1000"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))) as browser:
        browser.set_script_timeout(300)
        for page, control in PAGES.items():
            browser.get(f"http://127.0.0.1:{server.effective_port}/{page}")
            WebDriverWait(browser, 30).until(lambda each: each.execute_script("return document.body.dataset.answered"))
            WebDriverWait(browser, 30).until(lambda each: each.find_elements("css selector", DRAWN))
            time.sleep(2)  # what takes longer comes once the page stands still
            browser.execute_script("window.benchOutputs = arguments[0]", outputs_of(page))
            found = browser.execute_async_script(SCRIPT, control, count)
            print(f"{page}, {count} steps [ms]")
            for name, values in found.items():
                marks = "  ".join(f"p{share * 100:.0f} {percentile(values, share):6.1f}" for share in (0.05, 0.5, 0.95))
                print(f"  {name:7} {marks}  worst {max(values):6.1f}")
            allowed = 1.5 * (percentile(found["redraw"], 0.95) + percentile(found["trip"], 0.95))
            step = percentile(found["step"], 0.95)
            print(f"  a step's p95 is {step:.1f} ms; 1.5 x (redraw + round trip) are {allowed:.1f} ms")
    server.close()


if __name__ == "__main__":
    main()
