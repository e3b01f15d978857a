"""What a product computes: batches of matrices that are multiplied by the same left side."""

from dataclasses import dataclass

from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.loops import Index, mul, unravel
from relax_mlir.schedule.cpu.isa.step import Step

from .operands import Operand, Side

SHORT_K = 28
"""Steps along k that are done before the cache lines of the result have been fetched."""


@dataclass(frozen=True)
class Product:
    """Products that share their left side, for each index of the batch.

    `depth` counts steps along k. Sums begin at `initial`, plus `factor` times the sum of the row of
    the left side. `set_conflicts` says that rows of the result evict each other from cache sets.
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
    set_conflicts: bool = False

    @property
    def packs(self) -> bool:
        """Whether panels are packed on the way."""
        return any(side.packs for side in self.rhs)

    @property
    def converts(self) -> bool:
        """Whether elements of panels are converted before they are multiplied."""
        return any(side.converts for side in self.rhs)

    @property
    def k_unit(self) -> int:
        """Blocks of k are multiples of so many steps."""
        return max(side.k_unit for side in self.rhs)

    @property
    def n_is_innermost(self) -> bool:
        """Whether n is the innermost loop over register blocks, so that rows are stored in order.

        Panels that are packed on the way would be packed for each register block of rows.
        """
        is_short = isinstance(self.depth, int) and self.depth <= SHORT_K
        return not self.packs and self.set_conflicts and is_short

    @property
    def batch_size(self) -> Index:
        """Count of matrices."""
        return mul(1, *self.batch)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch, from its linear index in row-major order."""
        return unravel(linear, self.batch)
