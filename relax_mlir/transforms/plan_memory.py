"""Assigns the temporaries of each graph function to few storages, reusing memory by proof.

    %a = "graph.alloc_tensor"() : () -> tensor<?x4xf32, #graph.shape<["n", 4]>>
    %b = "graph.alloc_tensor"() : () -> tensor<?x4xf32, #graph.shape<["n", 4]>>
      ->
    %s = "graph.alloc_storage"() {size = #graph.shape<["(16*n + 63) floordiv 64 * 64"]>}
    %a = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : ...
    %b = "graph.alloc_tensor"(%s) {offset = #graph.shape<[0]>} : ...   // %a is dead by then

A storage is allocated as soon as the symbols of its size are known: at the entry, and after each
`graph.match_cast` that binds symbols of a tensor's size. Sizes are symbolic, in bytes, rounded up
to the alignment. A block is reused if it is provably large enough, or if it is provably smaller and
can be grown. Blocks that are cut and joined (`analysis/packing.py`) are taken instead where that
provably takes less. Both are greedy, not optimal. Returned tensors stay separate allocations. With
`reuse=false` each tensor has its own block. With `static=true`, sizes with an upper bound under the
facts are replaced by it, so that the storage has the same size in every call. Tensors begin at
multiples of `alignment` bytes; the host and each device (`graph.device`) have storages of their
own, and those on the host are aligned as on every CPU.

Needs: explicit allocation (`relax-lower-calls`). Leaves: no allocation outside a storage but
    returned ones. Allocations in a storage are not changed. Source: paper Algorithm 3; TVM
    `StaticPlanBlockMemory`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE, device_of, mark
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.liveness import Lifetime, Liveness
from relax_mlir.analysis.memory import Memory, returned_allocations
from relax_mlir.analysis.packing import pack
from relax_mlir.analysis.scopes import bound_by, scoped_ops
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    MatchCastOp,
    TensorType,
    annotation_of,
    element_bits,
    known_dims,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase
from relax_mlir.symbolic import Expr, Facts, at_most, bounds, const, product
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Assigns the temporaries of each graph function to few storages, reusing memory by proof."""

    needs_verified: ClassVar[bool] = True

    reuse: bool = True
    static: bool = False
    alignment: int = ALIGNMENT

    def run(self, op: ir.Operation) -> None:
        """Plans every graph function of the module."""
        functions = functions_by_name(op)
        for function in graph_functions(op):
            for region in _regions(function, Memory(functions), self.static, self.alignment):
                facts = region.facts if self.reuse else None
                devices = {temporary.device for temporary in region.temporaries}
                for device in sorted(devices, key=lambda device: (device == HOST, device)):
                    temporaries = [x for x in region.temporaries if x.device == device]
                    region.assign(temporaries, plan(temporaries, facts), device)


@dataclass(frozen=True)
class Temporary:
    """An allocation that needs `size` bytes during its lifetime, on the host or on a device."""

    allocation: AllocTensorOp
    size: Expr
    lifetime: Lifetime
    device: str = OF_TARGET


@dataclass
class Region:
    """A point where a storage is allocated, after a cast or at the entry, and its temporaries.

    The facts are those that are checked before that point.
    """

    function: func.FuncOp
    cast: MatchCastOp | None
    facts: Facts
    temporaries: list[Temporary] = field(default_factory=list)

    def assign(self, temporaries: Sequence[Temporary], plan: "Plan", device: str) -> None:
        """Allocates the storages, and assigns each of some temporaries to its block."""
        if self.cast is None:
            point = ir.InsertionPoint.at_block_begin(self.function.entry_block)
        else:
            point = ir.InsertionPoint.after(self.cast)
        with point, self.function.location:
            storages = [AllocStorageOp.build(size) for size in plan.storages]
        for storage in storages if device != OF_TARGET else ():
            mark(storage, device)
        for temporary, block in zip(temporaries, plan.blocks, strict=True):
            old = temporary.allocation
            with ir.InsertionPoint(old), old.location:
                storage = storages[block.storage].result
                new = AllocTensorOp.build(annotation_of(old.result), storage, block.offset)
            if DEVICE in old.attributes:
                mark(new, device)
            old.result.replace_all_uses_with(new.result)
            safe_erase(old)


