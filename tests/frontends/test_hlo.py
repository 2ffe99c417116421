"""HLO text as graphs and as the plan that XLA chose, written by hand from the documented form."""

from __future__ import annotations

import pytest

from fusesim.errors import FusesimError, GraphError, InputError
from fusesim.frontends.hlo import from_hlo, plan_from_hlo
from fusesim.frontends.hlo_text import arrays_in, parse_hlo

SOFTMAX = """
HloModule jit_softmax, is_scheduled=true, entry_computation_layout={(f32[128,512]{1,0})->f32[128,512]{1,0}}

%max (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(f32[] %a, f32[] %b)
}

%sum (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a.1, f32[] %b.1)
}

%fused_reduce (p0: f32[128,512]) -> f32[128] {
  %p0 = f32[128,512]{1,0} parameter(0)
  %low = f32[] constant(-inf)
  ROOT %r = f32[128]{0} reduce(f32[128,512]{1,0} %p0, f32[] %low), dimensions={1}, to_apply=%max
}

%fused_exp (p0.1: f32[128,512], p1: f32[128]) -> (f32[128], f32[128,512]) {
  %p0.1 = f32[128,512]{1,0} parameter(0)
  %p1 = f32[128]{0} parameter(1)
  %wide = f32[128,512]{1,0} broadcast(f32[128]{0} %p1), dimensions={0}
  %d = f32[128,512]{1,0} subtract(f32[128,512]{1,0} %p0.1, f32[128,512]{1,0} %wide)
  %e = f32[128,512]{1,0} exponential(f32[128,512]{1,0} %d)
  %zero = f32[] constant(0)
  %t = f32[128]{0} reduce(f32[128,512]{1,0} %e, f32[] %zero), dimensions={1}, to_apply=%sum
  ROOT %both = (f32[128]{0}, f32[128,512]{1,0}) tuple(f32[128]{0} %t, f32[128,512]{1,0} %e)
}

%fused_div (p0.2: f32[128,512], p1.1: f32[128]) -> f32[128,512] {
  %p0.2 = f32[128,512]{1,0} parameter(0)
  %p1.1 = f32[128]{0} parameter(1)
  %wide.1 = f32[128,512]{1,0} broadcast(f32[128]{0} %p1.1), dimensions={0}
  ROOT %q = f32[128,512]{1,0} divide(f32[128,512]{1,0} %p0.2, f32[128,512]{1,0} %wide.1)
}

ENTRY %main.9 (x: f32[128,512]) -> f32[128,512] {
  %x = f32[128,512]{1,0} parameter(0), metadata={op_name="x, with (brackets"}
  %peak = f32[128]{0} fusion(f32[128,512]{1,0} %x), kind=kInput, calls=%fused_reduce
  %pair = (f32[128]{0}, /*index=1*/f32[128,512]{1,0}) fusion(%x, %peak), kind=kInput, calls=%fused_exp
  %total = f32[128]{0} get-tuple-element((f32[128]{0}, f32[128,512]{1,0}) %pair), index=0
  %powers = f32[128,512]{1,0} get-tuple-element((f32[128]{0}, f32[128,512]{1,0}) %pair), index=1
  ROOT %out = f32[128,512]{1,0} fusion(%powers, %total), kind=kLoop, calls=%fused_div
}
"""


def entry(lines, header="HloModule test, is_scheduled=true", before=""):
    return f"{header}\n\n{before}\n\nENTRY main {{\n{lines}\n}}\n"


def kinds(graph):
    return [node.kind for node in graph.paid_nodes]


def group_kinds(plan):
    return [[node.kind for node in plan.nodes(group)] for group in plan.groups]


def external_bytes(plan, place):
    group = plan.groups[place]
    names = (*plan.external_inputs(group), *plan.external_outputs(group))
    return sum(plan.graph.tensors[name].bytes for name in names)


