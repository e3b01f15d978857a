"""Where the tensors of a function are: on the host, or on a device of the target.

    a tensor                                   is where
    an argument of the function                `graph.device` of it, or of the function, says
    an allocation, the result of
      graph.to_device                          its `graph.device`, or `device`, says
    a result of graph.call                     the callee is, by `graph.device`
    graph.match_cast, graph.view               its operand is
    another                                    the function is

A function on the host computes there, by kernels of the CPU, one on a device by kernels of that. A
constant counts as where the function is, but calls find it everywhere. Once `relax-place-devices`
has run, names are "cpu", "device", which is the first of the target, and what else
`target.device.device_names` has; what says nothing is on the first device.
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
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST

from .functions import argument_attribute

DEVICE = "graph.device"
"""On an argument, an operator or a function: where it is to be."""
HOST_TENSORS = "graph.host_tensors"
"""On a function that is called from outside: the results that are returned on the host."""

_MARKED = AllocTensorOp | AllocStorageOp


def placed(op: func.FuncOp | ir.OpView) -> str:
    """Where an op or a function says that it is."""
    return _name(op.attributes[DEVICE]) if DEVICE in op.attributes else OF_TARGET


def mark(op: ir.OpView, device: str) -> None:
    """Has an op say where it is."""
    op.attributes[DEVICE] = ir.StringAttr.get(device)


def device_of_argument(function: func.FuncOp, index: int) -> str:
    """Where an argument is."""
    own = argument_attribute(function, index, DEVICE)
    return placed(function) if own is None else _name(own)


def host_results(function: func.FuncOp) -> list[int]:
    """The tensors that a function returns on the host."""
    if placed(function) == HOST:
        return list(range(len(function.type.results)))
    attributes = function.attributes
    return (
        list(ir.DenseI64ArrayAttr(attributes[HOST_TENSORS])) if HOST_TENSORS in attributes else []
    )


def device_of(value: ir.Value) -> str:
    """Where a tensor of a function is."""
    while True:
        if isinstance(value, ir.BlockArgument):
            owner = value.owner.owner
            if isinstance(owner.opview, func.FuncOp):
                return device_of_argument(owner.opview, value.arg_number)
            return placed(function_around(owner))
        op = value.owner.opview
        if isinstance(op, MatchCastOp | ViewOp):
            value = op.input
        elif isinstance(op, ToDeviceOp):
            return _name(op.attributes["device"])
        elif isinstance(op, CallOp):
            return placed(callee_of(op))
        else:
            is_own = isinstance(op, _MARKED) and DEVICE in op.attributes
            return placed(op if is_own else function_around(op))


def is_constant(value: ir.Value) -> bool:
    """Whether a value is a constant, which host and devices all have."""
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


def _name(name: ir.Attribute) -> str:
    return name.value if isinstance(name, ir.StringAttr) else OF_TARGET
