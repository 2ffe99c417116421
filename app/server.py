"""What the web server adds around the app: a health check, safe headers, and compressed answers."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from flask import abort, request

from . import ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flask import Flask, Response

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'self'",
}
MAX_REQUEST: Final = 64 * 1024
"""Largest request that is read; a page's own are under 1 kB. [B]"""

KEYS: Final = {"output", "outputs", "inputs", "state", "changedPropIds", "parsedChangedPropsIds"}
"""What a callback's request may hold."""

MOST_SCRIPTS: Final = 40
"""Compressed scripts that are kept; a page needs about fifteen."""

SMALLEST_WORTH: Final = 1024
"""Answers below this are sent as they are. [B]"""


def harden(server: Flask, callbacks: Iterable[str]) -> None:
    """Add the health check and what every request and every answer passes through.

    Parameters
    ----------
    server : Flask
        Dash's server.
    callbacks : iterable of str
        The callbacks that it may be asked for, as Dash spells their outputs.
    """
    server.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST
    packed: dict[str, bytes] = {}

    @server.before_request
    def check() -> None:
        if request.path.endswith("/_dash-update-component") and not is_callback(_body(), set(callbacks)):
            abort(HTTPStatus.BAD_REQUEST)

    @server.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @server.after_request
    def finish(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return compress(response, packed)


def _body() -> Any:
    """Return the request's JSON, None where it is none or nested too deeply to be read."""
    try:
        return request.get_json(silent=True)
    except RecursionError:
        return None


def is_callback(body: Any, callbacks: set[str]) -> bool:
    """Return whether a body has the shape of a callback's request, so that Dash can take it apart.

    What the inputs hold is not looked at: that is checked where it is used, and answered in a sentence.
    """
    if not isinstance(body, dict) or not set(body) <= KEYS or not _is_text(body.get("output"), callbacks):
        return False
    named = [dict(zip(("id", "property"), output.rsplit(".", 1), strict=True)) for output in _outputs(body["output"])]
    inputs, changed = body.get("inputs"), body.get("changedPropIds", [])
    return (
        body.get("outputs") == named
        and isinstance(inputs, list)
        and len(inputs) == 1
        and isinstance(inputs[0], dict)
        and {name: inputs[0].get(name) for name in ("id", "property")} == {"id": ids.REQUEST, "property": "data"}
        and isinstance(changed, list)
        and all(_is_text(entry, {f"{ids.REQUEST}.data"}) for entry in changed)
    )


def _is_text(value: Any, options: set[str]) -> bool:
    return isinstance(value, str) and value in options


def _outputs(spelt: str) -> list[str]:
    """Split Dash's name of a callback into its outputs."""
    return spelt.strip(".").split("...")


def compress(response: Response, packed: dict[str, bytes]) -> Response:
    """Compress what gains by it; scripts, which never change while the app runs, only once.

    Parameters
    ----------
    response : Response
        Returned as it is where the browser does not ask for gzip or there is nothing to gain.
    packed : dict
        Compressed scripts by path, filled as they are asked for.
    """
    wanted = request.accept_encodings.quality("gzip") > 0
    if not wanted or response.status_code != HTTPStatus.OK or not _gains(response):
        return response
    response.direct_passthrough = False
    body = response.get_data()
    if len(body) < SMALLEST_WORTH:
        return response
    if request.method == "GET" and "/_dash-component-suites/" in request.path:
        response.set_data(_packed_once(request.path, body, packed))
    else:
        response.set_data(gzip.compress(body, 1))
    response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    return response


def _packed_once(path: str, body: bytes, packed: dict[str, bytes]) -> bytes:
    """Return a script compressed, from the store where it is there, and store it while there is room.

    Room ends because a script answers to any number of paths that differ in its version.
    """
    if path not in packed:
        script = gzip.compress(body, 6)
        if len(packed) >= MOST_SCRIPTS:
            return script
        packed[path] = script
    return packed[path]


def _gains(response: Any) -> bool:
    """Return whether the answer is text that is not compressed yet."""
    kind = response.mimetype
    text = kind.startswith("text/") or kind in {"application/json", "application/javascript"}
    return text and "Content-Encoding" not in response.headers
