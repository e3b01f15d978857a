"""Lowers what graph functions print and assert to calls of the runtime, which writes the text."""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import AssertOp, PrintOp

from .dlpack import describe, located
from .dtypes import byte_width
from .function import HostFunction
from .scalars import load_scalar, scalar_type


def print_(host: HostFunction, op: PrintOp) -> None:
    """Prints a line."""
    out = host.out
    operands = describe(host, op, "graph.print", op.values)
    (status,) = out.call_runtime("rx_print", [out.context, _format(host, op), *operands])
    out.fail_unless_zero(status)


def assert_(host: HostFunction, op: AssertOp) -> None:
    """Returns with an error unless the condition is true."""
    out, condition = host.out, op.condition
    if scalar_type(condition.type) is None:
        tensor = host.tensor(condition)
        pointer = host.readable(condition, tensor.pointer, byte_width(tensor.element))
        value = load_scalar(out, pointer, tensor.element)
    else:
        value = host.scalar(op, condition)
    for shown in op.values:  # what is loaded in the branch would be unknown behind it
        if isinstance(shown.type, ir.ShapedType):
            host.tensor(shown)
    with out.refusing_if(out.compare("eq", value, out.integer(0, out.i1))):
        operands = describe(host, op, located(op, ""), op.values)
        out.call_runtime("rx_refuse", [out.context, _format(host, op), *operands])


def _format(host: HostFunction, op: PrintOp | AssertOp) -> ir.Value:
    return host.out.address(host.module.table.string(op.attributes["format"].value))
