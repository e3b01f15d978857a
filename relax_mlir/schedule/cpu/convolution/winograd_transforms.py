"""The three transformations of F(2x2, 3x3), on squares of vectors, and their loops over memory.

    filters    u = G g G'     3x3 taps of a filter to 4x4 elements
    tiles      v = B' d B     4x4 pixels of an image to 4x4 elements
    results    y = A' m A     4x4 sums over channels of u * v to 2x2 pixels

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.schedule.build.deinterleave import deinterleave
from relax_mlir.schedule.build.loops import Index, add, for_range, load, mul, splat, store
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.multiply_add import interleave

from .convolution_problem import Filters

WINDOW = 3
OUT_SIDE = 2
"""Rows, and columns, of a tile of the result."""
SIDE = OUT_SIDE + WINDOW - 1
PRODUCTS = SIDE * SIDE

Line = Callable[..., list[ir.Value]]


def _rows_then_columns(line: Line, rows: Sequence[Sequence[ir.Value]]) -> list[list[ir.Value]]:
    """A square with its rows, then its columns transformed."""
    transformed = [line(*row) for row in rows]
    columns = [line(*column) for column in zip(*transformed, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _of_filter(a: ir.Value, b: ir.Value, c: ir.Value) -> list[ir.Value]:
    kind = ir.VectorType(a.type)
    half = splat(0.5, kind.shape[0], kind.element_type)
    ends, middle = arith.mulf(arith.addf(a, c), half), arith.mulf(b, half)
    return [a, arith.addf(ends, middle), arith.subf(ends, middle), c]


def _of_tile(a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value) -> list[ir.Value]:
    return [arith.subf(a, c), arith.addf(b, c), arith.subf(c, b), arith.subf(b, d)]


def _of_result(a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value) -> list[ir.Value]:
    return [arith.addf(arith.addf(a, b), c), arith.subf(arith.subf(b, c), d)]


def transform_filters(
    blocking: Blocking, filters: Filters, channels: Index, source: Index, u: ir.Value, slab: Index
) -> None:
    """Transforms the panel at `source`: element e of channel c and filter f is u[e][c][f].

    Elements e are `slab` apart.
    """
    lanes, columns = blocking.lanes, blocking.columns

    def channel(c: ir.Value) -> None:
        def tap(column: int, row: int, first: int) -> ir.Value:
            offset = mul(add(mul(column * WINDOW + row, channels), c), columns)
            x = load(filters.buffer, add(source, offset, first), lanes)
            return filters.convert(x) if filters.convert else x

        for first in range(0, columns, lanes):
            square = [[tap(v, w, first) for v in range(WINDOW)] for w in range(WINDOW)]
            _store_square(
                _rows_then_columns(_of_filter, square), u, add(mul(c, columns), first), slab
            )

    for_range(0, channels, 1, channel)


def transform_tiles(
    lanes: int, patch: ir.Value, at: Index, line: Index, v: ir.Value, to: Index, slab: Index
) -> None:
    """Transforms as many tiles of an image as there are lanes, from `at` on in a copy of rows.

    Rows are `line` apart. Element e of the tiles is v[e], from `to` on, `slab` apart.
    """

    def row_of(row: int) -> list[ir.Value]:
        pixels = []
        for first in range(0, SIDE, OUT_SIDE):
            begin = add(at, mul(row, line), first)
            pair = [load(patch, add(begin, k * lanes), lanes) for k in range(OUT_SIDE)]
            odd = vector.shuffle(*pair, list(range(1, 2 * lanes, 2)))
            pixels += [deinterleave(pair), odd]
        return pixels

    _store_square(_rows_then_columns(_of_tile, [row_of(i) for i in range(SIDE)]), v, to, slab)


def transform_results(
    lanes: int, m: ir.Value, at: Index, slab: int, y: ir.Value, to: Index, line: int
) -> None:
    """Stores the pixels of as many tiles as there are lanes: two rows of y, `line` apart.

    Elements of m are `slab` apart.
    """
    square = [
        [load(m, add(at, (i * SIDE + j) * slab), lanes) for j in range(SIDE)] for i in range(SIDE)
    ]
    for row, pair in enumerate(_rows_then_columns(_of_result, square)):
        for half, x in enumerate(interleave(*pair)):
            store(x, y, add(to, row * line, half * lanes))


def _store_square(
    square: Sequence[Sequence[ir.Value]], out: ir.Value, to: Index, slab: Index
) -> None:
    """Stores 16 vectors, row by row of the square."""
    for e, x in enumerate(x for row in square for x in row):
        store(x, out, add(to, mul(e, slab)))
