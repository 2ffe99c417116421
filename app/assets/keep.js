/* The view as one file: its figures, tables and sentences, with pictures of its charts; it asks nothing of any host.

   Scripts and controls stay behind. What the controls held is written out, with the address that opens the view. */
(function () {
    "use strict";

    const LEFT = "script, form, .share, details.guide, .drop, .save, .skip, .pages, .presets, .quiet, .copied, .problem, .unseen, [role=status], [hidden], .empty, .stepper .control";

    /* What a control is called and holds. */
    function held(control) {
        const group = control.closest("[role=radiogroup]");
        const label = document.getElementById(`${group ? group.id : control.id}-label`);
        const reading = document.getElementById(`${control.id}-reading`);
        const text = (control.selectedOptions ? control.selectedOptions[0] : group ? control.closest("label") : control.type === "range" ? reading : null)?.textContent;
        return label && [label.textContent, text || control.value];
    }

    /* The settings that are shown, each with the name of its control: exact values, not a slider's place. */
    function settings() {
        const places = ["select", "input[type=text]", "input[type=radio]:checked", "input[type=range]"];
        return [...document.querySelectorAll(places.map((each) => `form.controls ${each}`).join(", "))]
            .filter((control) => !control.closest("[hidden]") && !control.id.endsWith("-slider") && control.value !== "")
            .map(held)
            .filter(Boolean);
    }

    /* All styles of the page as text. */
    function styles() {
        return [...document.styleSheets].map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("\n")).join("\n");
    }

    /* Put pictures in the places of charts; they keep their size, and grow no wider than the page. */
    async function draw(copy) {
        for (const chart of document.querySelectorAll("figure.chart .js-plotly-plot")) {
            const {width, height} = chart.getBoundingClientRect();
            const address = await window.Plotly.toImage(chart, {format: "svg", width: Math.max(width, 480), height});
            const place = copy.querySelector(`#${CSS.escape(chart.parentElement.id)}`).closest(".plot");
            place.innerHTML = decodeURIComponent(address.slice(address.indexOf(",") + 1));
            place.className = "picture js-plotly-plot";
        }
    }

    function part(name, text) {
        const made = document.createElement(name);
        made.textContent = text;
        return made;
    }

    /* The page without what moves it. */
    async function taken() {
        const copy = document.querySelector("main").cloneNode(true);
        await draw(copy);
        copy.querySelectorAll("table .quiet").forEach((each) => { each.replaceWith(part("span", each.textContent)); });
        copy.querySelectorAll(LEFT).forEach((each) => each.remove());
        copy.querySelectorAll("details").forEach((each) => { each.open = true; });
        copy.querySelectorAll("[data-change], [tabindex], [data-control]").forEach((each) => {
            for (const name of ["data-change", "tabindex", "role", "data-control", "aria-pressed"]) {
                each.removeAttribute(name);
            }
        });
        copy.querySelectorAll("a[href^='?'], a[href^='/']").forEach((each) => { each.replaceWith(part("span", each.textContent)); });
        copy.querySelectorAll("input").forEach((each) => { each.replaceWith(part("span", each.value)); });
        const list = document.createElement("dl");
        list.className = "kept";
        for (const [name, value] of settings()) {
            const pair = document.createElement("div");
            pair.append(part("dt", name), part("dd", value));
            list.append(pair);
        }
        copy.querySelector(".intro").append(part("p", `Kept from ${window.location.href}`), list);
        return copy;
    }

    async function keep() {
        const copy = await taken();
        const made = document.implementation.createHTMLDocument(document.title);
        made.documentElement.lang = "en";
        made.head.insertAdjacentHTML("afterbegin", '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">');
        made.head.append(part("style", styles()));
        made.body.className = "kept-page";
        made.body.append(made.importNode(copy, true));
        const name = window.location.pathname.replaceAll("/", "") || "chain";
        window.workshopSave(`fusesim-${name}.html`, "text/html", `<!DOCTYPE html>\n${made.documentElement.outerHTML}`);
    }

    document.addEventListener("click", (event) => {
        if (event.target.closest("[data-keep]")) {
            keep();
        }
    });
})();
