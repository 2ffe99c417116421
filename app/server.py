"""What the web server adds around the app: a health check, safe headers, and compressed answers."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from flask import request

if TYPE_CHECKING:
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

MOST_SCRIPTS: Final = 40
"""Compressed scripts that are kept; a page needs about fifteen."""

SMALLEST_WORTH: Final = 1024
"""Answers below this are sent as they are. [B]"""


def harden(server: Flask) -> None:
    """Add the health check and what every answer passes through."""
    server.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST
    packed: dict[str, bytes] = {}

    @server.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @server.after_request
    def finish(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return compress(response, packed)


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
