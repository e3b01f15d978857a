"""Runs graph functions, before or after their memory is planned, and watches every byte.

Operators are functional and never change a tensor; `call_dps` and `copy` do, and a tensor of a plan
is a piece of its storage. Each byte knows which allocation wrote it last, so a read of what another
one has written, or nobody, is found even if the numbers happen to be right:

    before = Machine(module).run("main", arguments)
    after = Machine(planned).run("main", copies)     # raises BrokenPlan
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from relax_mlir.analysis.functions import inout_arguments
from relax_mlir.analysis.memory import RESHAPE
from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.symbolic import SymbolicError, solve

Kernel = Callable[..., Sequence[np.ndarray]]
"""Takes the inputs of a tensor program, then the old contents of what it updates."""


class BrokenPlan(Exception):
    """A tensor that is read or updated does not hold what was written to it."""


@dataclass
class Tensor:
    """An array, and for each of its elements the allocation that wrote it last."""

    array: np.ndarray
    writers: np.ndarray
    owner: int

    def read(self) -> np.ndarray:
        if not (self.writers == self.owner).all():
            raise BrokenPlan("reads what it has not written")
        return self.array

    def write(self, value: np.ndarray) -> None:
        self.array[...] = value
        self.writers[...] = self.owner


def fresh(array: np.ndarray, owner: int = 0) -> Tensor:
    return Tensor(array, np.full(array.shape, owner), owner)


@dataclass
class Machine:
    """Calls functions of a module; `kernels` are its tensor programs, by their names."""

    module: ir.Module
    kernels: dict[str, Kernel]

    def __post_init__(self) -> None:
        self.functions = {op.name.value: op for op in self.module.body.operations}
        self.owners = count(1)

    def run(self, name: str, arguments: Sequence[Any]) -> list[np.ndarray]:
        """Calls a function; arrays of `graph.inout` arguments are updated."""
        values = [fresh(a) if isinstance(a, np.ndarray) else a for a in arguments]
        return [result.read().copy() for result in self._call(self.functions[name], values)]

    def _call(self, function: func.FuncOp, arguments: Sequence[Any]) -> list[Any]:
        known = dict(zip(function.arguments, arguments, strict=True))
        symbols: dict[str, int] = {}
        for argument, value in known.items():
            if isinstance(value, Tensor):
                _bind(argument.type, value.array.shape, symbols)
        return self._block(function.entry_block, known, symbols)

    def _block(self, block: ir.Block, known: dict, symbols: dict[str, int]) -> list[Any]:
        """Runs the ops of a block; returns the operands of its end."""
        for op in block.operations:
            operands = [known.get(value) for value in op.operands]
            if isinstance(op, func.ReturnOp | scf.YieldOp | scf.ConditionOp):
                return operands
            if isinstance(op, scf.IfOp | scf.ForOp | scf.WhileOp):
                results = self._structured(op, operands, known, symbols)
            else:
                results = self._op(op, operands, symbols)
            known.update(zip(op.results, results, strict=True))
        raise AssertionError("a block ends")

    def _structured(self, op: Any, operands: list, known: dict, symbols: dict) -> list[Any]:
        blocks = [region.blocks[0] for region in op.operation.regions if len(region.blocks)]

        def inside(block: ir.Block, values: Sequence[Any]) -> list[Any]:
            entered = known | dict(zip(block.arguments, values, strict=True))
            return self._block(block, entered, dict(symbols))

        if isinstance(op, scf.IfOp):
            chosen = 0 if operands[0] else 1
            return inside(blocks[chosen], []) if chosen < len(blocks) else []
        if isinstance(op, scf.ForOp):
            low, high, step, *carried = operands
            for index in range(low, high, step):
                carried = inside(blocks[0], [index, *carried])
            return carried
        go_on, *values = inside(blocks[0], operands)
        while go_on:
            go_on, *values = inside(blocks[0], inside(blocks[1], values))
        return values

    def _op(self, op: Any, operands: list, symbols: dict[str, int]) -> list[Any]:
        match op:
            case arith.ConstantOp():
                value = op.attributes["value"]
                is_scalar = isinstance(value, ir.IntegerAttr)
                return [value.value if is_scalar else fresh(np.array(value).copy())]
            case arith.CmpIOp():
                return [operands[0] < operands[1]]
            case arith.AddIOp():
                return [operands[0] + operands[1]]
            case graph.MatchCastOp():
                _bind(op.result.type, operands[0].array.shape, symbols)
                return operands
            case graph.ViewOp():
                return [_view(operands[0], self._shape(op.result, symbols))]
            case graph.AllocStorageOp():
                size = op.bytes.evaluate(symbols)
                return [(np.full(size, 0xFF, np.uint8), np.full(size // 4, -1))]
            case graph.AllocTensorOp():
                return [self._allocate(op, operands, symbols)]
            case graph.CopyOp():
                operands[1].write(operands[0].read())
                return []
            case graph.CallDpsOp():
                self._call_dps(op, operands)
                return []
            case graph.CallTirOp() | graph.CallTirInplaceOp():
                return self._call_tir(op, operands, symbols)
            case graph.CallOp():
                callee = self.functions[op.callee_name]
                inout = inout_arguments(callee)
                results = self._call(callee, operands)
                copies = [fresh(result.read().copy()) for result in results]
                return [results[i] if i in inout else copies[i] for i in range(len(results))]
        raise AssertionError(op)

    def _shape(self, value: ir.Value, symbols: dict[str, int]) -> list[int]:
        return [dim.evaluate(symbols) for dim in TensorType.of(value).dims]

    def _allocate(self, op: graph.AllocTensorOp, operands: list, symbols: dict) -> Tensor:
        shape, owner = self._shape(op.result, symbols), next(self.owners)
        if not operands:
            return Tensor(np.full(shape, np.nan, np.float32), np.full(shape, -1), owner)
        memory, writers = operands[0]
        number = int(np.prod(shape))
        try:
            begin = op.byte_offset.evaluate(symbols)
        except SymbolicError as error:
            raise BrokenPlan(str(error)) from None
        if begin < 0 or begin % 4 or begin + 4 * number > len(memory):
            raise BrokenPlan("lies outside of its storage")
        piece = slice(begin // 4, begin // 4 + number)
        array = memory.view(np.float32)[piece].reshape(shape)
        return Tensor(array, writers[piece].reshape(shape), owner)

    def _call_dps(self, op: graph.CallDpsOp, operands: list[Tensor]) -> None:
        sources, outs = operands[: len(op.sources)], operands[len(op.sources) :]
        for index, out in enumerate(outs, len(sources)):
            others = operands[:index] + operands[index + 1 :]
            if any(np.shares_memory(out.array, other.array) for other in others):
                raise BrokenPlan("writes what it needs")
        updated = [outs[number] for number in ir.DenseI64ArrayAttr(op.attributes["updates"])]
        arrays = [tensor.read() for tensor in (*sources, *updated)]
        if op.callee_name in self.kernels:
            results = [array.copy() for array in self.kernels[op.callee_name](*arrays)]
            for out, result in zip(outs, results, strict=True):
                out.write(result)
            return
        callee, rest = self.functions[op.callee_name], iter(sources)
        inout = {argument: result for result, argument in inout_arguments(callee).items()}
        passed = [
            outs[inout[index]] if index in inout else next(rest)
            for index in range(len(callee.arguments))
        ]
        for index, result in enumerate(self._call(callee, passed)):
            if index not in inout.values():
                outs[index].write(result.read())

    def _call_tir(self, op: Any, operands: list[Tensor], symbols: dict) -> list[Tensor]:
        arrays = [tensor.read() for tensor in operands]
        if RESHAPE in self.functions[op.callee_name].attributes:
            return [fresh(arrays[0].reshape(self._shape(op.results[0], symbols)))]
        inplace = op.inplace if isinstance(op, graph.CallTirInplaceOp) else ()
        updated = [arrays[index] for index in inplace if index >= 0]
        sources = [array for index, array in enumerate(arrays) if index not in inplace]
        return [fresh(array) for array in self.kernels[op.callee_name](*sources, *updated)]


def _view(tensor: Tensor, shape: list[int]) -> Tensor:
    return Tensor(tensor.array.reshape(shape), tensor.writers.reshape(shape), tensor.owner)


def _bind(type_: ir.Type, shape: Sequence[int], symbols: dict[str, int]) -> None:
    """Gives values to the symbols of a type that have none; each dim has at most one of those."""
    for dim, extent in zip(TensorType.of(type_).dims, shape, strict=True):
        for name in dim.symbols - symbols.keys():
            factor, offset = solve(dim, name)
            symbols[name] = (extent - offset.value) // factor.value
