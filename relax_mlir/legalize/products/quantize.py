"""The tensor program that quantises a matrix, in panels.

    extremes of each group of values    reductions over the matrix in its layout
    scale, minimum [p, group, r]        from those of row 16 p + r
    data [p, b, (half,) group, r, place]

The last two access rows of a matrix that may be stored by columns, so they gather.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, linalg, math, tensor
from relax_mlir.dialects.graph import QuantizeOp
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, SCHEMES, Scheme

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    empty,
    fill,
    generic,
    index,
    scalar,
)
from ..scalars import add, divide, maximum, minimum, negate, subtract

Body = Callable[..., ir.Value]
_INFINITY = float("inf")
_MAX_FACTOR = 65504
"""The greatest finite value of f16."""


def quantize(op: QuantizeOp, kernel: KernelBuilder) -> None:
    """The extremes of each group, factors from them, then rounded quotients."""
    scheme = SCHEMES[op.attributes["scheme"].value]
    matrix = _Matrix(kernel.ins[0], op.attributes["axis"].value, scheme.group)
    data, *factors = kernel.outs
    if scheme.bits == 8:
        extremes = [matrix.reduced(0, lambda x, top: maximum(math.AbsFOp(x).result, top))]
    else:
        starts = (-_INFINITY, _INFINITY) if scheme.has_minimum else (0, 0)
        extremes = [matrix.reduced(starts[0], maximum), matrix.reduced(starts[1], minimum)]
    factors = [
        matrix.factors(extremes, out, body)
        for out, body in zip(factors, (_scale(scheme), lambda _, low: low))
    ]
    kernel.finish(matrix.quotients(scheme, factors, data), *factors)


@dataclass(frozen=True)
class _Matrix:
    """A matrix whose blocks are along `axis`, and its rows along the other one.

    `group` values of a row share extremes, and so a scale.
    """

    source: ir.Value
    axis: int
    group: int

    @property
    def rows(self) -> ir.Value:
        """The count of rows."""
        return dim(self.source, 1 - self.axis)

    def reduced(self, start: float, combine: Body) -> ir.Value:
        """The elements of each group combined, f32[rows, groups], or [groups, rows] for axis 0."""
        type_ = ir.RankedTensorType(self.source.type)
        dynamic = ir.ShapedType.get_dynamic_size()
        groups = type_.get_dim_size(self.axis) // self.group
        count = type_.get_dim_size(1 - self.axis)
        sizes = [self.rows] if count == dynamic else []
        extent = sizes[0] if sizes else count
        split, remaining, nested = [groups, self.group, count], [groups, extent], [[0, 1], [2]]
        if self.axis:
            split, remaining, nested = [count, groups, self.group], [extent, groups], [[0], [1, 2]]
        parts = tensor.ExpandShapeOp(
            ir.RankedTensorType.get(split, type_.element_type),
            self.source, _nested(nested), sizes, split,
        ).result  # fmt: skip
        first = fill(scalar(ir.F32Type.get(), start), empty(remaining, ir.F32Type.get()))
        read = affine_map(3, [0, 1, 2] if self.axis else [0, 2, 1])
        kinds = [PARALLEL, PARALLEL, REDUCTION]
        maps = [read, affine_map(3, [0, 1])]
        return generic([parts], [first], maps, kinds, lambda x, y: combine(_as_f32(x), y))[0]

    def factors(self, extremes: list[ir.Value], out: ir.Value, body: Body) -> ir.Value:
        """A factor for each group of a panel's rows, from the extremes; 0 past the last row."""

        def element(_: ir.Value) -> ir.Value:
            p, b, r = (linalg.IndexOp(i).result for i in range(3))
            row, inside = self._row(p, r)
            at = [row, b] if self.axis else [b, row]
            values = [tensor.ExtractOp(extreme, at).result for extreme in extremes]
            factor = _bounded(body(*values), values)
            narrow = arith.TruncFOp(ir.F16Type.get(), factor).result
            return arith.SelectOp(inside, narrow, scalar(narrow.type, 0)).result

        return generic([], [out], [affine_map(3, range(3))], [PARALLEL] * 3, element)[0]

    def quotients(self, scheme: Scheme, factors: list[ir.Value], out: ir.Value) -> ir.Value:
        """The rounded quotients in panels; 0 past the last row."""
        rank = ir.RankedTensorType(out.type).rank
        i8 = ir.IntegerType.get_signless(8)

        def element(*stored: ir.Value) -> ir.Value:
            at = [linalg.IndexOp(i).result for i in range(rank)]
            p, b, group, r, place = at[0], at[1], *at[-3:]
            row, inside = self._row(p, r)
            own_factors = [_as_f32(x) for x in stored[:-1]]

            def quantised(half: ir.Value) -> ir.Value:
                column = _sum(_times(b, BLOCK), _times(half, 16), _times(group, 4), place)
                where = [row, column] if self.axis else [column, row]
                x = _as_f32(tensor.ExtractOp(self.source, where).result)
                return arith.FPToSIOp(i8, _quotient(scheme, x, *own_factors)).result

            if scheme.bits == 8:
                packed = quantised(at[2])
            else:
                low, high = quantised(index(0)), quantised(index(1))
                packed = arith.OrIOp(low, arith.ShLIOp(high, scalar(i8, 4)).result).result
            return arith.SelectOp(inside, packed, scalar(i8, 0)).result

        shared = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(1), scheme.shared)
        by_row = affine_map(rank, [0, shared if scheme.shared > 1 else 1, rank - 2])
        maps = [*([by_row] * len(factors)), affine_map(rank, range(rank))]
        return generic(factors, [out], maps, [PARALLEL] * rank, element)[0]

    def _row(self, p: ir.Value, r: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The index of row r of panel p, clamped, and whether the row exists."""
        row, rows = _sum(_times(p, PANEL), r), self.rows
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, row, rows).result
        last = arith.SubIOp(rows, index(1)).result
        return arith.MinUIOp(row, last).result, inside


def _scale(scheme: Scheme) -> Body:
    """The scale of a group from its extremes."""

    def over(x: ir.Value, by: float) -> ir.Value:
        return divide(x, scalar(x.type, by))

    def furthest(high: ir.Value, low: ir.Value) -> ir.Value:
        above = arith.CmpFOp(arith.CmpFPredicate.OGT, high, negate(low)).result
        return arith.SelectOp(above, high, low).result

    if scheme.bits == 8:
        return lambda greatest: over(greatest, 127)
    if scheme.has_minimum:
        return lambda high, low: over(subtract(high, low), 15)
    return lambda high, low: over(furthest(high, low), -8)


def _bounded(factor: ir.Value, extremes: Sequence[ir.Value]) -> ir.Value:
    """A factor clamped to the range of f16, unless an extreme is infinite or NaN."""
    infinity = scalar(factor.type, _INFINITY)
    bounded = minimum(factor, scalar(factor.type, _MAX_FACTOR))
    bounded = maximum(bounded, scalar(factor.type, -_MAX_FACTOR))
    for extreme in extremes:
        magnitude = math.AbsFOp(extreme).result
        finite = arith.CmpFOp(arith.CmpFPredicate.OLT, magnitude, infinity).result
        bounded = arith.SelectOp(finite, bounded, factor).result
    return bounded


def _quotient(
    scheme: Scheme, x: ir.Value, scale: ir.Value, least: ir.Value | None = None
) -> ir.Value:
    """x minus minimum or zero, in units of the scale, rounded, in f32."""
    zero = scalar(x.type, 0)
    if least is not None:
        x = subtract(x, least)
    none = arith.CmpFOp(arith.CmpFPredicate.OEQ, scale, zero).result
    one = arith.SelectOp(none, scalar(x.type, 1), scale).result
    rounded = math.RoundEvenOp(divide(arith.SelectOp(none, zero, x).result, one)).result
    low, high = (-127, 127) if scheme.bits == 8 else (-scheme.zero, 15 - scheme.zero)
    # Replaces NaN, which cannot be converted to an integer.
    bounded = arith.MaxNumFOp(rounded, scalar(x.type, low)).result
    rounded = minimum(bounded, scalar(x.type, high))
    return add(rounded, scalar(x.type, scheme.zero)) if scheme.zero else rounded


def _as_f32(x: ir.Value) -> ir.Value:
    f32 = ir.F32Type.get()
    if x.type == f32:
        return x
    narrows = isinstance(x.type, ir.F64Type)
    return (arith.TruncFOp if narrows else arith.ExtFOp)(f32, x).result


def _sum(first: ir.Value, *others: ir.Value) -> ir.Value:
    for other in others:
        first = arith.AddIOp(first, other).result
    return first


def _times(x: ir.Value, by: int) -> ir.Value:
    return arith.MulIOp(x, index(by)).result


def _nested(groups: list[list[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group]) for group in groups]
    )
