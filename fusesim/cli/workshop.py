"""``fusesim workshop``: the web page, behind a production server."""

from __future__ import annotations

import logging
import signal
import socket
from typing import Any, Final, NamedTuple

import click

from fusesim.cli import serving
from fusesim.cli import shared as options
from fusesim.errors import InputError, excerpt

CONNECTIONS = 1000
"""Browsers keep connections open; a class of a hundred has several hundred."""


LONGEST = 9 << 20
"""Longest request that is taken in at all; the app itself has lower limits. [B]"""


class _Everywhere(NamedTuple):
    """An address that means all of this machine's: its family, this machine for itself, and some other machine."""

    family: socket.AddressFamily
    itself: str
    other: str


EVERYWHERE: Final = {
    "0.0.0.0": _Everywhere(socket.AF_INET, "127.0.0.1", "192.0.2.1"),  # noqa: S104 - to be recognised
    "::": _Everywhere(socket.AF_INET6, "::1", "2001:db8::1"),
}
"""Nobody can open these in a browser. The other machines are addresses set aside for documentation."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for a class.")
@click.option("--port", default=8050, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 picks one.")
@click.option("--threads", default=8, show_default=True, type=click.IntRange(1, 256), help="Requests at once.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that share the port."
)
def workshop(*, host: str, port: int, threads: int, workers: int) -> None:
    """Serve the workshop, a page on which fusion is learnt by moving sliders."""
    from waitress.server import create_server  # noqa: PLC0415 - a server only where one is asked for

    if not host.strip():
        raise InputError("--host is empty; give an address of this machine, such as 127.0.0.1")
    application = options.load_app().create_app().server
    terms = {
        "threads": threads,
        "ident": "fusesim",
        "connection_limit": CONNECTIONS,
        "backlog": CONNECTIONS,
        "max_request_body_size": LONGEST,
    }
    try:
        if workers > 1:
            shared = serving.listening(host, port, CONNECTIONS)
        else:
            server = create_server(application, host=host, port=port, **terms)
    except (OSError, ValueError) as error:
        reason = excerpt(getattr(error, "strerror", None) or error, 200).rstrip(".")
        raise InputError(f"cannot listen on {excerpt(host)} port {port}: {reason}") from error
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a class that waits a moment is no news
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as on Ctrl-C: finish what is under way
    for each in [shared.getsockname()[1]] if workers > 1 else _ports(server):
        for line in _announcement(host, each):
            click.echo(line)
    if workers > 1:
        serving.serve(workers, lambda: create_server(application, sockets=[shared], **terms).run())
        return
    try:
        server.run()
    finally:
        server.close()


def _ports(server: Any) -> list[int]:
    """Return the ports listened on: one, unless the host's name has several addresses and the port was left open."""
    listening = getattr(server, "effective_listen", None) or [("", server.effective_port)]
    return sorted({port for _, port in listening})


def _announcement(host: str, port: int) -> list[str]:
    """Return where to open the page: on this machine, and on others where it listens for them."""
    everywhere = EVERYWHERE.get(host)
    here = f"fusesim workshop: {_address(everywhere.itself if everywhere else host, port)}  (Ctrl-C stops it)"
    if everywhere is None:
        return [here]
    own = _own_address(everywhere)
    there = _address(own, port) if own else f"http://NAME:{port}/ with this machine's name or address"
    return [here, f"from other machines: {there}"]


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _own_address(everywhere: _Everywhere) -> str | None:
    """Return the address from which this machine would speak to another; nothing is sent."""
    try:
        with socket.socket(everywhere.family, socket.SOCK_DGRAM) as speaking:
            speaking.connect((everywhere.other, 9))
            return str(speaking.getsockname()[0])
    except OSError:  # no network
        return None
