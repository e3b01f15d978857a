"""Temporaries of kernels that graph functions allocate: results, and what is planned for them."""

import re
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.calls import Calls
from relax_mlir.testing.equivalence import Equivalence

FIGURE = (Path(__file__).parents[2] / "Paper" / "figure_11_workspace_lifting.mlir").read_text()
LIFT = "relax-lift-workspace"
CONVOLUTIONS = """
!x = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "h", "w"]>>
!y = tensor<?x8x?x?xf32, #graph.shape<["n", 8, "h", "w"]>>
!f = tensor<8x3x3x3xf32>
!g = tensor<3x1x3x3xf32>
func.func @main(%x: !x, %f: !f, %g: !g) -> !y {
  %0 = "graph.nn_conv2d"(%x, %g) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
      dilation = array<i64: 1, 1>, groups = 3 : i64} : (!x, !g) -> !x
  %1 = "graph.nn_conv2d"(%0, %f) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
      dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, !f) -> !y
  return %1 : !y
}
"""


def lifting(opt_level: int, options: str = "") -> str:
    """The default pipeline with the pass in it."""
    passes = pipeline(opt_level=opt_level)
    return passes.replace(",relax-lower-calls", f",{LIFT}{options},relax-lower-calls", 1)


@pytest.mark.parametrize("opt_level", [0, 2])
def test_a_product_divided_along_k(opt_level: int) -> None:
    main = relax_mlir.compile(FIGURE, passes=lifting(opt_level))["main"]
    generator = np.random.default_rng(3)
    w = generator.standard_normal((8, 4)).astype(np.float32)
    for n in (0, 1, 7, 16, 33):
        x = generator.standard_normal((n, 8)).astype(np.float32)
        product, gate = main(x, w)
        want = x.astype(np.float64) @ w.astype(np.float64)
        np.testing.assert_allclose(product, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gate, -np.repeat(want, 2, axis=1), rtol=1e-4, atol=1e-5)


def test_own_kernels_with_temporaries() -> None:
    passes = lifting(1, "{min-bytes=0}")
    calls = Calls(relax_mlir.interpret(CONVOLUTIONS)["main"])
    assert calls.difference(relax_mlir.compile(CONVOLUTIONS, passes=passes)["main"]) is None


def test_scheduled_kernels_are_interpreted_alike() -> None:
    text = CONVOLUTIONS
    for symbol, size in (("n", 1), ("h", 3), ("w", 5)):
        text = text.replace(f'"{symbol}"', str(size))
    text = re.sub(r"tensor<\?x(\d)x\?x\?xf32, [^>]*>>", r"tensor<1x\1x3x5xf32>", text)
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        before = Equivalence(module)
        steps = f"relax-legalize-ops,relax-schedule{{target=x86-64-v3}},{LIFT}{{min-bytes=0}}"
        Pipeline.parse(f"builtin.module({steps})").run(module)
        assert re.search(r'%\d+:[23] = "graph.call_tir"', str(module))
        before.check(LIFT, module)


def planned(passes: str) -> list[str]:
    """The sizes of the storages that are planned for the figure."""
    with make_context(), ir.Location.unknown():
        module = parse_module(FIGURE)
        Pipeline.parse(f"builtin.module({passes})").run(module)
        return re.findall(r'alloc_storage"\(\) \{size = #graph.shape<\["([^"]*)', str(module))


def test_a_workspace_shares_memory_with_later_tensors() -> None:
    plan = "relax-lower-calls,relax-plan-memory"
    rows = "64*((n + 1) floordiv 2)"  # bytes of n rows of 8, in lines of 64
    assert planned(plan) == [rows]
    assert planned(f"{LIFT},{plan}") == [rows]
    assert planned(f"{LIFT},{plan}{{reuse=false}}") == [rows.replace("64", "128")]
