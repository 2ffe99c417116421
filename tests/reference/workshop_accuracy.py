"""The file that the workshop's page of accuracy shows: `python tests/reference/workshop_accuracy.py` writes it anew.

Predicted beside measured, for chains and for programs, none of which a parameter was fitted on; and what each effect
is worth. The measurements themselves are not in the wheel; these pairs are, rounded to four digits.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import accuracy  # noqa: E402 - beside this file
import plan_accuracy  # noqa: E402

from fusesim import validate  # noqa: E402

OUT = HERE.parents[1] / "app" / "data" / "accuracy.json"
MOST = 200
"""Cases of one suite and kind that are shown; of more, every so manieth."""

CHAINS = {
    "Chains by hand, in a graph": lambda row: (row.path, row.mode) == ("cuda", "graph"),
    "Chains by CuPy, in a graph": lambda row: (row.path, row.mode) == ("cupy", "graph"),
    "Chains on a stream": lambda row: row.mode == "stream",
    "Chains from idle": lambda row: row.mode == "latency",
}
PROGRAMS = {
    "patterns": "Programs: named patterns in PyTorch",
    "own patterns": "Programs: the same patterns at other sizes",
    "random": "Programs: random ones",
}


def chain_cases(name, rows):
    found = validate.compare(rows, device=accuracy.DEVICE)
    for kind, members in (("time", found.times), ("saving", found.savings)):
        for each in thinned(members):
            side = kind if kind == "saving" else "fused" if each.row.fused else "unfused"
            yield case(
                name,
                side,
                each.regime,
                each.row.label,
                each.measured,
                each.predicted,
                (each.low, each.high),
                each.scale,
            )


def program_cases(suite):
    name = PROGRAMS[suite]
    for label, graph, sets, sides, *_ in thinned(list(plan_accuracy.SUITES[suite]())):
        found = plan_accuracy.compared(graph, sets, suite)
        times = {"unfused": sides["eager"]["med"], "fused": sides["compiled"]["med"]}
        for side, price in (("unfused", found.unfused), ("fused", found.fused)):
            interval = tuple(float(end) for end in price.interval)
            yield case(name, side, regime(price), label, times[side], float(price.time), interval, times[side])
        saving = times["unfused"] - times["fused"]
        scale = abs(saving) if abs(saving) >= validate.SMALL_SAVING * times["unfused"] else times["unfused"]
        yield case(name, "saving", regime(found.unfused), label, saving, found.saving, found.saving_interval, scale)


def regime(price):
    return price.bound if price.bound in validate.REGIMES else "arithmetic"


def case(suite, side, bound, label, measured, predicted, interval, scale):
    numbers = (measured, predicted, *interval, scale)
    return [suite, side, bound, str(label)[:90], *(float(f"{float(number):.4g}") for number in numbers)]


def thinned(members):
    if len(members) <= MOST:
        return members
    ends = [round(place * len(members) / MOST) for place in range(MOST + 1)]
    return [members[start] for start, _ in pairwise(ends)]


def ablation(rows):
    for step in validate.ablate(rows, device=accuracy.DEVICE):
        grades = (step.times, step.savings)
        yield [
            step.step,
            *(float(f"{each:.4g}") for grade in grades for each in (grade.median, grade.p90, grade.worst)),
        ]


def main():
    rows = accuracy.measured()
    cases = []
    for name, wanted in CHAINS.items():
        cases += chain_cases(name, [row for row in rows if wanted(row)])
    for suite in PROGRAMS:
        cases += program_cases(suite)
    steps = list(ablation([row for row in rows if (row.path, row.mode) == ("cuda", "graph")]))
    head = {
        "device": accuracy.DEVICE,
        "columns": ["suite", "side", "regime", "case", "measured", "predicted", "low", "high", "scale"],
    }
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in cases)
    table = ",\n".join(json.dumps(each, separators=(",", ":")) for each in steps)
    text = f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n], "ablation": [\n{table}\n]}}\n'
    json.loads(text)
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT.name}: {len(cases)} cases, {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
