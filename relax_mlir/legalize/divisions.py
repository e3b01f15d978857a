"""Divisions of integers in tensor programs, whose results MLIR leaves open: they stop the program.

%q = arith.divsi %a, %b    what is divided by 0 is 0, the least integer by -1 is itself
%r = arith.remsi %a, %b    the remainder of both is 0
"""

import re

from relax_mlir.bindings import arith, func, ir
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import walk_ops

from .kernel import scalar

SIGNED = (
    *(f"arith.{name}" for name in ("divsi", "remsi", "floordivsi", "ceildivsi")),
    *(f"index.{name}" for name in ("divs", "rems", "floordivs", "ceildivs")),
)
UNSIGNED = (
    *(f"arith.{name}" for name in ("divui", "remui", "ceildivui")),
    *(f"index.{name}" for name in ("divu", "remu", "ceildivu")),
)
DIVISIONS = (*SIGNED, *UNSIGNED)
_REMAINDERS = ("arith.remsi", "index.rems")
_ON_ELEMENTS = "func.func(convert-elementwise-to-linalg,linalg-generalize-named-ops)"
"""Ops on tensors and named ops have no body that could be changed."""
_OF_MAPS = "func.func(affine-expand-index-ops,lower-affine)"
_BY_UNKNOWN = re.compile(r"(floordiv|ceildiv|mod) [^0-9]")


def guard_divisions(program: func.FuncOp) -> None:
    """Gives each division of a tensor program a result; those by constants have one."""
    ops = walk_ops(program)
    if any(map(_divides_in_maps, ops)):
        run_upstream(_OF_MAPS, program.operation)
        ops = walk_ops(program)
    if not any(op.operation.name in DIVISIONS and _may_stop(op) for op in ops):
        return
    run_upstream(_ON_ELEMENTS, program.operation)
    for op in walk_ops(program):
        if op.operation.name in DIVISIONS:
            with op.location:
                guard_division(op)


def _divides_in_maps(op: ir.OpView) -> bool:
    """Whether an op of affine divides by what is no constant."""
    name, attributes = op.operation.name, op.operation.attributes
    if not name.startswith("affine."):
        return False
    return name == "affine.delinearize_index" or any(
        _BY_UNKNOWN.search(str(attributes[key])) for key in attributes
    )


def guard_division(op: ir.OpView) -> None:
    """Gives a division of scalars a result, whatever its operands are."""
    if not _may_stop(op):
        return
    result, a, b = op.operation.results[0], *op.operation.operands
    with ir.InsertionPoint(op):
        zero, one, minus = (integer_like(b, value) for value in (0, 1, -1))
        is_zero, is_minus = compare("eq", b, zero), None
        divisor = arith.SelectOp(is_zero, one, b).result
        if -1 in _divisors(op):
            is_minus = compare("eq", b, minus)
            divisor = arith.SelectOp(is_minus, one, divisor).result
    op.operation.operands[1] = divisor
    with ir.InsertionPoint.after(op):
        value = result
        if is_minus is not None:
            by_minus = zero if op.operation.name in _REMAINDERS else arith.SubIOp(zero, a).result
            value = arith.SelectOp(is_minus, by_minus, value).result
        safe = arith.SelectOp(is_zero, zero, value).result
    result.replace_all_uses_except(safe, [value.owner.operation, safe.owner.operation])


def _divisors(op: ir.OpView) -> tuple[int, ...]:
    """The divisors by which an element may have no quotient."""
    kind = op.operation.operands[1].type
    is_bool = isinstance(kind, ir.IntegerType) and kind.width == 1
    return (-1, 0) if op.operation.name in SIGNED and not is_bool else (0,)


def _may_stop(op: ir.OpView) -> bool:
    """Whether an element may have no quotient, and the op is not guarded yet."""
    divisor, tested = op.operation.operands[1], []
    if constant_integer(divisor) not in (None, 0, -1):
        return False
    for value in _divisors(op):
        parts = _replaced_by_one(divisor, value)
        if parts is None:
            return True
        tested.append(parts[0])
        divisor = parts[1]
    return any(each != divisor for each in tested)


def _replaced_by_one(divisor: ir.Value, value: int) -> tuple[ir.Value, ir.Value] | None:
    """Of `select(x == value, 1, y)`, x and y."""
    select = _op_of(divisor)
    if not isinstance(select, arith.SelectOp) or constant_integer(select.true_value) != 1:
        return None
    test = _op_of(select.condition)
    if not isinstance(test, arith.CmpIOp) or constant_integer(test.rhs) != value:
        return None
    is_equal = ir.IntegerAttr(test.predicate).value == 0
    return (test.lhs, select.false_value) if is_equal else None


def _op_of(value: ir.Value) -> ir.OpView | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def constant_integer(value: ir.Value) -> int | None:
    """The integer that a constant is; None for another value."""
    op = _op_of(value)
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, ir.IntegerAttr):
        return None
    return op.value.value


def integer_like(like: ir.Value, value: int) -> ir.Value:
    """A constant of the type of a scalar."""
    if isinstance(like.type, ir.IndexType):
        return arith.ConstantOp(like.type, value).result
    return scalar(like.type, value)


def compare(predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """A comparison of two integers."""
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), a, b).result
