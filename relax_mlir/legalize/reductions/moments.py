"""Tensor programs of reductions in two passes: the second takes differences from the first."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects.graph import LogsumexpOp, ReductionOp, StdOp, VarianceOp, reduced_axes

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    fill,
    generic,
    index,
    scalar,
)
from ..scalars import add, compute_type, divide, exp, from_compute, multiply, subtract, to_compute
from .statistical import drop_unit_dims, restore_unit_dims


class _Passes:
    """Reductions of one input, and what is made of their results."""

    def __init__(self, op: ReductionOp, kernel: KernelBuilder) -> None:
        self.kernel, self.source = kernel, kernel.ins[0]
        type_ = ir.RankedTensorType(self.source.type)
        rank = type_.rank
        self.axes = reduced_axes(list(ir.DenseI64ArrayAttr(op.attributes["axes"])), rank)
        self.remaining = [axis for axis in range(rank) if axis not in self.axes]
        self.element, self.compute = type_.element_type, compute_type(type_.element_type)
        self.shape = [
            dim(self.source, i) if type_.shape[i] < 0 else type_.shape[i] for i in self.remaining
        ]
        self.iterators = [REDUCTION if i in self.axes else PARALLEL for i in range(rank)]
        self.every = affine_map(rank, list(range(rank)))
        self.reduced = affine_map(rank, self.remaining)

    def reduce(
        self, before: Sequence[ir.Value], start: float, body: Callable[..., ir.Value]
    ) -> ir.Value:
        """Combines elements; `body` takes one, what was reduced `before`, and the accumulator."""
        init = fill(scalar(self.compute, start), empty(self.shape, self.compute))
        maps = [self.every, *[self.reduced] * len(before), self.reduced]

        def wide(x: ir.Value, *rest: ir.Value) -> ir.Value:
            return body(to_compute(x), *rest)

        return generic([self.source, *before], [init], maps, self.iterators, wide)[0]

    def finish(self, values: Sequence[ir.Value], body: Callable[..., ir.Value]) -> None:
        """Computes the result from what was reduced."""
        out = self.kernel.outs[0]
        target = drop_unit_dims(out, self.remaining, self.axes)

        def narrow(*xs: ir.Value) -> ir.Value:
            return from_compute(body(*xs), self.element)

        made = elementwise(values, target, narrow)
        self.kernel.finish(restore_unit_dims(made, out, self.remaining, self.axes))

    def count(self) -> ir.Value:
        """How many elements each result is made of."""
        count = index(1)
        for axis in self.axes:
            count = arith.MulIOp(count, dim(self.source, axis)).result
        return arith.IndexCastOp(ir.IntegerType.get_signless(64), count).result


def variance(op: VarianceOp, kernel: KernelBuilder) -> None:
    """The sum, then that of squared differences from the mean."""
    _variance(op, kernel, lambda x: x)


def std(op: StdOp, kernel: KernelBuilder) -> None:
    """The square root of the variance."""
    _variance(op, kernel, lambda x: math.SqrtOp(x).result)


def _variance(
    op: VarianceOp | StdOp, kernel: KernelBuilder, finish: Callable[[ir.Value], ir.Value]
) -> None:
    passes = _Passes(op, kernel)
    count = passes.count()
    correction = scalar(count.type, op.attributes["correction"].value)
    rest = arith.MaxSIOp(arith.SubIOp(count, correction).result, scalar(count.type, 0)).result
    length, divisor = (arith.SIToFPOp(passes.compute, n).result for n in (count, rest))

    def square(x: ir.Value, total: ir.Value, carried: ir.Value) -> ir.Value:
        difference = subtract(x, divide(total, length))
        return add(carried, multiply(difference, difference))

    total = passes.reduce([], 0, lambda x, carried: add(carried, x))
    squares = passes.reduce([total], 0, square)
    passes.finish([squares], lambda x: finish(divide(x, divisor)))


def logsumexp(op: LogsumexpOp, kernel: KernelBuilder) -> None:
    """The maximum, then the sum of exponentials of differences from it, if it is finite."""
    passes = _Passes(op, kernel)

    def greater(x: ir.Value, top: ir.Value) -> ir.Value:
        is_greater = arith.CmpFOp(arith.CmpFPredicate.OGT, x, top).result
        return arith.SelectOp(is_greater, x, top).result

    def finite(top: ir.Value) -> ir.Value:
        infinity = scalar(top.type, float("inf"))
        is_finite = arith.CmpFOp(arith.CmpFPredicate.OLT, math.AbsFOp(top).result, infinity).result
        return arith.SelectOp(is_finite, top, scalar(top.type, 0)).result

    def power(x: ir.Value, top: ir.Value, carried: ir.Value) -> ir.Value:
        return add(carried, exp(subtract(x, finite(top))))

    top = passes.reduce([], float("-inf"), greater)
    total = passes.reduce([top], 0, power)
    passes.finish([top, total], lambda t, x: add(finite(t), math.LogOp(x).result))
