"""Predicted against measured programs: eager, compiled, and what compiling saves.

    python tests/reference/plan_accuracy.py [--worst N]

Nothing is fitted to these: the named patterns of h200_patterns.json, patterns of our own sizes, random programs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import programs  # noqa: E402 - beside this file

import fusesim  # noqa: E402
from fusesim.patterns import from_measured  # noqa: E402
from fusesim.plans import compare  # noqa: E402


def named():
    data = json.loads((HERE / "h200_patterns.json").read_text())
    for row in data["rows"]:
        sides = {side: row[side] | {"med": row[side]["graph"]["med"] * 1e-6} for side in ("eager", "compiled")}
        yield f"{row['name']} {row['dims']}", from_measured(row["name"], row["dims"]), row["sets"], sides


def ours(name):
    data = json.loads((HERE / f"h200_{name}.json").read_text())
    for row in data["rows"]:
        if any("error" in row.get(side, {"error": 1}) for side in ("eager", "compiled")):
            continue
        graph = from_measured(row["pattern"], row["dims"]) if "pattern" in row else programs.graph_of(row)
        label = f"{row['pattern']} {row['dims']}" if "pattern" in row else f"seed {row['seed']} {row['inputs'][0][1:]}"
        sides = {side: row[side] | {"med": row[side]["graph"]["med"]} for side in ("eager", "compiled")}
        yield label, graph, row["eager"]["sets"], sides


SUITES = {"patterns": named, "own patterns": lambda: ours("own_patterns"), "random": lambda: ours("random")}


def results(suite):
    for label, graph, sets, sides in SUITES[suite]():
        found = compare(
            graph, device="h200-sxm", launch="graph", graph_repeats=sets, outputs="dropped" if suite == "patterns" else "kept"
        )
        eager, compiled = sides["eager"]["med"], sides["compiled"]["med"]
        saving = eager - compiled
        scale = abs(saving) if abs(saving) >= 0.1 * eager else eager
        yield {
            "label": label,
            "eager": found.unfused.time / eager - 1,
            "compiled": found.fused.time / compiled - 1,
            "saving": (found.saving - saving) / scale,
            "in_eager": found.unfused.interval[0] <= eager <= found.unfused.interval[1],
            "in_compiled": found.fused.interval[0] <= compiled <= found.fused.interval[1],
            "counts": (found.unfused.kernels == len(sides["eager"]["kernels"]), found.fused.kernels == len(sides["compiled"]["kernels"])),
            "times": (eager * 1e6, found.unfused.time * 1e6, compiled * 1e6, found.fused.time * 1e6),
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--suite", default=None)
    args = parser.parse_args()
    for suite in SUITES:
        if args.suite and suite != args.suite:
            continue
        every = list(results(suite))
        print(f"{suite}: {len(every)} programs")
        for side in ("eager", "compiled", "saving"):
            errors = np.array([one[side] for one in every])
            q = np.quantile(np.abs(errors), [0.5, 0.9, 1.0]) * 100
            inside = np.mean([one.get(f"in_{side}", False) for one in every]) * 100
            print(f"  {side:9} median {q[0]:5.1f}  p90 {q[1]:5.1f}  worst {q[2]:6.1f}  bias {np.median(errors) * 100:+.1f}  inside {inside:.0f} %")
        print("  counts right: eager %.1f %%, compiled %.1f %%" % tuple(100 * np.mean([one["counts"][i] for one in every]) for i in (0, 1)))
        for side in ("eager", "compiled"):
            for one in sorted(every, key=lambda o: -abs(o[side]))[: args.worst]:
                print(f"    {side} {one[side]:+.2f} {one['label']} eager %.1f/%.1f compiled %.1f/%.1f" % one["times"])


if __name__ == "__main__":
    main()
