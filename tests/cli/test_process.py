"""What only a process of its own shows: entry points, pipes, and the workshop's start and stop."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import fusesim

SCRIPT = [str(Path(sys.executable).with_name("fusesim"))]
MODULE = [sys.executable, "-m", "fusesim"]
LIMIT = 60


def hear_interrupts():
    """Undo what a shell does to commands in the background: ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def outcome(*line, **terms):
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=LIMIT, **terms)


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["fusesim", "python -m fusesim"])
def test_both_ways_of_starting(program):
    done = outcome(*program, "chain", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["speedup"] == pytest.approx(5)
    wrong = outcome(*program, "chain", "--ops", "0")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("fusesim: ops is 0")
    assert outcome(*program, "chain", "--bogus").returncode == 2


@pytest.mark.parametrize("command", [[], ["chain"], ["roofline"], ["devices"], ["workshop"]])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(run, command, flag):
    done = run(*command, flag)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(" ".join(["Usage: fusesim", *command]))
    for line in re.findall(r"^  (fusesim .*)$", done.out, re.MULTILINE):  # the examples work
        assert run(*line.split()[1:]).code in ({1} if "my-gpu.toml" in line else {0})


def test_version(run):
    assert run("--version").out == f"fusesim, version {fusesim.__version__}\n"


def test_a_full_disk_is_no_traceback():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as disk:
        done = subprocess.run(
            [*MODULE, "chain"], stdout=disk, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT
        )
    assert done.returncode == 1
    assert done.stderr == "fusesim: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("arguments", [["devices"], ["chain", "--json"]])
def test_a_reader_that_leaves_early_is_no_error(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*MODULE, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda stop: stop.name)
def test_the_workshop_starts_answers_and_stops(stop):
    server = subprocess.Popen(
        [*MODULE, "workshop", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads here
    )
    try:
        line = server.stdout.readline()
        found = re.fullmatch(r"fusesim workshop: (http://127\.0\.0\.1:\d+/)  \(Ctrl-C stops it\)\n", line)
        assert found, line + server.stderr.read()
        with urllib.request.urlopen(found[1], timeout=LIMIT) as answer:
            assert answer.status == 200
            assert "fusesim workshop" in answer.read().decode()
        server.send_signal(stop)
        out, err = server.communicate(timeout=LIMIT)
    finally:
        server.kill()
        server.communicate()
    assert (server.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda stop: stop.name)
def test_several_processes_share_a_port_and_stop_together(stop):
    server = subprocess.Popen(
        [*MODULE, "workshop", "--port", "0", "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads here
    )
    try:
        line = server.stdout.readline()
        found = re.fullmatch(r"fusesim workshop: (http://127\.0\.0\.1:(\d+)/)  \(Ctrl-C stops it\)\n", line)
        assert found, line + server.stderr.read()
        for _ in range(8):
            with urllib.request.urlopen(f"{found[1]}health", timeout=LIMIT) as answer:
                assert answer.status == 200
        server.send_signal(stop)
        out, err = server.communicate(timeout=LIMIT)
    finally:
        server.kill()
        server.communicate()
    assert (server.returncode, out, err) == (0, "", "")
    with socket.socket() as free:
        assert free.connect_ex(("127.0.0.1", int(found[2]))) != 0  # nobody listens any more


def test_two_workshops_cannot_share_a_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = outcome(*MODULE, "workshop", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"fusesim: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


def test_the_workshop_needs_an_address_of_this_machine():
    done = outcome(*MODULE, "workshop", "--host", "192.0.2.1", "--port", "0")  # set aside for documentation
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "fusesim: cannot listen on 192.0.2.1 port 0: Cannot assign requested address\n"
