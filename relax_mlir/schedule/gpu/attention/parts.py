"""Keys in parts: how many, and the launch that combines what groups left of each.

    part s of the keys:  max_s = max score, total_s = sum e^(score - max_s), sums_s = sum .. * v
    all parts:           max = max max_s, out = sum e^(max_s - max) sums_s / sum .. total_s

There are parts where there are few tiles of rows, as in generation. They depend on lengths alone.
Source: Flash-Decoding (2023).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.online_softmax import LOWEST, exponential
from relax_mlir.target import Device

from ..launch import GROUPS, for_threads
from .tile import MOST_KEYS, Sums, constant

FEWEST_KEYS = 128
"""Keys of a part, at least."""


@dataclass(frozen=True)
class Parts:
    """`count` parts of `size` keys of each of `tiles` tiles of `rows` rows.

    For each row of a part, buffers have a row of `sums`, and an element of `row_max` and `total`.
    """

    count: Index
    size: Index
    rows: int
    width: int
    sums: ir.Value
    row_max: ir.Value
    total: ir.Value

    def row(self, tile: Index, part: Index, row: Index) -> Index:
        """The index of a row of a part in the buffers."""
        return loops.add(loops.mul(loops.add(loops.mul(tile, self.count), part), self.rows), row)

    def keep(
        self, results: Sequence[Sums], tile: Index, part: Index, out: ir.Value,
        at: Callable[[Index], Index],
    ) -> None:  # fmt: skip
        """Stores elements of a row of a tile: the result, from `at` a column, if there is one part.

        If there are several elements, the row's total is inverted once.
        """
        first = results[0]

        def divided() -> None:
            if len(results) == 1:
                store(arith.divf(first.sum, first.total), out, at(first.column))
                return
            inverse = arith.divf(constant(1.0), first.total)
            for result in results:
                store(arith.mulf(result.sum, inverse), out, at(result.column))

        def saved() -> None:
            row = self.row(tile, part, first.row)
            begin = loops.mul(row, self.width)
            for result in results:
                index = loops.add(begin, result.column)
                memref.store(result.sum, self.sums, [loops.value(index)])

            def of_row() -> None:
                memref.store(first.row_max, self.row_max, [loops.value(row)])
                memref.store(first.total, self.total, [loops.value(row)])

            loops.if_else(loops.less(first.column, 1), of_row)

        loops.if_else(loops.less(1, self.count), saved, divided)


@contextmanager
def split(length: Index, tiles: Index, rows: int, width: int) -> Iterator[Parts]:
    """The parts of up to `length` keys, with memory if there are several."""
    most = loops.maximum(1, loops.floor_div(GROUPS, loops.maximum(1, tiles)))
    count = loops.minimum(most, loops.maximum(1, loops.floor_div(length, FEWEST_KEYS)))
    size = loops.round_up(loops.ceil_div(length, count), MOST_KEYS)
    count = loops.maximum(1, loops.ceil_div(length, loops.maximum(1, size)))
    several = loops.minimum(1, loops.sub(count, 1))
    saved = loops.mul(tiles, count, rows, several)
    f32 = ir.F32Type.get()
    with (
        loops.scratch(loops.mul(saved, width), f32) as sums,
        loops.scratch(saved, f32) as row_max,
        loops.scratch(saved, f32) as total,
    ):
        yield Parts(count, size, rows, width, sums, row_max, total)


def combine(
    parts: Parts, device: Device, count: Index, tile_of: Callable[[Index], tuple[Index, Index]],
    out: ir.Value,
) -> None:  # fmt: skip
    """Launches a thread for each element of `count` rows of the output, if there are several parts.

    `tile_of` says which row of which tile a row of the output is.
    """

    def one(at: Index) -> None:
        tile, row = tile_of(loops.floor_div(at, parts.width))
        column = loops.mod(at, parts.width)

        def step(part: ir.Value, row_max: ir.Value, total: ir.Value, x: ir.Value) -> list[ir.Value]:
            own = loops.value(parts.row(tile, part, row))
            most = memref.load(parts.row_max, [own])
            new = arith.maximumf(row_max, most)
            old_factor, factor = (exponential(each, new) for each in (row_max, most))
            index = loops.value(loops.add(loops.mul(own, parts.width), column))
            both = [
                math.fma(memref.load(buffer, [i]), factor, arith.mulf(old, old_factor))
                for buffer, i, old in ((parts.total, own, total), (parts.sums, index, x))
            ]
            return [new, *both]

        start = [constant(LOWEST), constant(0.0), constant(0.0)]
        _, total, x = loops.for_range(0, parts.count, 1, step, start)
        store(arith.divf(x, total), out, at)

    def launch() -> None:
        for_threads(loops.mul(count, parts.width), device, one)

    loops.if_else(loops.less(1, parts.count), launch)


def store(x: ir.Value, out: ir.Value, at: Index) -> None:
    """Stores an f32 in the type of the output."""
    element = ir.MemRefType(out.type).element_type
    if element != ir.F32Type.get():
        x = arith.truncf(element, x)
    memref.store(x, out, [loops.value(at)])
