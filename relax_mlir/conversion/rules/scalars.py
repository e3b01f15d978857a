"""Scalars: integers that are sizes are expressions as well, comparisons of them are facts."""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir
from relax_mlir.symbolic import Expr, Fact, at_most, const, maximum, minimum

from ..function import Conversion
from ..registry import converts

_RELATIONS = {
    arith.CmpIPredicate.eq: "==",
    arith.CmpIPredicate.ne: "!=",
    arith.CmpIPredicate.slt: "<",
    arith.CmpIPredicate.sle: "<=",
    arith.CmpIPredicate.sgt: ">",
    arith.CmpIPredicate.sge: ">=",
}
MAX_DEGREE = 16
"""Products of more dims are not followed."""


def _from_zero(expr: Expr) -> bool:
    return at_most(0, expr).proved


def _positive(expr: Expr) -> bool:
    return at_most(1, expr).proved


def _product(a: Expr, b: Expr) -> Expr | None:
    degree = sum(max((len(m) for m, _ in each.terms), default=0) for each in (a, b))
    return a * b if degree <= MAX_DEGREE else None


def _truncated(a: Expr, b: Expr) -> Expr | None:
    """A quotient rounded towards 0, which is the floor from 0 on."""
    return a // b if _from_zero(a) and _positive(b) else None


def _remainder(a: Expr, b: Expr) -> Expr | None:
    return a % b if _from_zero(a) and _positive(b) else None


def _unsigned(pick: Callable[..., Expr], a: Expr, b: Expr) -> Expr | None:
    return pick(a, b) if _from_zero(a) and _from_zero(b) else None


_BINARY: dict[str, Callable[[Expr, Expr], Expr | None]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": _product,
    "arith.maxsi": maximum,
    "arith.minsi": minimum,
    "arith.maxui": lambda a, b: _unsigned(maximum, a, b),
    "arith.minui": lambda a, b: _unsigned(minimum, a, b),
    "arith.floordivsi": lambda a, b: a // b if _positive(b) else None,
    "arith.ceildivsi": lambda a, b: (a + b - 1) // b if _positive(b) else None,
    "arith.divsi": _truncated,
    "arith.divui": _truncated,
    "arith.ceildivui": lambda a, b: _truncated(a + b - 1, b) if _from_zero(a) else None,
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
}


def _counts(type_: ir.Type) -> bool:
    """Whether integers of a type hold any size: in fewer bits, arithmetic would wrap."""
    return isinstance(type_, ir.IndexType) or str(type_) == "i64"


def _fits(expr: Expr) -> bool:
    """Whether 64 bits hold the integers of an expression; scalars wrap where they do not."""
    return all(-(1 << 63) <= factor < 1 << 63 for _, factor in expr.terms)


@converts(*_BINARY)
def binary(conversion: Conversion, op: ir.Operation) -> None:
    """Arithmetic on two integers."""
    conversion.copy(op)
    a, b = (conversion.exprs.get(each) for each in op.operands)
    if a is None or b is None or not _counts(op.results[0].type):
        return
    result = _BINARY[op.name](a, b)
    if result is not None and _fits(result):
        conversion.exprs[op.results[0]] = result


@converts("arith.index_cast", "arith.index_castui")
def index_cast(conversion: Conversion, op: ir.Operation) -> None:
    """An integer of another type."""
    conversion.copy(op)
    known = conversion.exprs.get(op.operands[0])
    if known is None or not all(_counts(x.type) for x in (op.operands[0], op.results[0])):
        return
    if op.name == "arith.index_cast" or _from_zero(known):
        conversion.exprs[op.results[0]] = known


@converts("arith.constant")
def constant(conversion: Conversion, op: ir.Operation) -> None:
    """A constant."""
    conversion.copy(op)
    if _counts(op.results[0].type):
        conversion.exprs[op.results[0]] = const(ir.IntegerAttr(op.attributes["value"]).value)


@converts("arith.cmpi")
def compare(conversion: Conversion, op: ir.Operation) -> None:
    """A comparison of two integers, which is a fact if they are sizes."""
    conversion.copy(op)
    a, b = (conversion.exprs.get(each) for each in op.operands)
    predicate = arith.CmpIPredicate(ir.IntegerAttr(op.attributes["predicate"]).value)
    if a is not None and b is not None and predicate in _RELATIONS:
        conversion.conditions[op.results[0]] = [(Fact(a, _RELATIONS[predicate], b),)]


@converts("arith.andi")
def both(conversion: Conversion, op: ir.Operation) -> None:
    """What holds if both operands do."""
    conversion.copy(op)
    a, b = (conversion.conditions.get(each) for each in op.operands)
    if a is not None and b is not None:
        conversion.conditions[op.results[0]] = [*a, *b]


@converts("arith.select")
def select(conversion: Conversion, op: ir.Operation) -> None:
    """One of two values; an expression where it is known which."""
    conversion.copy(op)
    condition, *choices = op.operands
    known = conversion.decided(condition)
    if known is not None:
        chosen = choices[0 if known else 1]
        if chosen in conversion.exprs:
            conversion.exprs[op.results[0]] = conversion.exprs[chosen]


@converts("cf.assert")
def check(conversion: Conversion, op: ir.Operation) -> None:
    """A check at run time."""
    conversion.check(op.operands[0])
