"""Leaves with tensors of their own, element types, and module text, against NumPy."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, each, graph, leaf, module, whole
from relax_mlir.errors import CompileError, ExecutionError


def segments(used: int, slots: int) -> str:
    return ", ".join(["1"] * used + ["0"] * (slots - used))


HEAD = f"""
#in0 = array<i32: {segments(0, 32)}>
#in1 = array<i32: {segments(1, 32)}>
#in2 = array<i32: {segments(2, 32)}>
#out1 = array<i32: {segments(1, 8)}>
#out2 = array<i32: {segments(2, 8)}>
"""
TILES = """
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
!x = tensor<?x?xf32, #graph.shape<["h", "w"]>>
!tiles = tensor<?x?x4x4xf32, #graph.shape<["n", "m", 4, 4]>>
!rows = tensor<?x?x4xf32, #graph.shape<["n", "m", 4]>>
!weights = tensor<?x4x4xf32, #graph.shape<["n", 4, 4]>>

// Doubles a tile, adds an element of an image, and sums rows.
func.func private @tile(%t: tensor<4x4xf32>, %x: !x) -> (tensor<4x4xf32>, tensor<4xf32>)
    attributes {tir.leaf} {
  %n = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %m = "tir.node_id"() {level = 0 : i64, dim = 1 : i64} : () -> index
  %own = tensor.generate {
  ^bb0(%i: index, %j: index):
    %p = arith.addi %n, %i : index
    %q = arith.addi %m, %j : index
    %v = tensor.extract %x[%p, %q] : !x
    tensor.yield %v : f32
  } : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic
      {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%t, %own : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.addf %a, %a : f32
    %s = arith.addf %d, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<4xf32>
  %g = linalg.fill ins(%z : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<4x4xf32>) outs(%g : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
}
func.func @tiles(%t: !tiles, %x: !x) -> (!tiles, !rows) {
  %0:2 = "graph.node"(%t, %x) {callee = @tile, grid = #graph.shape<["n", "m"]>,
      edges = ["one_to_one", "all_to_all"],
      operandSegmentSizes = #in2, resultSegmentSizes = #out2} : (!tiles, !x) -> (!tiles, !rows)
  return %0#0, %0#1 : !tiles, !rows
}

// One instance, and grids without any.
func.func private @pair(%x: f32) -> tensor<2xf32> attributes {tir.leaf} {
  %y = arith.negf %x : f32
  %0 = tensor.from_elements %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @one(%x: tensor<f32>) -> tensor<2xf32> {
  %0 = "graph.node"(%x) {callee = @pair, grid = #graph.shape<[]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @none(%x: tensor<3x0xf32>) -> tensor<3x0x2xf32> {
  %0 = "graph.node"(%x) {callee = @pair, grid = #graph.shape<[3, 0]>, edges = ["one_to_one"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1}
      : (tensor<3x0xf32>) -> tensor<3x0x2xf32>
  return %0 : tensor<3x0x2xf32>
}
func.func private @numbered() -> i32 attributes {tir.leaf} {
  %i = "tir.node_id"() {level = 0 : i64, dim = 0 : i64} : () -> index
  %0 = arith.index_cast %i : index to i32
  return %0 : i32
}
func.func @without_operands(%x: tensor<?xf32, #graph.shape<["n"]>>)
    -> tensor<?xi32, #graph.shape<["n + 1"]>> {
  %0 = "graph.node"() {callee = @numbered, grid = #graph.shape<["n + 1"]>, edges = [],
      operandSegmentSizes = #in0, resultSegmentSizes = #out1}
      : () -> tensor<?xi32, #graph.shape<["n + 1"]>>
  return %0 : tensor<?xi32, #graph.shape<["n + 1"]>>
}
"""


@pytest.fixture(scope="module", params=("interpreted", *LEVELS))
def tiles(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(HEAD + TILES)
    return relax_mlir.compile(HEAD + TILES, opt_level=request.param)


@pytest.mark.parametrize("sizes", [(2, 3, 5, 6), (1, 1, 1, 1), (0, 2, 3, 3), (3, 2, 0, 4)])
def test_tensors_of_leaves(tiles: Any, sizes: tuple[int, ...]) -> None:
    n, m, h, w = sizes
    draw = np.random.default_rng()
    t = draw.standard_normal((n, m, 4, 4)).astype(np.float32)
    x = draw.standard_normal((h, w)).astype(np.float32)
    i, j, p, q = np.ix_(*map(np.arange, (n, m, 4, 4)))
    read = x[np.minimum(i + p, h - 1), np.minimum(j + q, w - 1)] if x.size else 0
    want = 2 * t.astype(float) + read
    got, rows = tiles["tiles"](t, x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows, want.sum(-1), rtol=1e-4, atol=1e-5)


def test_grids_of_one_and_of_no_instance(tiles: Any) -> None:
    np.testing.assert_array_equal(tiles["one"](np.float32(3)), [3, -3])
    assert tiles["none"](np.zeros((3, 0), np.float32)).shape == (3, 0, 2)
    for n in (0, 1, 31):
        got = tiles["without_operands"](np.zeros(n, np.float32))
        np.testing.assert_array_equal(got, np.arange(n + 1))


def hierarchy(levels: int, nodes: int) -> str:
    """A module whose `@main` is so many levels of internal nodes, each of so many nodes."""

    def body(callee: str) -> str:
        rounds = [
            f'  %{i + 1} = "graph.node"(%{i}) {{callee = @{callee}, grid = #graph.shape<[]>,\n'
            '      edges = ["all_to_all"], operandSegmentSizes = #in1,\n'
            "      resultSegmentSizes = #out1} : (tensor<f32>) -> tensor<f32>\n"
            for i in range(nodes)
        ]
        return "".join(rounds) + f"  return %{nodes} : tensor<f32>\n}}\n"

    text = "func.func private @f0(%x: f32) -> f32 attributes {tir.leaf} {\n"
    text += "  %0 = arith.addf %x, %x : f32\n  return %0 : f32\n}\n"
    for level in range(1, levels):
        text += f"func.func private @f{level}(%0: tensor<f32>) -> tensor<f32>\n"
        text += "    attributes {graph.internal_node} {\n" + body(f"f{level - 1}")
    return (
        HEAD + text + "func.func @main(%0: tensor<f32>) -> tensor<f32> {\n" + body(f"f{levels - 1}")
    )


def test_hierarchies_beyond_the_limits_are_refused() -> None:
    for levels, nodes, error in ((65, 1, "more than 64 levels"), (13, 2, "more than 4096 leaves")):
        with pytest.raises(CompileError, match=error):
            relax_mlir.compile(hierarchy(levels, nodes))
    with pytest.raises(CompileError, match="more than 64 levels"):
        relax_mlir.compile(hierarchy(3000, 1))
    with pytest.raises(ExecutionError, match="more than 64 levels"):
        relax_mlir.interpret(hierarchy(65, 1))["main"](np.float32(1))
    for way in (relax_mlir.interpret, relax_mlir.compile):
        assert way(hierarchy(64, 1))["main"](np.float32(1)) == 2
        assert way(hierarchy(3, 2))["main"](np.float32(1)) == 256


def test_facts_may_prove_dims() -> None:
    text = """
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func private @doubled(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tir.leaf} {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: !n) -> tensor<2x4xf32> attributes {graph.facts = ["n == 4"]} {
  %0 = "graph.node"(%x) {callee = @doubled, grid = #graph.shape<[2]>, edges = ["all_to_all"],
      operandSegmentSizes = #in1, resultSegmentSizes = #out1} : (!n) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
"""
    for way in (relax_mlir.interpret, relax_mlir.compile):
        main = way(HEAD + text)["main"]
        np.testing.assert_array_equal(main(np.ones(4, np.float32)), np.full((2, 4), 2))
        with pytest.raises(ExecutionError, match="n == 4"):
            main(np.ones(5, np.float32))


ELEMENTS = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "ui8", "ui64")


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element: str) -> None:
    """Sums with an element of a table; unsigned integers are their bits to a leaf."""
    bits = int("".join(filter(str.isdigit, element)))
    signless = element.removeprefix("u")
    name = {"f": "float", "i": "int", "u": "uint"}[element[0]] + str(bits)

    @leaf(x=signless, table=f"{signless}[k]")
    def plus(at: Instance, x: Scalar, table: Tensor) -> Scalar:
        return x + table[at.id() - 1]

    @graph(x=f"{element}[n]", table=f"{element}[k]")
    def main(x: Port, table: Port) -> Any:
        return plus.over("n")(each(x), whole(table))

    built = module(main)
    x, table = (np.arange(start, start + 17).astype(name) for start in (0, 100))
    want = x + table[np.maximum(np.arange(17) - 1, 0)]
    for way in (relax_mlir.interpret(built), relax_mlir.compile(built)):
        np.testing.assert_array_equal(way["main"](x, table), want.view(name.removeprefix("u")))
