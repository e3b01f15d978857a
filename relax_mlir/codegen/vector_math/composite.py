"""Expands expressions as a whole whose intermediate results lose digits or overflow.

1 / (1 + exp(-x)), x / (1 + exp(-x))          sigmoid and silu, however they were written
arith.mulf %x, %q {tir.function = "gelu"}     the named function of the first operand
arith.addf %m, %l {tir.function = "logaddexp"}, %m = arith.maximumf %a, %b    that of %a and %b
"""

from collections.abc import Callable, Sequence
from struct import pack, unpack

from relax_mlir.bindings import arith, ir, math
from relax_mlir.codegen.vector_math import gelu, logaddexp, logistic
from relax_mlir.codegen.vector_math.lanes import Lanes, has_lanes, ops_named, splat_of
from relax_mlir.dialects.tir import FUNCTION
from relax_mlir.target import Cpu

Function = Callable[..., Lanes]

_NAMED: dict[str, Function] = {
    "gelu": gelu.expand_gelu,
    "gelu_tanh": gelu.expand_gelu_tanh,
    "logaddexp": logaddexp.expand_logaddexp,
    "silu": logistic.expand_silu,
}


def replace_composites(module: ir.Module, cpu: Cpu, widest: int = 64) -> None:
    """Replaces the expressions of f32 and f64 in a module that have a function.

    With `widest` = 32, those of f32 that are written in f64, or of narrower ones, are
    computed in f32, and those of f64 stay.
    """
    for op in ops_named(module, {"arith.addf", "arith.divf", "arith.mulf"}):
        match = _function_of(op) if has_lanes(op.results[0].type) else None
        if match is None:
            continue
        function, arguments = match
        operands = [Lanes(argument, cpu) for argument in arguments]
        if operands[0].width not in (32, 64):
            continue
        with ir.InsertionPoint(op), op.location:
            if widest == 32:
                operands = _narrowed(operands) or operands
            if operands[0].width > widest:
                continue
            result = function(*operands).converted(Lanes(op.results[0], cpu).element)
        op.results[0].replace_all_uses_with(result.value)
        _erase(op)


def _narrowed(operands: Sequence[Lanes]) -> list[Lanes] | None:
    """Operands as f32, if they are extended from 32 bits or fewer, or constants next to those."""
    cpu, f32 = operands[0].cpu, ir.F32Type.get()
    extended = [_producer(x.value, arith.ExtFOp) for x in operands]
    first = next((op for op in extended if op is not None), None)
    if first is None:
        return None
    like = Lanes(first.in_, cpu).converted(f32)
    result = []
    for x, op in zip(operands, extended, strict=True):
        value = x.splat
        if op is not None:
            result.append(Lanes(op.in_, cpu).converted(f32))
        elif value is not None and _is_f32(value):
            result.append(like.like(value))
        else:
            return None
    return result


def _is_f32(value: float) -> bool:
    """Whether f32 has a value."""
    try:
        return bool(unpack("f", pack("f", value))[0] == value)
    except OverflowError:
        return False


def _function_of(op: ir.Operation) -> tuple[Function, Sequence[ir.Value]] | None:
    """The function whose result an op computes, and its arguments."""
    if FUNCTION in op.attributes:
        name = ir.StringAttr(op.attributes[FUNCTION]).value
        first = op.operands[0]
        if name != "logaddexp":
            return _NAMED[name], [first]
        greater = _producer(first, arith.MaximumFOp)
        return _NAMED[name], [first, first] if greater is None else list(greater.operands)
    if op.name != "arith.divf" or splat_of(op.operands[0]) != 1.0:
        return None
    argument = _logistic_argument(op.operands[1])
    return None if argument is None else (logistic.expand_sigmoid, [argument])


def _logistic_argument(divisor: ir.Value) -> ir.Value | None:
    """x if a value is 1 + exp(-x)."""
    total = _producer(divisor, arith.AddFOp)
    if total is None or 1.0 not in map(splat_of, total.operands):
        return None
    others = [x for x in total.operands if splat_of(x) != 1.0]
    power = _producer(others[0], math.ExpOp) if others else None
    negative = None if power is None else _producer(power.operand, arith.NegFOp)
    return None if negative is None else negative.operand


def _producer(value: ir.Value, kind: type[ir.OpView]) -> ir.OpView | None:
    """The op that computes a value, if it is of the class `kind`."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    return op if isinstance(op, kind) else None


def _erase(op: ir.Operation) -> None:
    """Erases an op and the ops that only it used, users before what they use."""
    makers: dict[ir.Operation, None] = {}
    _collect(op, makers)
    for maker in reversed(makers):
        if all(next(iter(x.uses), None) is None for x in maker.results):
            maker.erase()


def _collect(op: ir.Operation, makers: dict[ir.Operation, None]) -> None:
    """Adds the pure ops that an op is computed by, each before its users, and the op."""
    for x in op.operands:
        if isinstance(x.owner, ir.Block):
            continue
        maker = x.owner.operation
        if maker not in makers and maker.name.startswith(("arith.", "math.")):
            _collect(maker, makers)
    makers[op] = None
