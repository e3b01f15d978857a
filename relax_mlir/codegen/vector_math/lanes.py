"""Values that build IR: scalars and vectors with Python's operators.

    polynomial(x * x, (1.0, -0.5)) + x      ->      arith.mulf, math.fma, arith.addf, constants

Ops are built at the current insertion point and location. A Python number combined with a `Lanes`
is a constant of its type, the same in every lane. Comparisons are of floats, false with a NaN;
`equals` and `differs` compare integers too.
"""

import math as pymath
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from relax_mlir.bindings import arith, ir, math, vector
from relax_mlir.target import Cpu

Scalar = int | float


@dataclass(frozen=True)
class Lanes:
    """A float, integer or i1 value, scalar or vector of any shape, for a CPU."""

    value: ir.Value
    cpu: Cpu

    def wrap(self, value: ir.Value) -> "Lanes":
        """Another value for the same CPU."""
        return Lanes(value, self.cpu)

    @property
    def type(self) -> Any:
        """The MLIR type, a scalar's or a vector's."""
        return self.value.type

    @property
    def element(self) -> Any:
        """The MLIR type of one lane."""
        kind = self.type
        return kind.element_type if isinstance(kind, ir.VectorType) else kind

    @property
    def width(self) -> int:
        """Bits of a lane."""
        return self.element.width

    @property
    def mantissa_bits(self) -> int:
        """Stored bits of a float lane's mantissa."""
        return {32: 23, 64: 52}[self.width]

    @property
    def exponent_bias(self) -> int:
        """The exponent field of 1.0 in a float lane."""
        return {32: 127, 64: 1023}[self.width]

    @property
    def is_float(self) -> bool:
        """Whether lanes are floats."""
        return isinstance(self.element, ir.FloatType)

    def like(self, value: Scalar) -> "Lanes":
        """A constant of this type."""
        return self.wrap(_constant(self.type, value))

    @property
    def splat(self) -> Scalar | None:
        """The value of all lanes of a splat constant; None if this is not one."""
        return splat_of(self.value)

    def retyped(self, element: ir.Type) -> ir.Type:
        """This type with another element type."""
        kind = self.type
        if not isinstance(kind, ir.VectorType):
            return element
        scalable = list(kind.scalable_dims) if kind.scalable else None
        return ir.VectorType.get(kind.shape, element, scalable=scalable)

    def bits(self) -> "Lanes":
        """The bit patterns of float lanes, integers of the same width."""
        integer = ir.IntegerType.get_signless(self.width)
        return self.wrap(arith.bitcast(self.retyped(integer), self.value))

    def float_from_bits(self) -> "Lanes":
        """The floats whose bit patterns these integers are."""
        element = ir.F32Type.get() if self.width == 32 else ir.F64Type.get()
        return self.wrap(arith.bitcast(self.retyped(element), self.value))

    def converted(self, element: ir.Type) -> "Lanes":
        """The same values as floats of another type, rounded to nearest if narrower."""
        if element == self.element:
            return self
        kind = self.retyped(element)
        if self.splat is not None:
            return self.wrap(_constant(kind, float(self.splat)))
        if not self.is_float:
            return self.wrap(arith.sitofp(kind, self.value))
        build = arith.extf if ir.FloatType(element).width > self.width else arith.truncf
        return self.wrap(build(kind, self.value))

    def narrowed(self, element: ir.Type) -> "Lanes":
        """The low bits of integer lanes."""
        if element == self.element:
            return self
        return self.wrap(arith.trunci(self.retyped(element), self.value))

    def _binary(self, floats, integers, other: "Lanes | Scalar", swap: bool = False) -> "Lanes":
        other = other if isinstance(other, Lanes) else self.like(other)
        left, right = (other, self) if swap else (self, other)
        build = floats if self.is_float else integers
        return self.wrap(build(left.value, right.value))

    def _compare(self, predicate: str, other: "Lanes | Scalar") -> "Lanes":
        other = other if isinstance(other, Lanes) else self.like(other)
        if self.is_float:
            kind = getattr(arith.CmpFPredicate, "O" + predicate)
            return self.wrap(arith.cmpf(kind, self.value, other.value))
        kind = getattr(arith.CmpIPredicate, predicate.lower())
        return self.wrap(arith.cmpi(kind, self.value, other.value))

    def __add__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(arith.addf, arith.addi, other)

    def __radd__(self, other: Scalar) -> "Lanes":
        return self._binary(arith.addf, arith.addi, other)

    def __sub__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(arith.subf, arith.subi, other)

    def __rsub__(self, other: Scalar) -> "Lanes":
        return self._binary(arith.subf, arith.subi, other, swap=True)

    def __mul__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(arith.mulf, arith.muli, other)

    def __rmul__(self, other: Scalar) -> "Lanes":
        return self._binary(arith.mulf, arith.muli, other)

    def __truediv__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(arith.divf, None, other)

    def __rtruediv__(self, other: Scalar) -> "Lanes":
        return self._binary(arith.divf, None, other, swap=True)

    def __neg__(self) -> "Lanes":
        return self.wrap(arith.negf(self.value))

    def __and__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(None, arith.andi, other)

    def __or__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(None, arith.ori, other)

    def __xor__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(None, arith.xori, other)

    def __lshift__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._binary(None, arith.shli, other)

    def __rshift__(self, other: "Lanes | Scalar") -> "Lanes":
        """Logical shift right."""
        return self._binary(None, arith.shrui, other)

    def __lt__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._compare("LT", other)

    def __le__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._compare("LE", other)

    def __gt__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._compare("GT", other)

    def __ge__(self, other: "Lanes | Scalar") -> "Lanes":
        return self._compare("GE", other)

    def equals(self, other: "Lanes | Scalar") -> "Lanes":
        """Lane by lane, i1; false where either is NaN."""
        return self._compare("EQ", other)

    def differs(self, other: "Lanes | Scalar") -> "Lanes":
        """Lane by lane, i1; false where either is NaN."""
        return self._compare("NE", other)


