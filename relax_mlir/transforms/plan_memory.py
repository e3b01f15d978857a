"""Places the temporaries of each graph function in one arena, reusing memory by proof.

    %a = "graph.alloc_tensor"() : () -> tensor<?x4xf32, #graph.shape<["n", 4]>>
    %b = "graph.alloc_tensor"() : () -> tensor<?x4xf32, #graph.shape<["n", 4]>>
      ->
    %s = "graph.alloc_storage"() {size = #graph.shape<["(16*n + 63) floordiv 64 * 64"]>}
    %a = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : ...
    %b = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : ...   // %a is dead by then

Sizes are bytes, symbolic, rounded up to the alignment. A block is reused if it is proved large
enough, or if it is proved smaller and can be grown. What the function returns stays a fresh
allocation. Greedy in program order, not optimal. With `reuse=false` each tensor has a block of
its own.

Needs: explicit allocation (`relax-lower-calls`). Leaves: at most one storage per function, and
no other allocation but those that are returned.
Source: paper Algorithm 3; TVM `StaticPlanBlockMemory`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.functions import facts_of, graph_functions
from relax_mlir.analysis.liveness import Interval, liveness
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    TensorType,
    annotation_of,
    element_bits,
    known_dims,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase
from relax_mlir.symbolic import Expr, Facts, at_most, const, product

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Places the temporaries of each graph function in one arena, reusing memory by proof."""

    reuse: bool = True

    def run(self, op: ir.Operation) -> None:
        """Plans every graph function of the module."""
        for function in graph_functions(op):
            lifetimes = liveness(function)
            temporaries = [
                interval
                for index, interval in enumerate(lifetimes.intervals)
                if index not in lifetimes.escaping and not interval.allocation.operands
            ]
            if temporaries:
                facts = facts_of(function) if self.reuse else None
                _place(function, temporaries, plan(temporaries, facts))


@dataclass
class Block:
    """A piece of the arena: its size in bytes, and the position after which it is free."""

    size: Expr
    free_after: int
    offset: Expr = field(default_factory=lambda: const(0))


def size_in_bytes(annotation: TensorType) -> Expr:
    """Bytes of a tensor, rounded up to `ALIGNMENT`; booleans take a byte each.

    Raises ValueError if a dim is unknown.
    """
    dims = known_dims(annotation.dims)
    if dims is None:
        raise ValueError(f"has the unknown size of '{annotation}'")
    count = product(dims) * max(1, element_bits(annotation.element) // 8)
    return (count + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def plan(temporaries: Sequence[Interval], facts: Facts | None) -> list[Block]:
    """Assigns each temporary a block so that no two live at once share one.

    Two blocks are compared by proof under `facts`; None turns reuse off. Raises PassFailure at
    an allocation of unknown size.
    """
    known = facts or Facts()
    blocks: list[Block] = []
    chosen: list[Block] = []
    for interval in temporaries:
        try:
            size = size_in_bytes(TensorType.of(interval.allocation.result))
        except ValueError as error:
            raise PassFailure(interval.allocation, str(error)) from None
        free = [
            block for block in blocks if facts is not None and block.free_after < interval.begin
        ]
        block = _fitting(free, size, known)
        if block is None:
            block = Block(size, interval.end)
            blocks.append(block)
        elif at_most(block.size, size, known).proved:
            block.size = size
        block.free_after = interval.end
        chosen.append(block)
    offset = const(0)
    for block in blocks:
        block.offset = offset
        offset = offset + block.size
    return chosen


def _fitting(free: Sequence[Block], size: Expr, facts: Facts) -> Block | None:
    """The tightest free block that holds `size`, else the largest that can grow to it."""
    best: Block | None = None
    for block in free:
        fits = at_most(size, block.size, facts).proved
        if fits and (best is None or at_most(block.size, best.size, facts).proved):
            best = block
    if best is not None:
        return best
    for block in free:
        grows = at_most(block.size, size, facts).proved
        if grows and (best is None or at_most(best.size, block.size, facts).proved):
            best = block
    return best


def _place(function: func.FuncOp, temporaries: Sequence[Interval], blocks: Sequence[Block]) -> None:
    distinct = list({id(block): block for block in blocks}.values())
    total = const(0)
    for block in distinct:
        total = total + block.size
    with ir.InsertionPoint.at_block_begin(function.entry_block), function.location:
        storage = AllocStorageOp.build(total).result
    for interval, block in zip(temporaries, blocks):
        old = interval.allocation
        with ir.InsertionPoint(old), old.location:
            new = AllocTensorOp.build(annotation_of(old.result), storage, block.offset)
        old.result.replace_all_uses_with(new.result)
        safe_erase(old)
