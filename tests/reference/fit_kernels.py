"""Fits the rates of kernel classes to measured programs and writes hardware_specs/kernels/h200-sxm.json.

    python tests/reference/fit_kernels.py [--out FILE]

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
from functools import cache
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
from fusesim.plan_run import Kernel  # noqa: E402
from fusesim.plans import plan_graph  # noqa: E402
from fusesim.reuse import memories, served  # noqa: E402

OUT = HERE.parents[1] / "hardware_specs" / "kernels" / "h200-sxm.json"
FITTED = (
    "pointwise",
    "rows",
    "products",
    "more",
    "generated",
    "generated_more",
    "resident",
    "shapes",
    "small",
    "special",
    "warm",
    "random_fit",
    "random_fit_more",
    "columns",
    "layouts",
    "library",
    "fill",
    "generated_fill",
    "bags",
    "features",
    "odd_places",
    "places",
    "vectors",
    "training",
    "training_more",
)
PROFILED = ("own_patterns_first", "random_first", "random_judge_profiled", "random_profiled")
"""Programs that ran in processes in which a profiler had run, on three H200s: what that takes is drawn from them."""

HELD_OUT = ("own_patterns", "own_patterns_dropped", "random", "own_patterns_first", "random_first")
"""Programs for the intervals."""

SHORT = 4e-6
"""Mean time of kernels of programs that tell what a profiler takes. [s]"""

WARM = ("products", "library", "more", "shapes", "vectors", "rows", "pointwise", "layouts", "columns", "training")
"""Files whose programs h200_warm.json has in part, on one set of buffers."""

LITTLE = 4e6
"""Most bytes of all sets of inputs of programs that tell what a replay takes. [B]"""

FOLLOWING = 7.2e-8
"""What a kernel takes longer where the one before has just written what it reads: a straight line through what 231
programs of short kernels took beyond their kernels alone (`random_fit` and others, `tests/reference/README.md`). [s]"""

FEWEST = 24
"""Cases that a bound needs for an interval of its own."""
STREAM = ("gap", "slots", "share")
TILED = ("gap", "block", "meeting", "share")
GEMV = ("gap", "block", "step", "slots", "share")
BAGS = ("gap", "step", "slots", "share")
GATHERS = ("gap", "rounds", "slots", "share")
ROWS = ("gap", "block", "step", "rounds", "slots", "meeting", "share")
PRODUCTS = ("gap", "block", "peak", "fill", "drain", "sustained", "share")
GENERATED = ("gap", "slots", "cycles", "share")
HELD = ("gap", "block", "slots", "cycles", "share")
ATTENTION = ("gap", "block", "step", "peak", "sustained", "share")
PRODUCT_CLASSES = ("matmul", "conv1", "conv3", "conv_", "pointwise")
ROW_CLASSES = (
    "sum_", "max_", "var_", "softmax", "log_softmax", "layer_norm", "rms_norm", "moments", "normalised", "columns",
    "scan", "nll", "batch_norm", "bilinear16", "bilinear32", "pool_last", "pool_back", "gen_columns", "gen_last",
)  # fmt: skip
SCALED = {
    "gap": (1e-6, 0, 15, 0.2),
    "block": (1e-6, 0, 15, 0.2),
    "step": (1e-7, 0, 100, 0.2),
    "rounds": (1.0, 0, 3, 0.2),
    "slots": (20.0, 0, 40, 0.5),
    "meeting": (100.0, 0, 10, 0.5),
    "cycles": (1.0, 0, 15, 1.0),
    "share": (1.0, 0.2, 1.0, 0.9),
    "peak": (1.0, 0.03, 1.0, 0.8),
    "fill": (1e11, 0.02, 40, 1.4),
    "drain": (1e11, 0.05, 40, 1.4),
    "sustained": (1.0, 0.03, 1.1, 0.8),
}
"""What is fitted: its scale, and in multiples of that the bounds and where a fit starts."""

USUAL = {"gap": (5e-7, 1.5e-7, 0.2), "share": (0.95, 0.15, 0.1)}
"""What kernels over rows have, as their classes of many cases do: what a generated one takes to start, and the share of
the memory's rate; by how much classes differ, and the error that one such difference weighs as much as. Where few cases
are short, any gap up to a microsecond fits; where other bounds are near, any share. [s, 1]
"""

STARTS = ((1, 1), (0.3, 0.3), (2.5, 2.5), (0.3, 6), (1, 0.05), (0.2, 15))
"""Factors of starting values, and of that of `block`: the best of six fits is kept."""

FIRST = (
    "vectorised32", "vectorised16", "memcpy", "converted", "strided2_16", "strided2_32", "strided3_16", "strided3_32",
    "transposed_16", "transposed_32", "gen_loop16", "gen_loop32", "gen_last",
)  # fmt: skip
"""Classes that others' programs contain too, fitted before them."""

