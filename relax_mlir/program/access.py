"""Which elements a stage touches, seen through slices, reshapes and inlined producers.

A producer is inlined if recomputing its elements at the reader costs less than storing them: it
then has neither loops nor memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import ir, linalg
from relax_mlir.bindings import tensor as tensor_dialect

from .program import (
    Argument,
    Computed,
    Constant,
    Operand,
    Program,
    Reshape,
    Slice,
    Stage,
    Tensor,
    all_known,
)

CHEAP = 6
_COSTS = {"arith.divf": 5, "arith.divsi": 10, "arith.divui": 10, "arith.remsi": 10}
_FREE = {"arith.constant", "linalg.yield", "linalg.index", "arith.index_cast"}
_MATH_COST = 20
_GATHER_COST = 20


@dataclass(frozen=True)
class Use:
    """One index of an access: a loop index, a constant, or an expression of several `dims`."""

    dims: frozenset[int]
    plain: bool

    @property
    def dim(self) -> int | None:
        """The loop whose index this is, or None."""
        return next(iter(self.dims)) if self.plain and self.dims else None


@dataclass(frozen=True)
class Access:
    """A stage reads `tensor`, which is in memory, at `uses`; None if the indices are computed.

    `sliced` says that it sees only a window of it. `shape` and `shown` are the extents and uses of
    the slice or reshape of it that the stage names, which has the same memory.
    """

    tensor: Tensor
    uses: tuple[Use, ...] | None
    sliced: bool
    shape: tuple[int | None, ...]
    shown: tuple[Use, ...] | None


CONSTANT_USE = Use(frozenset(), True)


@dataclass
class Inlining:
    """The stages that have no loops of their own."""

    program: Program
    inlined: set[Stage] = field(default_factory=set)
    costs: dict[Stage, int] = field(default_factory=dict)

    def cost(self, stage: Stage) -> int:
        """Rough count of instructions and loads for one element, inlined producers included."""
        if stage not in self.costs:
            self.costs[stage] = _cost(stage, self)
        return self.costs[stage]

    def is_inlined(self, tensor: Tensor) -> TypeGuard[Computed]:
        """Whether the tensor is computed where it is read."""
        return isinstance(tensor, Computed) and tensor.stage in self.inlined

    def may_read(self, stage: Stage, owner: Tensor) -> bool:
        """Whether an operand of the stage, or of what is inlined in it, is a view of the tensor."""
        stages = [stage]
        for each in stages:
            tensors = [operand.tensor for operand in (*each.reads, *each.inits)]
            for root in map(root_of, (*tensors, *each.gathers)):
                if root is owner:
                    return True
                if self.is_inlined(root):
                    stages.append(root.stage)
        return False

    def reads(self, stage: Stage) -> list[Access]:
        """What the stage reads from memory, in-place accumulators included."""
        accesses: list[Access] = []
        operands = [*stage.reads, *used_inits(stage)]
        for operand in operands:
            self._trace(operand.tensor, uses_of(operand.indices), False, None, accesses)
        for tensor, uses in gathers_of(stage):
            self._trace(tensor, uses, False, None, accesses)
        return accesses

    def _trace(
        self,
        tensor: Tensor,
        uses: tuple[Use, ...] | None,
        sliced: bool,
        shown: tuple[tuple[int | None, ...], tuple[Use, ...] | None] | None,
        accesses: list[Access],
    ) -> None:
        if self.is_inlined(tensor):
            for operand in tensor.stage.reads:
                inner = _compose(tensor, operand, uses)
                self._trace(operand.tensor, inner, sliced, None, accesses)
            for gathered, inner in gathers_of(tensor.stage):
                self._trace(gathered, _substitute(tensor, inner, uses), sliced, None, accesses)
            return
        if shown is None and not self.is_inlined(root_of(tensor)):
            shown = (tensor.shape, uses)
        if isinstance(tensor, Slice):
            self._trace(tensor.source, _through_slice(tensor, uses), True, shown, accesses)
        elif isinstance(tensor, Reshape):
            self._trace(tensor.source, _through_reshape(tensor, uses), sliced, shown, accesses)
        elif isinstance(tensor, Argument | Computed | Constant):
            assert shown is not None, "the reader has seen the tensor, or a view of it"
            accesses.append(Access(tensor, uses, sliced, *shown))


def root_of(tensor: Tensor) -> Tensor:
    """The tensor without slices and reshapes."""
    while isinstance(tensor, Slice | Reshape):
        tensor = tensor.source
    return tensor


def gathers_of(stage: Stage) -> list[tuple[Tensor, tuple[Use, ...]]]:
    """Tensors read by `tensor.extract`, with the loops that each index depends on."""
    if not stage.gathers:
        return []
    operands = [*stage.reads, *stage.inits]
    known = {
        argument: Use(frozenset().union(*map(dims_of, operand.indices)), False)
        for argument, operand in zip(stage.body.arguments, operands, strict=True)
    }
    gathers = []
    gathered = iter(stage.gathers)
    for op in stage.body.operations:
        uses = [known.get(value, CONSTANT_USE) for value in op.operands]
        if isinstance(op, linalg.IndexOp):
            known[op.results[0]] = Use(frozenset([op.attributes["dim"].value]), True)
        else:
            dims = frozenset().union(*(use.dims for use in uses))
            known |= {result: Use(dims, not dims) for result in op.results}
        if isinstance(op, tensor_dialect.ExtractOp):
            gathers.append((next(gathered), tuple(uses[1:])))
    return gathers


def used_inits(stage: Stage) -> list[Operand]:
    """The outputs whose former contents the stage reads."""
    if stage.has_reduction:
        return stage.inits
    return [init for index, init in enumerate(stage.inits) if stage.uses_init(index)]


def uses_of(indices: Iterable[ir.AffineExpr]) -> tuple[Use, ...]:
    """Affine expressions as uses of loops."""
    plain = (ir.AffineDimExpr, ir.AffineConstantExpr)
    return tuple(Use(dims_of(e), isinstance(e, plain)) for e in indices)


def _through_slice(tensor: Slice, uses: tuple[Use, ...] | None) -> tuple[Use, ...] | None:
    if uses is None:
        return None
    window, inner = tensor.window, iter(uses)
    result = []
    for position, (offset, stride) in enumerate(zip(window.offsets, window.strides, strict=True)):
        if position in window.dropped:
            result.append(CONSTANT_USE)
            continue
        use = next(inner)
        starts_at_0 = isinstance(offset, int) and offset == 0 and isinstance(stride, int)
        result.append(use if starts_at_0 and stride == 1 else Use(use.dims, False))
    return tuple(result)


def _through_reshape(tensor: Reshape, uses: tuple[Use, ...] | None) -> tuple[Use, ...] | None:
    if uses is None:
        return None
    big = tensor.shape if tensor.expands else tensor.source.shape
    if not tensor.shape:  # one element, of no group
        return (CONSTANT_USE,) * len(tensor.source.shape)
    result: list[Use] = []
    for group_index, group in enumerate(tensor.groups):
        non_unit = [position for position in group if big[position] != 1]
        if tensor.expands:
            result.append(_join([uses[position] for position in non_unit]))
        else:
            for position in group:
                alone = len(non_unit) == 1 and position in non_unit
                use = uses[group_index] if alone else Use(uses[group_index].dims, False)
                result.append(use if position in non_unit else CONSTANT_USE)
    return tuple(result)


def _join(uses: Sequence[Use]) -> Use:
    if len(uses) == 1:
        return uses[0]
    dims = frozenset().union(*(use.dims for use in uses))
    return Use(dims, not dims)


def _compose(
    tensor: Computed, operand: Operand, uses: tuple[Use, ...] | None
) -> tuple[Use, ...] | None:
    """The uses of the reader's loops by an operand of a producer that is inlined into it."""
    return _substitute(tensor, uses_of(operand.indices), uses)


