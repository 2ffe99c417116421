from fusesim.frontends.aten import translate
from fusesim.frontends.aten_call import Call
from fusesim.frontends.program import Program, Region
from fusesim.tensor import row_major


def region(memory, *shape, strides=None):
    return Region(memory, shape, strides or row_major(shape), 0, "fp32")


def test_unread_views_and_side_results_vanish():
    p = Program("p")
    p.enter(region("x", 4, 4), "x")
    p.view(region("x", 4, 4), region("x", 16), "view")
    p.node("layer_norm", [p.read(region("x", 4, 4))], [region("y", 4, 4), region("mean", 4, 1)], optional=1)
    graph = p.graph([region("y", 4, 4)])
    assert [node.kind for node in graph] == ["layer_norm"]
    assert graph.nodes[0].outputs == ("layer_norm",)


def test_a_write_over_part_of_a_tensor_is_seen_by_who_reads_the_whole():
    p = Program("p")
    whole, part = region("x", 4, 4), region("x", 2, 4)
    p.enter(whole, "x")
    p.view(whole, part, "slice")
    p.node("neg", [p.read(part)], [part])
    p.node("exp", [p.read(whole)], [region("y", 4, 4)])
    graph = p.graph([region("y", 4, 4)])
    assert graph.node("neg").attr("over") == "slice"
    assert graph.predecessors["exp"] == ("neg",)


def test_a_view_taken_before_a_write_is_looked_at_anew_after_it():
    p = Program("p")
    whole, turned = region("x", 2, 3), region("x", 3, 2, strides=(1, 3))
    p.enter(whole, "x")
    p.view(whole, turned, "permute", order=(1, 0))
    p.node("neg", [p.read(whole)], [whole])
    p.node("exp", [p.read(turned)], [region("y", 3, 2)])
    graph = p.graph([region("y", 3, 2)])
    assert [node.kind for node in graph] == ["neg", "as_strided", "exp"]
    assert graph.outputs == ("exp",)
    assert graph.node("as_strided").inputs == ("neg",)


def test_the_first_write_to_new_memory_overwrites_nothing():
    p = Program("p")
    p.allocate(region("y", 4))
    p.node("fill", [], [region("y", 4)])
    assert p.graph([region("y", 4)]).node("fill").attr("over") is None


def test_memory_that_is_let_go_late_is_held():
    p = Program("p")
    p.enter(region("x", 4), "x")
    p.node("neg", [p.read(region("x", 4))], [region("a", 4)])
    p.node("exp", [p.read(region("a", 4))], [region("b", 4)])
    p.node("abs", [p.read(region("b", 4))], [region("c", 4)])
    p.release("a")
    p.node("exp", [p.read(region("c", 4))], [region("d", 4)])
    assert p.graph([region("d", 4)]).held["neg"] == "abs"  # its last reader is exp


def test_an_unknown_op_is_one_kernel_and_a_stated_gap():
    p = Program("p")
    x = p.enter(region("x", 4), "x")
    translate(Call(program=p, name="frobnicate", args={"self": x}, outs=[region("y", 4)]))
    graph = p.graph([region("y", 4)])
    assert graph.nodes[0].kind == "opaque"
    assert "aten.frobnicate has no rule" in graph.gaps[0]
