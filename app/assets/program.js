/* A file of the reader's own: sent as it is, once it is chosen and again when a setting changes; the server keeps none. */
(function () {
    "use strict";

    const MOST = 8 * 1024 * 1024; // as the server has it; a longer file need not travel to be refused
    const held = {file: null, serial: 0};

    const part = (id) => document.getElementById(id);

    function say(text) {
        part("sample-problem").textContent = text;
    }

    async function send() {
        const serial = ++held.serial;
        const query = new URLSearchParams({name: held.file.name, settings: window.workshop.query()});
        part("drop").dataset.busy = "yes";
        part("program-name").textContent = `Reading ${held.file.name}.`;
        try {
            const answer = await fetch(`/program/read?${query}`, {method: "POST", body: held.file, headers: {"Content-Type": "application/octet-stream"}});
            const text = await answer.text();
            if (serial !== held.serial) {
                return;
            }
            show(answer.status, text);
        } catch {
            say("The file did not reach the server; try again.");
        } finally {
            delete part("drop").dataset.busy;
        }
    }

    function show(status, text) {
        let found = null;
        try {
            found = JSON.parse(text);
        } catch {
            say(text.trim());
            return;
        }
        if (status !== 200) {
            part("program-name").textContent = "What is shown is what was there before.";
            say(found.problem);
            return;
        }
        say("");
        window.workshop.show(found);
    }

    function take(file) {
        if (!file) {
            return;
        }
        if (file.size > MOST) {
            say(`${file.name} is longer than 8 MiB; record fewer steps.`);
            return;
        }
        held.file = file;
        say("");
        const menu = part("sample");
        if (menu.value === "file") {
            send();
        } else {
            menu.value = "file";
            menu.dispatchEvent(new Event("change", {bubbles: true}));
        }
    }

    document.addEventListener("answered", () => {
        if (part("drop") && part("sample").value === "file" && held.file) {
            send();
        }
    });
    document.addEventListener("change", (event) => {
        if (event.target.id === "upload") {
            take(event.target.files[0]);
        }
    });
    for (const name of ["dragover", "drop"]) {
        document.addEventListener(name, (event) => {
            if (part("drop")) {
                event.preventDefault(); // anywhere on the page, or the browser would leave it for the file
                if (name === "drop") {
                    take(event.dataTransfer.files[0]);
                }
            }
        });
    }
})();
