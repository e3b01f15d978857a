"""When the memory of each tensor of a graph function is last needed."""

from dataclasses import dataclass

from relax_mlir.bindings import func
from relax_mlir.dialects.graph import AllocTensorOp, ViewOp


@dataclass(frozen=True)
class Interval:
    """An allocation and the positions in its block between which its memory is in use."""

    allocation: AllocTensorOp
    begin: int
    end: int


@dataclass(frozen=True)
class Liveness:
    """Lifetimes of the allocations of one block, and those that outlive it."""

    intervals: tuple[Interval, ...]
    escaping: frozenset[int]
    """Indices into `intervals` of tensors that the function returns, themselves or as views."""


def liveness(function: func.FuncOp) -> Liveness:
    """Computes lifetimes over the entry block; a view keeps the memory it looks at alive.

    Ops with regions count as one position: whatever is used inside is in use throughout.
    """
    operations = list(function.entry_block.operations)
    owner: dict[object, int] = {}
    allocations: list[AllocTensorOp] = []
    begin: list[int] = []
    end: list[int] = []
    escaping = set()
    for position, op in enumerate(operations):
        used = [owner[value] for value in _operands(op) if value in owner]
        for index in used:
            end[index] = position
        if isinstance(op, ViewOp) and used:
            owner[op.result] = used[0]
        elif isinstance(op, AllocTensorOp):
            owner[op.result] = len(allocations)
            allocations.append(op)
            begin.append(position)
            end.append(position)
        elif op.operation.name == "func.return":
            escaping.update(used)
    return Liveness(tuple(map(Interval, allocations, begin, end)), frozenset(escaping))


def _operands(op) -> list:
    found = list(op.operation.operands)
    for region in op.operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _operands(inner)
    return found
