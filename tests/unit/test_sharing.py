"""Common subexpressions: which ops are the same, and what is left when they are computed once."""

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.sharing import repeated, share_common


def kinds(graph):
    return [node.kind for node in graph.paid_nodes]


def twice(*, settings=(1.0, 1.0), return_both=False):
    b = Builder()
    x = b.input(8)
    first, second = (b.op("exp", b.op("add", x, scalar=scalar)) for scalar in settings)
    b.output(*([first, second] if return_both else [b.op("mul", first, second)]))
    return b.graph()


def test_the_same_op_of_the_same_input_is_named_and_shared():
    graph = twice()
    assert repeated(graph) == (("add", "add_1"), ("exp", "exp_1"))  # what follows a repeated op repeats too
    shared = share_common(graph)
    assert kinds(shared) == ["add", "exp", "mul"]
    assert shared.node("mul").inputs == ("exp", "exp")
    assert shared.outputs == graph.outputs


def test_another_setting_is_another_op():
    graph = twice(settings=(1.0, 2.0))
    assert repeated(graph) == ()
    assert share_common(graph) is graph


def test_another_type_is_another_op():
    b = Builder()
    x = b.input(8)
    b.output(b.cast(x, "fp32"), b.cast(x, "fp16"))
    assert repeated(b.graph()) == ()


def test_two_equal_outputs_are_both_computed():
    graph = twice(return_both=True)
    shared = share_common(graph)
    assert kinds(shared) == ["add", "exp", "exp"]
    assert shared.outputs == ("exp", "exp_1")


def test_what_is_shared_takes_the_name_of_an_output():
    b = Builder()
    x = b.input(8)
    hidden, shown = b.op("exp", x), b.op("exp", x)
    b.output(b.op("neg", hidden), shown)
    shared = share_common(b.graph())
    assert kinds(shared) == ["exp", "neg"]
    assert shared.outputs == ("neg", "exp_1")
    assert shared.node("neg").inputs == ("exp_1",)


def test_views_are_shared_silently():
    b = Builder()
    x = b.input(4, 6)
    b.output(b.op("add", b.transpose(x), b.op("exp", b.transpose(x))))
    graph = b.graph()
    assert repeated(graph) == ()
    assert len(share_common(graph).nodes) == len(graph.nodes) - 1


def test_views_of_what_is_shared_live_in_its_memory():
    b = Builder()
    x = b.input(4, 6)
    turned = [b.transpose(b.op("exp", x)) for _ in range(2)]
    b.output(b.op("sub", *turned))
    shared = share_common(b.graph())
    assert kinds(shared) == ["exp", "sub"]
    assert {tensor.storage for tensor in shared.tensors.values()} == {"x", "exp", "sub"}


def test_random_numbers_are_not_the_same_twice():
    b = Builder()
    x = b.input(4, 8)
    b.output(b.op("add", b.dropout(x, 0.1), b.dropout(x, 0.1)))
    assert repeated(b.graph()) == ()


def test_what_is_written_over_is_left_alone():
    b = Builder()
    x = b.op("exp", b.input(8))
    before = b.op("neg", x)
    over = b.op("relu", x, over=True)
    b.output(before, b.op("neg", over))
    assert repeated(b.graph()) == ()


def test_what_reads_nothing_is_made_wherever_it_is_used():
    graph = patterns.dlrm(64)
    assert sum(node.kind == "iota" for node in graph.nodes) >= 26  # one count of places for each table
    assert repeated(graph) == ()


def test_held_variables_follow_what_stays():
    b = Builder()
    x = b.input(8)
    first, second = b.op("exp", x), b.op("exp", x)
    b.hold(second)
    b.output(b.op("mul", first, second))
    assert share_common(b.graph()).held == {"exp": ""}
