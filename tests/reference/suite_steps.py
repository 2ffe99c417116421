"""Programs of one step and of several, as the suites write them down."""

from __future__ import annotations


def single(probe, op, inputs, operands=None, sides=("eager",), **kw):
    """Return a program of one step."""
    names = [entry[0] for entry in inputs]
    return {
        "probe": probe,
        "inputs": inputs,
        "steps": [["y", op, operands or names, kw]],
        "outputs": ["y"],
        "sides": list(sides),
    }


def chained(probe, inputs, lines, outputs=("y",), sides=("compiled",), **more):
    """Return a program of several steps: ``result op operand ...``, ``key=number`` for settings."""
    steps = []
    for line in lines:
        result, op, *rest = line.split()
        kw = dict(_setting(word) for word in rest if "=" in word)
        steps.append([result, op, [word for word in rest if "=" not in word], kw])
    return {"probe": probe, "inputs": inputs, "steps": steps, "outputs": list(outputs), "sides": list(sides)} | more


def _setting(word):
    """Return a setting's name and value."""
    key, _, value = word.partition("=")
    if key == "dtype":
        return key, value
    if key in {"dims", "order", "shape"}:
        return key, [int(v) for v in value.split(",")]
    return key, float(value) if "." in value else int(value)
