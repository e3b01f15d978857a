"""Indices that a scheduled kernel computes, as expressions over the dims of its arguments.

%n = memref.dim %arg0, %c1          a0d1
%0 = arith.addi %n, %c15            a0d1 + 15
%1 = arith.andi %0, %c-16           (a0d1 + 15) floordiv 16 * 16
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.symbolic import Expr, SymbolicError, at_most, const, maximum, minimum, sym

MAX_DEPTH, MAX_DEGREE = 200, 16
"""The longest chains of operations, and products of dims, that are followed."""
_BINARY: dict[type[ir.OpView], Callable[[Expr, Expr], Expr | None]] = {
    arith.AddIOp: lambda a, b: a + b,
    arith.SubIOp: lambda a, b: a - b,
    arith.MulIOp: lambda a, b: a * b if _degree(a) + _degree(b) <= MAX_DEGREE else None,
    arith.MaxSIOp: maximum,
    arith.MinSIOp: minimum,
    arith.FloorDivSIOp: lambda a, b: a // b if _is_positive(b) else None,
    arith.CeilDivSIOp: lambda a, b: (a + b - 1) // b if _is_positive(b) else None,
    arith.DivUIOp: lambda a, b: a // b if _is_positive(b) and at_most(0, a).proved else None,
    arith.DivSIOp: lambda a, b: a // b if _is_positive(b) and at_most(0, a).proved else None,
    arith.AndIOp: lambda a, b: _masked(a, b),
}


def _degree(expr: Expr) -> int:
    return max((len(monomial) for monomial, _ in expr.terms), default=0)


def _is_positive(divisor: Expr) -> bool:
    return divisor.value is not None and divisor.value > 0


def _masked(value: Expr, mask: Expr) -> Expr | None:
    """The multiple of a power of two below a value, if the mask is that power, negated."""
    power = -(mask.value or 0)
    if power <= 0 or power & (power - 1):
        return None
    return value // power * power


@dataclass
class IndexValues:
    """The expressions of one kernel's indices.

    Dim j of tensor argument i is named `a{i}d{j}`, index argument i is `s{i}`.
    """

    kernel: PrimFunc
    _known: dict[ir.Value, Expr | None] = field(default_factory=dict)
    _depth: int = 0

    @staticmethod
    def dim_name(argument: int, axis: int) -> str:
        """The name of a dim of a tensor argument."""
        return f"a{argument}d{axis}"

    @staticmethod
    def argument_name(index: int) -> str:
        """The name of an index argument."""
        return f"s{index}"

    def value(self, value: ir.Value) -> Expr | None:
        """The expression of an index; None if it depends on elements, or on other operations."""
        if value not in self._known:
            self._known[value] = None  # what needs itself, as in a loop, has none
            self._depth += 1
            try:
                self._known[value] = self._read(value) if self._depth <= MAX_DEPTH else None
            except SymbolicError:  # too many terms
                pass
            self._depth -= 1
        return self._known[value]

    def _read(self, value: ir.Value) -> Expr | None:
        if isinstance(value, ir.BlockArgument):
            arguments = self.kernel.sym_args
            return sym(self.argument_name(arguments.index(value))) if value in arguments else None
        op = value.owner.opview
        if isinstance(op, arith.ConstantOp):
            constant = op.attributes["value"]
            return const(constant.value) if isinstance(constant, ir.IntegerAttr) else None
        if isinstance(op, memref.DimOp):
            return self._dim(op)
        combine = _BINARY.get(type(op))
        operands = [self.value(operand) for operand in op.operands] if combine else [None]
        known = [operand for operand in operands if operand is not None]
        return combine(*known) if combine and len(known) == len(operands) else None

    def _dim(self, op: memref.DimOp) -> Expr | None:
        axis, arguments = self.value(op.index), self.kernel.arguments
        if axis is None or axis.value is None or op.source not in arguments:
            return None
        extent = op.source.type.shape[axis.value]
        dynamic = ir.ShapedType.get_dynamic_size()
        if extent != dynamic:
            return const(extent)
        return sym(self.dim_name(arguments.index(op.source), axis.value))
