"""Launches of scans: rows that are few and long are divided into parts, which have a group each.

    group (row, part) but the last part:  the total of a part
    group (row, part):                    the totals of the parts before, then the scan of the part

How rows are divided depends on their count and length only. Short rows have one part, so that
nothing is launched for totals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref, scf
from relax_mlir.rewriting import copy_op, defining_op
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import constant_of
from relax_mlir.schedule.build.loops import Index
from relax_mlir.target import Device

from ..launch import Group, for_groups
from .scan import Scan, loop_of, tile_size

MOST_PARTS = 128
"""Parts of all rows: about as many groups as occupy a device."""
LEAST_TILES = 2
"""Tiles of a part, whose total costs another launch."""


def launch_scans(
    ops: Sequence[ir.Operation], row: ir.Value | None, rows: Index, threads: int, device: Device
) -> None:
    """Launches groups that run ops, a scan among them, for each value below `rows` of `row`."""
    loop = loop_of(ops)
    assert loop is not None
    anchor = arith.constant(ir.IndexType.get(), 0).owner.operation  # stays where ops go away
    with ir.InsertionPoint(anchor):
        length = _length(loop)
        if length is None:
            for_groups(rows, threads, device, lambda group: _whole(ops, loop, row, group))
        else:
            _Parts(ops, loop, row, rows, length, threads).launch(device)
    anchor.erase()


@dataclass(frozen=True)
class _Parts:
    """Rows of a length, a scan each, in parts."""

    ops: Sequence[ir.Operation]
    loop: scf.ForOp
    row: ir.Value | None
    rows: Index
    length: Index
    threads: int

    def launch(self, device: Device) -> None:
        """Emits the launches."""
        size = self._size()
        parts = loops.ceil_div(self.length, size)
        before = loops.sub(loops.maximum(parts, 1), 1)
        count = loops.mul(self.rows, before)
        with loops.scratch(count, self.loop.initArgs[0].type) as totals:
            for_groups(
                count, self.threads, device, lambda group: self._total(group, size, before, totals)
            )
            for_groups(
                loops.mul(self.rows, parts),
                self.threads,
                device,
                lambda group: self._run(group, size, parts, before, totals),
            )

    def _size(self) -> Index:
        """Elements of a part: tiles."""
        tile = tile_size(self.threads)
        most = loops.maximum(loops.floor_div(MOST_PARTS, loops.maximum(self.rows, 1)), 1)
        each = loops.round_up(loops.ceil_div(self.length, most), tile)
        return loops.maximum(each, LEAST_TILES * tile)

    def _bounds(self, part: Index, size: Index) -> tuple[Index, Index]:
        begin = loops.mul(part, size)  # within the row, so that no sum of indices wraps
        return begin, loops.add(begin, loops.minimum(size, loops.sub(self.length, begin)))

    def _total(self, group: Group, size: Index, before: Index, totals: ir.Value) -> None:
        """Has a group store the total of a part."""
        row, part = loops.floor_div(group.index, before), loops.mod(group.index, before)
        values = {} if self.row is None else {self.row: loops.value(row)}
        for op in self.ops:
            if op != self.loop.operation:
                copy_op(op, values)
        total = Scan(self.loop, group, values).total(*self._bounds(part, size))

        def store() -> None:
            memref.store(total, totals, [loops.value(group.index)])

        loops.if_else(loops.less(group.thread, 1), store)

    def _run(
        self, group: Group, size: Index, parts: Index, before: Index, totals: ir.Value
    ) -> None:
        """Has a group scan a part, from the totals of those before it on."""
        row, part = loops.floor_div(group.index, parts), loops.mod(group.index, parts)
        _move(self.ops, self.row, row)
        scan = Scan(self.loop, group)

        def add(i: ir.Value, total: ir.Value) -> list[ir.Value]:
            at = loops.value(loops.add(loops.mul(row, before), i))
            return [scan.combined(total, memref.load(totals, [at]))]

        total = loops.for_range(0, part, 1, add, [scan.first])[0]
        scan.run(*self._bounds(part, size), total)
        self.loop.operation.erase()


def _whole(
    ops: Sequence[ir.Operation], loop: scf.ForOp, row: ir.Value | None, group: Group
) -> None:
    """Has a group scan a row whose length the host does not know."""
    _move(ops, row, group.index)
    scan = Scan(loop, group)
    scan.run(0, loop.upperBound, scan.first)
    loop.operation.erase()


def _length(loop: scf.ForOp) -> Index | None:
    """The length of a row, if it is an extent, which the host knows."""
    length = constant_of(loop.upperBound)
    if length is not None:
        return length
    is_extent = defining_op(loop.upperBound, memref.DimOp) is not None
    return loop.upperBound if is_extent else None


def _move(ops: Sequence[ir.Operation], row: ir.Value | None, index: Index) -> None:
    """Moves the ops of a row to the insertion point."""
    anchor = arith.constant(ir.IndexType.get(), 0).owner
    for op in ops:
        op.move_before(anchor)
    if row is not None:
        row.replace_all_uses_with(loops.value(index))
    anchor.operation.erase()