def _substitute(
    tensor: Computed, inner: tuple[Use, ...], uses: tuple[Use, ...] | None
) -> tuple[Use, ...] | None:
    """Uses of the producer's loops as uses of the reader's loops."""
    if uses is None:
        return None
    written = tensor.stage.inits[tensor.index].indices
    loop_use = {ir.AffineDimExpr(e).position: use for e, use in zip(written, uses, strict=True)}
    result = []
    for own in inner:
        if own.plain:
            result.append(own if own.dim is None else loop_use[own.dim])
        else:
            dims = frozenset().union(*(loop_use[dim].dims for dim in own.dims))
            result.append(Use(dims, False))
    return tuple(result)


def inline_producers(program: Program) -> Inlining:
    """Decides, producers first, which elementwise stages are computed where they are read."""
    inlining = Inlining(program)
    readers = _readers(program)
    for stage in program.stages:
        cost = inlining.cost(stage)
        if _may_inline(stage) and _is_worth_it(stage, cost, readers.get(stage, []), program):
            inlining.inlined.add(stage)
    return inlining


@dataclass(frozen=True)
class _Reader:
    stage: Stage
    uses: tuple[Use, ...] | None
    reshaped: bool


def _readers(program: Program) -> dict[Stage, list[_Reader]]:
    """For each stage the reads of its results, directly or through slices and reshapes."""
    readers: dict[Stage, list[_Reader]] = {}
    for stage in program.stages:
        pairs = [(o.tensor, uses_of(o.indices)) for o in [*stage.reads, *used_inits(stage)]]
        for tensor, uses in [*pairs, *((gathered, None) for gathered in stage.gathers)]:
            reshaped = False
            while isinstance(tensor, Slice | Reshape):
                if isinstance(tensor, Slice):
                    uses = _through_slice(tensor, uses)
                else:
                    uses = _through_reshape(tensor, uses)
                    reshaped |= uses is not None and not all(use.plain for use in uses)
                tensor = tensor.source
            if isinstance(tensor, Computed):
                readers.setdefault(tensor.stage, []).append(_Reader(stage, uses, reshaped))
    return readers


