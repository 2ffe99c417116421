"""PyTorch's path on something that looks like PyTorch."""

from unittest.mock import MagicMock

import pytest

from fusesim.calibrate.cases import Case
from fusesim.calibrate.suites import matmul_suite, reduction_suite, torch_suite
from fusesim.calibrate.torch_path import EXPRESSIONS, WithTorch, chain_function


@pytest.fixture
def torch():
    torch = MagicMock()
    torch.__version__ = "2.11"
    torch.cuda.Event.return_value.elapsed_time.return_value = 0.5
    torch.cuda.mem_get_info.return_value = (100 << 30, 141 << 30)
    torch.compile.side_effect = lambda function, **_: function
    return torch


@pytest.fixture
def bench(torch, fake_bench):
    return WithTorch(fake_bench(), torch)


def chain(**fields):
    return Case(
        **{"kind": "chain", "probe": "t", "path": "torch", "ops": ("relu",), "elements": 9, "sets": 4, **fields}
    )


def test_a_chain_is_the_code_that_a_user_would_write():
    assert chain_function(None, ("add", "mul"))(1.0) == 1.5 * 1.0009765625
    assert chain_function(None, ("add_tensor", "neg", "add_tensor"))(1, 2, 4) == 1


def test_every_op_of_the_suites_is_known():
    suites = [*torch_suite("torch"), *torch_suite("inductor")]
    assert {name for case in suites for name in case.ops} == set(EXPRESSIONS)


def test_a_graph_holds_one_pass_over_the_sets(bench, torch):
    sample = bench.measure(chain())
    assert sample.median == pytest.approx(0.5e-3 / 4)
    assert torch.relu.call_count == 3 + 4  # warm-up, then one pass
    assert sample.host is None


def test_a_queue_has_the_hosts_time(bench, torch):
    sample = bench.measure(chain(mode="stream", fused=False))
    assert torch.cuda._sleep.call_count == 10  # noqa: SLF001
    assert sample.median == pytest.approx(0.5e-3 / 60)  # 30 ms of chains that take 0.5 ms
    assert 0 < sample.host < 1e-2


def test_a_chain_is_compiled_once_for_a_size_and_type(bench, torch):
    cases = [chain(path="inductor", elements=n, mode=mode) for n in (5, 6) for mode in ("graph", "stream")]
    told = []
    bench.compile([*cases, chain()], lambda done, total: told.append((done, total)))
    assert torch.compile.call_count == 2
    assert told[-1] == (4, 4)
    bench.measure(cases[0])
    assert torch.compile.call_count == 2


@pytest.mark.parametrize("case", [matmul_suite("torch")[0], reduction_suite("torch")[0]], ids=["matmul", "reduction"])
def test_library_kernels(bench, torch, case):
    bench.measure(case)
    assert getattr(torch, "matmul" if case.kind == "matmul" else "sum").called
    assert torch.randn.call_args.args[0] == case.shape[-2:]


def test_other_paths_go_to_the_other_bench(bench, fake_bench):
    case = chain(path="cuda")
    assert bench.measure(case) == fake_bench().measure(case)
    assert bench.environment()["torch"] == "2.11"
    assert bench.gpu.name == "NVIDIA H200"
    assert bench.fits(chain())
    assert not bench.fits(chain(elements=1 << 40))
