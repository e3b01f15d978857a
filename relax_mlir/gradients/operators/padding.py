"""Gradients of `pad`."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    dims_of,
    element_of,
    emit,
    multiply,
    rank_of,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import exact_dims
from relax_mlir.dialects.graph.padding import dilated
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.symbolic import Expr, const

from .gather import add_at


def pad(op: graph.PadOp, adjoint: Adjoint) -> Contributions:
    """What lies at the operand's elements; the padding goes to the value, or where it came from."""
    low, high = (exact_dims(graph.dims_of_attr(op.attributes[n].dims)) for n in ("low", "high"))
    if op.value is None:
        yield op.input, _repeated(op, adjoint.seed, low, high)
        return
    interior = list(op.attributes["interior"])
    if adjoint.wants(op.input):
        yield op.input, _cropped(adjoint.seed, dims_of(op.input), (low, high), interior)
    if adjoint.wants(op.value):
        one = scalar(1, element_of(op.input))
        widths = {"low": low, "high": high, "interior": interior, "mode": "constant"}
        around = emit(graph.PadOp, zeros_like(op.input), one, **widths)
        yield op.value, multiply(adjoint.seed, around)


def _cropped(
    value: ir.Value,
    dims: Sequence[Expr],
    widths: tuple[Sequence[Expr], Sequence[Expr]],
    interior: Sequence[int],
) -> ir.Value:
    """The elements of a padded tensor that are not padding; zeros for those that were removed."""
    low, high = ([-width for width in side] for side in widths)
    none = [0] * len(dims)
    zero = scalar(0, element_of(value))
    value = emit(graph.PadOp, value, zero, low=low, high=high, interior=none, mode="constant")
    if not any(interior):
        return value
    return emit(
        graph.StridedSliceOp,
        value,
        axes=list(range(len(dims))),
        begin=none,
        end=[dilated(dim, between) for dim, between in zip(dims, interior)],
        strides=[between + 1 for between in interior],
    )


def _repeated(
    op: graph.PadOp, value: ir.Value, low: Sequence[Expr], high: Sequence[Expr]
) -> ir.Value:
    """Adds each element to the one that it is a copy of, axis by axis."""
    i64 = ir.IntegerType.get_signless(64)
    for axis in range(rank_of(op.input)):
        if low[axis] == high[axis] == const(0):
            continue
        extent = dims_of(op.input)[axis]
        sources = emit(
            graph.PadOp,
            arange(0, extent, 1, i64),
            None,
            low=[low[axis]],
            high=[high[axis]],
            interior=[0],
            mode=op.attributes["mode"].value,
        )
        dims = list(dims_of(value))
        dims[axis] = extent
        value = add_at(value, [sources], [axis], dims)
    return value
