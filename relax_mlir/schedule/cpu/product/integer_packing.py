"""Copies blocks of matrices of 8-bit integers into the layouts that the kernel reads.

The machine multiplies groups of neighbours along k. The left side becomes rows of groups, one row
after the other; the right side becomes panels, [group of k][column][number of the group]. Past the
end of k there are zeros on the left, so that what is on the right does not matter.
"""

from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    both,
    broadcast,
    choose,
    floor_div,
    for_range,
    if_else,
    less,
    mask,
    minimum,
    mod,
    mul,
    splat_integer,
    store,
    sub,
    value,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa.dot import GroupStep

from .packing import Matrix


@dataclass(frozen=True)
class LeftCopy:
    """Where rows of the left side are copied to, in blocks of `k_block` groups.

    Group k of row r is at `groups[start + (k // k_block) * pitch + r * stride + k % k_block]`.
    `initial` and `factor` times the sum of row r go to row `first + r` of `corrections`, as many
    equal numbers as there are lanes; nothing where both are zero.
    """

    groups: ir.Value
    start: Index
    pitch: Index
    stride: int
    k_block: Index
    k_blocks: Index
    corrections: ir.Value
    first: Index
    factor: int
    initial: int

    def correct(self, total: ir.Value, row: Index) -> None:
        """Stores what sums of a row begin with; `total` is its own sum in all lanes."""
        kind = ir.VectorType(total.type)
        factor, initial = (
            splat_integer(number, kind.shape[0], kind.element_type)
            for number in (self.factor, self.initial)
        )
        found = arith.addi(arith.muli(total, factor), initial)
        store(found, self.corrections, mul(add(self.first, row), kind.shape[0]))

    @property
    def corrects(self) -> bool:
        """Whether sums begin with anything."""
        return bool(self.factor or self.initial)


def copy_left(step: GroupStep, source: Matrix, row: Index, rows: Index, copy: LeftCopy) -> None:
    """Copies `rows` rows from `row` on; rows past the end of the source repeat its last one.

    A source whose rows are neighbours in memory is copied in whole vectors of rows.
    """
    if source.k_is_innermost:
        for_range(0, rows, 1, lambda i: _copy_row(step, source, row, i, copy))
    else:
        count = floor_div(add(rows, step.lanes - 1), step.lanes)
        for_range(0, count, 1, lambda i: _copy_rows(step, source, row, mul(i, step.lanes), copy))


def _copy_row(step: GroupStep, source: Matrix, row: Index, i: ir.Value, copy: LeftCopy) -> None:
    begin = source.at(minimum(add(row, i), sub(source.rows, 1)), 0)
    start = add(copy.start, mul(i, copy.stride))
    width = step.width

    def block(kb: Index, total: ir.Value) -> list[ir.Value]:
        first = mul(kb, copy.k_block, step.group)
        depth = minimum(mul(copy.k_block, step.group), sub(source.depth, first))
        to = add(start, mul(kb, copy.pitch))

        def part(j: Index, total: ir.Value, keep: ir.Value | None = None) -> list[ir.Value]:
            packed = step.pack(source.load(add(begin, first, j), width, keep))
            store(packed, copy.groups, add(to, floor_div(j, step.group)))
            return [step.add_up(packed, total) if copy.factor else total]

        def last(j: Index, total: ir.Value) -> list[ir.Value]:
            return part(j, total, mask(sub(depth, j), width))

        full = sub(depth, mod(depth, width))
        return for_range(full, depth, width, last, for_range(0, full, width, part, [total]))

    (total,) = for_range(0, copy.k_blocks, 1, block, [_zero(step)])
    if copy.corrects:
        i32 = ir.IntegerType.get_signless(32)
        added = vector.reduction(i32, vector.CombiningKind.ADD, total)
        copy.correct(broadcast(added, step.lanes), i)