SWEEPS = 2
"""How often all classes are fitted: programs of several kernels need the rates of classes that come later."""

NO_KERNEL = {"rates": {"gap": 0.0}, "cases": 1, "median_error": 0.0, "error_90": 0.0}
UNKNOWN = {"low": 0.9, "high": 1.1, "cases": 1}


def load(name):
    """Return a suite's file, empty where it was not measured."""
    path = HERE / f"h200_{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


@cache
def replayed():
    """Return what a replay of a graph takes beyond its kernels, from what 16 passes take longer than 64. [s].

    Programs of so little data that both are served by the cache: h200_warm.json against the files of the same programs.
    """
    long = {_program(row): row["eager"] for name in WARM for row in load(name)["rows"] if "graph" in row["eager"]}
    found = []
    for row in load("warm")["rows"]:
        one, many = row["eager"], long.get(_program(row))
        if many and many["sets"] * many["in_bytes"] < LITTLE and many["sets"] > one["passes"]:
            more = one["graph"]["med"] - many["graph"]["med"]
            found.append(more / (1 / one["passes"] - 1 / many["sets"]))
    return float(np.median(found))


def _program(row):
    """Return what tells a program from others."""
    return json.dumps([row["inputs"], row["steps"]])


def machine():
    """Return the device that was measured, and what lowering needs of it."""
    profile = fusesim.device("h200-sxm")
    found = machine_of(calibrations.shipped_calibrations()["h200-sxm"], profile)
    return found, target_of(found, profile)


def cases(names, here, target, sides=("eager", "compiled")):
    """Return what each measured program launches, where its bytes come from, and how long it took."""
    rows = ((name, row, side) for name in names for row in load(name)["rows"] for side in sides)
    found = (case(*each, here, target) for each in rows if "error" not in each[1].get(each[2], {"error": 1}))
    return [each for each in found if each is not None]


def case(suite, row, side, here, target):
    """Return one side of a measured program; None where it launches nothing."""
    graph = programs.graph_of(row)
    strategy, path = ("eager", "torch") if side == "eager" else ("inductor", "inductor")
    plan = plan_graph(graph, strategy=strategy)
    launches = [launch for _, launch in lower(plan, path, target)]
    if not launches:
        return None
    sets = row[side]["sets"]
    rotating, held = memories(graph, row[side].get("outputs", "kept"))
    return SimpleNamespace(
        suite=suite,
        row=row,
        side=side,
        launches=launches,
        served=served(launches, rotating, here, sets, held),
        sets=sets,
        passes=row[side].get("passes", sets),
        time=row[side]["graph"]["med"],
        main=main_of(row, launches),
        kernels=row[side]["kernels"],
        graph=graph,
        plan=plan,
    )


TELLS = {
    "group_norm": "moments",
    "conv": "conv_odd",
    "batch_norm_train": "batch_norm_sums",
    "max_pool_backward": "pool_back",
}
"""Ops of which another kernel than the one that moves most takes most of the time: what they tell of."""


