"""Index arithmetic on lanes, and the affine maps of linalg evaluated with it.

A `Ramp` stays a Ramp under addition and scaling, and under division if no lane crosses a multiple
of the divisor; other results are vectors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.analysis.affine import operands_of
from relax_mlir.bindings import arith, ir, scf

from . import loops
from .lanes import Lane, Ramp, Repeated, Runs, Uniform, Varying, iota, splat, to_vector, value_of
from .loops import Index


@dataclass(frozen=True)
class Part:
    """Index `position` of several collapsed dims; `flat` is their row-major linear index.

    Memory that holds all of these dims contiguously is addressed by `flat` itself.
    """

    flat: Lane
    extents: tuple[Index, ...]
    position: int


IndexLane = Lane | Part

_NARROW = 1 << 30
"""Divisors up to this one are divided by in 32 bits."""
_SMALL = 1 << 30
"""Sums of indices of elements and constants up to this one wrap in no type of 32 bits."""


def evaluate(
    expression: ir.AffineExpr,
    dims: Sequence[IndexLane],
    lanes: int,
    symbols: Sequence[IndexLane] = (),
) -> IndexLane:
    """The value of an affine expression, given those of its dims and symbols."""
    if isinstance(expression, ir.AffineDimExpr):
        return dims[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return Uniform(expression.value)
    lhs, rhs = operands_of(expression)
    a = resolve(evaluate(lhs, dims, lanes, symbols), lanes)
    b = resolve(evaluate(rhs, dims, lanes, symbols), lanes)
    if isinstance(expression, ir.AffineAddExpr):
        return plus(a, b, lanes)
    if isinstance(expression, ir.AffineMulExpr):
        a, b = (a, b) if isinstance(b, Uniform) else (b, a)
        return times(a, Uniform(value_of(b)), lanes)
    if isinstance(expression, ir.AffineModExpr):
        return modulo(a, value_of(b), lanes)
    if isinstance(expression, ir.AffineFloorDivExpr):
        return quotient(a, value_of(b), lanes)
    if isinstance(expression, ir.AffineCeilDivExpr):
        return quotient(plus(a, Uniform(loops.sub(value_of(b), 1)), lanes), value_of(b), lanes)
    raise AssertionError(f"unknown affine expression {expression}")


def is_linear(expression: ir.AffineExpr) -> bool:
    """Whether it multiplies and divides by constants only, not by symbols."""
    leaf = ir.AffineDimExpr | ir.AffineSymbolExpr | ir.AffineConstantExpr
    if isinstance(expression, leaf):
        return True
    lhs, rhs = operands_of(expression)
    if not isinstance(expression, ir.AffineAddExpr):
        return is_linear(lhs) and isinstance(rhs, ir.AffineConstantExpr)
    return is_linear(lhs) and is_linear(rhs)


def resolve(lane: IndexLane, lanes: int) -> Lane:
    """The index as a Lane: a Part is computed from its linear index."""
    if not isinstance(lane, Part):
        return lane
    inner = loops.mul(*lane.extents[lane.position + 1 :])
    outer = quotient(lane.flat, inner, lanes, True)
    extent = lane.extents[lane.position]
    return outer if lane.position == 0 else modulo(outer, extent, lanes, True)


def plus(a: Lane, b: Lane, lanes: int) -> Lane:
    """a + b of indices."""
    result = add(a, b)
    if result is not None:
        return result
    return Varying(arith.addi(to_vector(a, lanes), to_vector(b, lanes)))


def times(a: Lane, b: Uniform, lanes: int) -> Lane:
    """a * b of indices."""
    if constant_of(b.value) == 1:
        return a
    result = scale(a, b.value)
    if result is not None:
        return result
    return Varying(arith.muli(to_vector(a, lanes), _splat(b.value, lanes)))


def quotient(a: Lane, divisor: Index, lanes: int, nonnegative: bool = False) -> Lane:
    """Floor of a / divisor, for a positive divisor; `nonnegative` says that a is."""
    if isinstance(divisor, int) and divisor == 1:
        return a
    if isinstance(a, Uniform) and isinstance(a.value, int) and isinstance(divisor, int):
        return Uniform(a.value // divisor)
    whole = split(a, divisor, lanes, False)
    if whole is not None:
        return whole
    if nonnegative or (isinstance(a, Ramp) and a.nonnegative):
        return _apply(arith.divui, a, divisor, lanes)
    difference = _apply(arith.subi, a, modulo(a, divisor, lanes), lanes)
    return _apply(arith.divsi, difference, divisor, lanes)


def modulo(a: Lane, divisor: Index, lanes: int, nonnegative: bool = False) -> Lane:
    """a modulo divisor, from 0 to divisor - 1, for a positive divisor."""
    if isinstance(divisor, int) and divisor == 1:
        return Uniform(0)
    if isinstance(a, Uniform) and isinstance(a.value, int) and isinstance(divisor, int):
        return Uniform(a.value % divisor)
    rest = split(a, divisor, lanes, True)
    if rest is not None:
        return rest
    if nonnegative or (isinstance(a, Ramp) and a.nonnegative):
        return _apply(arith.remui, a, divisor, lanes)
    rest = _apply(arith.remsi, a, divisor, lanes)
    shifted = _apply(arith.addi, rest, divisor, lanes)
    return _apply(arith.remui, shifted, divisor, lanes)


def _apply(function, a: Lane, b: Lane | Index, lanes: int) -> Lane:
    b = b if isinstance(b, Uniform | Ramp | Varying) else Uniform(b)
    if isinstance(a, Uniform) and isinstance(b, Uniform):
        return Uniform(function(loops.value(a.value), loops.value(b.value)))
    return Varying(function(to_vector(a, lanes), to_vector(b, lanes)))


def _splat(x: Index, lanes: int) -> ir.Value:
    return splat(loops.value(x), lanes)


def constant_of(x: Index) -> int | None:
    """The constant that x is, or None."""
    if isinstance(x, int):
        return x
    owner = x.owner
    if isinstance(owner, ir.Block) or not isinstance(owner.opview, arith.ConstantOp):
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


@dataclass(frozen=True)
class _Known:
    """What is known of an integer: a divisor, 0 for zero itself, and whether it is nonnegative."""

    align: int = 1
    nonnegative: bool = False


def _known(x: Index) -> _Known:
    """What the operations that compute an index tell of it; nothing for narrower integers."""
    constant = constant_of(x)
    if constant is not None:
        return _Known(abs(constant), constant >= 0)
    if isinstance(x, int) or not isinstance(x.type, ir.IndexType):
        return _Known()
    if isinstance(x.owner, ir.Block):
        return _known_of_loop(x, x.owner.owner.opview)
    op = x.owner.opview
    if not isinstance(op, arith.AddIOp | arith.MulIOp | arith.DivUIOp | arith.RemUIOp):
        return _Known()
    a, b = _known(op.lhs), _known(op.rhs)
    if isinstance(op, arith.DivUIOp):
        return _Known(1, a.nonnegative and b.nonnegative)
    if isinstance(op, arith.MulIOp):
        return _Known(a.align * b.align, a.nonnegative and b.nonnegative)
    if isinstance(op, arith.RemUIOp):
        return _Known(math.gcd(a.align, b.align) if a.nonnegative else 1, b.nonnegative)
    return _Known(math.gcd(a.align, b.align), a.nonnegative and b.nonnegative)


def _known_of_loop(x: ir.Value, op: ir.OpView) -> _Known:
    """What bounds and step tell of an induction variable; nothing for other arguments."""
    index = ir.BlockArgument(x).arg_number
    if isinstance(op, scf.ParallelOp):
        begin, step = op.lowerBound[index], op.step[index]
    elif isinstance(op, scf.ForOp) and index == 0:
        begin, step = op.lowerBound, op.step
    else:
        return _Known()
    first, stride = _known(begin), _known(step)
    return _Known(math.gcd(first.align, stride.align), first.nonnegative)


def add(a: Lane, b: Lane) -> Lane | None:
    """a + b of integers as a Ramp, Uniform or Repeated, or None."""
    if isinstance(a, Uniform) and isinstance(b, Uniform):
        return Uniform(_add(a.value, b.value))
    if isinstance(a, Uniform):
        a, b = b, a
    if isinstance(a, Repeated | Runs) and isinstance(b, Uniform):
        shift = splat(loops.value(b.value), ir.VectorType(a.value.type).shape[0])
        return replace(a, value=arith.addi(a.value, shift), base=_add(a.base, b.value))
    if not isinstance(a, Ramp) or isinstance(b, Varying):
        return None
    other = b.value if isinstance(b, Uniform) else b.base
    base = _add(a.base, other)
    if isinstance(b, Uniform):
        known, constant = _known(other), constant_of(other)
        align = math.gcd(a.align, known.align)
        is_small = constant is None or constant <= _SMALL
        nonnegative = a.nonnegative and known.nonnegative and is_small
        return Ramp(loops.value(base), a.step, align, nonnegative)
    if not isinstance(a.step, int) or not isinstance(b.step, int):
        return None
    step = a.step + b.step
    align = math.gcd(a.align, b.align)
    return Ramp(loops.value(base), step, align, a.nonnegative and b.nonnegative)


def scale(a: Lane, factor: Index | None) -> Lane | None:
    """a * factor of integers as a Ramp or Uniform, or None."""
    if factor is None or isinstance(a, Varying):
        return None
    constant = constant_of(factor)
    if isinstance(a, Uniform):
        return Uniform(_mul(a.value, constant if constant is not None else factor))
    if constant is not None and isinstance(a.step, int):
        base = loops.value(_mul(a.base, constant))
        step = a.step * constant
        stays = 0 <= constant <= (1 if is_narrow(base.type) else _SMALL)
        return Ramp(base, step, max(1, a.align * abs(constant)), a.nonnegative and stays)
    if not isinstance(a.base.type, ir.IndexType):
        return None
    return Ramp(loops.value(_mul(a.base, factor)), loops.mul(a.step, factor))


def is_narrow(element: ir.Type) -> bool:
    """Whether integers of a type wrap where indices do not."""
    return isinstance(element, ir.IntegerType) and element.width < 64


def split(a: Lane, by: Index, lanes: int, remainder: bool) -> Lane | None:
    """a // by or a % by of a Ramp of consecutive integers, for a constant `by`; else None."""
    divisor = constant_of(by)
    if not isinstance(a, Ramp) or divisor is None or divisor <= 0 or not a.nonnegative:
        return None
    if not (isinstance(a.step, int) and a.step == 1):
        return None
    # base and the multiples of divisor are multiples of the gcd: none is between two lanes.
    if lanes > math.gcd(a.align, divisor):
        return _split_lanes(a, divisor, lanes, remainder)
    kind = arith.RemUIOp if remainder else arith.DivUIOp
    base = kind(a.base, _like(divisor, a.base)).result
    if not remainder:
        return Uniform(base)
    return Ramp(base, a.step, math.gcd(a.align, divisor), True)


