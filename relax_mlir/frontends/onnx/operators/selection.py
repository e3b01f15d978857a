"""Selections whose sizes depend on data, and orders."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, emit
from relax_mlir.dialects import graph

from ..node import Node, normalized
from ..registry import Value, operator


@operator("NonZero")
def nonzero(node: Node) -> ir.Value:
    """Indices of what is not 0."""
    return emit(graph.NonzeroOp, node.tensor(0))


@operator("Compress")
def compress(node: Node) -> ir.Value:
    """Slices at which a condition is true."""
    return d.compress(node.tensor(0), node.tensor(1), axis=node.attribute("axis"))


@operator("Unique")
def unique(node: Node) -> tuple[Value, ...]:
    """Distinct elements or slices, where they are, and how often."""
    axes = [] if not node.has("axis") else [normalized(node.attribute("axis"), node.rank())]
    ordered = node.flag("sorted", default=True)
    op = graph.UniqueOp.build(node.tensor(0), axes=axes, sorted=ordered)
    return tuple(op.operation.results)


@operator("TopK", until=9)
def old_topk(node: Node) -> tuple[Value, ...]:
    """The greatest elements, as many as an attribute says."""
    k, axis = [node.required("k")], node.axis(-1)
    op = graph.TopkOp.build(node.tensor(0), k=k, axis=axis, largest=True)
    values, indices = op.operation.results
    return values, astype(indices, ir.IntegerType.get_signless(64))


@operator("TopK", since=10)
def topk(node: Node) -> tuple[Value, ...]:
    """The greatest or least elements, as many as an operand says."""
    k, axis = node.exprs(1, "a count"), node.axis(-1)
    largest = node.flag("largest", default=True)
    op = graph.TopkOp.build(node.tensor(0), k=k, axis=axis, largest=largest)
    values, indices = op.operation.results
    return values, astype(indices, ir.IntegerType.get_signless(64))


@operator("NonMaxSuppression")
def non_max_suppression(node: Node) -> ir.Value:
    """Boxes that overlap no better one."""
    most: ir.Value | int = 0 if node.value(2) is None else node.tensor(2)
    overlap: ir.Value | float = 0.0 if node.value(3) is None else node.tensor(3)
    return d.non_max_suppression(
        node.tensor(0),
        node.tensor(1),
        most,
        overlap,
        node.optional(4),
        center_point_box=node.flag("center_point_box"),
    )
