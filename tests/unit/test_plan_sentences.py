"""What plans and comparisons say of themselves: the right statement, with its figure, and nothing where nothing is."""

from __future__ import annotations

import pytest

import fusesim
from fusesim import patterns
from fusesim.builder import Builder
from fusesim.errors import InputError
from fusesim.flip import find_flip
from fusesim.plan_losses import losses, origin
from fusesim.plan_sentences import counted, plan_sentences
from fusesim.plans import compare, price


def told(graph, strategy="eager", path="torch", device="h200-sxm", **as_price):
    plan = fusesim.plan(graph, strategy, device)
    return plan_sentences(plan, price(plan, device=device, path=path, **as_price))


def versus(graph, **kwargs):
    return compare(graph, device="h200-sxm", **kwargs)


def find(sentences, *parts):
    """The only sentence that has all parts."""
    (found,) = [sentence for sentence in sentences if all(part in sentence for part in parts)]
    return found


def test_what_binds_is_grouped():
    assert "bound by launches and the latency behind them" in told(patterns.bias_relu())[0]
    mixed = find(told(patterns.matmul_bias_relu()), "3 kernels, bound")
    assert "1 by tensor cores (" in mixed


def test_launches_are_told_where_they_count():
    assert find(told(patterns.bias_relu()), "launches are", "% of the time")
    assert not any("launches are" in sentence for sentence in told(patterns.rmsnorm(65536, 8192)))


def test_a_stream_says_whether_the_host_keeps_up():
    small = find(told(patterns.bias_relu(), launch="stream", host_interval=8e-6), "the host needs 16.0 us")
    assert "(8.0 us per launch): a CUDA graph would spare up to" in small
    large = find(told(patterns.rmsnorm(65536, 8192), launch="stream", host_interval=8e-6), "the host issues")
    assert large.startswith("the host issues in 48.0 us, hidden behind")  # 6 kernels of 8 us
    assert not any("the host" in sentence for sentence in told(patterns.bias_relu(), launch="graph"))


def test_composites_are_kept_or_written_out():
    assert find(told(patterns.softmax()), "kept whole, a kernel of the framework's each: softmax")
    assert find(told(patterns.softmax(), "inductor", "inductor"), "written out so that its parts can be fused: softmax")
    assert not any("whole" in s or "written out" in s for s in told(patterns.bias_relu()))


def test_rows_that_do_not_stay_on_chip_are_read_again():
    # A row of 4096 values is longer than a generated kernel holds: x, 8192 x 4096 x 2 B, is read twice.
    assert find(told(patterns.rmsnorm(8192, 4096), "inductor", "inductor"), "1 kernel reads 67.1 MB again")
    assert not any("again" in s for s in told(patterns.rmsnorm(8192, 512), "inductor", "inductor"))


def test_changes_of_type_are_kernels_in_eager_mode():
    graph = patterns.rmsnorm(8192, 4096, upcast=True)
    assert find(told(graph), "changes of type take 2 kernels of their own")
    assert not any("changes of type" in s for s in told(graph, "inductor", "inductor"))


def test_spills_are_named():
    b = Builder("many")
    x = b.input(4096, 4096, dtype="fp32")
    for _ in range(140):
        x = b.op("add", x, b.input(4096, 4096, dtype="fp32"))
    b.output(x)
    graph = b.graph()
    plan = fusesim.plan(graph, "mlir")  # puts all into one loop
    sentences = plan_sentences(plan, price(plan, device="h200-sxm", path="inductor"))
    assert find(sentences, "the kernel of add and 139 more ops", "registers per thread", "spill")


def test_a_price_says_how_sure_it_is_and_from_where():
    assert find(told(patterns.bias_relu()), "with 90 % confidence, by calibration h200-sxm; kernels h200-sxm")
    other = told(patterns.bias_relu(), device="h100-sxm")
    assert find(other, "by calibration h100-sxm (transferred from h200-sxm)")
    assert other[-1] == "transferred: nothing was measured on this device, so the interval is wider"


def test_the_textbook_says_what_it_leaves_out():
    sentences = told(patterns.bias_relu(), model="textbook")
    assert sentences[0].startswith("launches take 7.0 us")  # 2 x 1 us in a graph, 5 us per replay
    assert sentences[-1] == "the textbook: peak bandwidth, no cache, no arithmetic, and no interval"


def test_a_comparison_begins_with_the_verdict():
    found = versus(patterns.rmsnorm()).explain()
    assert found[0].startswith("fusing saves ")
    assert found[0].endswith(", 6 kernels to 1")
    assert find(found, "fewer from memory", "the unfused kernels touch 469.9 MB")
    assert find(found, "5 launches fewer", "of the saving")
    assert find(found, "the saving is", "with 90 % confidence, by calibration")


def test_crumbs_in_a_small_cache_are_not_told():
    # a T4's 4 MiB keep some 30 of 134 million bytes from one kernel to the next
    compared = compare(patterns.matmul_bias_gelu(), device="t4")
    assert 0 < compared.unfused.l2_bytes - compared.fused.l2_bytes < 1000
    assert "in the cache" not in find(compared.explain(), "fewer from memory")


def test_a_fused_kernel_that_loses_says_why():
    found = versus(patterns.dropout_residual_layernorm(4096, 8192))
    assert found.saving < 0
    sentence = find(found.explain(), "the fused kernel of", "loses")
    assert "does not stay on chip" in sentence
    assert "the framework's own kernels for dropout, layer_norm are quicker" in sentence
    worst = losses(found)[0]
    assert worst.fused > worst.unfused > 0


def test_a_library_call_is_no_loss():
    assert losses(versus(patterns.matmul())) == []