def main_of(row, launches):
    """Return the class that a program is fitted to: of the kernel that moves most, but for ops in `TELLS`."""
    stem = TELLS.get(row["steps"][-1][1], "") if "steps" in row else ""
    told = [one for one in launches if stem and one.row.startswith(stem)] or launches
    return max(told, key=lambda one: (one.bytes_read + one.bytes_written, one.flops)).row


def predicted(case, find, here, following=FOLLOWING):
    """Return the time of a case by rates that `find` hands out. [s]."""
    each = zip(case.launches, case.served, strict=True)
    floors = (here.floor + following * at.follows for at in case.served)
    times = (
        launch_time(one, find(one.row), here, at, floor=own).time for (one, at), own in zip(each, floors, strict=True)
    )
    return sum(times) + replayed() / case.passes


FREE = (
    (("gen_held",), HELD),
    (("gen_rows", "gen_parts"), GENERATED),
    (ROW_CLASSES, ROWS),
    (PRODUCT_CLASSES, PRODUCTS),
    (("layout",), TILED),
    (("gather", "converted", "strided"), GATHERS),
    (("bag",), BAGS),
    (("gemv",), GEMV),
    (("attention",), ATTENTION),
)
"""What is fitted of classes, by how their names begin; of others, a stream's."""


def free_rates(row):
    """Return what is fitted of a class."""
    return next((rates for stems, rates in FREE if row.startswith(stems)), STREAM)


def fit_row(row, own, find, here):
    """Return the rates of a class and the logarithms of predicted over measured that are left."""
    names = free_rates(row)
    known = {GENERATED: ("gap", "share"), HELD: ("gap", "share"), ROWS: ("share",)}.get(names, ())
    priors = {key: USUAL[key] for key in known}
    scales, low, high, begin = (list(each) for each in zip(*(SCALED[name] for name in names), strict=True))
    if names == PRODUCTS:
        low[names.index("sustained")] = reached(own, here)

    def made(x):
        fitted = {name: float(value) * scale for name, value, scale in zip(names, x, scales, strict=True)}
        return Rates(**(asdict(rates_of({})) | fitted))

    def residuals(x):
        mine = made(x)
        left = [math.log(predicted(c, lambda r: mine if r == row else find(r), here) / c.time) for c in own]
        usual = [weight * (getattr(mine, key) - mean) / by for key, (mean, by, weight) in priors.items()]
        return np.array(left + usual)

    best = None
    for factor, block in STARTS:
        wanted = [value * (block if name == "block" else factor) for name, value in zip(names, begin, strict=True)]
        start = np.clip(wanted, np.add(low, 1e-5), np.subtract(high, 1e-5))
        found = least_squares(
            residuals,
            start,
            bounds=(low, high),
            loss="soft_l1",
            f_scale=0.05,
            x_scale=[max(value, 0.05) for value in begin],
        )
        if best is None or found.cost < best.cost:
            best = found
    return {name: float(v) * scale for name, v, scale in zip(names, best.x, scales, strict=True)}, residuals(best.x)[
        : len(own)
    ]


def reached(own, here):
    """Return the largest share of the device's peak that any program reached: power allows no less."""
    shares = (one.flops / (one.rate * here.sms * each.time) for each in own for one in each.launches if one.flops)
    return min(max(shares, default=0.0), SCALED["sustained"][2] - 0.01)


class Known:
    """Rates of the classes fitted so far; others have what stands in for them."""

    def __init__(self):
        self.rows = {"memset": NO_KERNEL}
        self.rates = {"memset": rates_of({})}
        self.near = {}

    def add(self, row, rates, left):
        error = np.abs(np.expm1(left))
        self.rows[row] = {
            "rates": {name: float(f"{value:.6g}") for name, value in rates.items()},
            "cases": len(left),
            "median_error": float(f"{np.median(error):.4f}"),
            "error_90": float(f"{np.quantile(error, 0.9):.4f}"),
        }
        self.rates[row] = rates_of(self.rows[row]["rates"])
        self.near.clear()

    def find(self, name):
        if name in self.rates:
            return self.rates[name]
        if name not in self.near:
            self.near[name] = record(self.rows).find(name)
        return self.near[name]


