"""Attention of ONNX: masks, caches, windows, limits of scores.

    query : tensor<b, heads, n, d>, or tensor<b, n, heads * d> with `heads` and `kv_heads`
    key, value : tensor<b, kv_heads, m, d>, or tensor<b, m, kv_heads * d>; e for d of values

`heads` is a multiple of `kv_heads`. A query that may see no key gives 0.
"""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError, dims_differ
from relax_mlir.dialects.graph.elementwise import is_bool
from relax_mlir.symbolic import Expr, Fact, at_most, const

from ..emit import (
    add,
    arange,
    astype,
    binary,
    dims_of,
    element_of,
    emit,
    expand_dims,
    is_integer,
    less,
    permute,
    rank_of,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
)
from .scores import Scored, attend

BY_HEADS = [0, 2, 1, 3]
"""Exchanges the axes of elements and of heads."""


def attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    *,
    mask: ir.Value | None = None,
    past: tuple[ir.Value, ir.Value] | None = None,
    lengths: ir.Value | None = None,
    heads: int | None = None,
    kv_heads: int | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] = (None, None),
    softcap: float | None = None,
    scores: int | None = None,
) -> list[ir.Value]:
    """softmax(scale * query key^T + mask) value, and the keys and values that were seen.

    The mask, truth values or floats, broadcasts to [b, heads, n, m]; keys that it has none for are
    not seen. `past` are keys and values [b, kv_heads, p, d] in front of the new ones; `lengths`
    says how many keys of each batch count. Query i is at position p + i, or lengths - n + i:
    `causal` hides later keys, `window` those further than so many away on either side.
    `softcap` c makes c * tanh(s / c) of a score s. `scores` adds the scores to the results, of
    [b, heads, n, m]: scaled (0), capped (1), masked (2) or their softmax (3).

    Source: arXiv 1706.03762; ONNX `Attention`.
    """
    operands = (query, key, value)
    is_flat = _check(operands, heads, kv_heads, window, softcap, scores)
    q, k, v = (
        _split(x, count) if is_flat else permute(x, BY_HEADS)
        for x, count in zip(operands, (heads, kv_heads, kv_heads))
    )
    keys, values = (permute(x, BY_HEADS) if is_flat else y for x, y in zip((k, v), operands[1:]))
    if past is not None:
        keys, values = (_joined(old, new) for old, new in zip(past, (keys, values)))
        k, v = (permute(x, BY_HEADS) for x in (keys, values))
    n, m = dims_of(q)[1], dims_of(k)[1]
    before: Expr | int = 0 if past is None else dims_of(past[0])[2]
    is_plain = softcap is None and scores is None and past is None and lengths is None
    from_start = causal and is_plain and mask is None and window == (None, None)
    allowed = None if from_start else _allowed(n, m, before, lengths, causal, window)
    bias = None if mask is None else _bias(mask, m, element_of(query))
    if allowed is not None:
        hidden = where(allowed, scalar(0, element_of(query)), -math.inf)
        bias = hidden if bias is None else add(bias, hidden)
    result = attend(q, k, v, Scored(scale, bias, from_start, softcap, scores))
    y = result[0]
    if is_flat:
        b, rows, count, e = dims_of(y)
        result[0] = reshape(y, [b, rows, count * e])
    else:
        result[0] = permute(y, BY_HEADS)
    return [result[0], keys, values, *result[1:]]


def _split(x: ir.Value, heads: int | None) -> ir.Value:
    b, n, width = dims_of(x)
    assert heads is not None
    if dims_differ(width, width // heads * heads):
        raise ShapeError(f"expects {heads} heads, but got dim {width}")
    return reshape(x, [b, n, heads, width // heads])


def _joined(old: ir.Value, new: ir.Value) -> ir.Value:
    if rank_of(old) != 4:
        raise ShapeError(f"expects a past of rank 4, but got rank {rank_of(old)}")
    return graph.ConcatOp.build(old, new, axis=2).operation.results[0]


def _check(
    operands: Sequence[ir.Value],
    heads: int | None,
    kv_heads: int | None,
    window: tuple[int | None, int | None],
    softcap: float | None,
    scores: int | None,
) -> bool:
    """Whether heads are part of the last dim."""
    ranks = [rank_of(x) for x in operands]
    if ranks not in ([3, 3, 3], [4, 4, 4]):
        raise ShapeError(f"expects query, key and value of rank 3 or 4, but got ranks {ranks}")
    for x in operands:
        if element_of(x) != element_of(operands[0]) or is_integer(element_of(x)):
            kinds = f"{element_of(operands[0])} and {element_of(x)}"
            raise ShapeError(f"expects floats of one type, but got {kinds}")
    if ranks[0] == 3 and (not heads or not kv_heads or heads < 1 or heads % kv_heads):
        raise ShapeError(f"expects a multiple of kv_heads heads, but got {heads} and {kv_heads}")
    if any(side is not None and side < 0 for side in window):
        raise ShapeError(f"expects a window of counts of keys, but got {window}")
    if softcap is not None and not softcap > 0:
        raise ShapeError(f"expects a positive limit of scores, but got {softcap}")
    if scores not in (None, 0, 1, 2, 3):
        raise ShapeError(f"expects scores of kind 0 to 3, but got {scores}")
    return ranks[0] == 3


def _allowed(
    n: Expr,
    m: Expr,
    before: Expr | int,
    lengths: ir.Value | None,
    causal: bool,
    window: tuple[int | None, int | None],
) -> ir.Value | None:
    """[b or 1, 1, n, m], whether a query sees a key; None if all see all."""
    i64 = ir.IntegerType.get_signless(64)
    columns = expand_dims(arange(0, m, 1, i64), [0, 1, 2])
    conditions = []
    start = symbol(before, i64)
    if lengths is not None:
        ends = expand_dims(astype(lengths, i64), [1, 2, 3])
        start = subtract(ends, symbol(n, i64))
        conditions.append(less(columns, ends))
    rows = expand_dims(arange(0, n, 1, i64), [0, 1, 3])
    distance = subtract(add(rows, start), columns)
    left, right = window
    if causal:
        conditions.append(binary(graph.GreaterEqualOp, distance, 0))
    if left is not None:
        conditions.append(binary(graph.LessEqualOp, distance, left))
    if right is not None:
        conditions.append(binary(graph.GreaterEqualOp, distance, -right))
    allowed = None
    for condition in conditions:
        both = condition if allowed is None else binary(graph.LogicalAndOp, allowed, condition)
        allowed = both
    return allowed


def _bias(mask: ir.Value, m: Expr, element: ir.Type) -> ir.Value:
    """What is added to scores: 0 or -infinity of truth values; -infinity where there is none."""
    if is_bool(element_of(mask)):
        mask = where(mask, scalar(0, element), -math.inf)
    if element_of(mask) != element or not 1 <= rank_of(mask) <= 4:
        raise ShapeError(
            f"expects a mask of i1 or {element}, but got '{graph.TensorType.of(mask)}'"
        )
    last = dims_of(mask)[-1]
    if last != m:
        fits = at_most(last, m)
        if last.value is not None and m.value is not None and not fits.proved:
            raise ShapeError(f"masks {last} keys, but there are {m}")
        if not fits.proved:
            RequireOp.build([Fact(last, "<=", m)], "@attention")
        rank = rank_of(mask)
        none = [const(0)] * (rank - 1)
        mask = emit(
            graph.PadOp, mask, scalar(-math.inf, element), low=[*none, const(0)],
            high=[*none, m - last], interior=[0] * rank, mode="constant",
        )  # fmt: skip
    return expand_dims(mask, range(4 - rank_of(mask)))
