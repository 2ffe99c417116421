"""``fusesim workshop``: the web page, behind a production server."""

from __future__ import annotations

import signal
from typing import Any

import click

from fusesim.cli import shared
from fusesim.errors import InputError

CONNECTIONS = 1000
"""Browsers keep connections open; a class of a hundred has several hundred."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for a class.")
@click.option("--port", default=8050, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 picks one.")
@click.option("--threads", default=8, show_default=True, type=click.IntRange(1, 256), help="Requests at once.")
def workshop(*, host: str, port: int, threads: int) -> None:
    """Serve the workshop, a page on which fusion is learnt by moving sliders."""
    from waitress.server import create_server  # noqa: PLC0415 - a server only where one is asked for

    application = shared.load_app().create_app().server
    try:
        server = create_server(
            application,
            host=host,
            port=port,
            threads=threads,
            ident="fusesim",
            connection_limit=CONNECTIONS,
            backlog=CONNECTIONS,
        )
    except (OSError, ValueError) as error:
        raise InputError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}") from error
    address = f"[{host}]" if ":" in host else host
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as on Ctrl-C: finish what is under way
    for each in _ports(server):
        click.echo(f"fusesim workshop: http://{address}:{each}/  (Ctrl-C stops it)")
    try:
        server.run()
    finally:
        server.close()


def _ports(server: Any) -> list[int]:
    """Return the ports listened on: one, unless the host's name has several addresses and the port was left open."""
    listening = getattr(server, "effective_listen", None) or [("", server.effective_port)]
    return sorted({port for _, port in listening})
