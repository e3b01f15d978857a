"""Scalar arithmetic for the bodies of tensor programs."""

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects.tir import FUNCTION

from .kernel import scalar


def compute_type(element: ir.Type) -> ir.Type:
    """The type that elements are computed in: f32 for half precision, else their own."""
    half = isinstance(element, ir.F16Type | ir.BF16Type)
    return ir.F32Type.get() if half else element


def to_compute(value: ir.Value) -> ir.Value:
    """Widens a half-precision float to f32; other values are unchanged."""
    if isinstance(value.type, ir.F16Type | ir.BF16Type):
        return arith.ExtFOp(ir.F32Type.get(), value).result
    return value


def from_compute(value: ir.Value, element: ir.Type) -> ir.Value:
    """Narrows a computed float to the element type it is stored as."""
    if value.type == element:
        return value
    return arith.TruncFOp(element, value).result


def is_unsigned(value: ir.Value) -> bool:
    """Whether a value counts from 0: of an unsigned integer, or a boolean."""
    return isinstance(value.type, ir.IntegerType) and (
        value.type.is_unsigned or value.type.width == 1
    )


def compare(order: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether integers are in an order, which is "lt", "le", "gt" or "ge"."""
    name = ("u" if is_unsigned(a) else "s") + order
    return arith.CmpIOp(getattr(arith.CmpIPredicate, name), a, b).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b of floats or integers."""
    op = arith.AddIOp if isinstance(a.type, ir.IntegerType) else arith.AddFOp
    return op(a, b).result


def subtract(a: ir.Value, b: ir.Value) -> ir.Value:
    """a - b of floats or integers."""
    op = arith.SubIOp if isinstance(a.type, ir.IntegerType) else arith.SubFOp
    return op(a, b).result


def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    """a * b of floats or integers."""
    op = arith.MulIOp if isinstance(a.type, ir.IntegerType) else arith.MulFOp
    return op(a, b).result


def divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """a / b of floats."""
    return arith.DivFOp(a, b).result


def maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater; NaN if either is."""
    if not isinstance(a.type, ir.IntegerType):
        return arith.MaximumFOp(a, b).result
    return (arith.MaxUIOp if is_unsigned(a) else arith.MaxSIOp)(a, b).result


def minimum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller; NaN if either is."""
    if not isinstance(a.type, ir.IntegerType):
        return arith.MinimumFOp(a, b).result
    return (arith.MinUIOp if is_unsigned(a) else arith.MinSIOp)(a, b).result


def exceeds(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether a is greater than b: in the order of sorting, where NaN is greater than numbers."""
    if isinstance(a.type, ir.IntegerType):
        return compare("gt", a, b)
    greater = arith.CmpFOp(arith.CmpFPredicate.OGT, a, b).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, a, a).result
    is_number = arith.CmpFOp(arith.CmpFPredicate.ORD, b, b).result
    return arith.OrIOp(greater, arith.AndIOp(is_nan, is_number).result).result


def inverted(condition: ir.Value) -> ir.Value:
    """Whether a condition, an i1, does not hold."""
    return arith.XOrIOp(condition, scalar(condition.type, 1)).result


def to_index(value: ir.Value) -> ir.Value:
    """An integer as an index; unsigned ones of 64 bits beyond it are the greatest index."""
    kind = ir.IndexType.get()
    if not is_unsigned(value):
        return arith.IndexCastOp(kind, value).result
    if value.type.width == 64:
        value = arith.MinUIOp(value, scalar(value.type, 2**63 - 1)).result
    return arith.IndexCastUIOp(kind, value).result


def exp(x: ir.Value) -> ir.Value:
    """e to the power x."""
    return math.ExpOp(x).result


def negate(x: ir.Value) -> ir.Value:
    """-x of a float."""
    return arith.NegFOp(x).result


def sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x))."""
    one = scalar(x.type, 1)
    return divide(one, add(one, exp(negate(x))))


def named(function: str, result: ir.Value) -> ir.Value:
    """Marks the result of a function, so that it is expanded as a whole, without cancellation."""
    result.owner.attributes[FUNCTION] = ir.StringAttr.get(function)
    return result
