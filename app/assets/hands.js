/* What a reader does with a page besides moving its controls: guesses, copies, and files of what is on screen.

   Nothing here asks the server for anything. */
(function () {
    "use strict";

    const SAID = 1500; // ms for which a copy is confirmed

    /* Give a file to the reader. */
    function save(name, type, content) {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([content], {type}));
        link.download = name;
        link.click();
        window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    function quoted(text) {
        return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    }

    /* A table as CSV; exact numbers in place of rounded ones where they are known. */
    function csv(place) {
        const cell = (part) => quoted(part.dataset.exact || part.textContent.trim());
        return [...place.querySelectorAll("tr")]
            .map((row) => [...row.querySelectorAll("th, td")].map(cell).join(","))
            .join("\r\n");
    }

    function saveChart(chart, format) {
        const drawn = chart.querySelector(".js-plotly-plot");
        if (drawn && window.Plotly) {
            const {width, height} = drawn.getBoundingClientRect();
            const name = drawn.parentElement.id || "chart";
            window.Plotly.downloadImage(drawn, {format, width, height, filename: name, scale: format === "png" ? 2 : 1});
        }
    }

    /* A drawing as a file that stands alone: colours that the page's style sheet gives are written into it. */
    function saveDrawing(place) {
        const drawing = place.querySelector("svg");
        if (drawing) {
            const copy = drawing.cloneNode(true);
            const parts = [drawing, ...drawing.querySelectorAll("*")];
            [copy, ...copy.querySelectorAll("*")].forEach((part, at) => {
                const style = window.getComputedStyle(parts[at]);
                for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor"]) {
                    part.style.setProperty(name, style.getPropertyValue(name));
                }
            });
            copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
            save("graph.svg", "image/svg+xml", new XMLSerializer().serializeToString(copy));
        }
    }

    async function copy(button) {
        const place = button.dataset.copy && document.getElementById(button.dataset.copy);
        const told = button.parentElement.querySelector(".copied") || document.querySelector(".copied");
        try {
            await navigator.clipboard.writeText(place ? place.textContent : window.location.href);
            told.textContent = "Copied.";
        } catch {
            told.textContent = "The browser does not allow copying here; select the text instead.";
        }
        window.setTimeout(() => { told.textContent = ""; }, SAID);
    }

    /* Show the answer of a step after a guess, and set the controls to what it speaks of. */
    function guess(button) {
        const step = button.closest(".step");
        for (const each of step.querySelectorAll("[data-guess]")) {
            each.classList.toggle("chosen", each === button);
            each.setAttribute("aria-pressed", String(each === button));
        }
        step.classList.add("told");
        step.querySelector(".verdict").textContent = button.dataset.guess === "right" ? "Yes." : "Not quite.";
        window.workshop.visit(step.dataset.query);
    }

    /* Go from one step of the lesson to another. */
    function turn(button) {
        const step = button.closest(".step");
        const next = button.dataset.step === "1" ? step.nextElementSibling : step.previousElementSibling;
        show(next);
        next.querySelector("h2").tabIndex = -1;
        next.querySelector("h2").focus();
    }

    function show(step) {
        for (const each of step.parentElement.children) {
            each.hidden = each !== step;
        }
    }

    /* Give each chart its two buttons: without a script there is nothing to save. */
    function addButtons() {
        for (const chart of document.querySelectorAll("figure.chart")) {
            const row = document.createElement("div");
            row.className = "save";
            for (const format of ["png", "svg"]) {
                const button = document.createElement("button");
                button.type = "button";
                button.className = "quiet small";
                button.textContent = format.toUpperCase();
                const drawn = chart.querySelector("[role=group]");
                button.setAttribute("aria-label", `Save as ${format.toUpperCase()}: ${drawn ? drawn.getAttribute("aria-label") : "chart"}`);
                button.addEventListener("click", () => saveChart(chart, format));
                row.append(button);
            }
            chart.append(row);
        }
    }

    document.addEventListener("click", (event) => {
        const on = (selector) => event.target.closest(selector);
        if (on("[data-csv]")) {
            const name = on("[data-csv]").dataset.csv;
            save(`${name}.csv`, "text/csv", csv(document.getElementById(name)));
        } else if (on("[data-drawing]")) {
            saveDrawing(document.getElementById(on("[data-drawing]").dataset.drawing));
        } else if (on("[data-file]")) {
            const button = on("[data-file]");
            save(button.dataset.name, "text/plain", document.getElementById(button.dataset.file).textContent);
        } else if (on("[data-copy]")) {
            copy(on("[data-copy]"));
        } else if (on("[data-guess]")) {
            guess(on("[data-guess]"));
        } else if (on("[data-step]")) {
            turn(on("[data-step]"));
        }
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && event.target.closest(".term")) {
            event.target.closest(".term").blur(); // a tip goes away without the pointer having to move
        }
    });

    function ready() {
        document.body.classList.add("scripted");
        document.querySelectorAll(".guide .step:first-child").forEach(show);
        addButtons();
    }
    if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", ready);
    } else {
        ready();
    }

    window.workshopSave = save;
})();
