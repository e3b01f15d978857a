"""What is multiplied: batches of products of matrices that share their left side."""

from dataclasses import dataclass

from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.loops import Index, mul, unravel
from relax_mlir.schedule.cpu.isa.step import Step

from .operands import Operand, Side

SHORT_K = 28
"""Steps along k of a tile that is done before the lines are there that it stores to."""


@dataclass(frozen=True)
class Product:
    """Products that share their left side, for every index of the batch.

    `depth` counts steps along k. Sums begin at `initial`, and `factor` times the sum of a row of
    the left side. Where lines of a result's rows displace one another in a cache, it `collides`.
    """

    batch: tuple[Index, ...]
    rows: Index
    columns: Index
    depth: Index
    lhs: Side
    rhs: tuple[Operand, ...]
    initial: float
    epilogue: Epilogue
    step: Step
    factor: int = 0
    collides: bool = False

    @property
    def packs(self) -> bool:
        """Whether panels are packed on the way."""
        return any(side.packs for side in self.rhs)

    @property
    def converts(self) -> bool:
        """Whether what is loaded from panels is not what is multiplied."""
        return any(side.converts for side in self.rhs)

    @property
    def k_unit(self) -> int:
        """Steps along k that a block of k is a multiple of."""
        return max(side.k_unit for side in self.rhs)

    @property
    def passes_rows_once(self) -> bool:
        """Whether all columns of a tile's rows come before the next rows, to store in order.

        Panels that are packed on the way would be packed for each tile.
        """
        is_short = isinstance(self.depth, int) and self.depth <= SHORT_K
        return not self.packs and self.collides and is_short

    @property
    def batch_size(self) -> Index:
        """Number of matrices."""
        return mul(1, *self.batch)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch that has this number, counted row by row."""
        return unravel(linear, self.batch)