def _regions(function: func.FuncOp, memory: Memory, static: bool, alignment: int) -> list[Region]:
    """The regions of a function, each with the temporaries whose size is first known there.

    Raises PassFailure at an allocation that cannot be planned.
    """
    liveness, returned = Liveness(function, memory), returned_allocations(function, memory)
    regions: dict[MatchCastOp | None, Region] = {}
    binder: dict[str, MatchCastOp | None] = {}
    for op, scope in scoped_ops(function):
        if not regions:
            binder = dict.fromkeys(scope.symbols)
            regions[None] = Region(function, None, _checked(scope.facts, scope.symbols))
        if isinstance(op, MatchCastOp):
            new = bound_by(op, scope.symbols)
            binder.update(dict.fromkeys(new, op))
            regions[op] = Region(function, op, _checked(scope.facts, scope.symbols | new))
        elif isinstance(op, AllocTensorOp) and not op.operands and op.result not in returned:
            known = _checked(scope.facts, scope.symbols) if static else None
            device = device_of(op.result)
            size = _size(op, known, ALIGNMENT if device == HOST else alignment)
            if not size.symbols <= scope.symbols:
                names = ", ".join(sorted(size.symbols - scope.symbols))
                raise PassFailure(op, f"has a size of {size} bytes, but {names} is not bound")
            casts = [cast for name in size.symbols if (cast := binder[name]) is not None]
            cast = max(casts, key=liveness.position, default=None)
            lifetime = liveness.lifetime(op.result)
            _check_loops(op, cast, liveness)
            regions[cast].temporaries.append(Temporary(op, size, lifetime, device))
    return list(regions.values())


def _checked(facts: Facts, symbols: frozenset[str]) -> Facts:
    """The facts that are checked as soon as the symbols are bound; later checks are too late."""
    return Facts(tuple(fact for fact in facts if fact.symbols <= symbols))


def _size(allocation: AllocTensorOp, facts: Facts | None, alignment: int) -> Expr:
    """The size in bytes; or its upper bound under the facts, if they are given and bound it."""
    try:
        size = size_in_bytes(TensorType.of(allocation.result), alignment)
    except ValueError as error:
        raise PassFailure(allocation, str(error)) from None
    most = None if facts is None else bounds(size, facts)[1]
    return size if most is None else _aligned(const(max(0, most)), alignment)


def _check_loops(allocation: AllocTensorOp, cast: MatchCastOp | None, liveness: Liveness) -> None:
    """Raises PassFailure at memory that iterations share, or that outlives its storage."""
    for value in liveness.sharing(allocation.result):
        if liveness.used_after(value, allocation) is not None:
            raise PassFailure(
                allocation, "is live across iterations of a loop; run relax-lower-calls"
            )
    if cast is not None and liveness.outlives_loop(allocation.result, cast):
        raise PassFailure(allocation, "is used after the loop that binds the symbols of its size")


def _aligned(size: Expr, alignment: int) -> Expr:
    return (size + (alignment - 1)) // alignment * alignment


