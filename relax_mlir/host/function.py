"""Lowers one graph function to a host function: walks its regions, op by op.

`emit.EMITTERS` has the lowering of each op. This is their shared state: the builder, the scope at
the current point, and the locations of values.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from relax_mlir.analysis.devices import device_of, placed
from relax_mlir.analysis.memory import Memory, returned_allocations
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects.graph import (
    Dim,
    ShapeError,
    ShapeValueType,
    TensorType,
    known_dims,
    shape_value_dims,
)
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import SymbolNames
from relax_mlir.symbolic import Expr, Fact, const
from relax_mlir.target import Device
from relax_mlir.target.device import HOST, device_names

from .adaptor import Adaptors
from .builder import Builder
from .dtypes import byte_width
from .runtime import Runtime
from .scope import HostTensor, Scope, Size
from .site_counts import SiteCounts
from .tables import INTEGER, Argument, Globals


class Interface(Protocol):
    """How arguments and results of a host function are passed."""

    def argument(self, index: int, annotation: TensorType) -> HostTensor:
        """An argument that is a tensor of that annotation."""

    def scalar_argument(self, index: int, type_: ir.Type) -> ir.Value:
        """An argument that is a scalar of that type of the graph."""

    @property
    def is_host_result(self) -> bool:
        """Whether scalars and shapes are returned on the host; else as tensors are."""

    def result(
        self, index: int, element: ir.Type, dims: Sequence[ir.Value], is_tensor: bool = True
    ) -> ir.Value:
        """The memory of a result of those dims: a tensor, or a scalar or shape."""

    def return_argument(self, index: int, argument: int) -> None:
        """Makes an argument that was updated in place a result."""


@dataclass(frozen=True)
class HostModule:
    """The shared state of host functions, and the module that contains them.

    With `devices`, their memory has the tensors; `constants` are those that one has a copy of, by
    the names of their globals and the index of the device, with their bytes.

    Kernels need scalable vectors of `vector_length` bytes; 0: of any length.

    `functions` are the graph functions; `callees` the names of those that others call, as they are
    lowered; `sites` count their kernel calls; `names` are the used names. `keeps` gives each
    `graph.keep` op an index.
    """

    module: ir.Module
    table: Globals
    runtime: Runtime
    adaptors: Adaptors
    names: SymbolNames
    libraries: Mapping[str, FunctionOp]
    functions: Mapping[str, func.FuncOp]
    sites: SiteCounts
    devices: Sequence[Device] = ()
    vector_length: int = 0
    callees: dict[str, str] = field(default_factory=dict)
    keeps: Iterator[int] = field(default_factory=count)
    constants: dict[tuple[str, int], int] = field(default_factory=dict)

    def constant(self, name: str, size: int, device: int) -> int:
        """The index of a constant that a device is to have."""
        self.constants.setdefault((name, device), size)
        return list(self.constants).index((name, device))

    def index(self, device: str) -> int:
        """The index of a device as the runtime has it, ON_HOST for the host."""
        names = device_names(self.devices)
        return names.index(device) if names and device != HOST else ON_HOST

    @property
    def block(self) -> ir.Block:
        """The block of functions and tables."""
        return self.module.body


ON_HOST = -1
"""The host, instead of the index of a device."""

Emitter = Callable[["HostFunction", Any], None]


class HostFunction:
    """The lowering of the graph function `graph` to host code, which is emitted to `out`.

    `site` is the index of the first site of the function's group. `returned` maps tensors that are
    allocated as results to the index of the result; `open_facts` are facts of the function on
    symbols that are not all bound yet.
    """

    def __init__(
        self,
        graph: func.FuncOp,
        out: Builder,
        module: HostModule,
        border: Interface,
        emitters: Mapping[type[ir.OpView], Emitter],
        site: ir.Value | None = None,
    ) -> None:
        self.graph, self.out, self.module, self.border = graph, out, module, border
        self.name: str = graph.name.value
        self.scope = Scope(out, {})
        self.open_facts: list[Fact] = []
        self.memory = Memory({})
        self.returned = returned_allocations(graph, self.memory)
        self.emitters = emitters
        self.constants: dict[ir.Value, str] = {}  # the names of their globals
        self._site, self._num_sites = site, module.sites.offset(self.name)
        self._annotations: dict[ir.Type, TensorType] = {}
        self._num_calls = 0

    # Control flow.

    @contextmanager
    def region(self, block: ir.Block, scope: Scope) -> Iterator[ir.OpView]:
        """Emits the ops of a block in a new scope, and yields its terminator."""
        outer, num_calls, open_facts = self.scope, self._num_calls, list(self.open_facts)
        self.scope, self._num_calls = scope, 0
        *operations, terminator = block.operations
        for op in operations:
            with op.location:
                self._emit(op)
        with terminator.location:
            yield terminator
            if self._num_calls:
                self.out.call_runtime("rx_count_kernels", [self.out.integer(self._num_calls)])
        while self.scope is not outer:
            self.scope.close(self.module.table, self.name)
            self.scope = self.scope.outer
        self._num_calls, self.open_facts = num_calls, open_facts

    def _emit(self, op: ir.OpView) -> None:
        emit = self.emitters.get(type(op))
        if emit is None:
            names = {kind.OPERATION_NAME for kind in self.emitters}
            arithmetic = {name for name in names if name.startswith("arith.")}
            known = ", ".join(["arithmetic on scalars", *sorted(names - arithmetic)])
            raise PassFailure(op, f"cannot be host code, which supports {known}")
        emit(self, op)

    def next_site(self, count: int = 1) -> ir.Value:
        """The index of the next site, an `i32`, of `count` sites; indices are in program order."""
        index = self.out.integer(self._num_sites, self.out.i32)
        self._num_sites += count
        if self._site is None:
            return index
        return arith.addi(self.group_site(), index, ip=self.out.at)

    def group_site(self) -> ir.Value:
        """The index of the first site of the functions that this one shares sites with."""
        return self.out.integer(0, self.out.i32) if self._site is None else self._site

    def count_call(self) -> None:
        """Counts a kernel call in the current block."""
        self._num_calls += 1

    # Values.

    def tensor(self, value: ir.Value) -> HostTensor:
        """The location of a tensor."""
        tensors = self.scope.tensors
        if value not in tensors and value in self.constants:
            tensors[value] = self.constant(value, self.device_of(value))
        if value not in tensors:
            annotation = self.annotation(value)
            index = ir.BlockArgument(value).arg_number
            tensors[value] = self.border.argument(index, annotation)
        return tensors[value]

    def constant(self, value: ir.Value, device: int) -> HostTensor:
        """A constant, or its copy on a device."""
        name, type_ = self.constants[value], ir.RankedTensorType(value.type)
        dims, element = tuple(map(const, type_.shape)), type_.element_type
        if device == ON_HOST:
            return HostTensor(self.out.address(name), dims, element)
        size = math.prod(type_.shape) * byte_width(element)
        index = self.out.integer(self.module.constant(name, size, device), self.out.i32)
        (pointer,) = self.out.call_runtime("rx_device_constant", [index])
        return HostTensor(pointer, dims, element)

    def sizes(self, value: ir.Value) -> tuple[Size, ...]:
        """The dims of a tensor, or of a shape as a value."""
        if not isinstance(value.type, ShapeValueType):
            return self.tensor(value).dims
        known = self.scope.shapes.get(value) or known_dims(shape_value_dims(value.type))
        if known is None:
            raise PassFailure(value, f"has the type '{value.type}', whose dims are unknown")
        return known

    def scalar(self, op: ir.OpView, value: ir.Value) -> ir.Value:
        """An integer, a float, or an index, which has 64 bits."""
        known = self.scope.scalars.get(value)
        if known is None:
            raise PassFailure(
                op, f"needs a value of type '{value.type}', which host code does not support"
            )
        return known

    def define(self, value: ir.Value, tensor: HostTensor) -> None:
        """Defines the location of a tensor."""
        self.scope.tensors[value] = tensor

    def annotation(self, value: ir.Value) -> TensorType:
        """The annotation of a tensor; raises PassFailure at a value of another type."""
        if value.type not in self._annotations:
            try:
                self._annotations[value.type] = TensorType.of(value)
            except ShapeError:
                raise PassFailure(value, f"has the type '{value.type}', not a tensor") from None
        return self._annotations[value.type]

    def result(self, index: int) -> ir.Value:
        """The value that the function returns as a result."""
        operations = self.graph.entry_block.operations
        return operations[len(operations) - 1].operands[index]

    def device_of(self, value: ir.Value) -> int:
        """The index of the device whose memory a tensor is in; ON_HOST: the host can access it."""
        return self.module.index(device_of(value))

    @property
    def own_device(self) -> int:
        """Where the function is."""
        return self.module.index(placed(self.graph))

    def copy(
        self, op: ir.OpView, source: HostTensor, target: ir.Value, devices: tuple[int, int]
    ) -> None:
        """Copies a tensor to an address; `devices` are those of the source and of the target."""
        out, size = self.out, self.size_in_bytes(op, source)
        if devices == (ON_HOST, ON_HOST):
            out.copy(target, source.pointer, size)
        else:
            self._move(target, devices[1], source.pointer, devices[0], size)

    def _move(
        self, target: ir.Value, to: int, source: ir.Value, origin: int, size: ir.Value
    ) -> None:
        out = self.out
        at, from_ = (out.integer(device, out.i32) for device in (to, origin))
        operands = [out.context, target, at, source, from_, size]
        (status,) = out.call_runtime("rx_device_move", operands)
        out.fail_unless_zero(status)

    def readable(self, value: ir.Value, pointer: ir.Value, size: int) -> ir.Value:
        """Where the host can read bytes of a tensor, until the next call of this."""
        out = self.out
        device = self.device_of(value)
        if device == ON_HOST:
            return pointer
        operands = [out.context, out.integer(device, out.i32), pointer, out.integer(size)]
        (copied,) = out.call_runtime("rx_device_read", operands)
        out.fail_if_null(copied)
        return copied

    @contextmanager
    def writing(self, pointer: ir.Value, size: int, device: int) -> Iterator[ir.Value]:
        """Where the host can write bytes of a tensor, in the `with` block."""
        out = self.out
        if device == ON_HOST:
            yield pointer
            return
        stack = out.stack((size + 7) // 8)
        yield stack
        self._move(pointer, device, stack, ON_HOST, out.integer(size))

    def size_in_bytes(self, op: ir.OpView, tensor: HostTensor) -> ir.Value:
        """The bytes of a tensor that has memory."""
        width = self.out.integer(byte_width(tensor.element))
        return self.out.product([width, *self.integers(op, tensor.dims)])

    # Integers.

    def dims(self, op: ir.OpView, value: ir.Value) -> tuple[Expr, ...]:
        """The dims of a tensor's annotation.

        Raises PassFailure at the op if one of them is unknown.
        """
        dims = self.annotation(value).dims
        if dims is None:
            raise PassFailure(op, "has an unknown rank; assert it with graph.match_cast")
        return tuple(self.known(op, dim) for dim in dims)

    def known(self, op: ir.OpView, size: Dim) -> Expr:
        """An expression over bound symbols; raises PassFailure at the op otherwise."""
        if size is None:
            raise PassFailure(op, "has an unknown dim; assert it with graph.match_cast")
        unknown = size.symbols - self.scope.symbols.keys()
        if unknown:
            raise PassFailure(op, f"uses the symbol '{min(unknown)}', which nothing binds")
        return size

    def integer(self, op: ir.OpView, size: Size | None, kind: int = INTEGER) -> ir.Value:
        """The value of a size, an `i64`; `kind` as for `Scope.integer`."""
        if isinstance(size, ir.Value):
            return size
        try:
            return self.scope.integer(self.known(op, size), kind)
        except OverflowError:
            raise _too_large(op, size) from None

    def require_natural(self, op: ir.OpView, dims: Sequence[Expr]) -> None:
        """Refuses negative dims at run time."""
        for dim in dims:
            try:
                self.scope.require_natural(dim)
            except OverflowError:
                raise _too_large(op, dim) from None

    def function_table(
        self,
        op: ir.OpView,
        name: str,
        arguments: Sequence[Argument],
        symbols: Sequence[str],
        facts: Sequence[Fact],
        num_results: int = 0,
        known: Collection[str] | None = None,
    ) -> ir.Value:
        """The address of an `RxFunction`: see `Globals.function`."""
        try:
            table = self.module.table.function(name, arguments, symbols, facts, num_results, known)
        except OverflowError:
            raise PassFailure(op, "has a dim or a fact with a constant beyond 64 bits") from None
        return self.out.address(table)

    def integers(self, op: ir.OpView, sizes: Sequence[Size | None]) -> list[ir.Value]:
        """The values of several sizes."""
        return [self.integer(op, size) for size in sizes]


def _too_large(op: ir.OpView, size: Dim) -> PassFailure:
    return PassFailure(op, f"uses '{size}', which has a constant beyond 64 bits")
