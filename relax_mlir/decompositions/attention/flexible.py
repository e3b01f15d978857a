"""Attention whose scores and probabilities functions of the caller change: flex_attention."""

import math
from collections.abc import Callable

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from ..contraction import dot_general
from ..emit import (
    astype,
    dims_of,
    dims_text,
    element_of,
    emit,
    is_integer,
    multiply,
    rank_of,
    reshape,
    widen,
)

Change = Callable[[ir.Value], ir.Value]


def flex_attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    *,
    scale: float | None = None,
    score_mod: Change | None = None,
    prob_mod: Change | None = None,
) -> ir.Value:
    """prob_mod(softmax(score_mod(scale * query key^T))) value, of [b, heads, n, d].

    Key [b, kv_heads, m, d] and value [b, kv_heads, m, e] are shared by heads. The functions
    build what scores and probabilities [b, heads, n, m], f32 of half precision, become; they keep
    dims and type. Source: ONNX `FlexAttention`; ATen `flex_attention`.
    """
    if any(rank_of(x) != 4 or is_integer(element_of(x)) for x in (query, key, value)):
        raise ShapeError("expects floats [b, heads, n, d], [b, kv_heads, m, d] and [.., m, e]")
    (b, heads, n, d), (_, kv_heads, m, width) = dims_of(query), dims_of(key)
    shared = heads // kv_heads
    pairs = zip((b, kv_heads, m, d, heads), (*dims_of(value)[:3], width, kv_heads * shared))
    if any(dims_differ(*pair) for pair in pairs):
        kinds = ", ".join(str(dims_of(x)) for x in (query, key, value))
        raise ShapeError(f"has queries, keys and values of dims {kinds}")
    element, e = element_of(query), dims_of(value)[3]
    factor = 1 / math.sqrt(d.value) if scale is None and d.value else scale
    if factor is None:
        raise ShapeError(f"expects a scale, as the width {d} is not known")
    rows = reshape(widen(query), [b, kv_heads, shared * n, d])
    scores = dot_general(rows, widen(key), batch=([0, 1], [0, 1]), contract=([3], [3]))
    scores = _changed(multiply(reshape(scores, [b, heads, n, m]), factor), score_mod)
    probabilities = _changed(emit(graph.SoftmaxOp, scores, axis=3), prob_mod)
    rows = reshape(probabilities, [b, kv_heads, shared * n, m])
    result = dot_general(rows, widen(value), batch=([0, 1], [0, 1]), contract=([3], [2]))
    return astype(reshape(result, [b, heads, n, e]), element)


def _changed(x: ir.Value, change: Change | None) -> ir.Value:
    if change is None:
        return x
    new = change(x)
    if rank_of(new) != rank_of(x) or any(map(dims_differ, dims_of(new), dims_of(x))):
        dims = f"{dims_text(dims_of(x))}, not {dims_text(dims_of(new))}"
        raise ShapeError(f"expects a function that keeps dims {dims}")
    return astype(new, element_of(x))
