"""Gradients of reductions. Half precision is computed in f32."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    maximum,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import repeated_to, spread
from relax_mlir.symbolic import product


class _Reduced:
    """The operand of a reduction, and its results so that they broadcast to the operand."""

    def __init__(self, op: graph.ReductionOp, adjoint: Adjoint) -> None:
        self.op, self.x = op, widen(op.input)
        self.rank = rank_of(op.input)
        self.axes = graph.reduced_axes(op.attributes["axes"], self.rank)
        self.seed = self.spread(widen(adjoint.seed))

    def spread(self, result: ir.Value) -> ir.Value:
        """A result with the reduced dims as 1."""
        keepdims = self.op.attributes["keepdims"].value
        return spread(result, self.axes, keepdims, self.rank)

    def again(self, op: type[graph.InferredOp], value: ir.Value, **attributes: int) -> ir.Value:
        """A reduction over the same axes of another value, which keeps dims."""
        if not self.rank:
            return emit(op, value, axes=[], keepdims=False, **attributes)
        return emit(op, value, axes=self.axes, keepdims=True, **attributes)

    def count(self) -> ir.Value:
        """How many elements are reduced to one, as a float that broadcasts."""
        counted = product([dims_of(self.x)[axis] for axis in self.axes])
        return astype(symbol(counted, ir.IntegerType.get_signless(64)), element_of(self.x))


def sum_(op: graph.SumOp, adjoint: Adjoint) -> Contributions:
    """Each element gets all of it."""
    parts = _Reduced(op, adjoint)
    yield op.input, repeated_to(parts.seed, dims_of(op.input))


def mean(op: graph.MeanOp, adjoint: Adjoint) -> Contributions:
    """Each element gets an equal share."""
    parts = _Reduced(op, adjoint)
    share = divide(parts.seed, parts.count()) if parts.rank else parts.seed
    yield op.input, repeated_to(share, dims_of(op.input))


def extremum(op: graph.MaxOp | graph.MinOp, adjoint: Adjoint) -> Contributions:
    """The elements that equal the result share it evenly, as in ATen's `amax`."""
    parts = _Reduced(op, adjoint)
    chosen = emit(graph.EqualOp, parts.x, parts.again(type(op), parts.x))
    count = parts.again(graph.SumOp, astype(chosen, element_of(parts.x)))
    yield op.input, where(chosen, divide(parts.seed, count), 0)


def prod(op: graph.ProdOp, adjoint: Adjoint) -> Contributions:
    """The product of all other elements: of those in front, times that of those after."""
    parts = _Reduced(op, adjoint)
    others = (
        product_of_others(parts.x, parts.axes) if parts.rank else scalar(1, element_of(parts.x))
    )
    yield op.input, multiply(parts.seed, others)


def product_of_others(x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """For each element the product along the axes of all elements but it."""
    stays = [axis for axis in range(rank_of(x)) if axis not in axes]
    order = [*stays, *axes]
    lines = permute(x, order)
    dims = dims_of(lines)
    flat = reshape(lines, [*dims[: len(stays)], product(dims[len(stays) :])])
    before, after = (
        emit(graph.CumprodOp, flat, axis=len(stays), exclusive=True, reverse=reverse)
        for reverse in (False, True)
    )
    others = reshape(multiply(before, after), dims)
    return permute(others, [order.index(axis) for axis in range(len(order))])


def _deviations(parts: _Reduced) -> ir.Value:
    """Differences from the mean, divided by what the variance is divided by."""
    mean = parts.again(graph.MeanOp, parts.x)
    correction = parts.op.attributes["correction"].value
    divisor = maximum(subtract(parts.count(), float(correction)), 0)
    return divide(subtract(parts.x, mean), divisor)


def variance(op: graph.VarianceOp, adjoint: Adjoint) -> Contributions:
    """Twice the deviation from the mean, by the divisor."""
    parts = _Reduced(op, adjoint)
    yield op.input, multiply(multiply(parts.seed, 2), _deviations(parts))


def std(op: graph.StdOp, adjoint: Adjoint) -> Contributions:
    """The deviation from the mean, by the divisor and the result; 0 where that is 0."""
    parts = _Reduced(op, adjoint)
    correction = op.attributes["correction"].value
    result = parts.again(graph.StdOp, parts.x, correction=correction)
    flat = binary(graph.EqualOp, result, 0)
    share = where(flat, 0, divide(parts.seed, result))
    yield op.input, multiply(share, _deviations(parts))


def logsumexp(op: graph.LogsumexpOp, adjoint: Adjoint) -> Contributions:
    """The share of each element in the sum of exponentials; none of -infinity."""
    parts = _Reduced(op, adjoint)
    share = emit(graph.ExpOp, subtract(parts.x, parts.again(graph.LogsumexpOp, parts.x)))
    none = binary(graph.EqualOp, parts.x, float("-inf"))
    yield op.input, multiply(parts.seed, where(none, 0, share))
