"""What all tests share: how hypothesis draws, and the command line run in this process."""

import os
from typing import NamedTuple

import pytest
from hypothesis import settings

import fusesim.cli

collect_ignore_glob = ["benchmarks/*"]

settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=False)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


class Outcome(NamedTuple):
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command line in this process, which is much faster than starting another one."""

    def run(*arguments):
        code = fusesim.cli.main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run