def _split_lanes(a: Ramp, divisor: int, lanes: int, remainder: bool) -> Lane | None:
    """The same, if lanes cross multiples of the divisor: without vectors of 64-bit divisions."""
    base = a.base
    if lanes % divisor == 0 and a.align % divisor == 0:
        if remainder:
            return Varying(_constants([i % divisor for i in range(lanes)], base.type))
        first = arith.divui(base, _like(divisor, base))
        steps = _constants([i // divisor for i in range(lanes)], base.type)
        return Repeated(arith.addi(splat(first, lanes), steps), first, divisor)
    if not isinstance(base.type, ir.IndexType) or divisor > _NARROW:
        return None
    narrow, kind = ir.IntegerType.get_signless(32), ir.VectorType.get([lanes], base.type)
    phase = arith.remui(base, _like(divisor, base))
    sums = arith.addi(splat(arith.index_castui(narrow, phase), lanes), iota(lanes, narrow))
    by = _constants([divisor] * lanes, narrow)
    if remainder:
        return Varying(arith.index_castui(kind, arith.remui(sums, by)))
    first = arith.divui(base, _like(divisor, base))
    steps = arith.index_castui(kind, arith.divui(sums, by))
    return Runs(arith.addi(splat(first, lanes), steps), first, phase, divisor)


def _constants(values: Sequence[int], element: ir.Type) -> ir.Value:
    """A constant vector of integers or indices."""
    kind = ir.VectorType.get([len(values)], element)
    elements = ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, x) for x in values], kind)
    return arith.constant(kind, elements)


def _add(a: Index, b: Index) -> Index:
    if isinstance(a, int) or isinstance(b, int):
        return loops.add(a, b)
    return arith.AddIOp(a, b).result


def _mul(a: Index, b: Index) -> Index:
    if isinstance(a, ir.Value) and isinstance(b, int):
        return a if b == 1 else arith.MulIOp(a, _like(b, a)).result
    return loops.mul(a, b)


def _like(x: int, other: ir.Value) -> ir.Value:
    return arith.ConstantOp(other.type, ir.IntegerAttr.get(other.type, x)).result
