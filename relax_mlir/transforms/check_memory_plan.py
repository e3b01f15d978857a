"""Replays a memory plan and fails if a tensor may be overwritten; changes nothing.

Tracks the last writer of the bytes of each tensor, through branches and loops, and checks

    every tensor     is it within its storage?
    every read       is the tensor written, and not overwritten since?
    every write      is the memory writable, and not another operand of the op?

A storage that is allocated in a loop ends with the iteration. Byte ranges are compared by proofs
under the facts; what cannot be proved is tried on sample sizes. The check does not use lifetimes,
from which plans are made, so it finds errors in them.

Needs: explicit allocation. Leaves: the module unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relax_mlir.analysis.byte_ranges import ByteRange, Sizes, leaves, meet
from relax_mlir.analysis.exchange import alternatives, base, never_same
from relax_mlir.analysis.functions import graph_functions, inout_arguments
from relax_mlir.analysis.memory import Memory, is_tensor
from relax_mlir.analysis.rename import used_symbols
from relax_mlir.analysis.scopes import Scope, bound_by, scoped_ops
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CopyOp,
    Dim,
    KeepOp,
    MatchCastOp,
    TensorType,
    annotation_of,
    element_bits,
    known_dims,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Fact, Facts, product, sym


@dataclass(frozen=True)
class CheckMemoryPlan(Pass):
    """Replays a memory plan and fails if a tensor may be overwritten."""

    def run(self, op: ir.Operation) -> None:
        """Checks every graph function of the module."""
        functions = functions_by_name(op)
        for function in graph_functions(op):
            last_uses: dict[ir.Operation, list[ir.Value]] = {}
            _collect_last_uses(function.entry_block, last_uses)
            replay = _Replay(function, Memory(functions), _ranges(function), last_uses)
            replay.block(function.entry_block, _State())


def _ranges(function: func.FuncOp) -> dict[ir.Value, ByteRange]:
    """The byte ranges of tensors in storages.

    Symbols of one name that are bound twice are two symbols.

    Raises PassFailure at a tensor that is not within its storage.
    """
    taken, names = used_symbols(function), dict[str, Expr]()
    bound: set[str] = set()
    given = _given(function)
    ranges: dict[ir.Value, ByteRange] = {}
    storages: dict[ir.Value, Expr] = {}
    for op, scope in scoped_ops(function):
        bound = bound or set(scope.symbols)
        if isinstance(op, MatchCastOp):
            for name in bound_by(op, scope.symbols):
                if name in bound:
                    names[name] = sym(_fresh(name, taken))
                bound.add(name)
        elif isinstance(op, AllocStorageOp):
            storages[op.result] = _expression(op, op.bytes, scope).substitute(names)
        elif isinstance(op, AllocTensorOp) and op.operands:
            storage = _storage(op.result)
            range_ = ByteRange(
                _expression(op, op.byte_offset, scope).substitute(names),
                _expression(op, _bytes(op), scope).substitute(names),
                given + _known(scope).substitute(names),
            )
            if storage not in storages:
                raise PassFailure(op, "is in a storage that is not allocated in this function")
            size = storages[storage]
            outside = leaves(range_, size)
            if outside is not None:
                note = (storage.owner, f"it has {size} bytes")
                text = f"is at bytes {range_}, beyond its storage{_with(outside)}"
                raise PassFailure(op, text, [note])
            ranges[op.result] = range_
    return ranges


def _fresh(name: str, taken: set[str]) -> str:
    """An unused name for a symbol; it is used from then on."""
    count = 1
    while f"{name}_{count}" in taken:
        count += 1
    taken.add(f"{name}_{count}")
    return f"{name}_{count}"


def _given(function: func.FuncOp) -> Facts:
    """What the arguments show by being there: no dim is below 0."""
    dims = [dim for argument in function.arguments for dim in dims_of(annotation_of(argument))]
    known = [dim for dim in dims if dim is not None and str(dim) not in dim.symbols]
    return Facts(tuple(Fact(dim, ">=", Expr()) for dim in known if dim.symbols))


def _known(scope: Scope) -> Facts:
    """The facts that are checked at this point."""
    return Facts(tuple(fact for fact in scope.facts if fact.symbols <= scope.symbols))


def _storage(tensor: ir.Value) -> ir.Value:
    """The storage of a planned tensor."""
    return tensor.owner.opview.operands[0]


def _expression(op: ir.OpView, dim: Dim, scope: Scope) -> Expr:
    """A size or an offset, in symbols that are bound at the op."""
    if dim is None:
        raise PassFailure(op, "has an unknown size or offset")
    for name in sorted(dim.symbols - scope.symbols):
        raise PassFailure(op, f"uses the symbol '{name}', which is not bound here")
    return dim


def _bytes(op: AllocTensorOp) -> Expr:
    annotation = TensorType.of(op.result)
    dims = known_dims(annotation.dims)
    if dims is None:
        raise PassFailure(op, f"has the unknown size of '{annotation}'")
    return product(dims) * (element_bits(annotation.element) // 8)


def _with(sizes: Sizes) -> str:
    return " with " + ", ".join(f"{k} = {v}" for k, v in sorted(sizes.items())) if sizes else ""


@dataclass(frozen=True)
class _Contents:
    """The contents of a tensor: whether it may be unwritten, and which tensors overwrote it."""

    unwritten: bool = True
    lost_to: frozenset[ir.Value] = frozenset()

    def lost(self, taker: ir.Value) -> "_Contents":
        """The contents after another tensor has written to the memory."""
        return replace(self, lost_to=self.lost_to | {taker})

    def join(self, other: "_Contents") -> "_Contents":
        """The contents at the join of two paths."""
        return _Contents(self.unwritten or other.unwritten, self.lost_to | other.lost_to)


class _State(dict[ir.Value, _Contents]):
    """The contents of the values that are allocated at a point of the program."""

    def define(self, value: ir.Value, *ways: tuple["_State", ir.Value]) -> None:
        """Defines a value as the join of others, each in the state at the end of its path."""
        for state, source in ways:
            if source in state:
                known = self.get(value)
                self[value] = state[source] if known is None else known.join(state[source])

    def lose(self, value: ir.Value, taker: ir.Value) -> None:
        """Records that a value's memory is overwritten by `taker`."""
        self[value] = self[value].lost(taker)