def fit(*, verbose=True):
    """Return the fitted rows, and the machine that they are of."""
    here, target = machine()
    groups = defaultdict(list)
    for each in cases(FITTED, here, target):
        groups[each.main].append(each)
    known = Known()
    order = [r for r in FIRST if r in groups] + sorted(set(groups) - set(FIRST) - {"memset"})
    for row in order * SWEEPS:
        rates, left = fit_row(row, groups[row], known.find, here)
        known.add(row, rates, left)
        if verbose:
            errors = " ".join(f"{100 * known.rows[row][name]:5.1f}" for name in ("median_error", "error_90"))
            print(f"{row:22} {len(left):4} {errors}", {name: f"{value:.3g}" for name, value in rates.items()})
    return known.rows, here, target


def record(rows, spreads=None, correlation=0.5, profiled=0.0):
    """Return rows as a file's record."""
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
            "spreads": spreads or {"torch": UNKNOWN, "inductor": UNKNOWN},
            "correlation": correlation,
            "profiled": profiled,
            "following": FOLLOWING,
            "replay": float(f"{replayed():.3g}"),
        }
    )


def bound_of(each, find, here):
    """Return what binds most of a program's time."""
    totals = defaultdict(float)
    for one, at in zip(each.launches, each.served, strict=True):
        time = launch_time(one, find(one.row), here, at, floor=here.floor)
        for name, value in Kernel(launch=one, group=0, time=time, served=at).parts.items():
            totals[name] += value
    return max(totals, key=totals.get)


def watched(rows, here, target):
    """Return what a kernel of a graph takes longer where a profiler has run: the median of files and sides. [s]."""
    made, found = record(rows), defaultdict(list)
    for each in cases(PROFILED, here, target):
        time, count = predicted(each, made.find, here), len(each.launches)
        if time < SHORT * count:
            found[each.suite, each.side].append((each.time - time) / count)
    for key, values in sorted(found.items()):
        print(*key, len(values), f"{1e6 * np.median(values):.3f} us")
    return float(f"{np.median([np.median(values) for values in found.values()]):.3g}")


def held_out(rows, here, target, profiled):
    """Return the intervals of both paths, and how far the deviations of a program's two sides go together."""
    made = record(rows)
    ratios, pairs = defaultdict(list), defaultdict(dict)
    for each in cases(HELD_OUT, here, target):
        more = profiled * len(each.launches) if each.suite in PROFILED else 0.0
        ratio = each.time / (predicted(each, made.find, here) + more)
        path = "torch" if each.side == "eager" else "inductor"
        ratios[path].append(ratio)
        ratios[f"{path}/{bound_of(each, made.find, here)}"].append(ratio)
        program = json.dumps([each.suite, *(each.row.get(key) for key in ("seed", "pattern", "dims"))])
        pairs[program][each.side] = math.log(ratio)
    spreads = {}
    for name, values in sorted(ratios.items()):
        if len(values) >= FEWEST:
            low, high = np.quantile(values, [0.05, 0.95])
            ends = {"low": float(f"{min(low, 0.99):.4f}"), "high": float(f"{max(high, 1.01):.4f}")}
            spreads[name] = ends | {"cases": len(values)}
    both = np.array([[p["eager"], p["compiled"]] for p in pairs.values() if len(p) == 2])
    return spreads, float(f"{np.corrcoef(both.T)[0, 1]:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=OUT)
    args = parser.parse_args()
    rows, here, target = fit()
    profiled = watched(rows, here, target)
    spreads, correlation = held_out(rows, here, target, profiled)
    print(spreads, correlation)
    Path(args.out).parent.mkdir(exist_ok=True)
    made = record(rows, spreads, correlation, profiled)
    Path(args.out).write_text(json.dumps(made.model_dump(by_alias=True), indent=1) + "\n")


if __name__ == "__main__":
    main()
