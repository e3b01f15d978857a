"""Gradients of operators that repeat elements or put them in another order."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import dims_of, emit, rank_of, reduce, reshape
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import exact_dims, normalize_axis
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.symbolic import Expr, const

from .manipulate import part


def flip(op: graph.FlipOp, adjoint: Adjoint) -> Contributions:
    """The same axes in reverse order again."""
    yield op.input, emit(graph.FlipOp, adjoint.seed, axes=list(op.attributes["axes"]))


def roll(op: graph.RollOp, adjoint: Adjoint) -> Contributions:
    """By as many positions in the other direction."""
    shifts = [-shift for shift in op.attributes["shifts"]]
    yield (
        op.input,
        emit(graph.RollOp, adjoint.seed, shifts=shifts, axes=list(op.attributes["axes"])),
    )


def repeats_of(op: ir.OpView) -> tuple[Expr, ...]:
    """The attribute `repeats`."""
    return exact_dims(graph.dims_of_attr(op.attributes["repeats"].dims))


def tile(op: graph.TileOp, adjoint: Adjoint) -> Contributions:
    """The sum over the copies."""
    repeats, own = repeats_of(op), dims_of(op.input)
    own = (const(1),) * (len(repeats) - len(own)) + own
    split = [dim for pair in zip(repeats, own, strict=True) for dim in pair]
    copies = reshape(adjoint.seed, split)
    yield op.input, reduce(graph.SumOp, copies, list(range(0, len(split), 2)))


def repeat(op: graph.RepeatOp, adjoint: Adjoint) -> Contributions:
    """The sum over the copies of each element."""
    axis = normalize_axis(op.attributes["axis"].value, rank_of(op.input))
    dims = list(dims_of(op.input))
    copies = reshape(adjoint.seed, [*dims[: axis + 1], *repeats_of(op), *dims[axis + 1 :]])
    yield op.input, reduce(graph.SumOp, copies, [axis + 1])


def stack(op: graph.StackOp, adjoint: Adjoint) -> Contributions:
    """The part of each operand, without the new axis."""
    axis = normalize_axis(op.attributes["axis"].value, rank_of(adjoint.seed))
    for index, operand in enumerate(op.ins):
        if adjoint.wants(operand):
            piece = part(adjoint.seed, axis, const(index), const(index + 1))
            yield operand, reshape(piece, dims_of(operand))
