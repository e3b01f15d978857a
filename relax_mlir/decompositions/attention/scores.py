"""Attention of elements that lie in front of heads: one operator, or its scores written out."""

import math
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from ..emit import (
    add,
    astype,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    multiply,
    permute,
    reduce,
    reshape,
    where,
    widen,
)


@dataclass(frozen=True)
class Scored:
    """How scores are made: see `attention`; the bias has rank 4, and `causal` is from the start."""

    scale: float | None
    bias: ir.Value | None
    causal: bool = False
    softcap: float | None = None
    kind: int | None = None


def attend(q: ir.Value, k: ir.Value, v: ir.Value, how: Scored) -> list[ir.Value]:
    """[b, n, heads, e] of q [b, n, heads, d], k [b, m, kv_heads, d] and v; scores if wanted."""
    d = dims_of(q)[3].value
    scale = how.scale
    if scale is None:
        if not d:
            raise ShapeError(f"expects a scale, or heads of a known size, but got {dims_of(q)[3]}")
        scale = 1 / math.sqrt(d)
    hidden = bias = None
    if how.bias is not None:
        greatest = reduce(graph.MaxOp, how.bias, [3], keepdims=True)
        hidden = binary(graph.EqualOp, greatest, -math.inf)
        # Queries that see no key see all, and are 0 afterwards: neither they nor gradients are NaN.
        bias = where(hidden, 0, how.bias)
    if how.softcap is None and how.kind is None:
        y = emit(graph.BatchedAttentionOp, q, k, v, bias, scale=scale, causal=how.causal)
        return [y if hidden is None else where(permute(hidden, [0, 2, 1, 3]), 0, y)]
    return _written_out(q, k, v, scale, hidden, how)


def _written_out(
    q: ir.Value, k: ir.Value, v: ir.Value, scale: float, hidden: ir.Value | None, how: Scored
) -> list[ir.Value]:
    """Scores of all heads [b, heads, n, m]; those that share keys are multiplied with them."""
    b, n, heads, d = dims_of(q)
    m, groups = dims_of(k)[1:3]
    e, element = dims_of(v)[3], element_of(q)
    own = heads // groups
    rows = reshape(permute(widen(q), [0, 2, 1, 3]), [b, groups, own * n, d])
    scaled = multiply(emit(graph.MatmulOp, rows, permute(widen(k), [0, 2, 3, 1])), scale)
    stages = [reshape(scaled, [b, heads, n, m])]
    capped = stages[0]
    if how.softcap is not None:
        capped = multiply(emit(graph.TanhOp, divide(capped, how.softcap)), how.softcap)
    stages.append(capped)
    masked = capped
    if how.bias is not None and hidden is not None:
        stages.append(add(capped, widen(how.bias)))
        masked = where(hidden, capped, stages[2])
    else:
        stages.append(capped)
    shares = emit(graph.SoftmaxOp, masked, axis=3)
    stages.append(shares if hidden is None else where(hidden, 0, shares))
    weights = reshape(stages[3], [b, groups, own * n, m])
    sums = emit(graph.MatmulOp, weights, permute(widen(v), [0, 2, 1, 3]))
    y = permute(reshape(sums, [b, heads, n, e]), [0, 2, 1, 3])
    wanted = [] if how.kind is None else [astype(stages[how.kind], element)]
    return [astype(y, element), *wanted]
