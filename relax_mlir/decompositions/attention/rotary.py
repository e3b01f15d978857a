"""Rotations of features by angles of positions: rotary_embedding."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr, const

from ..emit import (
    add,
    astype,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    subtract,
    widen,
)


def rotary_embedding(
    x: ir.Value,
    cosines: ir.Value,
    sines: ir.Value,
    positions: ir.Value | None = None,
    *,
    interleaved: bool = False,
    width: int | None = None,
    heads: int | None = None,
) -> ir.Value:
    """Pairs of features of [b, heads, n, d] or [b, n, heads * d] rotated, of the first `width`.

    Tables are [b, n, width / 2], or rows of [positions, width / 2] by positions [b, n]. A pair is
    a feature and the one half of the width later, or its neighbour if `interleaved`. Source: arXiv
    2104.09864; ONNX `RotaryEmbedding`.
    """
    if rank_of(x) not in (3, 4) or is_integer(element_of(x)):
        raise ShapeError(f"expects floats of rank 3 or 4, but got '{graph.TensorType.of(x)}'")
    if rank_of(x) == 4:
        rows = permute(x, [0, 2, 1, 3])
    else:
        b, n, features = dims_of(x)
        if not heads or heads < 1 or dims_differ(features, features // heads * heads):
            raise ShapeError(f"expects features of {heads} heads, but got dim {features}")
        rows = reshape(x, [b, n, heads, features // heads])
    d = dims_of(rows)[3]
    rotated = d if not width else const(width)
    if rotated.value is not None and (
        rotated.value % 2 or (d.value or rotated.value) < rotated.value
    ):
        raise ShapeError(f"rotates an even count of features up to {d}, but got {rotated}")
    cosine, sine = (_table(t, positions, rotated // 2, rows) for t in (cosines, sines))
    parts = [rows]
    if rotated != d:
        sizes = [rotated, d - rotated]
        parts = list(graph.SplitOp.build(rows, sizes=sizes, axis=3).operation.results)
    parts[0] = astype(_rotate(widen(parts[0]), cosine, sine, interleaved), element_of(x))
    result = parts[0]
    if len(parts) > 1:
        result = graph.ConcatOp.build(*parts, axis=3).operation.results[0]
    return permute(result, [0, 2, 1, 3]) if rank_of(x) == 4 else reshape(result, dims_of(x))


def _table(table: ir.Value, positions: ir.Value | None, half: Expr, rows: ir.Value) -> ir.Value:
    """[b, n, 1, half], in the type that is computed in."""
    wanted = 3 if positions is None else 2
    if rank_of(table) != wanted or dims_differ(dims_of(table)[-1], half):
        raise ShapeError(f"expects a table of {half} columns, but got '{_type(table)}'")
    if positions is not None:
        table = emit(graph.TakeOp, table, positions, axis=0)
    if rank_of(table) != 3 or any(map(dims_differ, dims_of(table)[:2], dims_of(rows)[:2])):
        raise ShapeError(f"expects angles of each element, but got '{_type(table)}'")
    return expand_dims(astype(table, element_of(widen(rows))), [2])


def _rotate(x: ir.Value, cosine: ir.Value, sine: ir.Value, interleaved: bool) -> ir.Value:
    dims = dims_of(x)
    half = dims[3] // 2
    if interleaved:
        pairs = reshape(x, [*dims[:3], half, 2])
        i64 = ir.IntegerType.get_signless(64)
        a, b = (emit(graph.TakeOp, pairs, scalar(i, i64), axis=4) for i in (0, 1))
    else:
        a, b = graph.SplitOp.build(x, sizes=[half, half], axis=3).operation.results
    real = subtract(multiply(cosine, a), multiply(sine, b))
    imaginary = add(multiply(sine, a), multiply(cosine, b))
    if interleaved:
        joined = graph.StackOp.build(real, imaginary, axis=-1).operation.results[0]
        return reshape(joined, dims)
    return graph.ConcatOp.build(real, imaginary, axis=3).operation.results[0]


def _type(value: ir.Value) -> graph.TensorType:
    return graph.TensorType.of(value)
