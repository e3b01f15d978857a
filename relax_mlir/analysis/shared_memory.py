"""The rules of memory that all instances of a leaf update: atomic updates, and barriers.

    func.func private @count(%bins: tensor<?xi32> {tir.access = "shared"}, %x: i32) -> tensor<?xi32>
        attributes {tir.leaf} {
      %i = arith.index_cast %x : i32 to index
      %0 = "tir.atomic"(%one, %bins, %i) {kind = "add"}      one more at %i
      %1 = "tir.barrier"(%0)                                 the counts of all instances
      ...
      return %1
    }

No order of instances gives another result: updates of one kind commute, since an instance does not
get the element that was there, and what is updated is read after a barrier only. What `exchange`
stores is the same in all instances.

    S1  a shared parameter is a tensor of integers, and the leaf's results are such parameters'
        new values first, in their order; a leaf with some has no parameter that is inout
    S2  only `tir.atomic` updates it, by an integer of its element type at as many indices as dims
    S3  between barriers its updates are of one kind; "add" and "sub" are one
    S4  it is not read where it is updated
    S5  there is one "exchange" between barriers, of a value that is the same for all instances
    S6  a barrier is in the outermost block of the leaf, beside those of all other shared
        parameters, in their order
    S7  what was there before a barrier is not used after it
"""

from collections.abc import Iterator
from typing import TypeAlias

from relax_mlir.bindings import func, ir, scf, tensor
from relax_mlir.dialects.tir import (
    ATOMIC_KINDS,
    EXCHANGE,
    AtomicOp,
    BarrierOp,
    GlobalSizeOp,
    GridSizeOp,
)
from relax_mlir.rewriting import walk_ops

from .leaves import origins, shared_parameters, updated_parameters

Broken: TypeAlias = tuple[ir.OpView, str]
_USERS = (AtomicOp, BarrierOp, scf.ForOp, scf.IfOp, scf.YieldOp, func.ReturnOp)


def broken_sharing(function: func.FuncOp) -> Iterator[Broken]:
    """The ops of a leaf that break a rule of shared parameters, each with the reason."""
    shared = shared_parameters(function)
    if shared and updated_parameters(function):
        yield function, "has parameters that are shared, and others that are inout"  # S1
    yield from _broken_parameters(function, shared)
    yield from _broken_barriers(function)
    for atomic in walk_ops(function, AtomicOp):
        yield from _broken_update(atomic, function)
    if not shared:
        return
    yield from _broken_phases(function)
    yield from _broken_uses(function)


def home(value: ir.Value, function: func.FuncOp) -> int | None:
    """The shared parameter that a tensor is the value of, at some time; None if it is of none."""
    while True:
        roots = origins(value)
        if len(roots) != 1:
            return None
        (value,) = roots
        if isinstance(value.owner, ir.Block):
            index = ir.BlockArgument(value).arg_number
            is_own = value.owner == function.entry_block
            return index if is_own and index in shared_parameters(function) else None
        op = value.owner.opview
        if not isinstance(op, BarrierOp):
            return None
        value = op.before


def barriers_of(function: func.FuncOp) -> list[list[BarrierOp]]:
    """The barriers in the outermost block of a leaf: those that stand together are one."""
    groups: list[list[BarrierOp]] = []
    is_next = False
    for op in function.entry_block.operations:
        if isinstance(op, BarrierOp):
            groups += [] if is_next else [[]]
            groups[-1].append(op)
        is_next = isinstance(op, BarrierOp)
    return groups


def uniform_parameters(function: func.FuncOp) -> set[int]:
    """The parameters that have to be the same in all instances, since `exchange` stores them."""
    values = [a.value for a in walk_ops(function, AtomicOp) if a.kind_name == EXCHANGE]
    needed, seen = set(), set(values)
    while values:
        value = values.pop()
        if isinstance(value.owner, ir.Block):
            needed.add(ir.BlockArgument(value).arg_number)
            continue
        new = [operand for operand in value.owner.operands if operand not in seen]
        seen.update(new)
        values += new
    return needed


def _broken_parameters(function: func.FuncOp, shared: list[int]) -> Iterator[Broken]:
    inputs, results = function.type.inputs, function.type.results
    terminator = list(function.entry_block.operations)[-1]
    for result, index in enumerate(shared):  # S1
        kind = inputs[index]
        if not isinstance(kind, ir.RankedTensorType) or not _is_integer(kind.element_type):
            yield function, f"shares parameter {index} of '{kind}'; expects a tensor of integers"
        elif result >= len(results) or results[result] != kind:
            yield function, f"shares parameter {index} of '{kind}', which is not result {result}"
        elif home(terminator.operands[result], function) != index:
            yield terminator, f"returns as result {result} what is not parameter {index}, shared"