def test_arithmetic_that_stays_is_the_reason_for_less():
    found = versus(patterns.matmul_bias_relu(8192, 8192, 8192)).explain()
    assert find(found, "is less than the bytes would have it: the matrix products take as long as before")


def test_the_same_twice_is_told_so():
    found = versus(patterns.bias_relu(), fused=("eager", "torch"))
    assert found.explain()[0].startswith("both take the same time")
    assert "both move the same bytes" in found.explain()


def test_what_decides_where_nothing_says_how_the_graph_grows():
    found = versus(patterns.bias_relu())
    assert found.flip is None
    assert find(found.explain(), "what decides is launches and the latency behind them")


def test_the_size_at_which_the_verdict_flips():
    def rebuild(factor):
        return patterns.bias_relu(max(1, round(128 * factor)), 512)

    found = versus(
        patterns.bias_relu(128, 512), launch="stream", host_interval=8e-6, rebuild=rebuild, dimension=("rows", 128)
    )
    # On a stream with 8 us per launch or call, two kernels and one are both bound by the host: 16 us and 8 us.
    assert found.flip.verdict == "saves"
    own = versus(patterns.bias_relu(128, 512), launch="stream", rebuild=rebuild, dimension=("rows", 128))
    assert own.flip.verdict == "loses"  # one call of compiled code costs the host more than two launches
    assert own.flip.other in {"saves", "even"}
    assert find(own.explain(), "fusing", "about rows = ")


@pytest.mark.parametrize(
    ("gain", "now", "said", "rows"),
    [
        (lambda factor: factor - 3.0, -2.0, "fusing saves above about rows", 300),
        (lambda factor: factor - 0.3, 0.7, "fusing loses below about rows", 30),
        (lambda factor: 0.0 if factor > 3 else 0.5, 0.5, "fusing is worth nothing above about rows", 300),
    ],
)
def test_flips_are_found_within_a_few_percent(gain, now, said, rows):
    words, _, number = find_flip(gain, now, ("rows", 100)).sentence().partition(" = ")
    assert words == said
    assert int(number.replace("\N{NO-BREAK SPACE}", "").replace(" ", "")) == pytest.approx(rows, rel=0.06)


def test_a_verdict_that_never_flips_is_told_with_the_sizes_tried():
    found = find_flip(lambda _: 0.5, 0.5, ("rows", 100))
    assert found.sentence() == "fusing saves at every size tried, rows = 2 to 100 000"  # 100 / 64 and 100 x 1024


def test_a_size_that_is_refused_ends_the_search():
    def gain(factor):
        if factor > 1:
            raise InputError("too large")
        return 0.5

    found = find_flip(gain, 0.5)
    assert (found.factor, found.high) == (None, 1.0)
    assert found.low < 1.0


def test_ops_are_led_back_to_where_they_came_from():
    assert origin("layer_norm.var_mean", {"layer_norm"}) == "layer_norm"
    assert origin("exp@3", {"exp"}) == "exp"
    assert origin("mul", {"mul"}) == "mul"


def test_counts():
    assert [counted(number, "kernel") for number in (0, 1, 1500)] == ["0 kernels", "1 kernel", "1 500 kernels"]


@pytest.mark.parametrize("device", ["t4", "v100"])
def test_a_type_that_the_matrix_units_lack_is_told_once(device):
    said = told(patterns.matmul(dtype="bf16"), device=device)
    assert said[0].startswith("the kernel is bound by plain arithmetic units (not tensor cores), ")
    assert said[1] == (
        "this GPU has no bf16 matrix units, so bf16 products run on plain arithmetic units; fp16 would use them"
    )
    assert not any("plain arithmetic" in sentence for sentence in told(patterns.matmul(dtype="fp16"), device=device))
    both = compare(patterns.matmul_bias_gelu(dtype="bf16"), device=device).explain()
    assert find(both, "no bf16 matrix units").count("bf16 products") == 1


def test_fp32_products_are_plain_arithmetic_and_no_type_is_lacking():
    said = told(patterns.matmul(dtype="fp32"))
    assert "bound by plain arithmetic units" in said[0]
    assert not any("matrix units" in sentence for sentence in said)
    # matrix units that have fp64 at the very rate of plain fp32
    assert find(told(patterns.matmul(dtype="fp64")), "by tensor cores")


def test_a_call_that_costs_only_the_host_is_told_as_that():
    graph = patterns.gelu(rows=64, cols=64)
    found = versus(graph, launch="stream")
    assert found.saving < 0
    assert found.explain()[0] == (
        "a compiled call costs 50.0 us of the host against 8.0 us to launch 1 kernel, which makes it 42.0 us longer; "
        "the kernel takes no longer: 0.16x, 1 kernel to 1"
    )
    # kernels that are launched one by one cost no compiled call, and in a graph no host is waited for
    for other in (
        versus(graph, launch="stream", unfused=("eager", "torch"), fused=("vertical", "torch")),
        versus(graph, launch="graph"),
    ):
        assert not any("compiled call" in sentence for sentence in other.explain())


def test_fewer_kernels_that_wait_for_the_host_are_fusing_that_loses():
    found = versus(patterns.bias_relu(), launch="stream")
    assert found.fused.kernels < found.unfused.kernels
    assert found.explain()[0].startswith("fusing loses ")


def test_kernels_that_take_longer_lose_whatever_the_host_costs():
    slower = versus(patterns.gelu(rows=1024, cols=4096), launch="stream")
    assert slower.fused.parts.device_time > 1.01 * slower.unfused.parts.device_time
    assert slower.explain()[0].startswith("fusing loses ")
