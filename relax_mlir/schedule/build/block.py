"""A block of sums, and the epilogue that computes the result from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from relax_mlir.bindings import ir

from .loops import Index


@dataclass(frozen=True)
class Block:
    """Accumulators in scratch memory: `rows` by `columns` of the result from (row, column) on.

    Element (i, j) of product p is at `buffers[p][start + i * stride + j]`.
    """

    batch: tuple[Index, ...]
    row: Index
    rows: Index
    column: Index
    columns: Index
    buffers: tuple[ir.Value, ...]
    stride: int
    start: Index = 0


class Epilogue(Protocol):
    """What is computed from the sums, and stored."""

    @property
    def is_short(self) -> bool:
        """Whether it is emitted for each vector of a tile."""

    def __call__(self, block: Block) -> None:
        """Emits it for a block, whose sums are in memory."""

    def of_whole_rows(self, block: Block, vectors: int) -> None:
        """Emits it for a block of `vectors` whole vectors of columns, with sums in memory."""

    def in_registers(
        self, block: Block, sums: Sequence[ir.Value], rows: int, columns: int | None = None
    ) -> None:
        """Emits it for `rows` rows of a block; `sums` are the last product's vectors.

        Rows have `columns` columns, or whole vectors.
        """

    def prefetch(self, block: Block, rows: Index, vectors: int) -> None:
        """Prefetches `rows` whole rows of the outputs, and of operands at the same indices."""
