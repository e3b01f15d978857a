"""Where the tensors of a function are: on the host, or on the device of the target.

    a tensor                                   is on the host if
    an argument of the function                `graph.device` of it, or of the function, says so
    an allocation, the result of
      graph.to_device                          its `graph.device`, or `device`, says so
    a result of graph.call                     the callee does, by `graph.device`
    graph.match_cast, graph.view               its operand is
    another                                    the function is

A function on the host computes there, by kernels of the CPU. A constant counts as where the
function is, but calls find it on both sides. Names of devices are "cpu" or anything else once
`relax-place-devices` has run.
"""

from relax_mlir.bindings import arith, func, ir, tensor
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CallOp,
    MatchCastOp,
    ToDeviceOp,
    ViewOp,
)
from relax_mlir.target.device import HOST

from .functions import argument_attribute

DEVICE = "graph.device"
"""On an argument, an operator or a function: where it is to be."""
HOST_TENSORS = "graph.host_tensors"
"""On a function that is called from outside: the results that are returned on the host."""

_MARKED = AllocTensorOp | AllocStorageOp


def is_marked(op: func.FuncOp | ir.OpView) -> bool:
    """Whether an op or a function says that it is on the host."""
    return DEVICE in op.attributes and _is_host(op.attributes[DEVICE])


def mark(op: ir.OpView) -> None:
    """Says so."""
    op.attributes[DEVICE] = ir.StringAttr.get(HOST)


def is_argument_on_host(function: func.FuncOp, index: int) -> bool:
    """Whether an argument is on the host."""
    own = argument_attribute(function, index, DEVICE)
    return is_marked(function) if own is None else _is_host(own)


def host_results(function: func.FuncOp) -> list[int]:
    """The tensors that a function returns on the host."""
    if is_marked(function):
        return list(range(len(function.type.results)))
    attributes = function.attributes
    return (
        list(ir.DenseI64ArrayAttr(attributes[HOST_TENSORS])) if HOST_TENSORS in attributes else []
    )


def is_on_host(value: ir.Value) -> bool:
    """Whether a tensor of a function is on the host."""
    while True:
        if isinstance(value, ir.BlockArgument):
            owner = value.owner.owner
            if isinstance(owner.opview, func.FuncOp):
                return is_argument_on_host(owner.opview, value.arg_number)
            return is_marked(function_around(owner))
        op = value.owner.opview
        if isinstance(op, MatchCastOp | ViewOp):
            value = op.input
        elif isinstance(op, ToDeviceOp):
            return _is_host(op.attributes["device"])
        elif isinstance(op, CallOp):
            return is_marked(callee_of(op))
        else:
            is_own = isinstance(op, _MARKED) and is_marked(op)
            return is_own or is_marked(function_around(op))


def is_constant(value: ir.Value) -> bool:
    """Whether a value is a constant, which host and device both have."""
    is_made = not isinstance(value.owner, ir.Block)
    return is_made and isinstance(value.owner.opview, arith.ConstantOp)


def callee_of(call: CallOp) -> func.FuncOp:
    """The function that is called."""
    module = function_around(call).operation.parent
    return ir.SymbolTable(module.operation)[call.callee_name]


def function_around(op: ir.OpView | ir.Operation) -> func.FuncOp:
    """The function that an op is in."""
    current = op.operation
    while not isinstance(current.opview, func.FuncOp):
        current = current.parent.operation
    return current.opview


def takes_any(op: ir.OpView) -> bool:
    """Whether an op reads tensors wherever they are, or only their dims."""
    return isinstance(op, MatchCastOp | ViewOp | ToDeviceOp | tensor.DimOp | tensor.ExtractOp)


def _is_host(name: ir.Attribute) -> bool:
    return isinstance(name, ir.StringAttr) and name.value == HOST
