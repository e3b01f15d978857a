"""Quantised weights as the right side of products of f32 elements, decoded once for all rows.

    buffer[32 b + 16 half + 4 group + position, column] = scale * (element - zero) + minimum

A panel of the product has the columns of one or more panels of weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    floor_div,
    for_range,
    load,
    minimum,
    mul,
    store,
    vector_type,
)
from relax_mlir.schedule.cpu.product.micro_kernel import Panel
from relax_mlir.schedule.cpu.product.packing import Matrix

from .quantized_panels import Left, Panels


@dataclass(frozen=True)
class Decoded:
    """Panels of `columns` columns; the weights have `panels` panels of their own."""

    weights: Panels
    panels: Index
    columns: int
    lanes: int
    packs = True
    converts = True
    k_unit = BLOCK

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """See `Operand`; `k` and `depth` are multiples of a block."""
        assert buffer is not None
        out = buffer
        count, last = self.columns // PANEL, add(self.panels, -1)
        first, blocks = floor_div(k, BLOCK), floor_div(depth, BLOCK)

        def block(b: ir.Value) -> None:
            for q in range(count):
                # The last panel of the product may cover fewer panels of weights.
                p = minimum(add(mul(index, count), q), last)
                at = add(mul(b, BLOCK * self.columns), q * PANEL)
                self._decode(p, add(first, b), out, at)

        for_range(0, blocks, 1, block)
        return Panel(buffer, 0)

    def _decode(self, p: Index, b: Index, buffer: ir.Value, at: Index) -> None:
        """Decodes a block of a panel of weights; its first element is stored at `at`."""
        self.weights.prefetch(p, b, self.panels, is_few=False)
        for k, vectors in self.weights.floats_of(p, b, self.lanes):
            for v, x in enumerate(vectors):
                store(x, buffer, add(at, k * self.columns + v * self.lanes))


@dataclass(frozen=True)
class BlockMatrix(Matrix):
    """Rows of 8-bit elements in blocks along k, which are loaded as f32 elements."""

    left: Left | None = None

    def load(self, offset: Index, lanes: int, keep: ir.Value | None = None) -> ir.Value:
        """See `Matrix`; all lanes are in one block."""
        assert self.left is not None
        kind = vector_type(lanes, ir.F32Type.get())
        block = floor_div(add(offset, mul(self.offset, -1)), BLOCK)
        elements = arith.sitofp(kind, load(self.buffer, offset, lanes, keep))
        scaled = arith.mulf(elements, broadcast(self.left.factor(block), lanes))
        if self.left.offset is None:
            return scaled
        return arith.addf(scaled, broadcast(self.left.offset_of(block), lanes))


def left_matrix(left: Left, rows: Index, blocks: int) -> Matrix:
    """The left side as a matrix of f32 elements."""
    depth = BLOCK * blocks
    shape = (left.values.base, left.values.offset, depth, 1, rows, depth)
    if left.scale is None:
        return Matrix(*shape)
    return BlockMatrix(*shape, convert=lambda x: x, left=left)
