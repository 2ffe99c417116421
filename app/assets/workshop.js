/* Between the controls and the server: one request in the air at a time, the newest state next.

   Dash drops the answer to a request once the same callback has been asked again, so a slider dragged faster than
   answers come would freeze the page. Here changes are gathered while a request is in the air and sent together
   when it is answered. This file also keeps the address in step with the view, and gives names to controls that
   Dash leaves nameless. It prices nothing. */
(function () {
    "use strict";

    const PATIENCE = 5000; // ms after which a request counts as lost
    const STILL = 120; // ms after a step before other controls follow, not to slow a drag down
    const SETTLED = 350; // ms without a change before the address is written
    const gate = {started: false, query: "", shown: {}, waiting: {}, sent: null, since: 0, serial: 0, timer: 0, syncing: 0, address: ""};

    const isEmpty = (record) => Object.keys(record).length === 0;

    /* Join changes that were lost on their way with later ones; edits of the chain add up. */
    function together(lost, later) {
        const edit = [...(lost.edit || []), ...(later.edit || [])];
        return {...lost, ...later, ...(edit.length ? {edit} : {})};
    }

    /* Return the next request, or null while one is in the air or nothing has changed. */
    function nextRequest() {
        const lost = gate.sent && Date.now() - gate.since > PATIENCE;
        if (isEmpty(gate.waiting) || (gate.sent && !lost)) {
            return null;
        }
        gate.sent = lost ? together(gate.sent, gate.waiting) : gate.waiting;
        gate.waiting = {};
        Object.assign(gate.shown, gate.sent);
        gate.since = Date.now();
        gate.serial += 1;
        return {settings: gate.query, changes: gate.sent, serial: gate.serial};
    }

    /* Dash would drop a request that `collect` returned, if another control moved before it was on its way. */
    function send() {
        const request = nextRequest();
        if (request) {
            window.dash_clientside.set_props("request", {data: request});
        }
    }

    /* Take in a whole address: on arrival, on back and forward, and from a link of the lesson. */
    function visit(search) {
        gate.waiting = {url: search};
        send();
    }

    function writeAddress() {
        window.clearTimeout(gate.timer);
        gate.timer = window.setTimeout(() => {
            const query = gate.query === "?" ? "" : gate.query;
            if (query !== window.location.search) {
                gate.address = query;
                window.history.pushState({}, "", window.location.pathname + query);
            }
        }, SETTLED);
    }

    /* Note a control that holds something else than was last known. Dash's own list of what has moved is not used:
       it forgets controls when callbacks come thick and fast. */
    function note({id, value}) {
        if (value !== gate.shown[id]) {
            gate.waiting[id] = value;
        }
    }

    /* Note what a button sends: a whole new view, one more edit of the chain, or a value. */
    function press({change, value}) {
        if (change === "reset") {
            gate.waiting = {url: ""};
        } else if (change === "edit") {
            gate.waiting.edit = [...(gate.waiting.edit || []), value];
        } else {
            gate.waiting[change] = value;
        }
        send();
    }

    /* What a native control holds, as text; of radio buttons only the one that is chosen speaks. */
    function held(control) {
        return control.type === "radio" ? control.name : control.id;
    }

    /* Darken a slider's track up to its thumb, as the chain page's sliders have it. */
    function fillTrack(control) {
        if (control.type === "range") {
            const share = (control.value - control.min) / (control.max - control.min);
            control.style.setProperty("--fill", `${100 * share}%`);
        }
    }

    /* Take in what a native control holds while it is moved; Dash is not told of these. */
    function move(event) {
        const control = event.target.closest("[data-control]");
        const live = control && (control.type === "range" ? event.type === "input" : event.type === "change");
        if (live) {
            fillTrack(control);
        }
        if (live && control.value !== gate.shown[held(control)]) {
            gate.waiting[held(control)] = control.value;
            send();
        }
    }

    /* Start a page whose controls are native. */
    function begin() {
        watchControls();
        if (!gate.started) {
            gate.started = true;
            for (const control of document.querySelectorAll("[data-control]")) {
                fillTrack(control);
                if (control.type !== "radio" || control.checked) {
                    gate.shown[held(control)] = control.value;
                }
            }
            gate.address = window.location.search;
            gate.waiting = {url: gate.address};
            send();
        }
    }

    /* Let a native control follow the view; returns whether it is one. */
    function setNative(id, value) {
        const control = document.getElementById(id);
        if (!control || !(control.matches("[data-control]") || control.matches(".native"))) {
            return false;
        }
        if (control.matches(".native")) {
            for (const option of control.querySelectorAll("input")) {
                option.checked = option.value === value;
            }
        } else {
            control.value = value;
            fillTrack(control);
        }
        return true;
    }

    /* Put pieces of HTML, which the server has escaped, in their places; what has the focus keeps it. */
    function fill(parts) {
        for (const [id, html] of Object.entries(parts || {})) {
            const place = document.getElementById(id);
            if (place && place.shownHtml !== html) {
                const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
                place.shownHtml = html;
                place.innerHTML = html;
                if (focused && document.getElementById(focused)) {
                    document.getElementById(focused).focus({preventScroll: true});
                }
            }
        }
    }

    /* Ask for what takes longer once the page stands still. */
    function askForMore() {
        window.clearTimeout(gate.more);
        gate.more = window.setTimeout(() => {
            if (isEmpty(gate.waiting) && !gate.sent) {
                gate.waiting = {more: 1};
                send();
            }
        }, SETTLED);
    }

    function collect() {
        watchControls();
        const controls = window.dash_clientside.callback_context.inputs_list.flat(Infinity);
        if (!gate.started) {
            gate.started = true;
            controls.forEach(({id, value}) => { gate.shown[id] = value; });
            gate.address = window.location.search;
            gate.waiting = {url: gate.address};
        } else {
            controls.forEach(note);
        }
        send();
    }

    /* Put texts in their places; React never fills these, so it never takes them back. */
    function write(answer) {
        for (const [id, text] of Object.entries(answer.texts)) {
            const place = document.getElementById(id);
            if (place && place.textContent !== text) {
                place.textContent = text;
            }
        }
        fill(answer.parts);
        if (answer.reasons && answer.reasons.length) {
            const points = answer.reasons.map((reason) => {
                const point = document.createElement("li");
                point.textContent = reason;
                return point;
            });
            document.getElementById("reasons").replaceChildren(...points);
        }
    }

    /* Show what has a meaning in the view, and nothing else. */
    function reveal(hidden) {
        for (const part of document.querySelectorAll(".control, .controls button[id]")) {
            part.hidden = hidden.includes(part.id);
        }
    }

    /* Let controls follow the view, except those that the learner has just set, or is setting. */
    function sync(widgets, sent) {
        for (const [id, value] of Object.entries(widgets)) {
            const busy = id in sent || id in gate.waiting || id in (gate.sent || {});
            if (value !== gate.shown[id] && !busy) {
                gate.shown[id] = value;
                if (!setNative(id, value)) {
                    window.dash_clientside.set_props(id, {value});
                }
            }
        }
    }

    function settle(answer) {
        if (!answer || answer.serial !== gate.serial) {
            return;
        }
        const sent = gate.sent || {};
        gate.sent = null;
        gate.query = answer.query;
        write(answer);
        if (answer.hidden) {
            reveal(answer.hidden);
        }
        window.clearTimeout(gate.syncing);
        if (Object.keys(sent).every((id) => id in answer.widgets)) {
            gate.syncing = window.setTimeout(() => sync(answer.widgets, sent), STILL);
        } else {
            sync(answer.widgets, sent);
        }
        if ("url" in sent && sent.url === window.location.search) {
            window.clearTimeout(gate.timer);
        } else {
            writeAddress();
        }
        if (answer.more) {
            askForMore();
        }
        document.body.dataset.answered = String(answer.serial);
        document.dispatchEvent(new CustomEvent("answered"));
        send();
    }

    /* Name a folded menu after its label and what it holds, and its list and search after the label; the button takes
       the tab key itself, not Dash's hidden entry before it. */
    function nameMenu(menu) {
        const {id} = menu;
        const list = document.querySelector(".dash-dropdown-content");
        menu.setAttribute("aria-labelledby", `${id}-label ${id}-value`);
        menu.setAttribute("tabindex", "0");
        menu.parentElement.querySelector(".dash-dropdown-focus-target").setAttribute("tabindex", "-1");
        if (list && menu.getAttribute("aria-expanded") === "true") {
            for (const part of [list, ...list.querySelectorAll("[role=listbox], [type=search]")]) {
                part.setAttribute("aria-labelledby", `${id}-label`);
            }
        }
    }

    /* Name each slider after its label, let it say its reading, and make groups of radio buttons what they are. */
    function nameControls() {
        const all = (selector) => document.querySelectorAll(`.controls ${selector}`);
        for (const thumb of all("[role=slider]")) {
            const id = thumb.closest(".dash-slider-container").id;
            const reading = document.getElementById(`${id}-reading`).textContent;
            thumb.setAttribute("aria-labelledby", `${id}-label`);
            thumb.setAttribute("aria-valuetext", reading);
        }
        all("button.dash-dropdown").forEach(nameMenu);
        for (const group of all(".switch")) {
            group.setAttribute("role", "radiogroup");
            group.setAttribute("aria-labelledby", `${group.id}-label`);
            for (const option of group.querySelectorAll("[role=option], [aria-selected]")) {
                option.removeAttribute("role");
                option.removeAttribute("aria-selected"); // says nothing about a radio button, which is checked
            }
        }
        for (const alert of all(".problem")) {
            for (const input of alert.parentElement.querySelectorAll("input[type=text], [role=slider]")) {
                input.setAttribute("aria-invalid", String(alert.textContent !== ""));
                input.setAttribute("aria-describedby", alert.id);
            }
        }
    }

    function watchControls() {
        for (const panel of document.querySelectorAll(".controls:not([data-watched])")) {
            panel.dataset.watched = "yes";
            panel.addEventListener("submit", (event) => event.preventDefault());
            new MutationObserver(nameControls).observe(panel, {
                childList: true, characterData: true, subtree: true, attributeFilter: ["aria-selected"],
            });
            nameControls();
        }
    }

    window.addEventListener("popstate", () => {
        if (window.location.search !== gate.address) {
            gate.address = window.location.search;
            visit(gate.address);
        }
    });
    document.addEventListener("keydown", (event) => {
        const list = event.target.closest(".dash-dropdown-content");
        if (list && event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) {
            list.querySelector("[type=search]").focus(); // what is typed on an option is searched for
        }
    });
    document.addEventListener("input", move);
    document.addEventListener("change", move);
    document.addEventListener("keydown", (event) => {
        const part = event.target.closest("[data-change]:not(button)");
        if (part && (event.key === "Enter" || event.key === " ")) {
            event.preventDefault();
            press(part.dataset);
        }
    });
    document.addEventListener("click", (event) => {
        const button = event.target.closest("[data-change]");
        if (button) {
            press(button.dataset);
        }
        const link = event.target.closest("a[href^='?']");
        if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
            event.preventDefault();
            if (!link.closest(".guide")) {
                window.scrollTo({top: 0});
            }
            visit(link.getAttribute("href"));
        }
    });

    window.dash_clientside = window.dash_clientside || {};
    window.dash_clientside.workshop = {
        begin: () => begin(),
        collect: () => collect(),
        settle: settle,
        visit: visit,
        show: (answer) => { write(answer); reveal(answer.hidden || []); },
        query: () => gate.query,
    };
})();
