"""Scans of long rows, which a group of threads shares: running sums, and products of integers.

    scf.for %k = 0 to %n iter_args(%total = %first) {        for each tile of a row, or of its part:
      %next = %total + %x[%k]                                  each thread adds up a stretch of it
      store of %total or %next at [%k]                  ->     steps of Hillis and Steele: what is
      scf.yield %next                                            in front of each stretch
    }                                                          each thread runs the loop from there

Integers are exact. Sums of floats are grouped by stretches, whatever the grid: no sum of a prefix
has an element after it, so infinities and NaN stay where they are. Products of floats stay in
order, since a stretch may overflow where no prefix does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref, scf
from relax_mlir.dialects.graph import element_bits
from relax_mlir.rewriting import copy_op
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.build.loops import Index
from relax_mlir.target import Device

from ..launch import Group, barrier
from .prefixes import is_read_late, prefixes

STRETCH = 8
"""Elements of a tile that a thread adds up: those of a sector of memory, if they have 32 bits."""
MOST_THREADS, MOST_OF_ONE = 128, 1024
"""Threads of a group, and of one that is alone."""
FEWEST_THREADS = 32
"""Rows of fewer elements, where that is known, have a thread each."""
MANY_COLUMNS = 1 << 16
"""So many columns, where that is known, have a thread each: neighbours load neighbours."""

_NEUTRAL = {arith.AddFOp: -0.0, arith.AddIOp: 0, arith.MulIOp: 1}
_PURE = ("arith.", "math.")
_MAKERS = memref.AllocOp, memref.GetGlobalOp
"""What makes memory that no other memory overlaps, as that of arguments."""


def scan_threads(ops: Sequence[ir.Operation], rows: int | None, device: Device) -> int | None:
    """Threads of a group that runs some ops, a scan among them; None if a thread has to.

    There are so many `rows`, None if that is not known. Memory is not flat yet.
    """
    loop = loop_of(ops)
    if loop is None or not _is_scan(loop, ops):
        return None
    length, element = constant_of(loop.upperBound), loop.initArgs[0].type
    if str(element) not in device.elements or (length or FEWEST_THREADS) < FEWEST_THREADS:
        return None
    if rows is not None and rows >= MANY_COLUMNS and not _is_along_memory(loop):
        return None
    most = min(MOST_OF_ONE if rows == 1 else MOST_THREADS, device.workgroup)
    threads = 1 << (most.bit_length() - 1)
    while length is not None and threads // 2 * STRETCH >= length and threads > FEWEST_THREADS:
        threads //= 2
    while 2 * threads * element_bits(element) // 8 > device.shared_bytes:
        threads //= 2
    return threads if threads >= FEWEST_THREADS else None


def tile_size(threads: int) -> int:
    """Elements that a group of so many threads scans at once."""
    return threads * STRETCH


def loop_of(ops: Sequence[ir.Operation]) -> scf.ForOp | None:
    """The only op with a region, if that is a loop which carries one value."""
    with_regions = [op.opview for op in ops if len(op.regions) > 0]
    if len(with_regions) != 1 or not isinstance(with_regions[0], scf.ForOp):
        return None
    return with_regions[0] if len(with_regions[0].results) == 1 else None


def _body(loop: scf.ForOp) -> list[ir.OpView]:
    """The ops of a loop without its terminator."""
    return list(loop.body.operations)[:-1]


def _next(loop: scf.ForOp) -> ir.Value:
    """The value that a loop carries on."""
    return list(loop.body.operations)[-1].operands[0]


def _is_scan(loop: scf.ForOp, ops: Sequence[ir.Operation]) -> bool:
    """Whether a loop combines its total with values that do not need it, and stores apart."""
    if constant_of(loop.lowerBound) != 0 or constant_of(loop.step) != 1:
        return False
    if any(True for _ in loop.results[0].uses) or not _combines(loop):
        return False
    around = [op.opview for op in ops if op != loop.operation]
    if not all(_is_pure(op) or isinstance(op, memref.LoadOp) for op in around):
        return False
    return _stores_apart(loop, around)


def _combines(loop: scf.ForOp) -> bool:
    """Whether the total becomes itself and a value that does not need it."""
    total, after = loop.inner_iter_args[0], _next(loop)
    if isinstance(after.owner, ir.Block) or type(after.owner.opview) not in _NEUTRAL:
        return False
    if after.owner.operation.block != loop.body:
        return False
    a, b = after.owner.operands
    return (a == total) != (b == total) and total not in _needed(loop, b if a == total else a)


def _needed(loop: scf.ForOp, value: ir.Value) -> set[ir.Value]:
    """A value, and all that it is computed from in an iteration."""
    needed = {value}
    for op in reversed(_body(loop)):
        if any(result in needed for result in op.operation.results):
            needed.update(op.operation.operands)
    return needed


def _is_pure(op: ir.OpView) -> bool:
    return op.operation.name.startswith(_PURE) and len(op.operation.regions) == 0


def _stores_apart(loop: scf.ForOp, around: Sequence[ir.OpView]) -> bool:
    """Whether memory that a loop stores to is accessed at one element an iteration, its own.

    It is loaded before it is stored to: sums are computed without the stores of an iteration.
    """
    stored: dict[ir.Value, list[ir.Value]] = {}
    loaded: list[tuple[ir.Value, list[ir.Value]]] = []
    for op in [*around, *_body(loop)]:
        if isinstance(op, memref.StoreOp):
            at = list(op.indices)
            if stored.setdefault(op.memref, at) != at or not _is_own(loop, at):
                return False
        elif isinstance(op, memref.LoadOp):
            if op.memref in stored:
                return False
            loaded.append((op.memref, list(op.indices)))
        elif not _is_pure(op):
            return False
    buffers = [*stored, *(buffer for buffer, _ in loaded)]
    is_known = all(
        isinstance(x.owner, ir.Block) or isinstance(x.owner.opview, _MAKERS) for x in buffers
    )
    return is_known and all(stored.get(buffer, at) == at for buffer, at in loaded)


def _is_own(loop: scf.ForOp, indices: Sequence[ir.Value]) -> bool:
    """Whether no two iterations have these indices: one goes along with that of the loop."""
    return any(_goes_along(loop, x) for x in indices)


def _is_along_memory(loop: scf.ForOp) -> bool:
    """Whether iterations store to elements next to each other."""
    stores = [op for op in _body(loop) if isinstance(op, memref.StoreOp)]
    return all(_goes_along(loop, op.indices[-1]) for op in stores)


def _goes_along(loop: scf.ForOp, x: ir.Value) -> bool:
    """Whether a value is the index of a loop, plus or minus what is the same in all iterations."""
    index = loop.induction_variable
    if x == index:
        return True
    if isinstance(x.owner, ir.Block) or x.owner.operation.block != loop.body:
        return False
    if not isinstance(x.owner.opview, arith.AddIOp | arith.SubIOp):
        return False
    fixed = [_is_fixed(loop, y) for y in x.owner.operands]
    return any(
        is_fixed and _goes_along(loop, other)
        for is_fixed, other in zip(fixed, reversed(list(x.owner.operands)), strict=True)
    )


def _is_fixed(loop: scf.ForOp, x: ir.Value) -> bool:
    """Whether a value is the same in all iterations."""
    block = x.owner if isinstance(x.owner, ir.Block) else x.owner.operation.block
    return block != loop.body


@dataclass(frozen=True)
class Scan:
    """A scan that a group runs; `values` are those of copies of what is around its loop."""

    loop: scf.ForOp
    group: Group
    values: dict[ir.Value, ir.Value] = field(default_factory=dict)

    @property
    def first(self) -> ir.Value:
        """What totals begin with."""
        return self.loop.initArgs[0]

    def run(self, begin: Index, end: Index, total: ir.Value) -> None:
        """Runs the iterations of a part in order, a tile at a time, from a total on."""

        def tile(first: ir.Value, total: ir.Value) -> list[ir.Value]:
            own = self._stretch(first, end)
            before, whole = prefixes(self.group, self._sum(own, self._neutral), self.combined)
            is_first = loops.less(self.group.thread, 1)
            self._run(own, loops.select(is_first, total, self.combined(total, before)))
            if is_read_late(self.group) and not self._is_tile:
                barrier()  # the next tile begins where threads still read
            return [self.combined(total, whole)]

        loops.for_range(begin, end, self._tile, tile, [total])

    def total(self, begin: Index, end: Index) -> ir.Value:
        """The total of a part, whose elements are combined in some order, always the same."""

        def tile(first: ir.Value, sum_: ir.Value) -> list[ir.Value]:
            return [self._sum(self._stretch(first, end), sum_)]

        sums = loops.for_range(begin, end, self._tile, tile, [self._neutral])
        return prefixes(self.group, sums[0], self.combined)[1]

    def combined(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Two totals in order: elements of `b` follow those of `a`."""
        kind: type = type(_next(self.loop).owner.opview)
        result: ir.Value = kind(a, b).result
        return result

    @property
    def _tile(self) -> int:
        return tile_size(self.group.threads)

    @property
    def _is_tile(self) -> bool:
        """Whether rows are known to be no more than a tile."""
        length = constant_of(self.loop.upperBound)
        return length is not None and length <= self._tile

    @property
    def _neutral(self) -> ir.Value:
        kind = type(_next(self.loop).owner.opview)
        return arith.constant(self.first.type, _NEUTRAL[kind])

    def _stretch(self, first: Index, end: Index) -> tuple[Index, Index]:
        """Where a thread's stretch of a tile begins and ends."""
        offset = loops.mul(self.group.thread, STRETCH)
        begin = loops.minimum(loops.add(first, offset), end)
        return begin, loops.minimum(loops.add(begin, STRETCH), end)

    def _sum(self, own: tuple[Index, Index], start: ir.Value) -> ir.Value:
        """A total, and that of a stretch."""
        total = self.loop.inner_iter_args[0]
        added = next(x for x in _next(self.loop).owner.operation.operands if x != total)
        needed = _needed(self.loop, added)

        def step(k: ir.Value, sum_: ir.Value) -> list[ir.Value]:
            values = {**self.values, self.loop.induction_variable: k}
            for op in _body(self.loop):
                if any(result in needed for result in op.operation.results):
                    copy_op(op, values)
            return [self.combined(sum_, values.get(added, added))]

        return loops.for_range(*own, 1, step, [start])[0]

    def _run(self, own: tuple[Index, Index], total: ir.Value) -> None:
        """Runs the iterations of a stretch from a total on."""
        copy = self.loop.operation.clone()
        for position, x in enumerate(own):
            copy.operands[position] = loops.value(x)
        copy.operands[3] = total