def _may_inline(stage: Stage) -> bool:
    """Whether the stage computes each element of one fresh tensor independently."""
    if stage.block is None or stage.has_reduction or len(stage.results) != 1:
        return False
    written = uses_of(stage.inits[0].indices)
    loops = all_known(use.dim for use in written)
    whole = loops is not None and sorted(loops) == list(range(len(stage.extents)))
    return whole and not stage.uses_init(0)


def _is_worth_it(stage: Stage, cost: int, readers: list[_Reader], program: Program) -> bool:
    if _is_needed(stage.results[0], program):
        return False
    if cost <= CHEAP:
        return True
    if len(readers) != 1:
        return False
    (reader,) = readers
    if reader.uses is None or reader.reshaped:
        return False
    loops = {i for i, extent in enumerate(reader.stage.extents) if extent != 1}
    return loops <= frozenset().union(*(use.dims for use in reader.uses))


def _is_needed(tensor: Computed, program: Program) -> bool:
    """Whether the tensor is needed in memory: it is returned, extended or read by scalars."""
    roots = [*program.returned]
    roots += [init.tensor for stage in program.stages for init in stage.inits]
    roots += [
        program.tensors[item.operands[0]]
        for item in program.items
        if not isinstance(item, Stage) and item.operation.name == "tensor.extract"
    ]
    return any(root_of(root) is tensor for root in roots)


def _cost(stage: Stage, inlining: Inlining) -> int:
    varying = _varying(stage)
    total = 0
    if stage.block is not None:
        for op in stage.block.operations:
            name = op.operation.name
            if name in _FREE or not any(value in varying for value in op.results):
                continue
            if isinstance(op, tensor_dialect.ExtractOp):
                total += _GATHER_COST
            total += _MATH_COST if name.startswith("math.") else _COSTS.get(name, 1)
    for operand in stage.reads:
        tensor = root_of(operand.tensor)
        if not _varies(stage, operand):
            continue
        if inlining.is_inlined(tensor):
            total += inlining.cost(tensor.stage)
        elif isinstance(tensor, Argument | Computed | Constant):
            total += 1
    return total


def _varies(stage: Stage, operand: Operand) -> bool:
    """Whether an operand varies along the last loop; others are loaded once a row."""
    last = len(stage.extents) - 1
    return any(last in dims_of(expression) for expression in operand.indices)


def _varying(stage: Stage) -> set[ir.Value]:
    """The scalars of a block that vary along its last loop; the others are hoisted."""
    if stage.block is None:
        return set()
    varying: set[ir.Value] = set()
    operands = [*stage.reads, *stage.inits]
    for argument, operand in zip(stage.block.arguments, operands, strict=True):
        if _varies(stage, operand) or (
            stage.reduces and stage.reduces[-1] and operand in stage.inits
        ):
            varying.add(argument)
    for op in stage.block.operations:
        is_last = (
            isinstance(op, linalg.IndexOp) and op.attributes["dim"].value == len(stage.extents) - 1
        )
        if is_last or any(operand in varying for operand in op.operands):
            varying.update(op.results)
    return varying
