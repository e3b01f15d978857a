"""Gradients of operators that write elements by tensors of indices.

Each has a gather that reads what it has written. An update outside of its axis gets nothing.
"""

from abc import ABC, abstractmethod

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    arange,
    astype,
    binary,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    multiply,
    rank_of,
    reduce,
    reshape,
    scalar,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import normalize_axis
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.symbolic import Expr, bounds, product

from .gather import clamped, clamped_tuples


def _equal(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary(graph.EqualOp, a, b)


def _and(a: ir.Value, b: ir.Value) -> ir.Value:
    return emit(graph.LogicalAndOp, a, b)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


class _Scatter(ABC):
    """An operator that writes: how to write other values, and to read where it writes."""

    input: ir.Value
    updates: ir.Value
    axes: list[int]
    """Those that indices name elements of."""

    @abstractmethod
    def write(self, into: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        """A tensor of the input's dims with updates written by the same indices."""

    @abstractmethod
    def gather(self, value: ir.Value) -> ir.Value:
        """The elements of a tensor where updates are written; any for those outside."""

    @abstractmethod
    def inside(self) -> ir.Value:
        """Whether an update is written; broadcasts to the updates."""

    def read(self, value: ir.Value) -> ir.Value:
        """The elements of a tensor of the input's dims where updates are written; any outside.

        An axis that may be empty gets an element, since updates of it are outside.
        """
        lows = [bounds(dim)[0] or 0 for dim in dims_of(value)]
        high = [int(i in self.axes and low < 1) for i, low in enumerate(lows)]
        if any(high):
            none = [0] * len(high)
            zero = scalar(0, element_of(value))
            widths = {"low": none, "high": high, "interior": none, "mode": "constant"}
            value = emit(graph.PadOp, value, zero, **widths)
        return self.gather(value)

    def winners(self) -> ir.Value:
        """Whether an update is the last that is written to its element."""
        dims = self.update_dims()
        order = reshape(arange(0, product(dims), 1, _i64()), dims)
        none = emit(graph.FullOp, scalar(-1, _i64()), shape=dims_of(self.input))
        return _equal(self.read(self.write(none, order, "none")), order)

    def update_dims(self) -> tuple[Expr, ...]:
        """The dims of what is written, once it is broadcast."""
        return dims_of(self.updates)


class _Elements(_Scatter):
    def __init__(self, op: graph.ScatterElementsOp) -> None:
        self.input, self.updates, self.indices = op.input, op.updates, op.indices
        self.axis = normalize_axis(op.attributes["axis"].value, rank_of(op.input))
        self.axes = [self.axis]
        self.clamped = clamped(op.indices, dims_of(op.input)[self.axis])

    def write(self, into: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        return emit(
            graph.ScatterElementsOp,
            into,
            self.indices,
            updates,
            axis=self.axis,
            reduction=reduction,
        )

    def gather(self, value: ir.Value) -> ir.Value:
        return emit(graph.GatherElementsOp, value, self.clamped, axis=self.axis)

    def inside(self) -> ir.Value:
        return _equal(self.clamped, astype(self.indices, _i64()))


class _Tuples(_Scatter):
    def __init__(self, op: graph.ScatterNdOp) -> None:
        self.input, self.updates, self.indices = op.input, op.updates, op.indices
        length = dims_of(op.indices)[-1].value
        assert length is not None  # a constraint of the operator
        self.axes = list(range(length))
        self.clamped = clamped_tuples(op.indices, dims_of(op.input)[:length])

    def write(self, into: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        return emit(graph.ScatterNdOp, into, self.indices, updates, reduction=reduction)

    def gather(self, value: ir.Value) -> ir.Value:
        return emit(graph.GatherNdOp, value, self.clamped, batch_dims=0)

    def inside(self) -> ir.Value:
        same = _equal(self.clamped, astype(self.indices, _i64()))
        last = rank_of(self.indices) - 1
        every = reduce(graph.AllOp, same, [last])
        return expand_dims(every, list(range(last, rank_of(self.updates))))


class _Put(_Scatter):
    def __init__(self, op: graph.IndexPutOp) -> None:
        self.input, self.updates, *self.indices = op.ins
        dims = dims_of(self.input)
        self.axes = [normalize_axis(axis, len(dims)) for axis in op.attributes["axes"]]
        self.clamped = [
            clamped(each, dims[axis]) for each, axis in zip(self.indices, self.axes, strict=True)
        ]

    def write(self, into: ir.Value, updates: ir.Value, reduction: str) -> ir.Value:
        built = graph.IndexPutOp.build(
            into, updates, *self.indices, axes=self.axes, reduction=reduction
        )
        return built.outs[0]

    def gather(self, value: ir.Value) -> ir.Value:
        return graph.IndexTensorOp.build(value, *self.clamped, axes=self.axes).outs[0]

    def inside(self) -> ir.Value:
        same = [
            _equal(own, astype(given, _i64())) for own, given in zip(self.clamped, self.indices)
        ]
        every = same[0]
        for other in same[1:]:
            every = _and(every, other)
        is_run = self.axes[-1] - self.axes[0] == len(self.axes) - 1
        after = rank_of(self.input) - len(self.axes) - (self.axes[0] if is_run else 0)
        rank = rank_of(every)
        return expand_dims(every, list(range(rank, rank + after)))

    def update_dims(self) -> tuple[Expr, ...]:
        return dims_of(self.read(self.input))


_KINDS: dict[type[ir.OpView], type] = {
    graph.ScatterElementsOp: _Elements,
    graph.ScatterNdOp: _Tuples,
    graph.IndexPutOp: _Put,
}


def scatter(
    op: graph.ScatterElementsOp | graph.ScatterNdOp | graph.IndexPutOp, adjoint: Adjoint
) -> Contributions:
    """By the reduction: what is replaced gets nothing, a sum all, an extremum shares."""
    each = _KINDS[type(op)](op)
    yield from _RULES[op.attributes["reduction"].value](each, adjoint)


def _replaced(each: _Scatter, adjoint: Adjoint) -> Contributions:
    if adjoint.wants(each.input):
        yield each.input, each.write(adjoint.seed, zeros_like(each.updates), "none")
    if adjoint.wants(each.updates):
        yield each.updates, where(each.winners(), each.read(adjoint.seed), 0)


def _added(each: _Scatter, adjoint: Adjoint) -> Contributions:
    yield each.input, adjoint.seed
    if adjoint.wants(each.updates):
        yield each.updates, where(each.inside(), each.read(adjoint.seed), 0)


def _multiplied(each: _Scatter, adjoint: Adjoint) -> Contributions:
    """The product of all other factors: without zeros, times 0 if another factor is 0."""
    updates, seed, x = widen(each.updates), widen(adjoint.seed), widen(each.input)
    ones = emit(graph.FullOp, scalar(1, element_of(x)), shape=dims_of(x))
    if adjoint.wants(each.input):
        yield each.input, multiply(seed, each.write(ones, updates, "mul"))
    if adjoint.wants(each.updates):
        zero = _equal(updates, 0)
        factors = each.write(ones, where(zero, 1, updates), "mul")
        is_zero = astype(zero, element_of(x))
        zeros = each.read(each.write(zeros_like(x), is_zero, "add"))
        all_but = divide(each.read(factors), where(zero, 1, updates))
        alone = _equal(zeros, is_zero)
        others = multiply(each.read(multiply(seed, x)), where(alone, all_but, 0))
        yield each.updates, where(each.inside(), others, 0)


def _extreme(reduction: str, each: _Scatter, adjoint: Adjoint) -> Contributions:
    """The elements that equal the result share it evenly, as in ATen's `scatter_reduce`."""
    updates, x = each.updates, each.input
    result = each.write(x, updates, reduction)
    count = element_of(widen(x))
    own = _equal(x, result)
    other = _and(_equal(each.read(result), updates), each.inside())
    other = broadcast_to(other, each.update_dims())
    equal = each.write(astype(own, count), astype(other, count), "add")
    share = divide(widen(adjoint.seed), equal)
    if adjoint.wants(x):
        yield x, where(own, share, 0)
    if adjoint.wants(updates):
        yield updates, where(other, each.read(share), 0)


_RULES = {
    "none": _replaced,
    "add": _added,
    "mul": _multiplied,
    "max": lambda each, adjoint: _extreme("max", each, adjoint),
    "min": lambda each, adjoint: _extreme("min", each, adjoint),
}
