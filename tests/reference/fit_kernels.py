"""Fits the rates of kernel classes to measured programs and writes hardware_specs/kernels/h200-sxm.json.

    python tests/reference/fit_kernels.py [--out FILE] [--check]

Fitted: the single ops and single generated kernels of h200_pointwise.json, h200_rows.json, h200_products.json and
h200_generated.json. Not fitted, but used for the intervals: h200_own_patterns.json and h200_random.json. A class's row
is fitted to the programs in which a kernel of that class moves most, all classes before it fixed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import least_squares

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import programs  # noqa: E402 - beside this file

import fusesim  # noqa: E402
from fusesim import calibrations  # noqa: E402
from fusesim.calibration import machine_of  # noqa: E402
from fusesim.kernel_rates import KernelRates, rates_of  # noqa: E402
from fusesim.launches import Rates, launch_time  # noqa: E402
from fusesim.lowering import lower  # noqa: E402
from fusesim.lowering.target import target_of  # noqa: E402
from fusesim.patterns import from_measured  # noqa: E402
from fusesim.plans import plan_graph  # noqa: E402
from fusesim.reuse import served  # noqa: E402

OUT = HERE.parents[1] / "hardware_specs" / "kernels" / "h200-sxm.json"
FITTED = ("pointwise", "rows", "products", "more", "generated", "generated_more", "random_fit")
HELD_OUT = ("own_patterns", "random")
STREAM = ("gap", "slots", "share")
ROWS = ("gap", "block", "step", "rounds", "slots", "share")
PRODUCTS = ("gap", "block", "peak", "fill", "sustained", "share")
GENERATED = ("gap", "block", "step", "rounds", "slots", "cycles", "share")
ATTENTION = ("gap", "block", "step", "peak", "sustained", "share")
ROW_CLASSES = (
    "sum_ max_ var_ softmax log_softmax layer_norm rms_norm moments normalised columns scan nll "
    "gen_rows gen_held gen_warp gen_parts gen_columns gen_last"
).split()
SCALE = {"gap": 1e-6, "block": 1e-6, "step": 1e-7, "rounds": 1.0, "slots": 20.0, "cycles": 1.0, "share": 1.0, "peak": 1.0, "fill": 1e11, "sustained": 1.0}
LOW = {"gap": 0, "block": 0, "step": 0, "rounds": 0, "slots": 0, "cycles": 0, "share": 0.2, "peak": 0.03, "fill": 0.02, "sustained": 0.03}
HIGH = {"gap": 15, "block": 15, "step": 40, "rounds": 3, "slots": 40, "cycles": 15, "share": 1.0, "peak": 1.0, "fill": 40, "sustained": 1.1}
START = {"gap": 0.2, "block": 0.2, "step": 0.2, "rounds": 0.2, "slots": 0.5, "cycles": 1.0, "share": 0.9, "peak": 0.8, "fill": 1.4, "sustained": 0.8}
FIRST = ("vectorised32", "vectorised16", "memcpy", "converted", "strided2_16", "strided2_32", "strided3_16", "strided3_32", "transposed_16", "transposed_32", "layout16", "gen_loop16", "gen_loop32", "gen_last")


def load(name):
    path = HERE / f"h200_{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def machine():
    profile = fusesim.device("h200-sxm")
    found = machine_of(calibrations.shipped_calibrations()["h200-sxm"], profile)
    return found, target_of(found, profile)


def graph_of(row):
    return from_measured(row["pattern"], row["dims"]) if "pattern" in row else programs.graph_of(row)


def cases(names, here, target, sides=("eager", "compiled")):
    """Return what each measured program launches, where its bytes come from, and how long it took."""
    found = []
    for name in names:
        for row in load(name)["rows"]:
            for side in sides:
                if side not in row or "error" in row[side]:
                    continue
                graph = graph_of(row)
                strategy, path = ("eager", "torch") if side == "eager" else ("inductor", "inductor")
                plan = plan_graph(graph, strategy=strategy)
                launches = [launch for _, launch in lower(plan, path, target)]
                if not launches:
                    continue
                kept = {graph.tensors[n].storage for n in (*graph.inputs, *graph.outputs)}
                sets = row[side]["sets"]
                main = max(launches, key=lambda one: (one.bytes_read + one.bytes_written, one.flops)).row
                found.append(
                    SimpleNamespace(
                        suite=name, row=row, side=side, launches=launches, served=served(launches, kept, here, sets),
                        sets=sets, time=row[side]["graph"]["med"], main=main, kernels=row[side]["kernels"], graph=graph, plan=plan,
                    )
                )  # fmt: skip
    return found


def predicted(case, find, here):
    times = (launch_time(one, find(one.row), here, at, floor=here.floor).time for one, at in zip(case.launches, case.served, strict=True))
    return sum(times) + here.replay / case.sets


def free_rates(row):
    if row.startswith(("gen_held", "gen_warp", "gen_rows")):
        return GENERATED
    if row.startswith(tuple(ROW_CLASSES)):
        return ROWS
    if row.startswith(("matmul", "conv1", "conv3", "conv_", "pointwise")):
        return PRODUCTS
    return ATTENTION if row.startswith("attention") else STREAM


def fit_row(row, own, find, here):
    names = free_rates(row)

    def made(x):
        return Rates(**(asdict(rates_of({})) | {n: float(v) * SCALE[n] for n, v in zip(names, x, strict=True)}))

    def residuals(x):
        mine = made(x)
        return np.array([math.log(predicted(c, lambda r: mine if r == row else find(r), here) / c.time) for c in own])

    best = None
    for factor, block in ((1, 1), (0.3, 0.3), (2.5, 2.5), (0.3, 6), (1, 0.05)):
        start = [min(max(START[n] * (block if n == "block" else factor), LOW[n] + 1e-5), HIGH[n] - 1e-5) for n in names]
        found = least_squares(
            residuals, start, bounds=([LOW[n] for n in names], [HIGH[n] for n in names]), loss="soft_l1", f_scale=0.05,
            x_scale=[max(START[n], 0.05) for n in names],
        )  # fmt: skip
        if best is None or found.cost < best.cost:
            best = found
    return {n: float(v) * SCALE[n] for n, v in zip(names, best.x, strict=True)}, residuals(best.x)


def fit(verbose=True):
    here, target = machine()
    groups = defaultdict(list)
    for case in cases(FITTED, here, target):
        groups[case.main].append(case)
    rows, zero = {"memset": {"rates": {"gap": 0.0}, "cases": 1, "median_error": 0.0, "error_90": 0.0}}, rates_of({})
    known, near = {"memset": zero}, {}

    def find(name):
        if name in known:
            return known[name]
        if name not in near:
            near[name] = record(rows).find(name)
        return near[name]

    for row in [r for r in FIRST if r in groups] + sorted(set(groups) - set(FIRST) - {"memset"}):
        rates, left = fit_row(row, groups[row], find, here)
        error = np.abs(np.expm1(left))
        rows[row] = {
            "rates": {n: float(f"{v:.6g}") for n, v in rates.items()},
            "cases": len(left),
            "median_error": float(f"{np.median(error):.4f}"),
            "error_90": float(f"{np.quantile(error, 0.9):.4f}"),
        }
        known[row] = rates_of(rows[row]["rates"])
        near.clear()
        if verbose:
            print(f"{row:22} {len(left):4} {100 * np.median(error):5.1f} {100 * np.quantile(error, 0.9):5.1f}", {n: f"{v:.3g}" for n, v in rates.items()})
    return rows, here, target


def record(rows, spreads=None, correlation=0.5):
    first = load("pointwise")
    environment = {k: v for k, v in first.get("environment", {}).items() if not isinstance(v, dict)}
    environment |= first.get("environment", {}).get("nvidia_smi", {})
    return KernelRates.model_validate(
        {
            "schema": "fusesim-kernels/1",
            "name": "h200-sxm, PyTorch 2.11",
            "device": "h200-sxm",
            "date": environment.get("date", ""),
            "protocol": "see tests/reference/measure_torch.py; fitted by tests/reference/fit_kernels.py",
            "environment": environment,
            "rows": rows,
            "spreads": spreads or {"torch": {"low": 0.9, "high": 1.1, "cases": 1}, "inductor": {"low": 0.9, "high": 1.1, "cases": 1}},
            "correlation": correlation,
        }
    )


def held_out(rows, here, target):
    """Return the intervals of both paths, and how far the deviations of a program's two sides go together."""
    made = record(rows)
    ratios, pairs = {"eager": [], "compiled": []}, defaultdict(dict)
    for case in cases(HELD_OUT, here, target):
        ratio = case.time / predicted(case, made.find, here)
        ratios[case.side].append(ratio)
        pairs[json.dumps([case.suite, case.row.get("seed"), case.row.get("pattern"), case.row.get("dims")])][case.side] = math.log(ratio)
    spreads = {}
    for side, path in (("eager", "torch"), ("compiled", "inductor")):
        low, high = np.quantile(ratios[side], [0.05, 0.95])
        spreads[path] = {"low": float(f"{min(low, 0.99):.4f}"), "high": float(f"{max(high, 1.01):.4f}"), "cases": len(ratios[side])}
    both = np.array([[p["eager"], p["compiled"]] for p in pairs.values() if len(p) == 2])
    return spreads, float(f"{np.corrcoef(both.T)[0, 1]:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=OUT)
    args = parser.parse_args()
    rows, here, target = fit()
    spreads, correlation = held_out(rows, here, target)
    print(spreads, correlation)
    Path(args.out).parent.mkdir(exist_ok=True)
    Path(args.out).write_text(json.dumps(record(rows, spreads, correlation).model_dump(by_alias=True), indent=1) + "\n")


if __name__ == "__main__":
    main()
