import re

import pytest

from fusesim.errors import InputError
from fusesim.ops import DTYPES, OPS, Op, find_dtype, find_op, find_ops


@pytest.mark.parametrize(
    ("name", "itemsize"),
    [("fp64", 8), ("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1)],
)
def test_bytes_in_memory(name, itemsize):
    assert DTYPES[name].itemsize == itemsize


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("float32", "fp32"),
        ("BFloat16", "bf16"),
        (" half ", "fp16"),
        ("torch.float64", "fp64"),
        ("float8_e4m3fn", "fp8"),
    ],
)
def test_dtypes_by_the_names_that_frameworks_give_them(alias, name):
    assert find_dtype(alias).name == name


def test_no_two_dtypes_share_a_name():
    names = [name for dtype in DTYPES.values() for name in (dtype.name, *dtype.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["", "fp31", None, 32, "bf16 "[::-1] + "x"])
def test_unknown_dtype(name):
    with pytest.raises(InputError, match='^unknown dtype "'):
        find_dtype(name)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("add", 1),
        ("relu", 1),  # one comparison
        ("exp", 1),  # one elementary function
        ("sigmoid", 4),  # neg, exp, add, div
        ("silu", 4),  # neg, exp, add, div
        ("gelu", 5),  # c x, erf, + 1, 0.5 x, times
        ("gelu_tanh", 9),  # d x x x: 3, + x: 1, times c: 1, tanh: 1, + 1: 1, 0.5 x: 1, times: 1
    ],
)
def test_flop_per_element(name, flops):
    assert OPS[name].flops == flops


@pytest.mark.parametrize(
    ("name", "tensors", "rows"), [("mul", 0, 0), ("add_tensor", 1, 0), ("mul_tensor", 1, 0), ("add_row", 0, 1)]
)
def test_extra_operands(name, tensors, rows):
    assert (OPS[name].tensors, OPS[name].rows) == (tensors, rows)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_count_above_one_is_itemised(op):
    # the definition of an op that costs more than 1 lists what is counted, and the list adds up
    _, _, items = op.definition.partition(": ")
    counted = sum(int(count or 1) for count in re.findall(r"(?:^|, )(\d+)?", items)) if items else 1
    assert counted == op.flops


def test_a_chain_keeps_its_order():
    assert [op.name for op in find_ops(["relu", " ADD ", "relu"])] == ["relu", "add", "relu"]


def test_an_op_of_the_callers_own_stands_for_itself():
    mine = Op(name="fma", flops=2, definition="a x + b: mul, add")
    assert find_ops([mine, "add"]) == (mine, OPS["add"])


def test_an_empty_chain_is_refused():
    with pytest.raises(InputError, match="^the chain is empty; give at least one op"):
        find_ops([])


@pytest.mark.parametrize(("name", "hint"), [("mull", 'did you mean "mul"?'), ("", "known: add"), (3, "known: add")])
def test_unknown_op(name, hint):
    with pytest.raises(InputError) as caught:
        find_op(name)
    assert str(caught.value).startswith(f'unknown op "{name}"; {hint}')
