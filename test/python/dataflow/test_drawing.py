"""Pictures of dataflow graphs: what is in them, and that nothing lies upon anything else."""

import os
import random
import re
import runpy
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    internal,
    leaf,
    module,
    whole,
)  # fmt: skip
from relax_mlir.dataflow.drawing import hierarchy, svg
from relax_mlir.dataflow.drawing.hierarchy import graphs_of
from relax_mlir.dataflow.drawing.layers import apart
from relax_mlir.dataflow.drawing.layout import Picture, Placed, placed
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, UsageError

SVG = "{http://www.w3.org/2000/svg}"


@leaf("cpu", "vulkan", a="f32", b="f32")
def a_sum_of_two_scalars_with_a_name_that_is_too_long(at: Instance, a: Scalar, b: Scalar) -> Scalar:
    return a + b


@leaf(x="f32[n]")
def total(at: Instance, x: Tensor) -> Scalar:
    return at.loop(x.extent(0), 0.0, lambda i, t: t + x[i])


@internal(row="f32[m]", others="f32[n]")
def tile(row: Port, others: Port) -> Any:
    sums = total.over("m")(whole(others))
    return a_sum_of_two_scalars_with_a_name_that_is_too_long.over("m")(each(row), each(sums))


def random_graph(nodes: int, draw: random.Random) -> ir.Module:
    @graph(x="f32[n]", w="f32[n]")
    def main(x: Port, w: Port) -> Any:
        values = [x, w]
        for _ in range(nodes):
            a, b = draw.choice(values[-5:]), draw.choice(values)
            kind = draw.randrange(3)
            if kind == 0:
                values.append(total.over("n")(whole(a)))
            elif kind == 1:
                rows = a_sum_of_two_scalars_with_a_name_that_is_too_long.over("n")(each(a), each(b))
                values.append(rows)
            else:
                values.append(tile.over()(whole(a), whole(b)))
        return tuple(values[-3:])

    return module(main)


def pictures_of(built: ir.Module) -> list[Placed]:
    with built.context:
        return [placed(box) for box in graphs_of(built)]


def graphs_in(at: Placed) -> Iterator[Picture]:
    if at.inner is not None:
        yield at.inner
        for box in at.inner.boxes:
            yield from graphs_in(box)


def test_boxes_lie_apart_and_edges_around_them() -> None:
    draw = random.Random()
    for nodes in (1, 2, 30):
        (root,) = pictures_of(random_graph(nodes, draw))
        for picture in graphs_in(root):
            for a, b in combinations(picture.boxes, 2):
                beyond_x = a.x + a.width <= b.x or b.x + b.width <= a.x
                assert beyond_x or a.y + a.height <= b.y or b.y + b.height <= a.y
            for box in picture.boxes:
                assert 0 <= box.x
                assert box.x + box.width <= picture.width
                assert 0 <= box.y
                assert box.y + box.height <= picture.height
            for edge, route in picture.routes:
                for box in picture.boxes:
                    for x, top, bottom in route:
                        is_beyond = x <= box.x or x >= box.x + box.width
                        assert is_beyond or bottom <= box.y or top >= box.y + box.height
                for (_, _, bottom), (_, top, _) in pairwise(route):
                    assert bottom < top  # curves are between layers
                    for box in picture.boxes:
                        assert box.y + box.height <= bottom or box.y >= top
                source, target = picture.boxes[edge.source], picture.boxes[edge.target]
                assert route[0][1] == source.y + source.height
                assert route[-1][2] == target.y
                assert target.x <= route[-1][0] <= target.x + target.width


def test_a_picture_has_every_node_and_edge() -> None:
    built = random_graph(12, random.Random())
    root = ElementTree.fromstring(svg(built))
    text = str(built)
    inner = text.count("callee = @tile,")
    names = [element.text or "" for element in root.iter(f"{SVG}title")]
    assert sum(name.startswith("tile | ") for name in names) == inner
    sums = text.count("callee = @total,") + max(0, inner - 1)  # of which one is written in @tile
    assert sum(name.startswith("total | grid ") for name in names) == sums
    assert root.findall(f".//{SVG}rect[@class='internal']") or not inner
    curves = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    (box,) = pictures_of(built)
    edges = sum(len(picture.routes) for picture in graphs_in(box))
    kinds = {edge.kind for picture in graphs_in(box) for edge, _ in picture.routes}
    assert len(curves) == edges + len(kinds)  # and those of the legend
    for shown in root.iter(f"{SVG}text"):
        assert len(shown.text or "") <= 34


