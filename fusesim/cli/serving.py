"""Several processes behind one port: the workshop keeps nothing between requests, so any of them can answer any."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING, Any

from fusesim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def listening(host: str, port: int, backlog: int) -> socket.socket:
    """Return a socket that listens, for processes to share.

    Raises
    ------
    OSError
        If the address is none of this machine's, or taken.
    """
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    shared = socket.socket(family, kind, proto)
    try:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.bind(address)
        shared.listen(backlog)
    except OSError:
        shared.close()
        raise
    return shared


def serve(workers: int, run: Callable[[], Any]) -> None:
    """Run a function in so many processes until one ends or this one is interrupted; then end them all.

    Parameters
    ----------
    workers : int
        How many processes; they are copies of this one, so what was loaded before is there once.
    run : callable
        Serves until it is interrupted.

    Raises
    ------
    InputError
        If the system cannot copy processes, as Windows cannot.

    Notes
    -----
    A process that ends by itself is a fault; rather than hide it, the others are ended too, for whatever supervises
    this one to see.
    """
    if not hasattr(os, "fork"):
        raise InputError("--workers needs a system that copies processes; here only 1 is possible")
    children = [_copy(run) for _ in range(workers)]
    try:
        os.wait()
    except KeyboardInterrupt:
        pass
    finally:
        for child in children:
            _end(child)


def _copy(run: Callable[[], Any]) -> int:
    """Start a copy of this process that serves; returns its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        run()
        status = 0
    except KeyboardInterrupt:
        status = 0
    finally:
        os._exit(status)


def _end(child: int) -> None:
    """End a process and wait for it, where it has not ended yet."""
    try:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