def _collect_last_uses(block: ir.Block, found: dict[ir.Operation, list[ir.Value]]) -> set[ir.Value]:
    """Notes which values of a block no op uses behind one; returns the values of outer blocks."""
    own, last = set(block.arguments), dict[ir.Value, ir.Operation]()
    for op in block.operations:
        used = set(op.operands)
        for inner in (inner for region in op.operation.regions for inner in region.blocks):
            used |= _collect_last_uses(inner, found)
        own.update(op.results)
        last.update(dict.fromkeys([*used, *op.results], op.operation))
    for value in own & last.keys():
        if last[value] != op.operation:  # what the terminator forwards is read behind the block
            found.setdefault(last[value], []).append(value)
    return last.keys() - own


@dataclass
class _Replay:
    """Replays one function; each method advances a state past what it replays."""

    function: func.FuncOp
    memory: Memory
    ranges: Mapping[ir.Value, ByteRange]
    last_uses: Mapping[ir.Operation, Sequence[ir.Value]]
    """What is in no state any more behind an op: it cannot be read when it is overwritten."""

    def block(self, block: ir.Block, state: _State) -> ir.OpView:
        """Replays the ops of a block; returns its terminator."""
        for op in block.operations:
            if isinstance(op, AllocStorageOp):
                self._end_storage(op, state)
            elif isinstance(op, AllocTensorOp):
                self._allocate(op, state)
            elif isinstance(op, KeepOp):
                self._op(op, state)
                self._allocate(op, state)
                self._write(op.result, state)
            elif isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp):
                self._branches(op, state)
            elif len(op.operation.regions):
                self._loop(op, state)
            else:
                self._op(op, state)
            for value in self.last_uses.get(op.operation, ()):
                state.pop(value, None)
        return op

    def _branches(self, op: ir.OpView, state: _State) -> None:
        ways: list[tuple[_State, ir.OpView]] = []
        for block in (block for region in op.operation.regions for block in region.blocks):
            way = _State(state)
            ways.append((way, self.block(block, way)))
        skipped = isinstance(op, scf.IfOp) and len(ways) == 1
        outer = [_State(state)] if skipped else []
        outer += [way for way, _ in ways]
        for value in list(state):
            del state[value]
            state.define(value, *((way, value) for way in outer))
        for index, result in enumerate(op.results):
            state.define(result, *((way, end.operands[index]) for way, end in ways))

    def _loop(self, op: ir.OpView, state: _State) -> None:
        """Iterates to a fixed point."""
        blocks = [region.blocks[0] for region in op.operation.regions]
        carried = [(a, self.memory.sources(a)) for a in blocks[0].arguments if is_tensor(a)]
        head = _State(state)
        for argument, sources in carried:
            head.define(argument, *((state, source) for source in (sources or ())[:1]))
        before: _State | None = None
        while before != head:
            before, way = _State(head), _State(head)
            end = self.block(blocks[0], way)
            after = _State(way)
            if isinstance(op, scf.WhileOp):
                for argument, value in zip(
                    blocks[1].arguments, list(end.operands)[1:], strict=True
                ):
                    way.define(argument, (way, value))
                self.block(blocks[1], way)
            for storage in walk_ops(op, AllocStorageOp):
                self._end_storage(storage, way)
                self._end_storage(storage, after)
            for value in state:
                head.define(value, (way, value))
            for argument, sources in carried:
                head.define(argument, *((way, source) for source in (sources or ())[1:]))
        last = after if isinstance(op, scf.WhileOp) else head
        state.update((value, last[value]) for value in list(state))
        for index, result in enumerate(op.results):
            if isinstance(op, scf.ForOp):
                state.define(result, (head, blocks[0].arguments[index + 1]))
            else:
                state.define(result, *((last, v) for v in self.memory.sources(result) or ()))

    def _end_storage(self, storage: AllocStorageOp, state: _State) -> None:
        """Ends the tensors in an earlier instance of a storage."""
        inside = {tensor for tensor in self.ranges if _storage(tensor) == storage.result}
        for value in state:
            if not inside.isdisjoint(self.memory.roots(value)):
                state.lose(value, storage.result)

    def _allocate(self, op: AllocTensorOp | KeepOp, state: _State) -> None:
        """Ends the tensor of an earlier iteration, and allocates a new one."""
        for value in state:
            if op.result in self.memory.roots(value):
                state.lose(value, op.result)
        state[op.result] = _Contents()

    def _op(self, op: ir.OpView, state: _State) -> None:
        """Checks the reads of an op, then its writes."""
        effects = self.memory.effects(op)
        for value in effects.reads:
            self._check("reads", op, value, state)
            if value in state and state[value].unwritten:
                text = f"reads a tensor of '{value.type}' that may be unwritten"
                raise PassFailure(op, text, self._notes(value))
        for value in effects.writes:
            self._check("updates", op, value, state)
            others = list(filter(is_tensor, op.operands))
            others.remove(value)
            others = [each for other in others for each in alternatives(other)]
            others = [v for v in others if not never_same(self.memory, value, v)]
            for root in self.memory.roots(value):
                self._check_writable(op, root)
                self._check_disjoint(op, root, others)
        for value in effects.writes:
            self._write(value, state)
        for result in filter(is_tensor, op.results):
            state.define(result, *((state, v) for v in self.memory.sources(result) or ()))

    def _write(self, target: ir.Value, state: _State) -> None:
        """Records that a write overwrites the tensors that overlap it."""
        written, target_base = self.memory.roots(target), base(target)
        for value in state:
            roots = self.memory.roots(value)
            if (len(written) == 1 and roots == written) or base(value) == target_base:
                state[value] = replace(state[value], unwritten=False)
            for root in () if state[value].lost_to else written:
                if any(self._meet(root, other) is not None for other in roots - written):
                    state.lose(value, root)

    def _meet(self, a: ir.Value, b: ir.Value) -> Sizes | None:
        """Sizes with which two tensors overlap; None if they never do."""
        if a not in self.ranges or b not in self.ranges or _storage(a) != _storage(b):
            return None
        return meet(self.ranges[a], self.ranges[b])

    def _check(self, does: str, op: ir.OpView, value: ir.Value, state: _State) -> None:
        """Raises PassFailure if a tensor may be overwritten."""
        lost_to = state[value].lost_to if value in state else frozenset[ir.Value]()
        if lost_to:
            takers = [
                self._note(tensor, "the other one") for tensor in self.ranges if tensor in lost_to
            ]
            takers = takers or [(t.owner, "its storage is allocated again") for t in lost_to]
            text = f"{does} a tensor of '{value.type}', which is overwritten by another one"
            raise PassFailure(op, text, [*self._notes(value), takers[0]])

    def _notes(self, value: ir.Value) -> list[tuple[ir.OpView, str]]:
        """Notes with the byte ranges of the tensors that a value may be."""
        roots = self.memory.roots(value)
        return [self._note(tensor, "it") for tensor in self.ranges if tensor in roots]

    def _note(self, tensor: ir.Value, what: str) -> tuple[ir.OpView, str]:
        return tensor.owner, f"{what} is at bytes {self.ranges[tensor]}"

    def _check_writable(self, op: ir.OpView, root: ir.Value) -> None:
        """Raises PassFailure if memory is not writable."""
        if isinstance(root, ir.BlockArgument):
            if root.arg_number not in inout_arguments(self.function).values():
                index = root.arg_number
                raise PassFailure(op, f"writes to argument {index}, which is not graph.inout")
        elif isinstance(root.owner.opview, arith.ConstantOp):
            raise PassFailure(op, "writes to a constant", [(root.owner, "it is this one")])

    def _check_disjoint(self, op: ir.OpView, root: ir.Value, others: list[ir.Value]) -> None:
        """Raises PassFailure if an op also uses the memory that it writes for another operand."""
        for other in (other for value in others for other in self.memory.roots(value)):
            if other == root:
                if not isinstance(op, CopyOp):
                    raise PassFailure(op, f"has the tensor of '{root.type}' that it writes twice")
            elif (sizes := self._meet(root, other)) is not None:
                text = f"writes '{root.type}' over '{other.type}', which it needs{_with(sizes)}"
                raise PassFailure(op, text, [self._note(root, "one"), self._note(other, "one")])
