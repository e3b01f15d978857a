"""Gradients through branches, loops and calls against differences, in f64."""

import numpy as np
import pytest
from gradient_checks import Gradients, results_of
from harness import _CONTEXT

import relax_mlir
from relax_mlir.bindings import ir

pytestmark = pytest.mark.usefixtures("llvm_turns")

TYPES = """
!x = tensor<?xf64, #graph.shape<["n"]>>
!row = tensor<1x?xf64, #graph.shape<[1, "n"]>>
!w = tensor<?x?xf64, #graph.shape<["n", "n"]>>
"""
LAYER = """
    %r0 = "graph.expand_dims"(%a) {axes = array<i64: 0>} : (!x) -> !row
    %r1 = "graph.matmul"(%r0, %w) : (!row, !w) -> !row
    %r2 = "graph.tanh"(%r1) : (!row) -> !row
    %next = "graph.squeeze"(%r2) {axes = array<i64: 0>} : (!row) -> !x
"""
SUM = '"graph.sum"(%y) {axes = array<i64>, keepdims = false} : (!x) -> tensor<f64>'
COUNTED = f"""
func.func @main(%x: !x, %w: !w, %from: KIND, %to: KIND, %by: KIND) -> tensor<f64> {{
  %y = scf.for UNSIGNED %i = %from to %to step %by iter_args(%a = %x) -> !x TYPE {{
    {LAYER}
    scf.yield %next : !x
  }}
  %l = {SUM}
  return %l : tensor<f64>
}}
"""
SIZES = (0, 1, 7)


def _gradients(text: str) -> Gradients:
    with _CONTEXT, ir.Location.unknown():
        return Gradients(ir.Module.parse(TYPES + text))


