"""A register block of a convolution whose lanes run along pixels of the result.

    height x vectors sums += filter[:] * pixels[:]

Elements of filters are broadcast to all lanes, pixels are loaded as vectors. Sums have the layout
of the result, so they are not transposed.

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
"""Vectors of pixels in a tile."""


def fills_vectors(blocking: Blocking, pixels: Index, depth: Index) -> bool | ir.Value:
    """Whether the unused lanes of contiguous pixels cost less than transposing sums."""
    unused = sub(round_up(pixels, blocking.lanes), pixels)
    return less(mul(unused, depth), mul(pixels, blocking.family.convolutions.transpose))


@dataclass(frozen=True)
class PixelTile:
    """Tiles of `height` filters by up to `VECTORS` vectors of pixels.

    `filters` is a buffer of f32 panels, `initial` the initial value of sums.
    """

    blocking: Blocking
    filters: ir.Value
    initial: float
    epilogue: Epilogue

    @property
    def height(self) -> int:
        """Filters of a tile: times `VECTORS`, their sums leave registers for the operands."""
        return 8 if self.blocking.registers == 32 else 4

    @property
    def width(self) -> int:
        """Pixels of a tile."""
        return VECTORS * self.blocking.lanes

    @property
    def size(self) -> int:
        """Sums of a tile."""
        return self.height * self.width

    def start(self, vectors: int) -> list[ir.Value]:
        """The initial sums of so many vectors of pixels, filter by filter."""
        zero = splat(self.initial, self.blocking.lanes, ir.F32Type.get())
        return [zero] * (self.height * vectors)

    def step(
        self, pixels: ir.Value, at: Index, filters_at: Index, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums plus the products of the pixels from `at` on and one element of each filter."""
        lanes, vectors = self.blocking.lanes, len(sums) // self.height
        right = [load(pixels, add(at, v * lanes), lanes) for v in range(vectors)]
        result = []
        for f in range(self.height):
            filter_at = value(add(filters_at, f))
            left = broadcast(memref.load(self.filters, [filter_at]), lanes)
            own = sums[f * vectors : (f + 1) * vectors]
            result += [vector.fma(left, x, y) for x, y in zip(right, own, strict=True)]
        return result

    def prefetch(self, block: Block, part: Index, parts: int) -> None:
        """Prefetches the memory that part of a whole block's rows are stored to."""
        first = floor_div(mul(part, self.height), parts)
        last = floor_div(mul(add(part, 1), self.height), parts)
        some = replace(block, row=add(block.row, first))
        self.epilogue.prefetch(some, sub(last, first), VECTORS)

    def emit(self, block: Block, sums: Callable[[int], list[ir.Value]]) -> None:
        """Emits `sums(vectors)` for the pixels of a block, and the epilogue.

        A block has up to `height` rows and `width` columns, and a buffer of `size` elements, whose
        rows are `width` elements apart. Short epilogues read whole tiles from registers.
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
