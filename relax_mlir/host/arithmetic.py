"""Integer expressions at run time, with an overflow flag.

    4*n*m + 64      ->      %a = n * m, %b = %a * 4, %c = %b + 64, and the `or` of their overflows

No check is emitted if the ranges of the symbols prove that a step fits. Every step must fit, not
only the result: `RxSizes` of the runtime, which explains a failure, evaluates the same steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.symbolic import Expr, intervals
from relax_mlir.symbolic.intervals import Interval

from .builder import Builder

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Ranged:
    """An integer at run time, and its interval if no step overflowed."""

    value: ir.Value
    range: tuple[int, int]


class Arithmetic:
    """Emits expressions through `out`; `fault` is true once a step overflowed."""

    def __init__(self, out: Builder) -> None:
        self.out = out
        self.fault: ir.Value | None = None
        i64, i1 = out.i64, out.i1
        self._with_overflow = llvm.StructType.get_literal([i64, i1])

    def compute(self, expr: Expr, symbols: Mapping[str, Ranged]) -> Ranged:
        """The expression under those symbols.

        Raises KeyError with the name of an unbound symbol, OverflowError for a constant beyond 64
        bits.
        """
        return expr.lower(
            const=self._constant,
            symbol=lambda name: symbols[name],
            add=self._add,
            mul=self._multiply,
            floordiv=self._floordiv,
            mod=self._modulo,
            min=self._minimum,
            max=self._maximum,
        )

    def refuse_negative(self, value: ir.Value) -> None:
        """Makes a negative value a fault."""
        self._add_fault(self.out.compare("slt", value, self.out.integer(0)))

    def _constant(self, value: int) -> Ranged:
        if not LEAST <= value <= GREATEST:
            raise OverflowError(f"{value} is beyond 64 bits")
        return Ranged(self.out.integer(value), (value, value))

    def _add(self, a: Ranged, b: Ranged) -> Ranged:
        exact = intervals.add(a.range, b.range)
        return self._checked(arith.addi, llvm.SAddWithOverflowOp, a, b, exact)

    def _multiply(self, a: Ranged, b: Ranged) -> Ranged:
        exact = intervals.multiply(a.range, b.range)
        return self._checked(arith.muli, llvm.SMulWithOverflowOp, a, b, exact)

    def _checked(
        self,
        plain: Callable[..., ir.Value],
        with_overflow: Callable[..., ir.OpView],
        a: Ranged,
        b: Ranged,
        exact: Interval,
    ) -> Ranged:
        """One step, whose result in unbounded integers is in the interval `exact`."""
        at, range_ = self.out.at, in_64_bits(exact)
        if range_ == exact:
            return Ranged(plain(a.value, b.value, ip=at), range_)
        both = with_overflow(self._with_overflow, a.value, b.value, ip=at).operation.results[0]
        self._add_fault(llvm.extractvalue(self.out.i1, both, [1], ip=at))
        value = llvm.extractvalue(self.out.i64, both, [0], ip=at)
        return Ranged(value, range_)

    def _add_fault(self, flag: ir.Value) -> None:
        """Adds a flag to `fault`."""
        self.fault = flag if self.fault is None else arith.ori(self.fault, flag, ip=self.out.at)

    def _floordiv(self, a: Ranged, b: Ranged) -> Ranged:
        divide = arith.floordivsi if a.range[0] < 0 else arith.divui
        quotient = divide(a.value, self._divisor(b), ip=self.out.at)
        return Ranged(quotient, in_64_bits(intervals.floordiv(a.range, b.range)))

    def _modulo(self, a: Ranged, b: Ranged) -> Ranged:
        at, divisor = self.out.at, self._divisor(b)
        if a.range[0] >= 0:
            rest = arith.remui(a.value, divisor, ip=at)
        else:
            rest = arith.remsi(a.value, divisor, ip=at)
            is_below = self.out.compare("slt", rest, self.out.integer(0))
            rest = arith.select(is_below, arith.addi(rest, divisor, ip=at), rest, ip=at)
        return Ranged(rest, in_64_bits(intervals.modulo(a.range, b.range)))

    def _divisor(self, b: Ranged) -> ir.Value:
        """The divisor, or 1 if it is not positive, which is a fault.

        An earlier step may have overflowed, so its range proves nothing.
        """
        if b.range[0] == b.range[1] and b.range[0] >= 1:
            return b.value
        one = self.out.integer(1)
        if b.range[0] < 1:
            self._add_fault(self.out.compare("slt", b.value, one))
        return arith.maxsi(b.value, one, ip=self.out.at)

    def _minimum(self, a: Ranged, b: Ranged) -> Ranged:
        value = arith.minsi(a.value, b.value, ip=self.out.at)
        return Ranged(value, in_64_bits(intervals.minimum([a.range, b.range])))

    def _maximum(self, a: Ranged, b: Ranged) -> Ranged:
        value = arith.maxsi(a.value, b.value, ip=self.out.at)
        return Ranged(value, in_64_bits(intervals.maximum([a.range, b.range])))


def in_64_bits(interval: Interval) -> tuple[int, int]:
    """The intersection of an interval with the range of 64 bits."""
    low, high = interval
    return (
        LEAST if low is None else max(low, LEAST),
        GREATEST if high is None else min(high, GREATEST),
    )
