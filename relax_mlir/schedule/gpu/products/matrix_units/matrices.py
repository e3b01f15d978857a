"""Matrices that warps load, multiply, and have in registers.

    A 16 x 16    four matrices of 8 x 8: upper and lower rows of the left half, then of the right
    B 16 x 8     two: upper and lower rows; two of B are loaded at once
    C 16 x 8     two rows, 8 apart, of two elements: lane l has row l / 4, columns 2 (l % 4) and on

A lane has the address of one row of 8 elements, and gets two elements of each matrix. A matrix
whose rows in memory are along the other axis is transposed on the way. Where elements have 8 bits,
there are twice as many along k: a row has 16, and lanes have four of each matrix of A and B.

Source: NVIDIA, PTX ISA 8.5, matrix fragments for mma.m16n8k16 and mma.m16n8k32, ldmatrix.
"""

from relax_mlir.bindings import ir, nvgpu, vector
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.shuffles import WARP

ROWS, COLUMNS = 16, 8
"""Rows and columns of a product of matrices."""


def row_of_lane(thread: ir.Value, is_left: bool, along_depth: bool, pitch: int, unit: int) -> Index:
    """Where the row that a lane names begins, of four matrices of a side, from their first element.

    Matrices are in the order of rows of A, and of k of B. Rows of memory are along k or not, with
    `pitch` elements from one to the next; `unit` are those of 16 bytes.
    """
    lane = loops.mod(thread, WARP)
    near, far = loops.mod(loops.floor_div(lane, 8), 2), loops.floor_div(lane, 16)
    row, k = (near, far) if is_left else (far, near)
    outer, inner = (row, k) if along_depth else (k, row)
    return loops.add(
        loops.mul(loops.add(loops.mod(lane, 8), loops.mul(outer, 8)), pitch),
        loops.mul(inner, unit),
    )


def load(memory: ir.Value, at: Index, transposes: bool, unit: int) -> ir.Value:
    """Four matrices, of which the lane names a row."""
    kind = ir.VectorType.get([4, unit // 4], ir.MemRefType(memory.type).element_type)
    return nvgpu.ldmatrix(kind, memory, [loops.value(at)], transposes, 4)


def half(pair: ir.Value, index: int) -> ir.Value:
    """Two of four matrices."""
    whole = ir.VectorType(pair.type)
    kind = ir.VectorType.get([2, whole.shape[1]], whole.element_type)
    return vector.extract_strided_slice(kind, pair, [2 * index], [2], [1])


def multiply(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    """total + a * b."""
    depth = 8 * ir.VectorType(a.type).shape[1]
    return nvgpu.mma_sync(total.type, a, b, total, [ROWS, COLUMNS, depth])


def elements(matrix: ir.Value) -> list[ir.Value]:
    """The elements of a matrix, or of several, that a thread has."""
    rows, columns = ir.VectorType(matrix.type).shape
    return [vector.extract(matrix, [], [i, j]) for i in range(rows) for j in range(columns)]
