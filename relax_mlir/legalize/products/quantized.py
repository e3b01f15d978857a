"""Tensor programs of block-quantised tensors.

Decoding is element-wise over the dims of the panels, with the blocks of a row as separate dims
(b, half, group, place), so that it fuses into the users of the decoded matrix.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from relax_mlir.bindings import arith, ir, linalg, math, tensor
from relax_mlir.dialects.graph import (
    DequantizeBlocksOp,
    DequantizeOp,
    DequantizeRowsOp,
    QuantizeBlocksOp,
)
from relax_mlir.dialects.graph.quantized import BLOCK, NEST, PANEL, PARTS, SCHEMES, Scheme

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
from ..movement.index import clamped
from ..scalars import add, divide, maximum, minimum, multiply, subtract

Body = Callable[..., ir.Value]
SMALLEST = 1e-36
"""Magnitude below which 127 over it overflows f32."""
SPLIT = (2, 4, 4)
"""A block of 32 as halves, groups and places within them: the dims of panels."""


def dequantize(op: DequantizeOp, kernel: KernelBuilder) -> None:
    """Decodes panels over (p, r, b, half, group, place), a reshape of the matrix."""
    scheme = SCHEMES[op.attributes["scheme"].value]
    whole = _expand(kernel.outs[0], [[PANEL], [*SPLIT]])
    p, r, b, half, group, place = (ir.AffineExpr.get_dim(i) for i in range(6))
    divided = partial(ir.AffineExpr.get_floor_div, b)
    indices_ = _part_indices(scheme, p, r, b, half, group, place, divided)
    maps = [affine_map(6, at) for at in indices_.values()]
    maps.append(affine_map(6, range(6)))

    def body(*stored: ir.Value) -> ir.Value:
        indices = [linalg.IndexOp(i).result for i in (3, 4)] if scheme.bits < 8 else [None, None]
        return _decode(scheme, dict(zip(indices_, stored)), *indices)

    decoded = generic(_ordered(op, kernel.ins, indices_), [whole], maps, [PARALLEL] * 6, body)[0]
    kernel.finish(_collapse(decoded, kernel.outs[0], [1, 3]))


def dequantize_rows(op: DequantizeRowsOp, kernel: KernelBuilder) -> None:
    """Decodes the rows of the indices, element by element."""
    scheme = SCHEMES[op.attributes["scheme"].value]
    indices, *matrix = kernel.ins
    out = kernel.outs[0]
    rows = arith.MulIOp(dim(matrix[0], 0), index(PANEL)).result
    last = arith.SubIOp(rows, index(1)).result

    def body(picked: ir.Value, _: ir.Value) -> ir.Value:
        row = clamped(picked, last)
        p = arith.DivUIOp(row, index(PANEL)).result
        r = arith.RemUIOp(row, index(PANEL)).result
        b, half, group, place = (linalg.IndexOp(i).result for i in range(1, 5))

        def divided(by: int) -> ir.Value:
            return arith.DivUIOp(b, index(by)).result

        places = _part_indices(scheme, p, r, b, half, group, place, divided)
        operands = _ordered(op, matrix, places)
        stored = {
            name: tensor.ExtractOp(operand, list(at)).result
            for operand, (name, at) in zip(operands, places.items())
        }
        return _decode(scheme, stored, half, group)

    whole = _expand(out, [[], [*SPLIT]])
    maps = [affine_map(5, [0]), affine_map(5, range(5))]
    decoded = generic([indices], [whole], maps, [PARALLEL] * 5, body)[0]
    kernel.finish(_collapse(decoded, out, [0, 3]))


def _part_indices(scheme: Scheme, p, r, b, half, group, place, divided) -> dict[str, tuple]:
    """The indices of each part of a matrix, of any type; `divided` divides the block."""
    by_row = (p, b if scheme.shared == 1 else divided(scheme.shared), r)
    outer = divided(NEST) if scheme.is_nested else None
    indices = {
        "data": (p, b, half, group, r, place) if scheme.bits == 8 else (p, b, group, r, place),
        "scale": by_row if scheme.scales == 1 else (p, b, half, r),
        "minimum": by_row,
        "high": (p, b, r, place) if scheme.bits == 5 else (p, b, half, r, place),
        "outer_scale": (p, outer, r),
        "outer_minimum": (p, outer, r),
    }
    return {name: indices[name] for name in scheme.parts(0, 0)}


def _ordered(op: ir.OpView, ins: Sequence[ir.Value], names: Iterable[str]) -> list[ir.Value]:
    """The operands of a matrix, in the order of `names`; `ins` are those of the op."""
    present = [name for name in PARTS if getattr(op, name) is not None]
    operands = dict(zip(present, ins[-len(present) :], strict=True))
    return [operands[name] for name in names]


def quantize_blocks(op: QuantizeBlocksOp, kernel: KernelBuilder) -> None:
    """The extremes of each block, factors from them, then rounded quotients."""
    source = kernel.ins[0]
    values, *factors = kernel.outs
    rank = ir.RankedTensorType(source.type).rank
    blocks = _expand(source, [[]] * (rank - 1) + [[BLOCK]])
    element, block = affine_map(rank + 1, range(rank + 1)), affine_map(rank + 1, range(rank))
    rounding = _SYMMETRIC if op.attributes["symmetric"].value else _BETWEEN_EXTREMES
    shape = [dim(factors[0], i) if factors[0].type.is_dynamic_dim(i) else factors[0].type.shape[i]
             for i in range(rank)]  # fmt: skip

    firsts = [fill(first, empty(shape, first.type)) for first in rounding.firsts()]
    maps = [element, *([block] * len(firsts))]
    kinds = [PARALLEL] * rank + [REDUCTION]
    extremes = generic([blocks], firsts, maps, kinds, rounding.combine)
    same = [affine_map(rank, range(rank))] * (len(extremes) + 1)
    factors = [
        generic(extremes, [out], same, [PARALLEL] * rank, lambda *x, body=body: body(*x[:-1]))[0]
        for out, body in zip(factors, rounding.factors, strict=True)
    ]

    def rounded_element(x: ir.Value, *operands: ir.Value) -> ir.Value:
        return arith.FPToSIOp(_i8(), _bounded(rounding.quotient(x, *operands[:-1]))).result

    whole = _expand(values, [[]] * (rank - 1) + [[BLOCK]])
    maps = [element, *([block] * len(extremes)), element]
    rounded = generic([blocks, *extremes], [whole], maps, [PARALLEL] * (rank + 1), rounded_element)[
        0
    ]
    kernel.finish(_collapse(rounded, values, [0] * (rank - 1) + [1]), *factors)


@dataclass(frozen=True)
class _Rounding:
    """The rounding of a block to 8 bits: bodies of the loops.

    Extremes are initialised by `firsts` and updated by `combine`; `factors` and `quotient` are
    computed from them.
    """

    firsts: Callable[[], list[ir.Value]]
    combine: Callable[..., ir.Value | list[ir.Value]]
    factors: tuple[Body, ...]
    quotient: Body


def _rounded(x: ir.Value, levels: int, width: ir.Value) -> ir.Value:
    """x in units of width / levels, rounded; x where the width is 0."""
    limit = scalar(_f32(), levels)
    none = arith.CmpFOp(arith.CmpFPredicate.OLT, width, scalar(_f32(), SMALLEST)).result
    factor = divide(limit, arith.SelectOp(none, limit, width).result)
    return math.RoundEvenOp(multiply(x, factor)).result


def _bounded(steps: ir.Value) -> ir.Value:
    """Steps from -127 to 127; -127 for NaN, which cannot be converted to an integer."""
    above = arith.MaxNumFOp(steps, scalar(_f32(), -127)).result
    return minimum(above, scalar(_f32(), 127))


def _over(width: ir.Value, levels: int) -> ir.Value:
    """width / levels."""
    return divide(width, scalar(_f32(), levels))


def _ordered_bits(bits: ir.Value) -> ir.Value:
    """Bits of a float as an integer with the same order, and back; NaN is beyond infinity.

    Comparing integers takes one instruction; comparing floats, with NaN propagated, takes seven.
    """
    sign = arith.ShRSIOp(bits, scalar(bits.type, 31)).result
    flipped = arith.AndIOp(sign, scalar(bits.type, 0x7FFFFFFF)).result
    return arith.XOrIOp(bits, flipped).result


def _extremes(x: ir.Value, high: ir.Value, low: ir.Value) -> list[ir.Value]:
    key = _ordered_bits(arith.BitcastOp(_i32(), x).result)
    return [maximum(key, high), minimum(key, low)]


def _floats(*keys: ir.Value) -> list[ir.Value]:
    return [_float(key) for key in keys]


def _float(key: ir.Value) -> ir.Value:
    return arith.BitcastOp(_f32(), _ordered_bits(key)).result


def _half(x: ir.Value) -> ir.Value:
    return multiply(x, scalar(_f32(), 0.5))


def _half_range(high: ir.Value, low: ir.Value) -> ir.Value:
    """Half of the range of the block; the whole may be beyond f32."""
    above, below = _floats(high, low)
    return subtract(_half(above), _half(below))


def _scale(high: ir.Value, low: ir.Value) -> ir.Value:
    """The range of the block over 254."""
    return _over(_half_range(high, low), 127)


def _offset(high: ir.Value, low: ir.Value) -> ir.Value:
    """The value of the middle step, 0."""
    return add(_float(low), _half_range(high, low))


def _steps(x: ir.Value, high: ir.Value, low: ir.Value) -> ir.Value:
    """Steps above the least value, from -127 on."""
    above_least = subtract(_half(x), _half(_float(low)))
    steps = _rounded(above_least, 254, _half_range(high, low))
    return subtract(steps, scalar(_f32(), 127))


def _magnitude(x: ir.Value, top: ir.Value) -> ir.Value:
    bits = arith.BitcastOp(_i32(), x).result
    return maximum(arith.AndIOp(bits, scalar(_i32(), 0x7FFFFFFF)).result, top)


_SYMMETRIC = _Rounding(
    lambda: [scalar(_i32(), 0)],
    _magnitude,
    (lambda top: _over(_float(top), 127),),
    lambda x, top: _rounded(x, 127, _float(top)),
)
_BETWEEN_EXTREMES = _Rounding(
    lambda: [scalar(_i32(), -(1 << 31)), scalar(_i32(), (1 << 31) - 1)],
    _extremes,
    (_scale, _offset),
    _steps,
)


def dequantize_blocks(op: DequantizeBlocksOp, kernel: KernelBuilder) -> None:
    """values * scale of the block, plus its offset."""
    values, *factors = kernel.ins
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    split: list[list[int]] = [[]] * (rank - 1) + [[*SPLIT]]
    element, block = affine_map(rank + 3, range(rank + 3)), affine_map(rank + 3, range(rank))

    def decoded_element(q: ir.Value, scale: ir.Value, *others: ir.Value) -> ir.Value:
        product = multiply(arith.SIToFPOp(_f32(), q).result, scale)
        return add(product, others[0]) if len(factors) == 2 else product

    decoded = generic(
        [_expand(values, split), *factors], [_expand(out, split)],
        [element, *([block] * len(factors)), element], [PARALLEL] * (rank + 3), decoded_element,
    )[0]  # fmt: skip
    kernel.finish(_collapse(decoded, out, [0] * (rank - 1) + [3]))


def _decode(scheme: Scheme, stored: dict[str, ir.Value], half: Any, group: Any) -> ir.Value:
    """scale * (q - zero) + minimum."""
    f32 = ir.F32Type.get()
    q = stored["data"]
    if scheme.bits < 8:
        q = _bits(q, _scaled(half, 4), 4)
    if scheme.bits == 5:
        at = arith.AddIOp(_scaled(half, 4), arith.IndexCastOp(q.type, group).result).result
        q = _joined(q, _bits(stored["high"], at, 1))
    elif scheme.bits == 6:
        q = _joined(q, _bits(stored["high"], _scaled(group, 2), 2))
    if scheme.zero:
        q = arith.SubIOp(q, scalar(q.type, scheme.zero)).result

    def factor(name: str) -> ir.Value:
        if not scheme.is_nested:
            return arith.ExtFOp(f32, stored[name]).result
        outer = arith.ExtFOp(f32, stored[f"outer_{name}"]).result
        return arith.MulFOp(outer, arith.SIToFPOp(f32, stored[name]).result).result

    product = arith.MulFOp(arith.SIToFPOp(f32, q).result, factor("scale")).result
    return arith.AddFOp(product, factor("minimum")).result if scheme.has_minimum else product


def _scaled(position: ir.Value, by: int) -> ir.Value:
    """An index times a constant, in 8 bits."""
    i8 = ir.IntegerType.get_signless(8)
    return arith.MulIOp(arith.IndexCastOp(i8, position).result, scalar(i8, by)).result


def _bits(byte: ir.Value, first: ir.Value, count: int) -> ir.Value:
    """`count` bits of a byte."""
    shifted = arith.ShRUIOp(byte, first).result
    return arith.AndIOp(shifted, scalar(byte.type, (1 << count) - 1)).result


def _joined(low: ir.Value, high: ir.Value) -> ir.Value:
    """Joins high bits with four low ones."""
    return arith.OrIOp(low, arith.ShLIOp(high, scalar(high.type, 4)).result).result


def _expand(value: ir.Value, inner: list[list[int]]) -> ir.Value:
    """Splits the dims of a tensor: dim i is divided by the extents `inner[i]`."""
    type_ = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape: list[int] = []
    groups, sizes = [], []
    for axis, parts in enumerate(inner):
        count = 1
        for part in parts:
            count *= part
        groups.append([len(shape) + i for i in range(1 + len(parts))])
        if type_.is_dynamic_dim(axis):
            extent = dim(value, axis)
            sizes.append(arith.DivUIOp(extent, index(count)).result if parts else extent)
            shape += [dynamic, *parts]
        else:
            shape += [type_.get_dim_size(axis) // count, *parts]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(result, value, _groups(groups), sizes, shape).result


def _collapse(value: ir.Value, like: ir.Value, extra: list[int]) -> ir.Value:
    """Collapses a tensor to the dims of `like`, of which dim i has `extra[i]` more dims in it."""
    groups, at = [], 0
    for count in extra:
        groups.append([at + i for i in range(1 + count)])
        at += 1 + count
    return tensor.CollapseShapeOp(like.type, value, _groups(groups)).result


def _i8() -> ir.Type:
    return ir.IntegerType.get_signless(8)


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _f32() -> ir.Type:
    return ir.F32Type.get()


def _groups(groups: list[list[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group]) for group in groups]
    )