def _copy_rows(step: GroupStep, source: Matrix, row: Index, begin: Index, copy: LeftCopy) -> None:
    """Copies a vector of rows from `row + begin` on, of a source that is [k, rows]."""
    lanes = step.lanes
    start = add(copy.start, mul(begin, copy.stride))

    def block(kb: Index, total: ir.Value) -> list[ir.Value]:
        first = mul(kb, copy.k_block)
        here = minimum(copy.k_block, sub(_groups(step, source.depth), first))
        to = add(start, mul(kb, copy.pitch))

        def square(j: ir.Value, total: ir.Value) -> list[ir.Value]:
            columns = []
            for i in range(lanes):
                group = _across(step, source, add(row, begin), add(first, j, i), True)
                columns.append(step.pack(group))
                total = step.add_up(columns[-1], total) if copy.factor else total
            for i, x in enumerate(transpose(columns)):
                store(x, copy.groups, add(to, mul(i, copy.stride), j))
            return [total]

        return for_range(0, here, lanes, square, [total])

    (total,) = for_range(0, copy.k_blocks, 1, block, [_zero(step)])
    if copy.corrects:
        for i in range(lanes):
            copy.correct(vector.shuffle(total, total, [i] * lanes), add(begin, i))


def copy_panel(
    step: GroupStep,
    source: Matrix,
    row: Index,
    k: Index,
    depth: Index,
    vectors: int,
    target: ir.Value,
) -> None:
    """Copies rows of the right side, from `row` on, as a panel of `depth` groups from k on."""
    lanes, width = step.lanes, step.width

    def from_columns() -> None:
        def one(j: ir.Value) -> None:
            for v in range(vectors):
                first = add(row, v * lanes)
                at = mul(add(k, j), step.group)
                whole = both(
                    less(add(first, lanes - 1), source.rows),
                    less(add(at, step.group - 1), source.depth),
                )
                to = mul(add(mul(j, vectors), v), width)

                def emit(keep: bool, first: Index = first, to: Index = to) -> None:
                    store(_across(step, source, first, add(k, j), keep), target, to)

                if_else(whole, partial(emit, False), partial(emit, True))

        for_range(0, depth, 1, one)

    def from_rows() -> None:
        last = sub(source.rows, 1)
        part = ir.IntegerType.get_signless(8 * step.group)
        first = mul(k, step.group)
        end = minimum(mul(depth, step.group), sub(source.depth, first))

        def strip(v: ir.Value) -> None:
            at = add(row, mul(v, lanes))
            begins = [source.at(minimum(add(at, i), last), first) for i in range(lanes)]

            def square(j: Index, keep: ir.Value | None = None) -> None:
                loaded = [source.load(add(b, j), width, keep) for b in begins]
                columns = transpose([vector.bitcast(_kind(lanes, part), x) for x in loaded])
                for i, x in enumerate(columns):
                    bytes_ = vector.bitcast(_kind(width, ir.IntegerType.get_signless(8)), x)
                    group = add(floor_div(j, step.group), i)
                    store(bytes_, target, mul(add(mul(group, vectors), v), width))

            full = sub(end, mod(end, width))
            for_range(0, full, width, square)
            for_range(full, end, width, lambda j: square(j, mask(sub(end, j), width)))

        for_range(0, vectors, 1, strip)

    from_rows() if source.k_is_innermost else from_columns()


def _across(step: GroupStep, source: Matrix, row: Index, group: Index, keep: bool) -> ir.Value:
    """One group of each of some rows that are neighbours in memory; `keep` masks the outside."""
    parts = []
    for i in range(step.group):
        k = add(mul(group, step.group), i)
        some = None
        if keep:
            there = choose(less(k, source.depth), value(sub(source.rows, row)), value(0))
            some = mask(there, step.lanes)
            k = minimum(k, sub(source.depth, 1))
        parts.append(source.load(source.at(row, k), step.lanes, some))
    return _interleaved(parts)


def _interleaved(parts: list[ir.Value]) -> ir.Value:
    """Vectors a, b, .. as a[0], b[0], .., a[1], b[1], .."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [_zipped(parts[i], parts[i + half]) for i in range(half)]
    return parts[0]


def _zipped(first: ir.Value, second: ir.Value) -> ir.Value:
    count = ir.VectorType(first.type).shape[0]
    order = [x for i in range(count) for x in (i, count + i)]
    return vector.shuffle(first, second, order)


def _groups(step: GroupStep, depth: Index) -> Index:
    return floor_div(add(depth, step.group - 1), step.group)


def _zero(step: GroupStep) -> ir.Value:
    return splat_integer(0, step.lanes, ir.IntegerType.get_signless(32))


def _kind(count: int, element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get([count], element)