def test_what_is_odd_is_drawn() -> None:
    """Names with signs of XML, operators between nodes, regions with nodes, unused arguments."""
    segments = "operandSegmentSizes = array<i32: 1{}>, resultSegmentSizes = array<i32: 1{}>".format(
        ", 0" * 31, ", 0" * 7
    )
    node = (
        '"graph.node"({}) {{callee = @"<&>", grid = #graph.shape<[]>, edges = ["one_to_one"], {}}}'
    )
    text = f"""
func.func private @"<&>"(%x: f32) -> f32 attributes {{tir.leaf}} {{
  return %x : f32
}}
func.func @main(%x: tensor<f32>, %c: i1, %unused: tensor<2x?xf32>) -> tensor<f32> {{
  %0 = "graph.exp"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = {node.format("%0", segments)} : (tensor<f32>) -> tensor<f32>
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %2 = scf.for %i = %zero to %two step %two iter_args(%v = %1) -> tensor<f32> {{
    %3 = {node.format("%x", segments)} : (tensor<f32>) -> tensor<f32>
    scf.yield %3 : tensor<f32>
  }}
  return %2 : tensor<f32>
}}
"""
    with make_context(), ir.Location.unknown():
        root = ElementTree.fromstring(svg(ir.Module.parse(text)))
    names = [element.text for element in root.iter(f"{SVG}title")]
    assert names.count("<&> | f32[]") == 2
    assert {"exp | f32[]", "scf.for | f32[]", "arg2 | f32[2, ?]"} <= set(names)


def test_what_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    built = random_graph(3, random.Random())
    broken = re.sub(r'edges = \["[^]]*"', 'edges = ["twice"', str(built))
    with make_context(), ir.Location.unknown():
        with pytest.raises(CompileError, match="expects 'edges' with one_to_one or all_to_all"):
            svg(ir.Module.parse(broken))
        with pytest.raises(UsageError, match="nothing to draw"):
            svg(ir.Module.parse("module {}"))
    monkeypatch.setattr(hierarchy, "MAX_BOXES", 4)
    with pytest.raises(UsageError, match="at most 4 boxes"):
        svg(built)


def test_positions_are_the_nearest_that_are_apart() -> None:
    """Against all positions on a grid."""
    draw = random.Random()
    for _ in range(20):
        wanted = [draw.randrange(6) for _ in range(3)]
        gaps, weights = [draw.randrange(4) for _ in range(2)], [draw.choice([1, 4]) for _ in "abc"]

        def cost(at: Any, wanted: Any = wanted, weights: Any = weights) -> float:
            return sum(w * (x - y) ** 2 for x, y, w in zip(at, wanted, weights))

        got = apart(wanted, gaps, weights)
        assert all(b - a >= gap - 1e-9 for a, b, gap in zip(got, got[1:], gaps))
        halves = [x / 2 for x in range(-12, 25)]
        least = min(
            cost((a, b, c))
            for a in halves
            for b in halves
            for c in halves
            if b - a >= gaps[0] and c - b >= gaps[1]
        )
        assert cost(got) <= least + 1e-9


def test_a_drawn_graph_runs() -> None:
    """Names of the parameters of internal nodes do not disturb a compilation."""
    built = random_graph(4, random.Random())
    svg(built)
    relax_mlir.interpret(built)


PAGES = Path(__file__).parents[3] / "docs/pictures"
EXAMPLE = Path(__file__).parents[3] / "examples/dataflow_pipeline.py"


@leaf(x="f32[n]", table="f32[k, m]")
def polynomial(at: Instance, x: Tensor, table: Tensor) -> Scalar:
    i, j = at.ids(2)
    return at.loop(table.extent(0), 0.0, lambda k, y: y * x[i] + table[k, j])


@graph(x="f32[n]", table="f32[k, m]")
def polynomials(x: Port, table: Port) -> Any:
    return polynomial.over("n", "m")(whole(x), whole(table))


@pytest.mark.parametrize("name", ["edges", "tiles"])
def test_pictures_of_the_pages_are_as_they_are_drawn(name: str) -> None:
    """UPDATE_PICTURES=1 writes them."""
    if name == "edges":
        built = module(runpy.run_path(str(EXAMPLE))["edges"])
    else:
        built = module(polynomials, passes="relax-tile-node{sizes=4,64}")
    page, drawn = PAGES / f"{name}.svg", svg(built)
    if os.environ.get("UPDATE_PICTURES"):
        page.write_text(drawn, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == drawn
    dashed = drawn.count("stroke-dasharray")
    assert dashed == (6 if name == "edges" else 0)  # five, and one in the legend
    assert drawn.count('class="target"') == (12 if name == "edges" else 0)  # two of each node
