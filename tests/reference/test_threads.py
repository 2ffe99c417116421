"""What the op table says of one thread's time, against the kernels of one or two blocks that it was read from."""

import json
from pathlib import Path
from statistics import mean, quantiles

import pytest

from fusesim.ops import OPS

FILE = Path(__file__).parent / "h200_threads.json"
ROWS = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
TIMES = {(row["dtype"], tuple(row["ops"]), row["elements"]): row["median"] for row in ROWS}
CLOCK = 1.98e9
VECTORS = {"fp32": 4, "bf16": 8}  # elements of a thread
SMALL = 2048
LONG = [name for name, op in OPS.items() if op.serial >= 15 and not (op.tensors or op.rows)]


def cycles(dtype, longer, shorter, count):
    """Return clock cycles per element and op between two chains."""
    return (TIMES[dtype, longer, SMALL] - TIMES[dtype, shorter, SMALL]) * CLOCK / VECTORS[dtype] / count


@pytest.mark.parametrize("name", LONG)
def test_an_op_takes_as_long_as_measured_once_to_four_times(name):
    if name == "sin":  # four in bf16 leave the instruction cache, two do not
        found = [cycles("fp32", (name,) * 4, ("mul",), 4), cycles("bf16", (name,) * 2, ("mul",), 2)]
    else:
        found = [cycles(dtype, (name,) * 4, ("mul",), 4) for dtype in VECTORS]
    assert OPS[name].serial == pytest.approx(mean(found), rel=0.1)


@pytest.mark.parametrize("name", ["tanh", "gelu_tanh"])
def test_beside_a_subroutine_an_op_takes_longer(name):
    found = [cycles(dtype, (call, *(name,) * 4), (call,), 4) for dtype in VECTORS for call in ("sigmoid", "sin")]
    assert OPS[name].alone == pytest.approx(mean(found), rel=0.12)
    assert min(found) > 1.2 * OPS[name].serial


@pytest.mark.parametrize("kind", ["tensor", "row"])
def test_an_operand_adds_to_kernels_whose_threads_take_long(kind):
    bases = {tuple(row["ops"]) for row in ROWS if row["probe"] == "thread" and not _operands(row["ops"])}
    found = [
        cycles(dtype, (*base, *(f"mul_{kind}",) * 3), (*base, f"mul_{kind}"), 2) for base in bases for dtype in VECTORS
    ]
    assert len(bases) == 5
    low, _, high = quantiles(found, n=4, method="inclusive")  # from 3 to 90, as the compiler has it
    assert low <= OPS[f"mul_{kind}"].serial <= high


def _operands(ops):
    return any(OPS[name].tensors or OPS[name].rows for name in ops)
