"""The parts of matrices that threads of a warp hold, and their products.

    A 16 x 16    four matrices of 8 x 8: upper and lower rows of the left half, then of the right
    B 16 x 8     two: upper and lower rows; two of B are loaded at once
    C 16 x 8     two rows, 8 apart, of two elements: lane l has row l / 4, columns 2 (l % 4) and on

A lane has the address of one row of 8 elements, and gets two elements of each matrix. A matrix
whose rows in memory are along the other axis is transposed on the way. Where elements have 8 bits,
there are twice as many along k: a row has 16, and lanes have four of each matrix of A and B.

Source: NVIDIA, PTX ISA 8.5, matrix fragments for mma.m16n8k16 and mma.m16n8k32, ldmatrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, nvgpu, vector
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from .copies import SidePlan
from .sides import Product, total_type
from .staging import WARP, Matrix, Part

WARPS = 2
"""Warps of a group along rows, and along columns."""
ROWS, COLUMNS = 16, 8
"""Rows and columns of a product of matrices."""


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
                right = [_half(pair, half) for pair in loaded for half in range(2)]
                for a in left:
                    for b in right:
                        result[at] = _multiplied(a, b, result[at])
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
                    Matrix(row, loops.add(column, COLUMNS * j), _elements(sums[begin + j]))
                    for j in range(self.columns)
                ]
                for begin in begins
            ]
            return Part(WARPS * ROWS, columns, position, matrices)

        return [part(index) for index in range(self.rows)]

    def _first(self, index: int, slot: Index, warp: Index) -> Index:
        """Where in memory the row of a lane begins, of the first matrices of its warp."""
        plan = self.plans[index]
        lane = loops.mod(self.thread, WARP)
        near, far = loops.mod(loops.floor_div(lane, 8), 2), loops.floor_div(lane, 16)
        # Matrices are in the order of rows of A, and of k of B.
        row, k = (near, far) if index == 0 else (far, near)
        own = loops.mod(lane, 8)
        outer, inner = (row, k) if plan.along_depth else (k, row)
        begin = loops.mul(warp, plan.side.width // WARPS)
        return loops.add(
            loops.mul(slot, plan.elements),
            loops.mul(begin, plan.pitch if plan.along_depth else 1),
            loops.mul(loops.add(own, loops.mul(outer, 8)), plan.pitch),
            loops.mul(inner, plan.unit),
        )

    def _load(self, index: int, first: Index, row: int, k: int) -> ir.Value:
        """Four matrices of a side, from a row and a k of its warp's part on."""
        plan = self.plans[index]
        outer, inner = (row, k) if plan.along_depth else (k, row)
        at = loops.value(loops.add(first, outer * plan.pitch + inner))
        kind = ir.VectorType.get([4, plan.unit // 4], plan.element)
        return nvgpu.ldmatrix(kind, self.memory[index], [at], not plan.along_depth, 4)


def _elements(matrix: ir.Value) -> list[ir.Value]:
    """The elements of a matrix of sums that a thread has."""
    return [vector.extract(matrix, [], [i, j]) for i in range(2) for j in range(2)]


def _half(pair: ir.Value, half: int) -> ir.Value:
    """Two of four matrices."""
    whole = ir.VectorType(pair.type)
    kind = ir.VectorType.get([2, whole.shape[1]], whole.element_type)
    return vector.extract_strided_slice(kind, pair, [2 * half], [2], [1])


def _multiplied(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    depth = 8 * ir.VectorType(a.type).shape[1]
    return nvgpu.mma_sync(total.type, a, b, total, [ROWS, COLUMNS, depth])
