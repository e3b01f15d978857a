"""Makes what bodies leave undefined defined: no element stops a program or reads out of bounds.

    %q = arith.divsi %a, %b       what is divided by 0 is 0, the least integer by -1 wraps
    %i = arith.fptosi %x          clamps, NaN becomes 0
    %s = arith.shli %a, %b        a shift by the width or more shifts everything out
    %e = tensor.extract %t[%i]    clamps the index
    cf.assert %c                  is left out, as indices are clamped

Flags such as nsw and nnan, with which results would be undefined, are removed.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.legalize.divisions import (
    DIVISIONS,
    compare,
    constant_integer,
    guard_division,
    integer_like,
)
from relax_mlir.legalize.elementwise.datatype import convert
from relax_mlir.rewriting import safe_erase, walk_ops

FLAGS = {
    "overflowFlags": "#arith.overflow<none>",
    "fastmath": "#arith.fastmath<none>",
    "isExact": None,
    "nonNeg": None,
}
"""Attributes with which results may be undefined, and what they are without."""
_SCALARS = (ir.IntegerType, ir.IndexType)
_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)

IsInside = Callable[[ir.Value, ir.Value, int], bool]
"""Whether an index, of an axis of a tensor, is known to be within the tensor."""


def make_safe(root: ir.Operation | ir.OpView, is_inside: IsInside) -> None:
    """Changes the ops nested in one, which is part of a tensor program."""
    for op in walk_ops(root):
        if op.operation == root.operation:
            continue
        with ir.InsertionPoint(op), op.location:
            _make_safe(op, is_inside)


def _make_safe(op: ir.OpView, is_inside: IsInside) -> None:
    for flag, plain in FLAGS.items():
        if flag in op.operation.attributes and plain is None:
            del op.operation.attributes[flag]
        elif flag in op.operation.attributes:
            op.operation.attributes[flag] = ir.Attribute.parse(str(plain))
    if op.operation.name == "cf.assert":
        op.operation.erase()
    elif op.operation.name in DIVISIONS:
        guard_division(op)
    elif isinstance(op, tensor.ExtractOp):
        _clamp_indices(op, is_inside)
    else:
        _define(op)


def define_results(root: ir.Operation | ir.OpView) -> None:
    """Gives shifts and conversions of scalars nested in an op their results above."""
    for op in walk_ops(root):
        if any(isinstance(result.type, _SCALARS) for result in op.operation.results):
            with ir.InsertionPoint(op), op.location:
                _define(op)


def _define(op: ir.OpView) -> None:
    if isinstance(op, _SHIFTS):
        _guard_shift(op)
    elif isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        _clamp_conversion(op)


def _guard_shift(op: ir.OpView) -> None:
    value, count = op.operation.operands
    width = 64 if isinstance(value.type, ir.IndexType) else ir.IntegerType(value.type).width
    known = constant_integer(count)
    if known is not None and 0 <= known < width:
        return
    most = integer_like(count, width - 1)
    is_beyond = compare("ugt", count, most)
    op.operation.operands[1] = arith.SelectOp(is_beyond, most, count).result
    result = op.operation.results[0]
    if isinstance(op, arith.ShRSIOp):
        return  # by the width less one, only the sign is left
    with ir.InsertionPoint.after(op):
        safe = arith.SelectOp(is_beyond, integer_like(value, 0), result).result
    result.replace_all_uses_except(safe, [safe.owner.operation])


def _clamp_conversion(op: ir.OpView) -> None:
    result = op.operation.results[0]
    width = ir.IntegerType(result.type).width
    value = op.operation.operands[0]
    if isinstance(op, arith.FPToUIOp) and width > 1:
        converted = convert(value, ir.IntegerType.get_unsigned(width))
        converted = _signless(converted)
    else:
        converted = convert(value, result.type)
    result.replace_all_uses_with(converted)
    safe_erase(op)


def _signless(value: ir.Value) -> ir.Value:
    """An unsigned integer as one without a sign: the ops that make it take no others."""
    kind = ir.IntegerType.get_signless(ir.IntegerType(value.type).width)
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each.type, ir.IntegerType) and each.type.is_unsigned:
            each.set_type(kind)
            todo += [] if isinstance(each.owner, ir.Block) else list(each.owner.operands)
    return value


def _clamp_indices(op: tensor.ExtractOp, is_inside: IsInside) -> None:
    source, *indices = op.operation.operands
    for axis, index in enumerate(indices):
        if is_inside(index, source, axis):
            continue
        kind = ir.IndexType.get()
        zero, one = scalar_index(0), scalar_index(1)
        type_ = ir.RankedTensorType(source.type)
        if type_.is_dynamic_dim(axis):
            extent = tensor.DimOp(source, scalar_index(axis)).result
            last = arith.SubIOp(extent, one).result
        else:
            last = scalar_index(type_.get_dim_size(axis) - 1)
        inside = arith.MaxSIOp(arith.MinSIOp(index, last).result, zero).result
        assert inside.type == kind
        op.operation.operands[1 + axis] = inside


def scalar_index(value: int) -> ir.Value:
    """An index constant."""
    return arith.ConstantOp(ir.IndexType.get(), value).result
