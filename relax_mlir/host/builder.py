"""Builds the body of one function of host code: constants, memory, calls, blocks.

Integers are `i64` unless a type is given. Control flow is blocks and branches, never regions, so
that every failure, at any depth, branches to the one failure block of the function.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from relax_mlir.bindings import arith, cf, func, ir, llvm

from .runtime import Runtime

DYNAMIC = -(1 << 31)
"""Marks an index that is an operand, in `llvm.getelementptr`."""


class Builder:
    """Appends ops to a function, which returns a status, 0 for success, or nothing.

    Constants and stack memory go to the entry block, so that they are valid in every other one.
    """

    def __init__(self, function: func.FuncOp, runtime: Runtime) -> None:
        self.function = function
        self.runtime = runtime
        self.i1, self.i32, self.i64 = map(ir.IntegerType.get_signless, (1, 32, 64))
        self.pointer = llvm.PointerType.get()
        self._entry = function.add_entry_block()
        self._body = self._entry.create_after()
        self._failure: ir.Block | None = None
        self._constants: dict[object, ir.Value] = {}
        self._stack: ir.Value | None = None
        self._stack_length = 0
        self.enter(self._body)

    @property
    def arguments(self) -> Sequence[ir.Value]:
        """The arguments of the function."""
        return self._entry.arguments

    @property
    def context(self) -> ir.Value:
        """The context of the call, which functions that can fail take first."""
        return self._entry.arguments[0]

    def finish(self) -> None:
        """Ends the function; the current block succeeds."""
        self._return(0)
        if self._failure is not None:
            self.enter(self._failure)
            self._return(1)
        if self._stack is not None:
            length = self._stack.owner.operands[0].owner
            length.attributes["value"] = ir.IntegerAttr.get(self.i64, self._stack_length)
        self.enter(self._entry)
        self.branch(self._body)

    def _return(self, status: int) -> None:
        returns_status = bool(self.function.type.results)
        func.ReturnOp([self.integer(status, self.i32)] if returns_status else [], ip=self.at)

    # Blocks.

    def new_block(self, argument_types: Sequence[ir.Type] = ()) -> ir.Block:
        """An empty block after the current one."""
        locations = [ir.Location.current] * len(argument_types)
        return self.block.create_after(*argument_types, arg_locs=locations)

    def new_cold_block(self) -> ir.Block:
        """An empty block off the hot path, just before the failure block."""
        return self.failure.create_before()

    @property
    def failure(self) -> ir.Block:
        """The block that returns early, with a failure; the last one."""
        if self._failure is None:
            self._failure = self.block.region.blocks.append()
        return self._failure

    def enter(self, block: ir.Block) -> None:
        """Continues at the end of a block."""
        self.block = block
        self.at = ir.InsertionPoint(block)

    @contextmanager
    def inserting(self, block: ir.Block) -> Iterator[None]:
        """Appends to another block for the duration of the `with` block."""
        before = self.block
        self.enter(block)
        yield
        self.enter(before)

    def branch(self, block: ir.Block, operands: Sequence[ir.Value] = ()) -> None:
        """Ends the current block by a jump."""
        cf.BranchOp(list(operands), block, ip=self.at)

    def branch_if(
        self,
        condition: ir.Value,
        then: ir.Block,
        otherwise: ir.Block,
        operands: Sequence[ir.Value] = (),
    ) -> None:
        """Ends the current block by a jump to one of two blocks, which take the same operands."""
        handed = list(operands)
        cf.CondBranchOp(condition, handed, handed, then, otherwise, ip=self.at)

    def leave_if(self, condition: ir.Value) -> None:
        """Returns from the function if an `i1` is true; with an error, if it returns a status."""
        goes_on = self.new_block()
        self.branch_if(condition, self.failure, goes_on)
        self.enter(goes_on)

    @contextmanager
    def refusing_if(self, condition: ir.Value) -> Iterator[None]:
        """Returns with an error, which the `with` block reports, if an `i1` is true."""
        cold, goes_on = self.new_cold_block(), self.new_block()
        self.branch_if(condition, cold, goes_on)
        with self.inserting(cold):
            yield
            self.branch(self.failure)
        self.enter(goes_on)

    def fail_unless_zero(self, status: ir.Value) -> None:
        """Returns with an error unless a status, an `i32`, is 0."""
        self.leave_if(self.compare("ne", status, self.integer(0, self.i32)))

    def fail_if_null(self, pointer: ir.Value) -> None:
        """Returns with an error if the runtime is out of memory."""
        null = self._constant("null", lambda ip: llvm.ZeroOp(self.pointer, ip=ip).res)
        self.leave_if(llvm.ICmpOp(llvm.ICmpPredicate.eq, pointer, null, ip=self.at).res)

    # Numbers.

    def integer(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        """A constant of an integer type."""
        kind = type_ or self.i64
        return self._constant((value, kind), lambda ip: arith.ConstantOp(kind, value, ip=ip).result)

    def real(self, value: ir.FloatAttr) -> ir.Value:
        """A constant of a floating point type."""
        return self._constant(value, lambda ip: arith.ConstantOp(value.type, value, ip=ip).result)

    def compare(self, predicate: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """Compares integers: "eq", "ne", "slt", "sle", ..., or unsigned "ult", ..."""
        return arith.cmpi(getattr(arith.CmpIPredicate, predicate), lhs, rhs, ip=self.at)

    def product(self, factors: Sequence[ir.Value]) -> ir.Value:
        """The product of integers that cannot overflow, such as the elements of a tensor."""
        total = self.integer(1) if not factors else factors[0]
        for factor in factors[1:]:
            total = arith.muli(total, factor, ip=self.at)
        return total

    # Memory.

    def address(self, name: str) -> ir.Value:
        """The address of a global."""
        return self._constant(name, lambda ip: llvm.AddressOfOp(self.pointer, name, ip=ip).res)

    def stack(self, length: int) -> ir.Value:
        """Memory for `length` integers, which the next call may overwrite."""
        self._stack_length = max(self._stack_length, length, 1)
        if self._stack is None:
            with self.inserting(self._entry):
                count = arith.ConstantOp(self.i64, 1, ip=self.at).result
                self._stack = llvm.AllocaOp(self.pointer, count, self.i64, ip=self.at).res
        return self._stack

    def field(self, base: ir.Value, indices: Sequence[int], type_: ir.Type) -> ir.Value:
        """The address of an element of an array of `type_`, or of a field in it."""
        if not any(indices):
            return base
        return llvm.GEPOp(self.pointer, base, [], list(indices), type_, None, ip=self.at).res

    def at_offset(self, pointer: ir.Value, offset: ir.Value) -> ir.Value:
        """A pointer plus an offset in bytes."""
        return self.element(pointer, offset, ir.IntegerType.get_signless(8))

    def element(self, base: ir.Value, index: ir.Value, type_: ir.Type) -> ir.Value:
        """The address of an element of an array."""
        return llvm.GEPOp(self.pointer, base, [index], [DYNAMIC], type_, None, ip=self.at).res

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        """Stores a scalar."""
        llvm.StoreOp(value, pointer, ip=self.at)

    def load(self, pointer: ir.Value, type_: ir.Type) -> ir.Value:
        """Loads a scalar."""
        return llvm.LoadOp(type_, pointer, ip=self.at).res

    def load_integer(self, base: ir.Value, index: int) -> ir.Value:
        """Loads an element of an array of integers."""
        return self.load(self.field(base, [index], self.i64), self.i64)

    def store_integers(self, values: Sequence[ir.Value], base: ir.Value) -> None:
        """Stores integers one after another."""
        for index, value in enumerate(values):
            self.store(value, self.field(base, [index], self.i64))

    def copy(self, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
        """Copies `size` bytes."""
        llvm.MemcpyOp(target, source, size, False, ip=self.at)

    # Calls.

    def call(self, callee: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]) -> list:
        """Calls a function of the module; returns its results."""
        return list(func.CallOp(list(results), callee, list(operands), ip=self.at).results)

    def call_runtime(self, callee: str, operands: Sequence[ir.Value]) -> list:
        """Calls a function of the runtime; returns its results."""
        return self.call(callee, operands, self.runtime.results(callee))

    def _constant(self, key: object, make: Callable[[ir.InsertionPoint], ir.Value]) -> ir.Value:
        """The constant that `make` adds to the entry block, once per key."""
        if key not in self._constants:
            self._constants[key] = make(ir.InsertionPoint(self._entry))
        return self._constants[key]
