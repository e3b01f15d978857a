"""Lowers scalars: integers and floats in registers, indices of 64 bits.

    %e = tensor.extract %x[%i] : tensor<?xf32, ...>
      ->
         %outside = %i >= n (unsigned)
         cond_br %outside, ^cold, ^next
    next: %e = load (address of x) + %i

Arithmetic is unchanged where MLIR defines its result. Where it does not, integers wrap, conversions
of floats to integers clamp, and an index out of bounds or an integer division by zero is an error
of the call.
"""

from collections.abc import Mapping, Sequence

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import StoreOp, TensorToShapeOp, shape_value_dims
from relax_mlir.legalize.elementwise.datatype import convert
from relax_mlir.passes import PassFailure

from .builder import Builder
from .dtypes import byte_width, dlpack_dtype, memory_type
from .function import Emitter, HostFunction

_PRESERVED = ("predicate",)
"""Attributes of arithmetic; others are flags that make results undefined."""


def scalar_type(type_: ir.Type) -> ir.Type | None:
    """The type of a scalar in host code; None for other types."""
    if isinstance(type_, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    signless = isinstance(type_, ir.IntegerType) and type_.is_signless
    if signless or isinstance(type_, ir.BF16Type | ir.F16Type | ir.F32Type | ir.F64Type):
        try:
            dlpack_dtype(type_)
        except ValueError:
            return None
        return type_
    return None


def load_scalar(out: Builder, pointer: ir.Value, type_: ir.Type) -> ir.Value:
    """Loads a scalar of a type of the graph."""
    loaded = out.load(pointer, memory_type(type_))
    return out.compare("ne", loaded, out.integer(0, loaded.type)) if _is_bool(type_) else loaded


def store_scalar(out: Builder, value: ir.Value, pointer: ir.Value) -> None:
    """Stores a scalar as an element."""
    if _is_bool(value.type):
        value = arith.extui(memory_type(value.type), value, ip=out.at)
    out.store(value, pointer)


def define_scalars(host: HostFunction) -> None:
    """Defines the scalar arguments."""
    for index, argument in enumerate(host.graph.arguments):
        if scalar_type(argument.type) is not None:
            host.scope.scalars[argument] = host.border.scalar_argument(index, argument.type)


def _is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def extract(host: HostFunction, op: tensor.ExtractOp) -> None:
    """Loads an element."""
    source, *indices = op.operands
    element, pointer = _element(host, op, source), _address(host, op, source, indices)
    pointer = host.readable(source, pointer, byte_width(element))
    host.scope.scalars[op.result] = load_scalar(host.out, pointer, element)


def store(host: HostFunction, op: StoreOp) -> None:
    """Stores an element."""
    value, target, *indices = op.operation.operands
    element = _element(host, op, target)
    pointer = _address(host, op, target, indices)
    with host.writing(pointer, byte_width(element), host.device_of(target)) as at:
        store_scalar(host.out, host.scalar(op, value), at)


def to_shape(host: HostFunction, op: TensorToShapeOp) -> None:
    """Loads the elements as dims."""
    out, pointer = host.out, host.tensor(op.input).pointer
    count = len(shape_value_dims(op.result.type))
    pointer = host.readable(op.input, pointer, 8 * count)
    sizes = tuple(out.load_integer(pointer, index) for index in range(count))
    for size in sizes:
        refuse_if(host, op, out.compare("slt", size, out.integer(0)), "has a negative dim")
    host.scope.shapes[op.result] = sizes


def _element(host: HostFunction, op: ir.OpView, value: ir.Value) -> ir.Type:
    """The element type of a tensor; raises PassFailure if no scalar is of it."""
    element = host.annotation(value).element
    if scalar_type(element) is None:
        raise PassFailure(op, f"has a scalar of type '{element}', which host code does not support")
    return element


def _address(
    host: HostFunction, op: ir.OpView, value: ir.Value, indices: Sequence[ir.Value]
) -> ir.Value:
    """The address of an element; returns with an error if it is out of bounds."""
    out, array = host.out, host.tensor(value)
    offset = out.integer(0)
    for axis, (index, dim) in enumerate(zip(indices, array.dims, strict=True)):
        at, extent = host.scalar(op, index), host.integer(op, dim)
        # As unsigned, negative indices are large.
        outside = arith.cmpi(arith.CmpIPredicate.uge, at, extent, ip=out.at)
        where = out.address(host.module.table.string(_where(op)))
        with out.refusing_if(outside):
            integers = [at, out.integer(axis, out.i32), extent]
            out.call_runtime("rx_refuse_index", [out.context, where, *integers])
        offset = arith.addi(out.product([offset, extent]), at, ip=out.at)
    element = memory_type(array.element)
    return out.element(array.pointer, offset, element)


def _where(op: ir.OpView) -> str:
    """The prefix of errors at run time, like those of the compiler."""
    return str(Diagnostic.at(op.location, "error", f"'{op.operation.name}' op"))


def _plain(host: HostFunction, op: ir.OpView) -> None:
    """The same op on lowered operands."""
    operands = [host.scalar(op, value) for value in op.operands]
    type_ = _result_type(op)
    kept = {name: op.attributes[name] for name in _PRESERVED if name in op.attributes}
    made = ir.Operation.create(
        op.operation.name, results=[type_], operands=operands, attributes=kept, ip=host.out.at
    )
    host.scope.scalars[op.results[0]] = made.results[0]


def _result_type(op: ir.OpView) -> ir.Type:
    type_ = scalar_type(op.results[0].type)
    if type_ is None:
        raise PassFailure(op, f"has a result of type '{op.results[0].type}', not a scalar")
    return type_


def _divide(host: HostFunction, op: ir.OpView) -> None:
    """A quotient or a remainder, after a check that it is defined."""
    out = host.out
    dividend, divisor = (host.scalar(op, value) for value in op.operands)
    zero = out.integer(0, divisor.type)
    refuse_if(host, op, out.compare("eq", divisor, zero), "divides by zero")
    if not isinstance(op, arith.DivUIOp | arith.RemUIOp | arith.CeilDivUIOp):
        width = ir.IntegerType(divisor.type).width
        least, minus_one = (out.integer(n, divisor.type) for n in (-(1 << (width - 1)), -1))
        both = [out.compare("eq", dividend, least), out.compare("eq", divisor, minus_one)]
        too_large = arith.andi(*both, ip=out.at)
        refuse_if(host, op, too_large, f"has a quotient that {width} bits do not hold")
    _plain(host, op)


def refuse_if(host: HostFunction, op: ir.OpView, condition: ir.Value, why: str) -> None:
    """Returns with an error at the op if an `i1` is true."""
    text = host.out.address(host.module.table.string(f"{_where(op)} {why}"))
    with host.out.refusing_if(condition):
        host.out.call_runtime("rx_fail", [host.out.context, text])


def _cast_index(host: HostFunction, op: arith.IndexCastOp | arith.IndexCastUIOp) -> None:
    """Between an index and an integer of at most 64 bits."""
    value, type_ = host.scalar(op, op.operands[0]), _result_type(op)
    widths = [ir.IntegerType(kind).width for kind in (value.type, type_)]
    if widths[0] < widths[1]:
        extend = arith.extsi if isinstance(op, arith.IndexCastOp) else arith.extui
        value = extend(type_, value, ip=host.out.at)
    elif widths[0] > widths[1]:
        value = arith.trunci(type_, value, ip=host.out.at)
    host.scope.scalars[op.results[0]] = value


def _truncate_float(host: HostFunction, op: arith.FPToSIOp) -> None:
    """To an integer, as `graph.astype` does it."""
    type_ = _result_type(op)
    if _is_bool(type_):
        raise PassFailure(op, "makes 'i1' of a float; compare it with arith.cmpf")
    with host.out.at:
        host.scope.scalars[op.results[0]] = convert(host.scalar(op, op.operands[0]), type_)


def _arithmetic() -> dict[type[ir.OpView], Emitter]:
    plain = (
        *(arith.AddIOp, arith.SubIOp, arith.MulIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
        *(arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp, arith.CmpIOp),
        *(arith.AddFOp, arith.SubFOp, arith.MulFOp, arith.DivFOp, arith.NegFOp, arith.CmpFOp),
        *(arith.MaximumFOp, arith.MinimumFOp, arith.MaxNumFOp, arith.MinNumFOp),
        *(arith.ExtFOp, arith.TruncFOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp),
        *(arith.SIToFPOp, arith.UIToFPOp, arith.SelectOp),
    )
    division = (
        *(arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp),
        *(arith.DivUIOp, arith.RemUIOp, arith.CeilDivUIOp),
    )
    return {
        **dict.fromkeys(plain, _plain),
        **dict.fromkeys(division, _divide),
        **dict.fromkeys((arith.IndexCastOp, arith.IndexCastUIOp), _cast_index),
        arith.FPToSIOp: _truncate_float,
    }


ARITHMETIC: Mapping[type[ir.OpView], Emitter] = _arithmetic()
"""The ops on scalars, each with its emitter."""
