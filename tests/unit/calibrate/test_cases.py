import pytest

from fusesim.calibrate.cases import Case, memory_needed, set_count
from fusesim.calibrate.plan import plan
from fusesim.errors import InputError

MIB = 1 << 20
ALL = ("cuda", "cupy", "torch", "inductor")


def case(**fields):
    return Case(**{"kind": "chain", "probe": "test", "ops": ("mul",), "elements": 4096, **fields})


def test_a_pass_rotates_over_three_times_the_cache():
    # 1 read + 1 write of 4 MiB in bf16: 8 MiB a set, 3 x 60 MiB of cache: 22.5 sets
    assert set_count(case(elements=2 * MIB), 60 * MIB) == 23
    assert set_count(case(elements=2 * MIB, ops=("add_tensor", "mul")), 60 * MIB) == 15  # 12 MiB a set
    assert set_count(case(elements=1), 60 * MIB) == 256
    assert set_count(case(elements=1 << 30), 60 * MIB) == 8
    assert set_count(case(elements=1, sets=3), 60 * MIB) == 3


def test_memory_counts_every_set_and_what_they_share():
    # 300 fp32 take 1200 B, padded to 1536: 2 sets of input, output, second tensor; 2 intermediates and 1 row shared
    chain = case(elements=300, dtype="fp32", ops=("add_tensor", "add_row"), row=3, sets=2)
    assert memory_needed(chain, 0) == (2 * 3 + 3) * 1536
    matmul = Case(kind="matmul", probe="test", dtype="fp16", shape=(64, 32, 16), sets=4)
    assert memory_needed(matmul, 0) == 4 * 2 * (64 * 32 + 64 * 16 + 32 * 16)
    reduction = Case(kind="reduction", probe="test", dtype="fp32", shape=(256, 100), sets=1)
    assert memory_needed(reduction, 0) == 4 * (256 * 100 + 256)


def test_kernels_and_their_ops():
    chain = case(ops=("add", "mul"))
    assert (chain.groups, chain.kernels) == ([("add", "mul")], 1)
    unfused = case(ops=("add", "mul"), fused=False)
    assert (unfused.groups, unfused.kernels) == ([("add",), ("mul",)], 2)
    assert Case(kind="empty", probe="test", fused=False).kernels == 1


def test_a_case_survives_a_file():
    chain = case(suite="fit", shape=(3, 4))
    fields = chain.to_dict()
    assert Case(**fields | {"ops": tuple(fields["ops"]), "shape": tuple(fields["shape"])}) == chain


@pytest.mark.parametrize("paths", [("cuda",), ("cuda", "cupy"), ALL])
def test_every_case_of_a_plan_has_a_name_of_its_own(paths):
    cases = plan(paths)
    assert len({each.identity for each in cases}) == len(cases)
    assert {each.path for each in cases} == set(paths)


def test_suites_follow_each_other_and_matmuls_come_last():
    suites = [each.suite for each in plan(ALL)]
    order = list(dict.fromkeys(suites))
    assert suites == sorted(suites, key=order.index)
    assert order[0] == "fit"
    assert order[-2:] == ["reduction", "matmul"]
    assert {"mix", "judge", "plain", "cupy", "cupy-judge", "stream-judge", "torch"} < set(order)


def test_what_is_held_out_is_not_fitted():
    cases = plan(("cuda", "cupy"))
    fitted = {each.key for each in cases if each.suite in {"fit", "mix", "cupy"}}
    held = [each for each in cases if each.suite in {"judge", "plain", "stream-judge", "cupy-judge"}]
    assert len(held) > 700
    assert not [each.key for each in held if each.key in fitted]


def test_a_row_divides_the_elements():
    assert all(each.elements % each.row == 0 for each in plan(("cuda",)) if each.row)


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (("cuda", "cupi"), 'unknown path "cupi"; did you mean "cupy"?'),
        (("cupy",), "the paths must include cuda"),
        ((), "the paths must include cuda"),
    ],
)
def test_paths_that_cannot_be_measured(paths, sentence):
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        plan(paths)
