"""The right side of a product, computed panel by panel by the body of the contraction.

    lanes along columns      panel[k, :] = vectors of g(k, columns)
    lanes along k            the same, after a transpose of squares in registers

Lanes run along what is contiguous in memory, so that elements packed in bytes or words are loaded
as vectors. A panel is computed once for all rows of a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.program.computed_product import ComputedProduct
from relax_mlir.schedule.build.evaluate import Evaluator, Point
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Ramp, Uniform, to_vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    floor_div,
    for_range,
    if_else,
    less,
    mask,
    minimum,
    mod,
    mul,
    store,
    sub,
    value,
    vector_type,
)
from relax_mlir.schedule.build.transposes import transpose
from relax_mlir.schedule.cpu.isa.step import Step

from .micro_kernel import Panel

WORD_BITS = 32
"""Elements of fewer bits are computed in longer vectors."""


@dataclass(frozen=True)
class ComputedSide:
    """Vectors of g(k, column), for `columns` columns and `depth` steps along k."""

    kernel: Kernel
    product: ComputedProduct
    step: Step
    columns: Index
    depth: Index

    def together(self, vectors: int) -> int:
        """How many of `vectors` vectors are computed as one, so that narrow elements fill it.

        Both are powers of two.
        """
        narrow = max(1, WORD_BITS // self.product.bits)
        return min(vectors, 1 << narrow.bit_length() - 1)

    def along_columns(
        self, batch: Sequence[Index], column: Index, k: Index, keep: ir.Value | None, vectors: int
    ) -> list[ir.Value]:
        """Step k of `vectors` vectors of columns from `column` on, a multiple of all of them."""
        lanes = vectors * self.step.lanes
        x = self._vector(batch, Ramp(value(column), 1, lanes, True), Uniform(k), lanes, keep)
        return self._parts(x, vectors)

    def along_depth(
        self, batch: Sequence[Index], column: Index, k: Index, keep: ir.Value | None, vectors: int
    ) -> list[ir.Value]:
        """`vectors` vectors of steps of a column from k on, a multiple of all of them."""
        lanes = vectors * self.step.lanes
        x = self._vector(batch, Uniform(column), Ramp(value(k), 1, lanes, True), lanes, keep)
        return self._parts(x, vectors)

    def _parts(self, x: ir.Value, count: int) -> list[ir.Value]:
        """The vectors of which a long one consists."""
        lanes = self.step.lanes
        kind = vector_type(lanes, self.step.total)
        begins = range(0, count * lanes, lanes)
        return [vector.extract_strided_slice(kind, x, [i], [lanes], [1]) for i in begins]

    def _vector(
        self,
        batch: Sequence[Index],
        column: Uniform | Ramp,
        k: Uniform | Ramp,
        lanes: int,
        keep: ir.Value | None,
    ) -> ir.Value:
        product = self.product
        indices: list[Uniform | Ramp] = [Uniform(0)] * len(product.stage.extents)
        for loop, index in zip(product.batch, batch, strict=True):
            indices[loop] = Uniform(index)
        indices[product.columns[0]], indices[product.depth] = column, k
        lane = Evaluator(self.kernel).scalar(product.right, indices, Point(lanes, keep))
        result = to_vector(lane, lanes)
        if product.right.value.type == self.step.total:
            return result
        return arith.extf(vector_type(lanes, self.step.total), result)


@dataclass(frozen=True)
class Computed:
    """Panels of `vectors` vectors of columns; see `Operand`."""

    side: ComputedSide
    vectors: int
    packs = True
    converts = True
    k_unit = 1

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        assert buffer is not None
        column = mul(index, self.vectors * self.side.step.lanes)
        if self.side.product.along_depth:
            self._squares(batch, column, k, depth, buffer)
        else:
            self._steps(batch, column, k, depth, buffer)
        return Panel(buffer, 0)

    def _steps(
        self, batch: Sequence[Index], column: Index, k: Index, depth: Index, buffer: ir.Value
    ) -> None:
        """Computes the panel step by step."""
        side, lanes, together = self.side, self.side.step.lanes, self.side.together(self.vectors)

        def one(j: ir.Value, is_whole: bool) -> None:
            for v in range(0, self.vectors, together):
                at, keep = tail_of(side, add(column, v * lanes), together, is_whole)
                xs = side.along_columns(batch, at, add(k, j), keep, together)
                for i, x in enumerate(xs):
                    store(x, buffer, mul(add(mul(j, self.vectors), v + i), lanes))

        if_else(
            less(add(column, self.vectors * lanes - 1), side.columns),
            lambda: for_range(0, depth, 1, lambda j: one(j, True)),
            lambda: for_range(0, depth, 1, lambda j: one(j, False)),
        )

    def _squares(
        self, batch: Sequence[Index], column: Index, k: Index, depth: Index, buffer: ir.Value
    ) -> None:
        """Computes squares of columns by steps, and transposes them."""
        side, lanes = self.side, self.side.step.lanes
        last = sub(side.columns, 1)

        def strip(v: ir.Value) -> None:
            first = add(column, mul(v, lanes))
            columns = [minimum(add(first, i), last) for i in range(lanes)]

            def square(j: Index, keep: ir.Value | None = None) -> None:
                rows = [side.along_depth(batch, c, add(k, j), keep, 1)[0] for c in columns]
                for i, x in enumerate(transpose(rows)):
                    store(x, buffer, mul(add(mul(add(j, i), self.vectors), v), lanes))

            full = sub(depth, mod(depth, lanes))
            for_range(0, full, lanes, square)
            if_else(less(full, depth), lambda: square(full, mask(sub(depth, full), lanes)))

        for_range(0, self.vectors, 1, strip)


def tail_of(
    side: ComputedSide, column: Index, vectors: int, is_whole: bool
) -> tuple[Index, ir.Value | None]:
    """Where `vectors` vectors of columns begin, and the mask of those that exist.

    Vectors after the last column repeat the last ones that have columns.
    """
    if is_whole:
        return column, None
    lanes = vectors * side.step.lanes
    at = minimum(column, mul(floor_div(sub(side.columns, 1), lanes), lanes))
    return at, mask(sub(side.columns, at), lanes)
