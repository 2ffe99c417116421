"""What `fusesim workshop` prints before it serves; that it serves is tested in a process of its own."""

import logging
import signal
import socket

import pytest
import waitress.server


class FakeServer:
    """It listens nowhere and ends at once."""

    effective_listen = (("0.0.0.0", 8050),)

    def run(self):
        pass

    def close(self):
        pass


@pytest.fixture
def asked(monkeypatch):
    """What the server was asked for."""
    asked = {}

    def create_server(application, **terms):
        asked.update(terms, application=application)
        return FakeServer()

    monkeypatch.setattr(waitress.server, "create_server", create_server)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return asked


class FakeSocket:
    """A machine with one address, or with none where `own` says so."""

    own = True

    def __init__(self, family, kind):
        assert kind == socket.SOCK_DGRAM  # nothing is sent before it is written to
        self.family = family

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def connect(self, _):
        if not self.own:
            raise OSError("Network is unreachable")

    def getsockname(self):
        return ("10.1.2.3", 4) if self.family == socket.AF_INET else ("fd00::7", 4, 0, 0)


@pytest.mark.parametrize(
    ("host", "here", "there"),
    [
        ("127.0.0.1", "http://127.0.0.1:8050/", None),
        ("::1", "http://[::1]:8050/", None),
        ("0.0.0.0", "http://127.0.0.1:8050/", "http://10.1.2.3:8050/"),
        ("::", "http://[::1]:8050/", "http://[fd00::7]:8050/"),
    ],
)
def test_the_addresses_can_be_opened(run, asked, monkeypatch, host, here, there):
    monkeypatch.setattr(socket, "socket", FakeSocket)
    outcome = run("workshop", "--host", host)
    lines = [f"fusesim workshop: {here}  (Ctrl-C stops it)", *([f"from other machines: {there}"] if there else [])]
    assert (outcome.code, outcome.out.splitlines(), outcome.err) == (0, lines, "")
    assert asked["host"] == host


@pytest.mark.usefixtures("asked")
def test_a_machine_without_a_network_says_what_to_look_for(run, monkeypatch):
    monkeypatch.setattr(socket, "socket", FakeSocket)
    monkeypatch.setattr(FakeSocket, "own", False)
    line = run("workshop", "--host", "0.0.0.0").out.splitlines()[1]
    assert line == "from other machines: http://NAME:8050/ with this machine's name or address"


@pytest.mark.usefixtures("asked")
def test_a_full_queue_is_not_reported(run, caplog):
    assert run("workshop").code == 0
    logging.getLogger("waitress.queue").warning("Task queue depth is 1")
    assert not caplog.records


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("", "--host is empty; give an address of this machine, such as 127.0.0.1"),
        (" ", "--host is empty; give an address of this machine, such as 127.0.0.1"),
        ("x\ny", "cannot listen on x y port 0: Invalid host/port specified"),
    ],
)
def test_a_host_that_is_none_gets_one_sentence(run, host, sentence):
    outcome = run("workshop", "--host", host, "--port", "0")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"fusesim: {sentence}\n")
