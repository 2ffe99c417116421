/* Between the controls and the server: one request in the air at a time, the newest state next.

   Changes are gathered while a request is in the air and sent together when it is answered, so a slider that is dragged
   faster than answers come never lags behind the hand. The page's callback is asked as Dash's own script would ask it,
   and what it says is put in place here: on its way through Dash's store of components a step would take a third
   longer. This file also keeps the address in step with the view. It prices nothing. */
(function () {
    "use strict";

    const PATIENCE = 20000; // ms after which a request counts as lost
    const AGAIN = 2000; // ms after which what was lost is sent again
    const STILL = 120; // ms after a step before other controls follow, not to slow a drag down
    const SETTLED = 350; // ms without a change before the address is written
    const SOON = 10; // ms between two looks at whether the charts are there
    const gate = {query: "", shown: {}, waiting: {}, sent: null, serial: 0, timer: 0, syncing: 0, address: ""};

    const isEmpty = (record) => Object.keys(record).length === 0;
    const pause = (time) => new Promise((resolve) => { window.setTimeout(resolve, time); });

    /* Join changes that were lost on their way with later ones; edits of the chain add up. */
    function together(lost, later) {
        const edit = [...(lost.edit || []), ...(later.edit || [])];
        return {...lost, ...later, ...(edit.length ? {edit} : {})};
    }

    /* Ask the page's callback; a refusal is an error with the server's sentence, a lost request one without. */
    async function ask(request) {
        const answer = await fetch(`${window.location.pathname}_dash-update-component`, {
            method: "POST",
            headers: {"Content-Type": "application/json"},
            signal: AbortSignal.timeout(PATIENCE),
            body: JSON.stringify({
                output: "answer.data",
                outputs: {id: "answer", property: "data"},
                inputs: [{id: "request", property: "data", value: request}],
                changedPropIds: ["request.data"],
            }),
        });
        if (answer.status >= 400 && answer.status < 500) {
            throw new Error(await answer.text(), {cause: "refused"});
        }
        return (await answer.json()).response.answer.data;
    }

    /* Send what has changed, unless a request is in the air already. */
    async function send() {
        if (isEmpty(gate.waiting) || gate.sent) {
            return;
        }
        gate.sent = gate.waiting;
        gate.waiting = {};
        Object.assign(gate.shown, gate.sent);
        let answer = null;
        try {
            answer = await ask({settings: gate.query, changes: gate.sent});
        } catch (error) {
            await mend(error);
            return;
        }
        settle(answer);
    }

    /* Say that a request was refused; send again what was lost. */
    async function mend(error) {
        const refused = error.cause === "refused";
        gate.waiting = refused ? gate.waiting : together(gate.sent, gate.waiting);
        document.getElementById("url-problem").textContent = refused ? error.message : "The server does not answer. What is on screen stays, and your last change is sent again.";
        await pause(AGAIN);
        gate.sent = null;
        send();
    }

    /* Draw charts, each into a part of its frame. */
    async function draw(charts) {
        while (!window.Plotly) {
            await pause(SOON); // only at first: it is the longest of the scripts
        }
        const config = JSON.parse(document.getElementById("main").dataset.charts);
        for (const [id, {data, layout}] of Object.entries(charts || {})) {
            const frame = document.getElementById(id);
            const part = frame.firstElementChild || frame.appendChild(document.createElement("div"));
            part.className ||= "drawn";
            window.Plotly.react(part, data, {...layout, autosize: true}, config);
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

    /* What a control is called; of radio buttons only the one that is chosen speaks. */
    function held(control) {
        return control.type === "radio" ? control.name : control.id;
    }

    /* Darken a slider's track up to its thumb. */
    function fillTrack(control) {
        if (control.type === "range") {
            const share = (control.value - control.min) / (control.max - control.min);
            control.style.setProperty("--fill", `${100 * share}%`);
        }
    }

    /* Take in what a control holds while it is moved. */
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

    /* Begin with the address: the first answer comes while Plotly does. */
    function begin() {
        for (const control of document.querySelectorAll("[data-control]")) {
            fillTrack(control);
            if (control.type !== "radio" || control.checked) {
                gate.shown[held(control)] = control.value;
            }
        }
        gate.address = window.location.search;
        visit(gate.address);
    }

    /* Let a control follow the view. */
    function set(id, value) {
        const control = document.getElementById(id);
        if (control && control.matches(".native")) {
            for (const option of control.querySelectorAll("input")) {
                option.checked = option.value === value;
            }
        } else if (control) {
            control.value = value;
            fillTrack(control);
        }
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

    /* Put texts in their places. */
    function write(texts) {
        for (const [id, text] of Object.entries(texts || {})) {
            const place = document.getElementById(id);
            if (place && place.textContent !== text) {
                place.textContent = text;
            }
        }
    }

    /* Put a view in its place. */
    async function show(view) {
        write(view.texts);
        write(view.verbatim);
        fill(view.parts);
        if (view.hidden) {
            reveal(view.hidden);
        }
        await draw(view.charts);
    }

    /* Show what has a meaning in the view, and nothing else. */
    function reveal(hidden) {
        for (const part of document.querySelectorAll(".control, .controls button[id]")) {
            part.hidden = hidden.includes(part.id);
        }
    }

    /* Let controls follow the view, except those that the learner has just set, or is setting. */
    function sync(widgets, sent) {
        for (const [id, held] of Object.entries(widgets)) {
            const value = String(held);
            const busy = id in sent || id in gate.waiting || id in (gate.sent || {});
            if (value !== gate.shown[id] && !busy) {
                gate.shown[id] = value;
                set(id, value);
            }
        }
    }

    /* Mark entries whose alert speaks, and let sliders say what stands beside them. */
    function describe() {
        for (const control of document.querySelectorAll("[data-control][aria-describedby]")) {
            const [first, ...others] = control.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id));
            const alert = others[0] || first;
            if (control.type === "range") {
                control.setAttribute("aria-valuetext", first.textContent);
            } else if (alert) {
                control.setAttribute("aria-invalid", String(alert.textContent !== ""));
            }
        }
    }

    /* Take in an answer; without a view what is on screen stays. */
    async function settle(answer) {
        const sent = gate.sent;
        const view = answer.view ? JSON.parse(answer.view) : {};
        gate.query = answer.query;
        write(answer.alerts);
        await show(view);
        gate.sent = null;
        gate.serial += 1;
        follow(view.widgets || {}, sent);
        describe();
        if (sent.url === window.location.search) {
            window.clearTimeout(gate.timer);
        } else {
            writeAddress();
        }
        if (view.more) {
            askForMore();
        }
        document.body.dataset.answered = String(gate.serial);
        document.dispatchEvent(new CustomEvent("answered"));
        send();
    }

    /* Let controls follow at once, but after a step of theirs not before they stand still. */
    function follow(widgets, sent) {
        window.clearTimeout(gate.syncing);
        if (Object.keys(sent).every((id) => id in widgets)) {
            gate.syncing = window.setTimeout(() => sync(widgets, sent), STILL);
        } else {
            sync(widgets, sent);
        }
    }

    window.addEventListener("popstate", () => {
        if (window.location.search !== gate.address) {
            gate.address = window.location.search;
            visit(gate.address);
        }
    });
    document.addEventListener("submit", (event) => event.preventDefault());
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

    window.workshop = {
        visit: visit,
        show: show,
        query: () => gate.query,
    };
    begin();
})();
