"""What the web server adds around the app: a health check, safe headers, and compressed answers."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from dash.exceptions import DependencyException
from flask import Response, abort, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse  # noqa: TC002 - flask looks at annotations

from . import ids

if TYPE_CHECKING:
    from collections.abc import Collection

    from flask import Flask

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'self'"
)
"""Scripts are files of ours. Styles are set by Plotly on single elements, for which there is no hash."""

CALLBACK: Final = "_dash-update-component"
"""Where a page's callbacks are asked for, below its path."""

MAX_REQUEST: Final = 64 * 1024
"""Largest request that is read; a page's own are under 1 kB. [B]"""

OUTPUT: Final = {"id": ids.ANSWER, "property": "data"}
INPUT: Final = {"id": ids.REQUEST, "property": "data"}
CHANGED: Final[tuple[list[str], ...]] = ([], [f"{ids.REQUEST}.data"])
KEYS: Final = {"output", "outputs", "inputs", "state", "changedPropIds", "parsedChangedPropsIds"}
"""What a callback's request may hold: every page has one callback, with one output and one input."""

ARGUMENTS: Final = {"endId"}
"""What may stand behind the address of a callback: Dash's page adds its own number for the request."""

KEPT: Final = "max-age=31536000, immutable"
NOT_A_CALLBACK: Final = "This is not a request that the page makes; load the page again."
NO_SCRIPT: Final = "There is no script at this address."
REFUSALS: Final = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address does not answer this kind of request.",
}
"""What is said where the reason is the status alone."""

MOST_SCRIPTS: Final = 40
"""Compressed scripts that are kept; a page needs about fifteen."""

SMALLEST_WORTH: Final = 1024
"""Answers below this are sent as they are. [B]"""


def harden(server: Flask, pages: Collection[str]) -> None:
    """Add the health check and what every request and every answer passes through.

    Parameters
    ----------
    server : Flask
        Dash's server.
    pages : collection of str
        The paths of all pages.
    """
    server.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST
    packed: dict[str, bytes] = {}
    served = {f"{path}{CALLBACK}" for path in pages}
    headers = HEADERS | {"Content-Security-Policy": POLICY}
    _refuse_in_a_sentence(server)

    @server.before_request
    def check() -> BaseResponse | None:
        if request.method == "POST" and request.path in served:
            if not set(request.args) <= ARGUMENTS or not is_callback(_body()):
                abort(HTTPStatus.BAD_REQUEST, NOT_A_CALLBACK)
        elif _is_any_path() and request.path not in pages:
            if f"{request.path}/" in pages:
                return redirect(f"{request.path}/", HTTPStatus.PERMANENT_REDIRECT)
            abort(HTTPStatus.NOT_FOUND)
        return None

    @server.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @server.after_request
    def finish(response: Response) -> Response:
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        if request.path.startswith("/assets/") and "m" in request.args and response.status_code == HTTPStatus.OK:
            response.headers["Cache-Control"] = KEPT  # its address changes with it
        return compress(response, packed)


def _is_any_path() -> bool:
    """Return whether the request would be answered by Dash's rule for whatever is asked for below a page."""
    rule = request.url_rule.rule if request.url_rule else ""
    return rule.endswith("/<path:path>")


def _refuse_in_a_sentence(server: Flask) -> None:
    """Answer what cannot be served with one sentence, and leave tracebacks to the server's own faults."""

    @server.errorhandler(DependencyException)
    def no_script(_: DependencyException) -> Response:
        return _sentence(NO_SCRIPT, HTTPStatus.NOT_FOUND)

    @server.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        answer = error.get_response(request.environ)
        said = REFUSALS.get(HTTPStatus(answer.status_code), error.description or answer.status)
        if answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            said = f"The request is longer than {(request.max_content_length or 0) // 1024} KiB."
        allowed = answer.headers.get("Allow")
        return _sentence(said, answer.status_code, {"Allow": allowed} if allowed else {})


def _sentence(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{text}\n", status, headers, mimetype="text/plain")


def _body() -> Any:
    """Return the request's JSON, None where it is none or nested too deeply to be read."""
    try:
        return request.get_json(silent=True)
    except RecursionError:
        return None


def is_callback(body: Any) -> bool:
    """Return whether a body has the shape of a callback's request, so that Dash can take it apart.

    What the input holds is not looked at: that is checked where it is used, and answered in a sentence.
    """
    return (
        isinstance(body, dict)
        and set(body) <= KEYS
        and body.get("output") == f"{ids.ANSWER}.data"
        and body.get("outputs") == OUTPUT
        and _is_request(body.get("inputs"))
        and body.get("state", []) == []
        and body.get("changedPropIds", []) in CHANGED
        and body.get("parsedChangedPropsIds", []) in CHANGED
    )


def _is_request(inputs: Any) -> bool:
    """Return whether the inputs are the one that the page's callback has, with any value."""
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        return False
    return inputs[0] | {"value": None} == INPUT | {"value": None}


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