def test_softmax_in_three_fusions():
    plan = plan_from_hlo(SOFTMAX)
    assert plan.strategy == "xla (as compiled)"
    assert group_kinds(plan) == [["amax"], ["sub", "exp", "sum"], ["div"]]
    whole, rows = 128 * 512 * 4, 128 * 4
    assert external_bytes(plan, 0) == whole + rows
    assert external_bytes(plan, 1) == 2 * whole + 2 * rows  # x and its maxima in, powers and their sums out
    assert external_bytes(plan, 2) == 2 * whole + rows
    assert plan.graph == from_hlo(SOFTMAX)
    assert plan.graph.gaps == ()


def test_every_op_is_in_one_group():
    plan = plan_from_hlo(SOFTMAX)
    names = [name for group in plan.groups for name in group.nodes]
    assert sorted(names) == sorted(node.name for node in plan.graph.paid_nodes)


def test_dot_by_any_dimensions():
    graph = from_hlo(
        entry(
            """  a = bf16[4,16,8,32]{3,2,1,0} parameter(0)
  b = bf16[4,8,64,32]{3,2,1,0} parameter(1)
  ROOT d = bf16[4,8,16,64]{3,2,1,0} dot(a, b), lhs_batch_dims={0,2}, lhs_contracting_dims={3},
""".replace("},\n", "}, rhs_batch_dims={0,1}, rhs_contracting_dims={3}\n")
        )
    )
    product = graph.node("matmul")
    assert graph.flops(product) == 2 * (4 * 8) * 16 * 32 * 64
    assert graph.tensors[graph.outputs[0]].shape == (4, 8, 16, 64)