def _arrays(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    return random.standard_normal(n), random.standard_normal((n, n))


@pytest.mark.parametrize("kind", ["index", "i64", "i32"])
def test_loop_that_counts(kind: str) -> None:
    text = COUNTED.replace("KIND", kind).replace("UNSIGNED", "")
    gradients = _gradients(text.replace("TYPE", "" if kind == "index" else f": {kind}"))
    for n in SIZES:
        for bounds in ((0, 3, 1), (2, 9, 3), (5, 5, 1), (7, 2, 2), (-4, -1, 2)):
            gradients.check(*_arrays(n), *bounds)


def test_loop_of_constant_rounds_that_uses_its_index() -> None:
    gradients = _gradients(f"""
        func.func @main(%x: !x, %s: tensor<9xf64>) -> tensor<f64> {{
          %c1 = arith.constant 1 : index
          %c3 = arith.constant 3 : index
          %c8 = arith.constant 8 : index
          %y, %n = scf.for %i = %c1 to %c8 step %c3 iter_args(%a = %x, %k = %c8) -> (!x, index) {{
            %e = tensor.extract %s[%k] : tensor<9xf64>
            %f = tensor.extract %s[%i] : tensor<9xf64>
            %g = arith.mulf %e, %f : f64
            %t = tensor.from_elements %g : tensor<f64>
            %b = "graph.multiply"(%a, %t) : (!x, tensor<f64>) -> !x
            %c = "graph.sin"(%b) : (!x) -> !x
            %next = arith.subi %k, %c1 : index
            scf.yield %c, %next : !x, index
          }}
          %l = {SUM}
          return %l : tensor<f64>
        }}""")
    for n in SIZES:
        gradients.check(_arrays(n)[0], np.linspace(0.5, 2, 9))


def test_loop_with_scalar_state() -> None:
    gradients = _gradients("""
        func.func @main(%x: tensor<3xf64>, %k: index) -> tensor<f64> {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %e = tensor.extract %x[%c0] : tensor<3xf64>
          %f = tensor.extract %x[%c1] : tensor<3xf64>
          %y = scf.for %i = %c0 to %k step %c1 iter_args(%a = %e) -> f64 {
            %b = arith.divf %a, %f : f64
            %c = arith.addf %b, %e : f64
            %d = arith.negf %c : f64
            %p = arith.cmpf olt, %d, %f : f64
            %s = arith.select %p, %d, %a : f64
            scf.yield %s : f64
          }
          %t = tensor.insert %y into %x[%c1] : tensor<3xf64>
          %q = "graph.square"(%t) : (tensor<3xf64>) -> tensor<3xf64>
          %l = "graph.sum"(%q) {axes = array<i64>, keepdims = false}
            : (tensor<3xf64>) -> tensor<f64>
          return %l : tensor<f64>
        }""")
    for k in (0, 1, 4):
        gradients.check(np.array([0.7, 1.9, -0.4]), k)


def test_nested_loops_and_branches() -> None:
    gradients = _gradients(f"""
        func.func @main(%x: !x, %w: !w, %k: index) -> tensor<f64> {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %y = scf.for %i = %c0 to %k step %c1 iter_args(%o = %x) -> !x {{
            %in = scf.for %j = %c0 to %i step %c1 iter_args(%a = %o) -> !x {{
              {LAYER}
              scf.yield %next : !x
            }}
            %p = arith.cmpi eq, %i, %c1 : index
            %z = scf.if %p -> !x {{
              %m = "graph.multiply"(%in, %x) : (!x, !x) -> !x
              scf.yield %m : !x
            }} else {{
              %m = "graph.add"(%in, %o) : (!x, !x) -> !x
              scf.yield %m : !x
            }}
            scf.yield %z : !x
          }}
          %l = {SUM}
          return %l : tensor<f64>
        }}""")
    for n in SIZES:
        for k in (0, 1, 2, 4):
            gradients.check(*_arrays(n), k)


def test_branches_that_bind_symbols() -> None:
    gradients = _gradients(f"""
        func.func @main(%x: !x, %z: tensor<?xf64>, %k: index) -> tensor<f64> {{
          %y = scf.index_switch %k -> !x
          case 0 {{
            %0 = "graph.exp"(%x) : (!x) -> !x
            scf.yield %0 : !x
          }}
          case 1 {{
            %0 = "graph.match_cast"(%z) : (tensor<?xf64>) -> tensor<?xf64, #graph.shape<["k"]>>
            %1 = "graph.sum"(%0) {{axes = array<i64>, keepdims = false}}
              : (tensor<?xf64, #graph.shape<["k"]>>) -> tensor<f64>
            %2 = "graph.multiply"(%x, %1) : (!x, tensor<f64>) -> !x
            scf.yield %2 : !x
          }}
          default {{
            scf.yield %x : !x
          }}
          %l = {SUM}
          return %l : tensor<f64>
        }}""")
    for n in SIZES:
        for k in (0, 1, 2):
            gradients.check(_arrays(n)[0], _arrays(3)[0], k)


WHILE = f"""
func.func @main(%x: !x, %w: !w, %limit: f64) -> tensor<f64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y, %k = scf.while (%b = %x, %i = %c0) : (!x, index) -> (!x, index) {{
    %s = "graph.square"(%b) : (!x) -> !x
    %t = "graph.sum"(%s) {{axes = array<i64>, keepdims = false}} : (!x) -> tensor<f64>
    %e = tensor.extract %t[] : tensor<f64>
    %more = arith.cmpf ogt, %e, %limit : f64
    %few = arith.cmpi ult, %i, %c5 : index
    %go = arith.andi %more, %few : i1
    %f = "graph.sin"(%b) : (!x) -> !x
    scf.condition(%go) %f, %i : !x, index
  }} do {{
  ^body(%a: !x, %i: index):
    {LAYER}
    %j = arith.addi %i, %c1 : index
    scf.yield %next, %j : !x, index
  }}
  %l = {SUM}
  return %l : tensor<f64>
}}
"""


def test_loop_with_a_condition() -> None:
    gradients = _gradients(WHILE)
    for n in SIZES:
        for limit in (-1.0, 0.5, 1e9):
            gradients.check(*_arrays(n), limit)


def test_dataflow_blocks_and_calls() -> None:
    gradients = _gradients(f"""
        func.func @main(%x: !x, %w: !w) -> tensor<f64> {{
          %a = scf.execute_region -> !x {{
            %0 = "graph.match_cast"(%x) : (!x) -> tensor<?xf64, #graph.shape<["k"]>>
            %1 = "graph.exp"(%0)
              : (tensor<?xf64, #graph.shape<["k"]>>) -> tensor<?xf64, #graph.shape<["k"]>>
            %2 = "graph.multiply"(%x, %1) : (!x, tensor<?xf64, #graph.shape<["k"]>>) -> !x
            scf.yield %2 : !x
          }} {{graph.dataflow}}
          {LAYER.replace("%next", "%y")}
          %l = {SUM}
          return %l : tensor<f64>
        }}""")
    for n in SIZES:
        gradients.check(*_arrays(n))


RECURSIVE = """
func.func @main(%x: !x, %k: index) -> tensor<f64> {
  %y = "graph.call"(%x, %k) {callee = @power, IN2, OUT1} : (!x, index) -> !x
  %l = "graph.sum"(%y) {axes = array<i64>, keepdims = false} : (!x) -> tensor<f64>
  return %l : tensor<f64>
}
func.func private @power(%x: !x, %k: index) -> !x attributes {graph.noinline} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = arith.cmpi sgt, %k, %c0 : index
  %y = scf.if %p -> !x {
    %j = arith.subi %k, %c1 : index
    %0 = "graph.call"(%x, %j) {callee = @power, IN2, OUT1} : (!x, index) -> !x
    %1 = "graph.multiply"(%0, %x) : (!x, !x) -> !x
    scf.yield %1 : !x
  } else {
    %0 = "graph.sin"(%x) : (!x) -> !x
    scf.yield %0 : !x
  }
  return %y : !x
}
""".replace("IN2", f"operandSegmentSizes = array<i32: 1, 1{', 0' * 30}>").replace(
    "OUT1", f"resultSegmentSizes = array<i32: 1{', 0' * 7}>"
)


def test_functions_that_call_themselves() -> None:
    gradients = _gradients(RECURSIVE)
    for n in SIZES:
        for k in (0, 1, 3):
            gradients.check(_arrays(n)[0], k)


@pytest.mark.parametrize("text", [WHILE, RECURSIVE], ids=["while", "recursive"])
@pytest.mark.parametrize("opt_level", [0, 2])
def test_compiled(text: str, opt_level: int) -> None:
    gradients = _gradients(text)
    compiled = relax_mlir.compile(gradients.adjoint_text, opt_level=opt_level)["main_adjoint"]
    for n in SIZES:
        arguments = (*_arrays(n), 0.5) if text == WHILE else (_arrays(n)[0], 3)
        for got, want in zip(results_of(compiled(*arguments)), gradients.adjoint(*arguments)):
            for one, other in zip(results_of(got), results_of(want), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