def splat_of(value: ir.Value) -> Any:
    """The value of all lanes of a splat constant; None if this is not one."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if not isinstance(value.type, ir.VectorType):
        return attribute.value
    return attribute.get_splat_value().value if attribute.is_splat else None


def _constant(kind: Any, number: Any) -> ir.Value:
    """A splat constant of a type; integers may be given as signed or unsigned."""
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(element, number)
    else:
        bits = number & ((1 << element.width) - 1)
        signed = bits - (1 << element.width) if bits >> (element.width - 1) else bits
        attribute = ir.IntegerAttr.get(element, signed)
    if isinstance(kind, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return arith.constant(kind, attribute)


def fma(a: Lanes, b: Lanes | Scalar, c: Lanes | Scalar) -> Lanes:
    """`a * b + c` of floats, rounded once."""
    b = b if isinstance(b, Lanes) else a.like(b)
    c = c if isinstance(c, Lanes) else a.like(c)
    return a.wrap(math.fma(a.value, b.value, c.value))


def select(condition: Lanes, yes: Lanes, no: Lanes | Scalar) -> Lanes:
    """`yes` where the condition holds, else `no`."""
    no = no if isinstance(no, Lanes) else yes.like(no)
    return yes.wrap(arith.select(condition.value, yes.value, no.value))


def clamp(x: Lanes, low: float | None, high: float | None) -> Lanes:
    """`x` clamped to [low, high], one machine instruction per bound; NaN propagates."""
    if low is not None:
        bound = x.like(low)
        x = select(bound > x, bound, x)
    if high is not None:
        bound = x.like(high)
        x = select(bound < x, bound, x)
    return x


def absolute(x: Lanes) -> Lanes:
    """`|x|` of floats."""
    return x.wrap(math.absf(x.value))


def copysign(magnitude: Lanes, sign: Lanes) -> Lanes:
    """`magnitude` with the sign bit of `sign`."""
    return magnitude.wrap(math.copysign(magnitude.value, sign.value))


def sqrt(x: Lanes) -> Lanes:
    """Square root, correctly rounded."""
    return x.wrap(math.sqrt(x.value))


def floor(x: Lanes) -> Lanes:
    """The greatest integer not above `x`."""
    return x.wrap(math.floor(x.value))


def truncate(x: Lanes) -> Lanes:
    """The nearest integer towards zero."""
    return x.wrap(math.trunc(x.value))


def round_even(x: Lanes) -> Lanes:
    """The nearest integer, ties to even."""
    return x.wrap(math.roundeven(x.value))


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """`c[0] + c[1] x + c[2] x^2 + ...` by Horner's rule in fused multiply-adds."""
    *lower, highest = coefficients
    total = x.like(highest)
    for coefficient in reversed(lower):
        total = fma(total, x, coefficient)
    return total


def any_lane(condition: Lanes) -> ir.Value:
    """Whether the i1 `condition` holds in any lane."""
    kind = condition.type
    if not isinstance(kind, ir.VectorType):
        return condition.value
    lanes = condition.value
    if kind.rank != 1:
        lanes = vector.shape_cast(
            ir.VectorType.get([pymath.prod(kind.shape)], kind.element_type), lanes
        )
    return vector.reduction(kind.element_type, vector.CombiningKind.OR, lanes)


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded sum and its error; exact."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def fast_two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """`two_sum` for |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded product and its error; exact unless that is below the range."""
    product = a * b
    return product, fma(a, b, -product)


def truth_as_integer(condition: Lanes, like: Lanes) -> Lanes:
    """1 where the i1 condition holds, else 0, as integers of another value's type."""
    return condition.wrap(arith.extui(like.type, condition.value))


def has_lanes(kind: ir.Type) -> bool:
    """Whether a type is a scalar or vector with an element type that has expansions."""
    element = kind.element_type if isinstance(kind, ir.ShapedType) else kind
    if isinstance(kind, ir.ShapedType) and not isinstance(kind, ir.VectorType):
        return False
    return not isinstance(element, ir.FloatType) or element.width in (16, 32, 64)


def ops_named(module: ir.Module, names: Collection[str]) -> list[ir.Operation]:
    """The ops with one of the names, in program order."""
    ops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return ops
