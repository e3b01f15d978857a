"""Control flow that is wrong: where, and why, before anything runs."""

from pathlib import Path

import pytest
from tool_processes import run_tool

import relax_mlir
from relax_mlir.errors import CompileError

N = 'tensor<?xf32, #graph.shape<["n"]>>'
HEAD = """  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
"""
WRONG = {
    "branches_of_other_types": (
        f"(%c: i1, %x: {N}, %y: tensor<4xf64>) -> {N}",
        f"""
  %r = scf.if %c -> {N} {{
    scf.yield %x : {N}
  }} else {{
    scf.yield %y : tensor<4xf64>
  }}
  return %r : {N}""",
        r"-:4:8: error: 'scf.if' op .*'tensor<4xf64>' should match",
    ),
    "branches_of_other_ranks": (
        f"(%c: i1, %x: {N}, %y: tensor<2x2xf32>) -> tensor<*xf32>",
        f"""
  %a = "graph.match_cast"(%x) : ({N}) -> tensor<*xf32>
  %b = "graph.match_cast"(%y) : (tensor<2x2xf32>) -> tensor<*xf32>
  %r = scf.if %c -> tensor<*xf32> {{
    scf.yield %a : tensor<*xf32>
  }} else {{
    scf.yield %b : tensor<*xf32>
  }}
  return %r : tensor<*xf32>""",
        r"-:6:8: error: 'scf.if' op has 'tensor<\*xf32>', which compiled code cannot hold",
    ),
    "a_tensor_decides": (
        f"(%c: tensor<i1>, %x: {N}) -> {N}",
        f"""
  %r = scf.if %c -> {N} {{
    scf.yield %x : {N}
  }} else {{
    scf.yield %x : {N}
  }}
  return %r : {N}""",
        r"-:4:15: error: use of value '%c' expects different type than prior uses",
    ),
    "growth_without_a_symbol": (
        "(%x: tensor<4xf32>) -> tensor<4xf32>",
        """
  %r = scf.for %i = %zero to %one step %one iter_args(%a = %x) -> tensor<4xf32> {
    %0 = "graph.expand_dims"(%a) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = "graph.broadcast_to"(%0) {shape = #graph.shape<[2, 4]>} :
        (tensor<1x4xf32>) -> tensor<2x4xf32>
    %2 = "graph.reshape"(%1) {shape = #graph.shape<[8]>} : (tensor<2x4xf32>) -> tensor<8xf32>
    %3 = "graph.match_cast"(%2) : (tensor<8xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %r : tensor<4xf32>""",
        r"-:9:10: error: 'graph.match_cast' op asserts 'tensor<4xf32>', which 'tensor<8xf32>' can",
    ),
    "a_symbol_of_a_round_outside": (
        f"(%x: {N}) -> tensor<?xf32>",
        f"""
  %0 = "graph.match_cast"(%x) : ({N}) -> tensor<?xf32>
  %r = scf.for %i = %zero to %one step %one iter_args(%a = %0) -> tensor<?xf32> {{
    %1 = "graph.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
    scf.yield %a : tensor<?xf32>
  }}
  %2 = "graph.make_shape"() {{dims = #graph.shape<["k"]>}} : () -> !graph.shape_value<["k"]>
  return %r : tensor<?xf32>""",
        r"-:9:8: error: .* uses the symbol 'k' outside of the region that binds it",
    ),
    "arithmetic_on_vectors": (
        "(%x: tensor<4xf32>) -> tensor<4xf32>",
        """
  %0 = arith.constant dense<1.0> : vector<4xf32>
  %1 = arith.addf %0, %0 : vector<4xf32>
  return %x : tensor<4xf32>""",
        r"-:4:8: error: 'arith.constant' op has 'vector<4xf32>'; expects tensors",
    ),
    "mathematics_on_scalars": (
        "(%x: f32) -> f32",
        """
  %0 = math.exp %x : f32
  return %0 : f32""",
        r"-:4:8: error: 'math.exp' op cannot be host code, which supports arithmetic on scalars",
    ),
    "integers_of_odd_width": (
        "(%x: i7) -> i7",
        """
  return %x : i7""",
        r"error: 'func.func' op has argument 0 'arg0' of 'i7', not a ranked tensor, a shape or a",
    ),
    "a_scalar_of_odd_width": (
        "(%x: i8) -> i8",
        """
  %0 = arith.trunci %x : i8 to i7
  %1 = arith.extsi %0 : i7 to i8
  return %1 : i8""",
        r"-:4:8: error: 'arith.trunci' op has a result of type 'i7', not a scalar",
    ),
    "an_unsigned_element": (
        "(%x: tensor<4xui8>) -> tensor<4xui8>",
        """
  %0 = tensor.extract %x[%one] : tensor<4xui8>
  %1 = tensor.insert %0 into %x[%zero] : tensor<4xui8>
  return %1 : tensor<4xui8>""",
        r"-:4:8: error: 'tensor.extract' op has a scalar of type 'ui8', which host code does not "
        r"support",
    ),
    "another_loop": (
        "(%x: tensor<4xf32>) -> tensor<4xf32>",
        """
  scf.parallel (%i) = (%zero) to (%one) step (%one) {
  }
  return %x : tensor<4xf32>""",
        r"-:4:3: error: 'scf.parallel' op cannot be host code",
    ),
    "another_state": (
        "(%c: i1, %x: complex<f32>) -> i1",
        """
  %r = scf.if %c -> complex<f32> {
    scf.yield %x : complex<f32>
  } else {
    scf.yield %x : complex<f32>
  }
  return %c : i1""",
        r"error: .*'complex<f32>'",
    ),
}


def text_of(name: str) -> str:
    signature, body, _ = WRONG[name]
    return f"func.func @main{signature} {{\n{HEAD}{body.lstrip(chr(10))}\n}}\n"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_control_flow_is_refused_where_it_stands(name: str) -> None:
    with pytest.raises(CompileError, match=WRONG[name][2]):
        relax_mlir.compile(text_of(name))


def test_the_command_says_so_and_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "wrong.mlir").write_text(text_of("mathematics_on_scalars"))
    found = run_tool("relax-compile", "wrong.mlir", "-o", "x.so", cwd=tmp_path)
    assert found.returncode == 1
    assert "wrong.mlir:4:8: error: 'math.exp' op cannot be host code" in found.stderr
    assert "Traceback" not in found.stderr