def _is_integer(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and element.width > 1


def _broken_barriers(function: func.FuncOp) -> Iterator[Broken]:
    """S6: where barriers are, and of what."""
    for barrier in walk_ops(function, BarrierOp):
        if barrier.operation.block != function.entry_block:
            yield (
                barrier,
                "is in a branch or a loop, which instances may run differently; expects it in the "
                "outermost block of the leaf",
            )
        if barrier.result.type != barrier.before.type:
            yield barrier, f"returns '{barrier.result.type}' for '{barrier.before.type}'"
    shared = shared_parameters(function)
    for group in barriers_of(function):
        if [home(barrier.before, function) for barrier in group] != shared:
            count = len(shared)
            yield group[0], f"expects barriers of the {count} shared parameters, in their order"


def _broken_update(atomic: AtomicOp, function: func.FuncOp) -> Iterator[Broken]:
    if atomic.kind_name not in ATOMIC_KINDS:  # S2
        known = ", ".join(ATOMIC_KINDS)
        yield atomic, f"is of the kind {atomic.attributes['kind']}; accepted are {known}"
    kind = atomic.dest.type
    if home(atomic.dest, function) is None:
        yield atomic, "updates what is no shared parameter"
        return
    rank = ir.RankedTensorType(kind).rank
    if atomic.result.type != kind or atomic.value.type != ir.ShapedType(kind).element_type:
        yield atomic, f"updates '{kind}' by '{atomic.value.type}' to '{atomic.result.type}'"
    if len(atomic.indices) != rank or any(
        not isinstance(index.type, ir.IndexType) for index in atomic.indices
    ):
        yield atomic, f"updates '{kind}' at {len(atomic.indices)} indices; expects {rank}"


def _broken_phases(function: func.FuncOp) -> Iterator[Broken]:
    """S3, S4, S5: what happens to a parameter between two barriers."""
    kinds: dict[ir.Value, AtomicOp] = {}
    for atomic in walk_ops(function, AtomicOp):
        for root in origins(atomic.dest):
            first = kinds.setdefault(root, atomic)
            if first is not atomic and EXCHANGE in (first.kind_name, atomic.kind_name):
                yield atomic, "is a second update where there is an exchange, which has to be alone"
            elif first.kind_class != atomic.kind_class:
                yield (
                    atomic,
                    f"is of the kind {atomic.kind_name} where there is {first.kind_name}: their "
                    "order would matter; expects a barrier in between",
                )
        if atomic.kind_name == EXCHANGE and not _is_uniform(atomic.value, function):
            yield (
                atomic,
                "exchanges an element for a value that instances may not have in common; expects "
                "one of constants, extents and parameters",
            )
    for read in walk_ops(function, tensor.ExtractOp):
        roots = origins(read.tensor)
        if any(home(root, function) is not None and root in kinds for root in roots):
            yield read, "reads what instances update; expects a barrier in between"


def _is_uniform(value: ir.Value, function: func.FuncOp) -> bool:
    """Whether a value is the same in all instances, if the parameters that it is made of are."""
    shared, values, seen = shared_parameters(function), [value], {value}
    while values:
        value = values.pop()
        if isinstance(value.owner, ir.Block):
            if value.owner != function.entry_block or ir.BlockArgument(value).arg_number in shared:
                return False
            continue
        op = value.owner.opview
        is_computed = op.operation.name.partition(".")[0] in ("arith", "math")
        if not is_computed and not isinstance(
            op, GridSizeOp | GlobalSizeOp | tensor.ExtractOp | tensor.DimOp
        ):
            return False
        new = [operand for operand in op.operands if operand not in seen]
        seen.update(new)
        values += new
    return True


def _broken_uses(function: func.FuncOp) -> Iterator[Broken]:
    """S2, S7: who may use a shared parameter, and until when."""
    gone: dict[ir.Value, BarrierOp] = {}
    for group in barriers_of(function):
        for barrier in group:
            gone.update(dict.fromkeys(origins(barrier.before), group[-1]))
    for op in walk_ops(function):
        for value in () if isinstance(op, tensor.DimOp) else op.operation.operands:
            if not isinstance(value.type, ir.RankedTensorType) or home(value, function) is None:
                continue
            if not isinstance(op, (*_USERS, tensor.ExtractOp, tensor.InsertOp)):
                yield (
                    op,
                    "cannot use a shared parameter; tir.atomic updates it, tensor.extract reads",
                )
            if any(_is_after(op, gone[root]) for root in origins(value) if root in gone):
                yield op, "uses what was there before a barrier; expects what the barrier returns"


def _is_after(op: ir.OpView, barrier: BarrierOp) -> bool:
    """Whether an op is after a barrier of its function."""
    current = op.operation
    if isinstance(op, func.FuncOp):
        return False
    while current.block != barrier.operation.block:
        current = current.parent.operation
    return current != barrier.operation and barrier.operation.is_before_in_block(current)
