"""Copies what crosses a border between the host and the devices of the target.

    %1 = "graph.call"(%0) {callee = @exp_on_host}       @exp_on_host is on the host
    %2 = "graph.call_tir"(%1) {callee = @scaled}
      ->
    %c = "graph.to_device"(%0) {device = "cpu"}
    %1 = "graph.call"(%c) {callee = @exp_on_host}
    %d = "graph.to_device"(%1) {device = "device"}
    %2 = "graph.call_tir"(%d) {callee = @scaled}

A tensor is copied once to each device, where it is defined, however many ops need it there; what is
there already is not copied. Calls take constants from where they are needed. What branches and
loops pass on is where the function's tensors are. A function that is called from outside returns on
the host what is copied there last.

Needs: `relax-place-devices`. Leaves: ops that only read tensors where they can, and no
    `graph.to_device` of a tensor that is there.
Source: TVM `RealizeVDevice`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import (
    HOST_TENSORS,
    callee_of,
    device_of,
    device_of_argument,
    host_results,
    is_constant,
    placed,
    takes_any,
)
from relax_mlir.analysis.functions import graph_functions, inout_arguments, is_public
from relax_mlir.analysis.memory import is_tensor
from relax_mlir.analysis.rename import FreshSymbols
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp, MatchCastOp, TensorType, ToDeviceOp
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import replace, retyped, walk_ops
from relax_mlir.target.device import HOST


@dataclass(frozen=True)
class CopyBetweenDevices(Pass):
    """Copies what crosses a border between the host and the devices of the target."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Inserts copies in every graph function of the module."""
        functions = graph_functions(op)
        for function in functions:
            if is_public(function) and placed(function) != HOST:
                _mark_results(function)
        for function in functions:
            _Copies(function).run()


def _mark_results(function: func.FuncOp) -> None:
    """Tells which results are returned on the host: those that are copied there last."""
    inout, indices = inout_arguments(function), []
    for index, value in enumerate(_end(function).operands):
        if index in inout:
            is_host = device_of_argument(function, inout[index]) == HOST
        else:
            maker = _uncast(value)
            is_host = isinstance(maker, ToDeviceOp) and device_of(value) == HOST
        if is_host and is_tensor(value):
            indices.append(index)
    if indices:
        function.attributes[HOST_TENSORS] = ir.DenseI64ArrayAttr.get(indices)


def _uncast(value: ir.Value) -> ir.OpView | None:
    """The op that makes a tensor, casts apart."""
    while not isinstance(value, ir.BlockArgument):
        op = value.owner.opview
        if not isinstance(op, MatchCastOp):
            return op
        value = op.input
    return None


def _end(function: func.FuncOp) -> ir.OpView:
    operations = function.entry_block.operations
    return operations[len(operations) - 1]


@dataclass
class _Copies:
    """The copies of one function, by what is copied, and where to."""

    function: func.FuncOp
    _made: dict[tuple[ir.Value, str], ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fresh = FreshSymbols(self.function)

    def run(self) -> None:
        """Has each operand be where its op reads it."""
        for op in walk_ops(self.function):
            if isinstance(op, func.FuncOp) or takes_any(op):
                continue
            for index, value in enumerate(op.operands):
                if not is_tensor(value) or (isinstance(op, CallOp) and is_constant(value)):
                    continue
                device = self._reads_in(op, index)
                if device != device_of(value):
                    op.operation.operands[index] = self._copy(value, device)
        for move in walk_ops(self.function, ToDeviceOp):
            value = move.input
            device = device_of(move.result)
            if device != device_of(value):
                if TensorType.of(value).is_exact:
                    continue
                value = self._copy(value, device)
            with ir.InsertionPoint(move), move.location:
                replace(move, retyped(value, move.result.type))

    def _reads_in(self, op: ir.OpView, index: int) -> str:
        """Where an op reads an operand."""
        if isinstance(op, CallOp):
            return device_of_argument(callee_of(op), index)
        if isinstance(op, func.ReturnOp) and index in host_results(self.function):
            return HOST
        return placed(self.function)

    def _copy(self, value: ir.Value, device: str) -> ir.Value:
        """The tensor in another device, copied after its definition."""
        if (value, device) not in self._made:
            owner = value.owner
            if isinstance(owner, ir.Block):
                point, location = ir.InsertionPoint.at_block_begin(owner), self.function.location
            else:
                point, location = ir.InsertionPoint.after(owner), owner.location
            with point, location:
                self._made[value, device] = self._copied(value, device)
        return self._made[value, device]

    def _copied(self, value: ir.Value, device: str) -> ir.Value:
        exact = self._exact(value)
        return retyped(ToDeviceOp.build(exact, device=device).result, value.type)

    def _exact(self, value: ir.Value) -> ir.Value:
        """The tensor under an annotation that tells its size, which a cast may have left out."""
        annotation = TensorType.of(value)
        while not annotation.is_exact and not isinstance(value, ir.BlockArgument):
            cast = value.owner.opview
            if not isinstance(cast, MatchCastOp):
                break
            value, annotation = cast.input, TensorType.of(cast.input)
        if annotation.is_exact:
            return value
        if annotation.dims is None:
            raise PassFailure(value, f"is copied as '{value.type}', of unknown rank")
        dims = [self._fresh("d") if dim is None else dim for dim in annotation.dims]
        named = TensorType(tuple(dims), annotation.element)
        return MatchCastOp.build(value, named).result
