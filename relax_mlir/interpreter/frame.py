"""Activation frames of functions, and the prepared blocks of a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from relax_mlir.analysis.recursion import Recursion
from relax_mlir.bindings import func, gpu, ir, memref
from relax_mlir.dialects.graph import Memo, remembering
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr

from .binding import Signature, Symbols
from .lookup import find, is_known
from .step import Dims, Find, Step

Launch = Callable[[str, Sequence[Any], Sequence[Any]], None]
"""Runs a kernel of a device, on a grid, with arrays and scalars."""


@dataclass(frozen=True)
class Position:
    """An instance of a dataflow node: its indices, the grid, and what tiles cover, if it is one."""

    ids: tuple[int, ...]
    extents: tuple[int, ...]
    covered: tuple[int, ...] = ()


@dataclass
class Frame:
    """The state of a running function: its values and symbols.

    `loops` are the indices of the running loop nest: arrays that broadcast, or integers. `depth`
    counts the calls that the function is nested in of functions that call themselves. `grids` are
    the running instances of dataflow nodes, the innermost first.
    """

    code: Code
    signature: Signature
    values: dict[ir.Value, Any] = field(default_factory=dict)
    symbols: Symbols = field(default_factory=Symbols)
    loops: Sequence[Any] = ()
    depth: int = 0
    grids: Sequence[Position] = ()

    def nested(self) -> Frame:
        """A frame for a region: it sees all values, and symbols that it binds are local to it."""
        return replace(self, symbols=self.symbols.nested())

    def run(self, block: ir.Block, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a block; returns the operands of its terminator."""
        steps = self.code.steps(block)
        self.values.update(zip(steps.arguments, arguments, strict=True))
        for step in steps.steps:
            step(self)
        return [self.values[value] for value in steps.yielded]

    def evaluate(self, dims: Dims) -> tuple[int, ...]:
        """The values of expressions."""
        return tuple(_known(dim).evaluate(self.symbols) for dim in dims)


def _known(dim: Expr | None) -> Expr:
    if dim is None:
        raise ValueError("has a dim that is not known; assert it with graph.match_cast")
    return dim


@dataclass(frozen=True)
class Steps:
    """A block, prepared to run."""

    arguments: list[ir.Value]
    steps: list[Step]
    yielded: list[ir.Value]


class Code:
    """The functions of a module; blocks are prepared when they first run.

    `before` is the module at an earlier stage. Kernels that were scheduled since then are run; for
    others the tensor program of the earlier stage is run instead, which is faster, as it is for
    kernels with unknown instructions. `launch` runs kernels of devices by name, on a grid.
    """

    def __init__(
        self,
        module: ir.Operation | ir.OpView,
        before: Code | None = None,
        launch: Launch | None = None,
    ) -> None:
        self.launch = launch
        operations = module.regions[0].blocks[0].operations
        self.functions = {op.name.value: op for op in operations if isinstance(op, func.FuncOp)}
        self.libraries = {op.sym_name.value: op for op in operations if isinstance(op, FunctionOp)}
        self.globals = {
            op.sym_name.value: op for op in operations if isinstance(op, memref.GlobalOp)
        }
        self._devices = {
            ir.StringAttr(op.attributes["sym_name"]).value: op
            for op in operations
            if isinstance(op, gpu.GPUModuleOp)
        }
        kernels = {name for name, op in self.functions.items() if PrimFunc.is_prim_func(op)}
        self.scheduled = {name for name in kernels if PrimFunc(self.functions[name]).is_scheduled}
        self.programs: dict[str, func.FuncOp] = dict(before.programs) if before else {}
        for name in self.scheduled & self.programs.keys():
            is_old = before is not None and name in before.scheduled
            if is_old or not _is_known(self.functions[name]):
                self.functions[name] = self.programs[name]
        self.programs |= {name: self.functions[name] for name in kernels - self.scheduled}
        graphs = [op for name, op in self.functions.items() if name not in kernels]
        self.recursion = Recursion([op for op in graphs if not op.is_external])
        self._steps: dict[ir.Block, Steps] = {}
        self._memo = Memo()
        self._find: Find = find
        self._threads: Code | None = None
        self._stored: dict[ir.Block, list[ir.Value]] = {}
        self._signatures: dict[str, Signature] = {}

    def signature(self, function: func.FuncOp) -> Signature:
        """The signature of a function of the module."""
        name = function.name.value
        if name not in self._signatures:
            self._signatures[name] = Signature(function)
        return self._signatures[name]

    def kernel(self, module: str, name: str) -> gpu.GPUFuncOp | None:
        """The kernel of a name in a module of a device, if there is one."""
        own = self._devices.get(module)
        kernels = () if own is None else walk_ops(own, gpu.GPUFuncOp)
        return next(
            (k for k in kernels if ir.StringAttr(k.attributes["sym_name"]).value == name), None
        )

    def steps(self, block: ir.Block) -> Steps:
        """The prepared ops of a block; raises CompileError at one that is not supported."""
        prepared = self._steps.get(block)
        if prepared is None:
            *operations, terminator = list(block.operations)
            with remembering(self._memo):
                steps = [Step(op, self._find) for op in operations]
            prepared = Steps(list(block.arguments), steps, list(terminator.operands))
            self._steps[block] = prepared
        return prepared

    def stored(self, body: ir.Block) -> list[ir.Value]:
        """The buffers from outside of a launch that it stores to."""
        if body not in self._stored:
            stores = walk_ops(body.owner, memref.StoreOp, memref.AtomicRMWOp)
            targets = dict.fromkeys(store.memref for store in stores)
            own = [x for x in targets if ir.MemRefType(x.type).memory_space is None]
            self._stored[body] = own
        return self._stored[body]

    def for_threads(self, find: Find) -> Code:
        """The same module, whose ops are computed by what `find` returns: in kernels of devices."""
        if self._threads is None:
            self._threads = copy(self)
            self._threads._find, self._threads._steps = find, {}
        return self._threads


def _is_known(function: func.FuncOp) -> bool:
    """Whether all ops of a function are supported."""
    return not function.is_external and all(map(is_known, walk_ops(function)))
