"""A tile of a convolution whose lanes run along places: sums of some filters in registers.

    height x vectors sums += filter[:] * places[:]

Numbers of filters are read one at a time into all lanes, places by whole vectors. Sums are where
the result has them, so that they need not be transposed.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir, memref, vector
from relax_mlir.schedule.build.block import Block, Epilogue
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    and_,
    broadcast,
    floor_div,
    if_else,
    least_fitting,
    less,
    load,
    mul,
    round_up,
    splat,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking

VECTORS = 3
"""Vectors of places in a tile."""


def fills_vectors(blocking: Blocking, places: Index, depth: Index) -> bool | ir.Value:
    """Whether lanes that a run of places leaves unused cost less than sums that are transposed."""
    unused = sub(round_up(places, blocking.lanes), places)
    return less(mul(unused, depth), mul(places, blocking.family.convolutions.transpose))


@dataclass(frozen=True)
class PlaceTile:
    """Tiles of `height` filters by up to `VECTORS` vectors of places.

    `filters` is a buffer of f32 panels, `initial` what sums start with.
    """

    blocking: Blocking
    filters: ir.Value
    initial: float
    epilogue: Epilogue

    @property
    def height(self) -> int:
        """Filters of a tile: with `VECTORS`, sums that leave registers for what is multiplied."""
        return 8 if self.blocking.registers == 32 else 4

    @property
    def width(self) -> int:
        """Places of a tile."""
        return VECTORS * self.blocking.lanes

    @property
    def size(self) -> int:
        """Numbers of a tile."""
        return self.height * self.width

    def start(self, vectors: int) -> list[ir.Value]:
        """What the sums of so many vectors of places are at first, filter by filter."""
        zero = splat(self.initial, self.blocking.lanes, ir.F32Type.get())
        return [zero] * (self.height * vectors)

    def step(
        self, places: ir.Value, at: Index, filters_at: Index, held: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums with the products of the places from `at` on and one number of each filter."""
        lanes, vectors = self.blocking.lanes, len(held) // self.height
        right = [load(places, add(at, v * lanes), lanes) for v in range(vectors)]
        found = []
        for f in range(self.height):
            number = value(add(filters_at, f))
            left = broadcast(memref.load(self.filters, [number]), lanes)
            own = held[f * vectors : (f + 1) * vectors]
            found += [vector.fma(left, x, y) for x, y in zip(right, own, strict=True)]
        return found

    def fetch(self, block: Block, part: Index, parts: int) -> None:
        """Asks for the memory that part of a whole block's rows will be stored to."""
        first = floor_div(mul(part, self.height), parts)
        last = floor_div(mul(add(part, 1), self.height), parts)
        some = replace(block, row=add(block.row, first))
        self.epilogue.fetch(some, sub(last, first), VECTORS)

    def emit(self, block: Block, sums: Callable[[int], list[ir.Value]]) -> None:
        """Emits `sums(vectors)` for the places of a block, and what is done with them.

        A block has up to `height` rows and `width` columns, and a buffer of `size` numbers, with
        rows at distance `width`. Short epilogues take whole tiles from registers.
        """
        epilogue, lanes = self.epilogue, self.blocking.lanes

        def through_memory(vectors: int) -> None:
            for i, x in enumerate(sums(vectors)):
                row, v = divmod(i, vectors)
                store(x, block.buffers[0], row * self.width + v * lanes)
            epilogue(block)

        def by_width() -> None:
            least_fitting(block.columns, range(1, VECTORS + 1), through_memory, unit=lanes)

        def in_registers() -> None:
            epilogue.in_registers(block, sums(VECTORS), self.height)

        if epilogue.is_short:
            whole = and_(less(self.height - 1, block.rows), less(self.width - 1, block.columns))
            if_else(whole, in_registers, by_width)
        else:
            by_width()
