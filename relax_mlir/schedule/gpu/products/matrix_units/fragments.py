"""The products of matrices of a warp, of the tiles that its group has in memory.

Source: NVIDIA, PTX ISA 8.5, mma.m16n8k16 and mma.m16n8k32.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.shuffles import WARP

from ..sides import Product, total_type
from .copies import SidePlan
from .matrices import COLUMNS, ROWS, elements, half, load, multiply, row_of_lane
from .staging import Matrix, Part

WARPS = 2
"""Warps of a group along rows, and along columns."""


@dataclass(frozen=True)
class Fragments:
    """The sums of a warp, and what it multiplies, from memory of its group."""

    product: Product
    plans: Sequence[SidePlan]
    memory: Sequence[ir.Value]
    thread: ir.Value

    @property
    def rows(self) -> int:
        """Matrices of sums along rows."""
        return self.plans[0].side.width // (WARPS * ROWS)

    @property
    def columns(self) -> int:
        """Matrices of sums along columns."""
        return self.plans[1].side.width // (WARPS * COLUMNS)

    def initial(self) -> list[ir.Value]:
        """What sums begin with: for each product, by rows and columns of matrices."""
        first = self.product.contractions[0]
        element = total_type(first.stage.results[0].element)
        value: ir.Attribute = ir.FloatAttr.get(ir.F32Type.get(), float(first.initial))
        if isinstance(element, ir.IntegerType):
            value = ir.IntegerAttr.get(element, int(first.initial))
        total = ir.VectorType.get([2, 2], element)
        start = arith.constant(total, ir.DenseElementsAttr.get_splat(total, value))
        return [start] * (len(self.product.right) * self.rows * self.columns)

    def multiply(self, slot: Index, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums after a step, of which memory has the elements in a slot."""
        result = list(sums)
        warp = loops.floor_div(self.thread, WARP)
        across = loops.floor_div(warp, WARPS), loops.mod(warp, WARPS)
        firsts = [self._first(i, slot, across[min(i, 1)]) for i in range(len(self.plans))]
        for k in range(0, self.plans[0].depth, 2 * self.plans[0].unit):
            left = [self._load(0, firsts[0], ROWS * i, k) for i in range(self.rows)]
            at = 0
            for side in range(1, len(self.plans)):
                pairs = range(self.columns // 2)
                loaded = [self._load(side, firsts[side], ROWS * j, k) for j in pairs]
                right = [half(pair, i) for pair in loaded for i in range(2)]
                for a in left:
                    for b in right:
                        result[at] = multiply(a, b, result[at])
                        at += 1
        return result

    def parts(self, sums: Sequence[ir.Value]) -> list[Part]:
        """The sums by parts: 16 rows of each warp."""
        warp = loops.floor_div(self.thread, WARP)
        down, across = loops.floor_div(warp, WARPS), loops.mod(warp, WARPS)
        columns, height = self.plans[1].side.width, ROWS * self.rows
        row, column = loops.mul(down, ROWS), loops.mul(across, columns // WARPS)
        count = self.rows * self.columns

        def part(index: int) -> Part:
            def position(i: Index, j: Index) -> tuple[Index, Index]:
                own = loops.add(loops.mod(i, ROWS), index * ROWS)
                return loops.add(loops.mul(loops.floor_div(i, ROWS), height), own), j

            begins = range(index * self.columns, len(sums), count)
            matrices = [
                [
                    Matrix(self.thread, row, loops.add(column, COLUMNS * j), elements(x))
                    for j, x in enumerate(sums[begin : begin + self.columns])
                ]
                for begin in begins
            ]
            return Part(WARPS * ROWS, columns, position, matrices)

        return [part(index) for index in range(self.rows)]

    def _first(self, index: int, slot: Index, warp: Index) -> Index:
        """Where in memory the row of a lane begins, of the first matrices of its warp."""
        plan = self.plans[index]
        begin = loops.mul(warp, plan.side.width // WARPS)
        return loops.add(
            loops.mul(slot, plan.elements),
            loops.mul(begin, plan.pitch if plan.along_depth else 1),
            row_of_lane(self.thread, index == 0, plan.along_depth, plan.pitch, plan.unit),
        )

    def _load(self, index: int, first: Index, row: int, k: int) -> ir.Value:
        """Four matrices of a side, from a row and a k of its warp's part on."""
        plan = self.plans[index]
        outer, inner = (row, k) if plan.along_depth else (k, row)
        at = loops.add(first, outer * plan.pitch + inner)
        return load(self.memory[index], at, not plan.along_depth, plan.unit)
