"""Gradients of operators that move elements: they go back to where they came from."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import dims_of, emit, permute, rank_of, reshape
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import normalize_axis
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.rewriting import retyped
from relax_mlir.symbolic import Expr, const


def permute_dims(op: graph.PermuteDimsOp, adjoint: Adjoint) -> Contributions:
    """The inverse permutation."""
    axes = list(op.attributes["axes"])
    yield op.input, permute(adjoint.seed, [axes.index(axis) for axis in range(len(axes))])


def reshape_(
    op: graph.ReshapeOp | graph.ExpandDimsOp | graph.SqueezeOp, adjoint: Adjoint
) -> Contributions:
    """The dims of the operand."""
    yield op.input, reshape(adjoint.seed, dims_of(op.input))


def broadcast_to(op: graph.BroadcastToOp, adjoint: Adjoint) -> Contributions:
    """The sum over what is repeated."""
    yield op.input, adjoint.seed


def match_cast(op: graph.MatchCastOp, adjoint: Adjoint) -> Contributions:
    """All of it, under the operand's annotation."""
    if isinstance(op.input.type, ir.ShapedType):
        yield op.input, retyped(adjoint.seed, op.input.type)


def concat(op: graph.ConcatOp, adjoint: Adjoint) -> Contributions:
    """The part of each operand."""
    axis = normalize_axis(op.attributes["axis"].value, rank_of(adjoint.seed))
    start: Expr = const(0)
    for operand in op.ins:
        end = start + dims_of(operand)[axis]
        if adjoint.wants(operand):
            yield operand, part(adjoint.seed, axis, start, end)
        start = end


def part(value: ir.Value, axis: int, start: Expr, end: Expr) -> ir.Value:
    """The elements from one position along an axis to in front of another."""
    return emit(graph.StridedSliceOp, value, axes=[axis], begin=[start], end=[end], strides=[1])


def split(op: graph.SplitOp, adjoint: Adjoint) -> Contributions:
    """The pieces joined, with zeros for those that have no gradient."""
    (operand,) = op.ins
    pieces = [
        zeros_like(piece) if seed is None else seed
        for seed, piece in zip(adjoint.seeds, op.outs, strict=True)
    ]
    yield operand, graph.ConcatOp.build(*pieces, axis=op.attributes["axis"].value).outs[0]
