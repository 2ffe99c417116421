"""What continuous integration installs is pinned, all of it."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LINES = [
    line for line in (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


def needed(stated, extras=frozenset({""})):
    """Yield the names of all packages that requirements ask for here, with what those ask for in turn."""
    for requirement in map(Requirement, stated):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            yield canonicalize_name(requirement.name), frozenset({"", *requirement.extras})


def test_every_package_is_pinned_to_a_version():
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in LINES)
    names = [line.partition("==")[0].lower() for line in LINES]
    assert names == sorted(set(names))


def test_nothing_that_is_installed_is_left_open():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {canonicalize_name(line.partition("==")[0]) for line in LINES} | {"setuptools"}  # as in pip freeze
    open_ones, seen = list(needed([*project["dependencies"], *project["optional-dependencies"]["dev"]])), set()
    while open_ones:
        name, extras = open_ones.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        assert name in pinned
        try:
            open_ones += needed(requires(name) or [], extras)
        except PackageNotFoundError:  # not every developer has every tool
            continue
    assert len(seen) > 40