def test_dot_of_plain_matrices_copies_nothing():
    graph = from_hlo(
        entry(
            """  a = f32[128,64]{1,0} parameter(0)
  w = f32[64,256]{0,1} parameter(1)
  ROOT d = f32[128,256]{1,0} dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
        )
    )
    assert kinds(graph) == ["matmul"]
    assert graph.tensors["w"].strides == (1, 64)  # the layout {0,1}: the first dimension is the fastest


GEMM = """  x = bf16[512,1024]{1,0} parameter(0)
  w = bf16[1024,4096]{1,0} parameter(1)
  b = bf16[4096]{0} parameter(2)
  call = (bf16[512,4096]{1,0}, s8[4194304]{0}) custom-call(x, w, b), custom_call_target="__cublas$lt$matmul", \
    backend_config=CONFIG
  ROOT y = bf16[512,4096]{1,0} get-tuple-element(call), index=0"""
NEW = (
    '{"operation_queue_id":"0","gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":'
    '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],'
    '"rhs_batch_dimensions":[]},"epilogue":"BIAS_GELU"}}'
)
OLD = (
    '"'
    + (
        '{"alpha_real":1,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],'
        '"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]},"epilogue":"BIAS_GELU"}'
    ).replace('"', '\\"')
    + '"'
)


@pytest.mark.parametrize("config", [NEW, OLD], ids=["object", "string"])
def test_a_library_product_takes_its_epilogue(config):
    plan = plan_from_hlo(entry(GEMM.replace("CONFIG", config)))
    assert group_kinds(plan) == [["matmul", "gelu_tanh"]]
    assert plan.graph.flops(plan.graph.node("matmul")) == 2 * 512 * 1024 * 4096
    assert external_bytes(plan, 0) == 2 * (512 * 1024 + 1024 * 4096 + 4096 + 512 * 4096)  # x, w, bias in; y out


def test_a_library_product_adds_a_matrix():
    config = NEW.replace('"beta":0', '"beta":1').replace("BIAS_GELU", "DEFAULT")
    text = GEMM.replace("b = bf16[4096]{0}", "b = bf16[512,4096]{1,0}").replace("CONFIG", config)
    assert group_kinds(plan_from_hlo(entry(text))) == [["matmul", "add"]]


CONVOLUTION = """  x = f32[8,32,32,16]{3,2,1,0} parameter(0)
  w = f32[3,3,16,64]{3,2,1,0} parameter(1)
  ROOT c = f32[8,16,16,64]{3,2,1,0} convolution(x, w), window={size=3x3 stride=2x2 pad=0_1x0_1}, \
    dim_labels=b01f_01io->b01f"""


def test_convolution_by_its_labels():
    graph = from_hlo(entry(CONVOLUTION))
    conv = graph.node("conv")
    assert graph.flops(conv) == 2 * (8 * 64 * 16 * 16) * (16 * 3 * 3)
    assert graph.tensors[conv.inputs[0]].shape == (8, 16, 32, 32)
    assert graph.tensors[conv.inputs[0]].strides == (16384, 1, 512, 16)  # channels last, as it lies
    assert graph.tensors[graph.outputs[0]].shape == (8, 16, 16, 64)
    assert kinds(graph) == ["conv"]


def test_a_library_convolution_with_bias_and_activation():
    text = CONVOLUTION.replace(
        "ROOT c = f32[8,16,16,64]{3,2,1,0} convolution(x, w)",
        "b = f32[64]{0} parameter(2)\n  ROOT c = (f32[8,16,16,64]{3,2,1,0}, u8[0]{0}) custom-call(x, w, b)",
    )
    config = '{"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":1}}'
    text += f', custom_call_target="__cudnn$convBiasActivationForward", backend_config={config}'
    assert group_kinds(plan_from_hlo(entry(text))) == [["conv", "relu"]]


def test_views_are_free_in_a_fusion_and_copies_on_their_own():
    fused = """%fused (p: f32[64,128]) -> f32[128,64] {
  %p = f32[64,128]{1,0} parameter(0)
  %t = f32[128,64]{1,0} transpose(%p), dimensions={1,0}
  ROOT %n = f32[128,64]{1,0} negate(%t)
}"""
    text = """  x = f32[64,128]{1,0} parameter(0)
  f = f32[128,64]{1,0} fusion(x), kind=kLoop, calls=%fused
  t = f32[64,128]{1,0} transpose(f), dimensions={1,0}
  s = f32[32,128]{1,0} slice(t), slice={[0:64:2], [0:128]}
  ROOT z = f32[32,128]{1,0} negate(s)"""
    plan = plan_from_hlo(entry(text, before=fused))
    assert group_kinds(plan) == [["neg"], ["copy"], ["copy"], ["neg"]]
    assert external_bytes(plan, 2) == 2 * 32 * 128 * 4  # only the rows that are kept


def test_a_bitcast_runs_nothing():
    text = """  x = f32[64,128]{1,0} parameter(0)
  b = f32[8192]{0} bitcast(x)
  ROOT n = f32[8192]{0} negate(b)"""
    assert group_kinds(plan_from_hlo(entry(text))) == [["neg"]]


def test_numbers_need_no_memory():
    text = """  x = f32[1024]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[1024]{0} broadcast(two), dimensions={}
  zero = f32[] constant(0)
  zeros = f32[1024]{0} broadcast(zero), dimensions={}
  m = f32[1024]{0} multiply(x, twos)
  s = f32[1024]{0} subtract(twos, m)
  c = pred[1024]{0} compare(s, zeros), direction=GT
  ROOT y = f32[1024]{0} select(c, s, zeros)"""
    graph = from_hlo(entry(text, header="HloModule raw"))
    assert kinds(graph) == ["mul", "sub", "gt", "where"]
    assert graph.node("mul").attr("scalar") == 2
    assert graph.node("sub").attr("reverse")
    assert graph.inputs == ("x",)


@pytest.mark.parametrize(
    ("then", "other", "settings"),
    [
        ("x", "n", {"scalar": 3.0}),
        ("n", "x", {"scalar": 3.0, "reverse": True}),
        ("n", "n", {"scalar": 3.0, "other": 3.0}),
        ("x", "x", {}),
    ],
)
def test_a_number_stands_on_its_side_of_a_choice(then, other, settings):
    text = f"""  x = f32[64]{{0}} parameter(0)
  c = pred[64]{{0}} parameter(1)
  three = f32[] constant(3)
  n = f32[64]{{0}} broadcast(three), dimensions={{}}
  ROOT y = f32[64]{{0}} select(c, {then}, {other})"""
    graph = from_hlo(entry(text, header="HloModule raw"))
    assert dict(graph.node("where").attrs) == settings


def test_an_uncompiled_module_is_a_graph_of_ops():
    text = """  x = f32[64,128]{1,0} parameter(0)
  r = f32[64]{0} parameter(1)
  w = f32[64,128]{1,0} broadcast(r), dimensions={0}
  ROOT y = f32[64,128]{1,0} add(x, w)"""
    graph = from_hlo(entry(text, header="HloModule raw, entry_computation_layout={()->()}"))
    assert kinds(graph) == ["add"]
    assert sum(graph.tensors[name].bytes for name in graph.node("add").inputs) == (64 * 128 + 64) * 4


def test_an_update_touches_its_part_only():
    text = """  cache = bf16[4096,1024]{1,0} parameter(0)
  new = bf16[1,1024]{1,0} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT u = bf16[4096,1024]{1,0} dynamic-update-slice(cache, new, at, zero)"""
    plan = plan_from_hlo(entry(text))
    assert group_kinds(plan) == [["copy_into"]]
    written = plan.graph.node("copy_into")
    assert plan.graph.tensors[written.outputs[0]].bytes == 1024 * 2
    assert plan.graph.tensors[plan.graph.outputs[0]].storage == "cache"


def test_gather_of_rows_is_an_embedding():
    text = """  table = f32[1000,64]{1,0} parameter(0)
  ids = s32[32,1]{1,0} parameter(1)
  ROOT g = f32[32,64]{1,0} gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, \
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}"""
    assert kinds(from_hlo(entry(text))) == ["embedding"]


def loop(body, *, last=5, direction="LT", step=1, note=""):
    """A module whose loop runs tanh, with a counter that starts at 0."""
    before = f"""body (s: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {{
  s = (s32[], f32[8,8]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  c = f32[8,8]{{1,0}} get-tuple-element(s), index=1
  one = s32[] constant({step})
  j = s32[] {body}
  t = f32[8,8]{{1,0}} tanh(c)
  ROOT n = (s32[], f32[8,8]{{1,0}}) tuple(j, t)
}}

condition (s.1: (s32[], f32[8,8])) -> pred[] {{
  s.1 = (s32[], f32[8,8]{{1,0}}) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  last = s32[] constant({last})
  ROOT less = pred[] compare(i.1, last), direction={direction}
}}"""
    return entry(
        f"""  x = f32[8,8]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8,8]{{1,0}}) tuple(zero, x)
  loop = (s32[], f32[8,8]{{1,0}}) while(init), condition=condition, body=body{note}
  got = f32[8,8]{{1,0}} get-tuple-element(loop), index=1
  ROOT y = f32[8,8]{{1,0}} add(got, got)""",
        before=before,
        header="HloModule raw",
    )


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (loop("add(i, one)"), 5),
        (loop("add(one, i)", direction="LE"), 6),
        (loop("add(i, one)", step=2), 3),  # 0, 2, 4
        (loop("add(i, one)", last=0), 0),
        (loop("multiply(i, one)", note=', backend_config={"known_trip_count":{"n":"7"}}'), 7),
    ],
)
def test_a_loop_is_written_out_as_often_as_it_runs(text, turns):
    graph = from_hlo(text)
    assert kinds(graph) == ["tanh"] * turns + ["add"]
    assert not graph.gaps
    assert len(plan_from_hlo(text).groups) == turns + 1  # each turn's kernel is one of its own


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (loop("multiply(i, one)"), "the module does not say how often it runs"),
        (loop("add(i, one)", direction="GT"), "the module does not say how often it runs"),
        (loop("add(i, one)", last=10**9), "it runs 1000000000 times"),
    ],
)
def test_a_loop_that_is_written_out_once_is_named(text, words):
    graph = from_hlo(text)
    assert kinds(graph) == ["tanh", "add"]
    assert graph.gaps == (f"the body of a while loop is written out once, and {words}: multiply what it costs",)


def test_what_has_no_rule_is_opaque_and_named():
    text = """  x = f32[8,8]{1,0} parameter(0)
  q = f32[8,8]{1,0} custom-call(x), custom_call_target="my_own$kernel"
  c = f32[8,8]{1,0} cholesky(q), lower=true
  ROOT r = f32[8,8]{1,0} all-reduce(c), to_apply=sum"""
    graph = from_hlo(entry(text))
    assert kinds(graph)[:2] == ["opaque", "opaque"]
    assert [gap.split(" has no rule")[0] for gap in graph.gaps[:2]] == ["my_own$kernel", "cholesky"]
    assert graph.gaps[2] == "communication between devices is not priced"


def test_other_instructions():
    text = """  x = f32[16,32]{1,0} parameter(0)
  zero = f32[] constant(0)
  p = f32[18,32]{1,0} pad(x, zero), padding=1_1x0_0
  k = f32[18,64]{1,0} concatenate(p, p), dimensions={1}
  h = f16[18,64]{1,0} convert(k)
  one = f16[] constant(1)
  l = f16[18,64]{1,0} clamp(one, h, one)
  i = s32[18,64]{1,0} iota(), iota_dimension=1
  s = f16[18,64]{1,0} sort(l), dimensions={1}, to_apply=less
  ROOT t = (f16[18,64]{1,0}, s32[18,64]{1,0}) tuple(s, i)"""
    graph = from_hlo(entry(text))
    assert kinds(graph) == ["pad", "concat", "cast", "clamp", "iota", "sort"]
    assert len(graph.outputs) == 2


def test_layouts_and_types():
    assert arrays_in("bf16[2,3,4]{0,2,1:T(8,128)(2,1)}")[0].strides == (1, 8, 2)
    assert [array.dtype for array in arrays_in("(f8e4m3fn[2]{0}, pred[], u32[3]{0}, token[])")] == [
        "fp8",
        "bool",
        "int32",
    ]
    assert parse_hlo(SOFTMAX).entry == "main.9"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no HLO text"),
        ("model.txt", "give the text itself, or a pathlib"),
        ("module @jit_f {\n  func.func public @main() { stablehlo.add }\n}", "StableHLO"),
        ("HloModule nothing\n", "has no computations"),
        (17, "takes the text"),
    ],
)
def test_a_foreign_text_is_one_sentence(text, words):
    with pytest.raises(InputError, match=words) as caught:
        from_hlo(text)
    assert "\n" not in str(caught.value)


BROKEN = {
    "cut off": SOFTMAX[: len(SOFTMAX) // 2],
    "cut in a line": SOFTMAX[:-40],
    "unknown operand": entry("  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0} negate(z)"),
    "unknown computation": entry(
        "  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0} fusion(x), kind=kLoop, calls=gone"
    ),
    "no callee": entry("  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0} fusion(x), kind=kLoop"),
    "shapes that do not fit": entry("  x = f32[8]{0} parameter(0)\n  ROOT y = f32[9]{0} add(x, x)"),
    "no matrix": entry("  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8,8]{1,0} dot(x, x), lhs_contracting_dims={4}"),
    "no labels": entry("  x = f32[8,8]{1,0} parameter(0)\n  ROOT y = f32[8,8]{1,0} convolution(x, x), dim_labels=?"),
    "only constants": entry("  ROOT y = f32[] constant(1)"),
    "endless": entry(
        "  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0} call(x), to_apply=f",
        before="f {\n  p = f32[8]{0} parameter(0)\n  ROOT q = f32[8]{0} call(p), to_apply=f\n}",
    ),
    "no instruction": entry("  hello"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_text_is_one_sentence(case):
    with pytest.raises(FusesimError) as caught:
        from_hlo(BROKEN[case])
    assert isinstance(caught.value, GraphError | InputError)
    assert "\n" not in str(caught.value)


def test_paths_are_read(tmp_path):
    path = tmp_path / "module.txt"
    path.write_text(SOFTMAX)
    assert from_hlo(path) == from_hlo(SOFTMAX) == from_hlo(SOFTMAX.encode())
    with pytest.raises(InputError, match=r"gone\.txt: cannot be read"):
        from_hlo(tmp_path / "gone.txt")
