"""Reads the device files: TOML in, records out.

A device is known by its file's name, or by an alias that its file lists. The folder is found beside this file
when installed, and at the top of a checkout. Nothing is read before it is asked for.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fusesim.errors import FusesimError, HardwareSpecError, InputError, excerpt, unknown_name
from fusesim.hardware import HardwareProfile
from fusesim.textfile import read_text

MAX_SPEC_SIZE = 1 << 20
"""A device file larger than this is not one."""


@cache
def specs_folder() -> Path:
    """Return the folder of device files: installed with the package, or at the top of a checkout."""
    here = Path(__file__).parent
    for folder in (here / "hardware_specs", here.parent / "hardware_specs"):
        if folder.is_dir():
            return folder
    raise HardwareSpecError("hardware_specs/ is missing from this installation; install fusesim again")


@cache
def device_ids() -> tuple[str, ...]:
    """Return the id of every device, sorted."""
    return tuple(sorted(path.stem for path in specs_folder().glob("*.toml")))


@cache
def aliases() -> dict[str, str]:
    """Return every alias with the id of its device."""
    return {alias: name for name in device_ids() for alias in _load_known(name).aliases}


def load_known_device(name: str) -> HardwareProfile:
    """Return a shipped device by id or alias.

    Raises
    ------
    InputError
        If there is none of that name; paths are not names.
    HardwareSpecError
        If its file is damaged.
    """
    key = str(name).strip().lower().replace("_", "-")
    if key in device_ids():
        return _load_known(key)
    if re.search(r"[/\\]|\.toml$", key):
        raise InputError(
            f'device "{excerpt(name)}" is a path, not a name; load your own file with '
            "fusesim.load_device(path) or --device-file PATH"
        )
    if key in aliases():
        return _load_alias(key)
    raise unknown_name("device", name, (*device_ids(), *aliases()), "`fusesim devices`")


@cache
def _load_known(name: str) -> HardwareProfile:
    return load_device_file(specs_folder() / f"{name}.toml")


@cache
def _load_alias(alias: str) -> HardwareProfile:
    return _load_known(aliases()[alias]).model_copy(update={"requested_as": alias})


def is_shipped(profile: HardwareProfile) -> bool:
    """Return whether this is a shipped device, under whichever of its names it was asked for."""
    if profile.id not in device_ids():
        return False
    known = _load_known(profile.id)
    return profile is known or profile == known.model_copy(update={"requested_as": profile.requested_as})


def load_device_file(path: str | Path) -> HardwareProfile:
    """Read and check one device file.

    Raises
    ------
    HardwareSpecError
        Names the file, the key, what is wrong with it and what to do.
    """
    file = Path(path)
    text = read_text(file, "a device file", limit=MAX_SPEC_SIZE, fault=HardwareSpecError)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # bad TOML, numbers of 5000 digits, endless nesting
        raise HardwareSpecError(f"{file.name}: not valid TOML: {error}") from error
    return parse_device(table, file.stem, file.name)


def parse_device(table: dict[str, Any], name: str, where: str) -> HardwareProfile:
    """Turn a table into a checked device record; `where` opens every error message."""
    for reserved in ("id", "requested_as"):
        if reserved in table:
            raise HardwareSpecError(f"{where}: {reserved}: set by fusesim, not by the file; remove it")
    try:
        return HardwareProfile.model_validate({**table, "id": name})
    except ValidationError as error:
        raise HardwareSpecError(f"{where}: {first_problem(error)}") from error
    except FusesimError as error:
        raise HardwareSpecError(f"{where}: {error}") from error


def first_problem(error: ValidationError, model: type[BaseModel] = HardwareProfile) -> str:
    """Say the first problem of validating a `model` in one sentence: key path, what is wrong, what to do."""
    problems = error.errors(include_url=False)
    problem = min(problems, key=_how_telling)
    parts = problem["loc"]
    if problem["type"] == "finite_number" and parts[-1:] == ("float",):
        parts = parts[:-1]  # a number of several types: which one is not what is wrong
    path = ".".join(excerpt(part) for part in parts if part != "[key]")
    more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "extra_forbidden":
        return f"{path}: unknown key; {_near_key(problem['loc'], model)}{more}"
    message = "missing; add it" if problem["type"] == "missing" else str(problem["msg"]).removeprefix("Value error, ")
    return f"{path}: {message}{more}" if path else f"{message}{more}"


def _how_telling(problem: Any) -> int:
    """Rank problems: a misspelt key explains a missing one, and NaN why a value is not of any other type."""
    return {"extra_forbidden": 0, "finite_number": 1}.get(problem["type"], 2)


def _near_key(location: tuple[int | str, ...], record: type[BaseModel]) -> str:
    """Suggest the key that was meant."""
    import difflib  # noqa: PLC0415 - only on the way to an error message

    model: Any = record
    for part in location[:-1]:
        field = getattr(model, "model_fields", {}).get(part)
        annotation = field.annotation if field else None
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next((kind for kind in candidates if hasattr(kind, "model_fields")), model)
    known = list(getattr(model, "model_fields", {}))
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f'did you mean "{near[0]}"?' if near else f"known keys: {', '.join(known)}"