def size_in_bytes(annotation: TensorType, alignment: int = ALIGNMENT) -> Expr:
    """Bytes of a tensor, rounded up to a multiple of the alignment; booleans take a byte each.

    Raises ValueError if a dim is unknown.
    """
    dims = known_dims(annotation.dims)
    if dims is None:
        raise ValueError(f"has the unknown size of '{annotation}'")
    return _aligned(product(dims) * max(1, element_bits(annotation.element) // 8), alignment)


@dataclass
class Block:
    """A block of a storage: its size in bytes, and the position after which it is free."""

    size: Expr
    free_after: int
    offset: Expr = field(default_factory=lambda: const(0))
    storage: int = 0


@dataclass(frozen=True)
class Plan:
    """A block for each temporary, and the sizes of the storages."""

    blocks: Sequence[Block]
    storages: Sequence[Expr]


def plan(temporaries: Sequence[Temporary], facts: Facts | None) -> Plan:
    """Assigns each temporary a block so that no two that are live at once overlap.

    Two blocks are compared by proof under `facts`; None turns reuse off.
    """
    whole = _whole_blocks(temporaries, facts)
    if facts is None or len(whole.storages) > 1:
        return whole
    sizes = [temporary.size for temporary in temporaries]
    packing = pack(sizes, [temporary.lifetime for temporary in temporaries], facts)
    if packing is None or not _is_less(packing.size, whole.storages[0], facts):
        return whole
    blocks = [
        Block(temporary.size, temporary.lifetime.end, offset)
        for temporary, offset in zip(temporaries, packing.offsets, strict=True)
    ]
    return Plan(blocks, [packing.size])


def _is_less(a: Expr, b: Expr, facts: Facts) -> bool:
    """Whether one size is proved to be never more than another one, which may be more."""
    return at_most(a, b, facts).proved and not at_most(b, a, facts).proved


def _whole_blocks(temporaries: Sequence[Temporary], facts: Facts | None) -> Plan:
    """Assigns each temporary a block that no other one has while it is live."""
    known = facts or Facts()
    blocks: list[Block] = []
    chosen: list[Block] = []
    for temporary in temporaries:
        size, lifetime = temporary.size, temporary.lifetime
        free = [
            block for block in blocks if facts is not None and block.free_after < lifetime.begin
        ]
        block = _fitting(free, size, known)
        if block is None:
            block = Block(size, lifetime.end)
            blocks.append(block)
        elif at_most(block.size, size, known).proved:
            block.size = size
        block.free_after = lifetime.end
        chosen.append(block)
    return Plan(chosen, _place(blocks))


def _place(blocks: Sequence[Block]) -> list[Expr]:
    """Assigns consecutive offsets, in storages whose sizes are returned: no sum is too long."""
    storages: list[Expr] = []
    offset = const(0)
    for block in blocks:
        block.storage, block.offset = len(storages), offset
        offset = offset + block.size
        if len(offset.terms) >= MAX_TERMS:
            storages.append(offset)
            offset = const(0)
    return storages if blocks and blocks[-1].storage < len(storages) else [*storages, offset]


def _fitting(free: Sequence[Block], size: Expr, facts: Facts) -> Block | None:
    """The smallest free block of at least `size`, else the largest that can grow to it."""
    by_size = {block.size: block for block in free}
    if size in by_size:
        return by_size[size]
    latest = list(by_size.values())[-4 * MAX_CANDIDATES :]
    comparable = [block for block in latest if _comparable(block.size, size, facts)]
    comparable = comparable[-MAX_CANDIDATES:]
    best: Block | None = None
    for block in comparable:
        fits = at_most(size, block.size, facts).proved
        if fits and (best is None or at_most(block.size, best.size, facts).proved):
            best = block
    if best is not None:
        return best
    for block in comparable:
        grows = at_most(block.size, size, facts).proved
        if grows and (best is None or at_most(best.size, block.size, facts).proved):
            best = block
    return best


def _comparable(a: Expr, b: Expr, facts: Facts) -> bool:
    """Whether it is worthwhile to prove that one of two sizes is at most the other one.

    The facts must mention each symbol that only the smaller one has.
    """
    return any(
        x.symbols <= y.symbols | facts.symbols or bounds(x, facts)[1] is not None
        for x, y in ((a, b), (b, a))
    )


MAX_TERMS = 32
"""The maximum length of an offset's sum: long sums of many blocks would be quadratic."""
MAX_CANDIDATES = 16
"""Blocks that a temporary is compared with: each proof may take a millisecond."""
