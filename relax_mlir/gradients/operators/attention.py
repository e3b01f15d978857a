"""Gradients of attention, rotary embedding and the cache. Half precision is computed in f32."""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    arange,
    binary,
    dims_of,
    element_of,
    emit,
    expand_dims,
    multiply,
    permute,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import exact_dims
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.symbolic import Expr, const

from .linear_algebra import transposed
from .manipulate import part


@dataclass(frozen=True)
class _Attention:
    """Attention of queries [b, n, heads, d] over keys and values [b, m, kv_heads, d]."""

    query: ir.Value
    key: ir.Value
    value: ir.Value
    mask: ir.Value | None
    scale: float
    visible: ir.Value | None
    """[n, m]: which keys a query sees; None if all."""

    def gradients(self, seed: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """Those of queries, keys, values and scores, the latter [b, heads, n, m]."""
        query, seeds = self._grouped(self.query), self._grouped(seed)
        key, value = (permute(each, [0, 2, 1, 3]) for each in (self.key, self.value))
        scores = self._by_head(emit(graph.MatmulOp, query, transposed(key)))
        scores = multiply(scores, self.scale)
        if self.mask is not None:
            scores = add(scores, self.mask)
        if self.visible is not None:
            scores = where(self.visible, scores, float("-inf"))
        weights = emit(graph.SoftmaxOp, scores, axis=-1)
        shares = self._by_head(emit(graph.MatmulOp, seeds, transposed(value)))
        if self.visible is not None:
            shares = where(self.visible, shares, 0)
        total = reduce(graph.SumOp, multiply(shares, weights), [3], keepdims=True)
        slopes = multiply(weights, subtract(shares, total))
        by_group = multiply(self._by_group(slopes), self.scale)
        of_query = self._by_query(emit(graph.MatmulOp, by_group, key))
        of_key = emit(graph.MatmulOp, transposed(by_group), query)
        of_value = emit(graph.MatmulOp, transposed(self._by_group(weights)), seeds)
        of_key, of_value = (permute(each, [0, 2, 1, 3]) for each in (of_key, of_value))
        return of_query, of_key, of_value, slopes

    def _grouped(self, heads: ir.Value) -> ir.Value:
        """[b, n, heads, d] as [b, kv_heads, shared * n, d]: rows of the heads of one key."""
        b, n, count, d = dims_of(heads)
        groups = dims_of(self.key)[2]
        split = reshape(heads, [b, n, groups, count // groups, d])
        return reshape(permute(split, [0, 2, 3, 1, 4]), [b, groups, count // groups * n, d])

    def _by_query(self, rows: ir.Value) -> ir.Value:
        """What `_grouped` has made, as it was."""
        b, n, count, _ = dims_of(self.query)
        groups, d = dims_of(self.key)[2], dims_of(rows)[3]
        split = reshape(rows, [b, groups, count // groups, n, d])
        return reshape(permute(split, [0, 3, 1, 2, 4]), [b, n, count, d])

    def _by_head(self, scores: ir.Value) -> ir.Value:
        """[b, heads, n, m]."""
        b, n, count, _ = dims_of(self.query)
        return reshape(scores, [b, count, n, dims_of(self.key)[1]])

    def _by_group(self, scores: ir.Value) -> ir.Value:
        """[b, kv_heads, shared * n, m]."""
        b, n, count, _ = dims_of(self.query)
        _, m, groups, _ = dims_of(self.key)
        return reshape(scores, [b, groups, count // groups * n, m])


def _visible(rows: Expr, columns: Expr, position: Expr) -> ir.Value:
    """Which keys are not after each query, of which the first one has the given position."""
    i64 = ir.IntegerType.get_signless(64)
    queries = expand_dims(arange(position, rows, 1, i64), [1])
    keys = expand_dims(arange(0, columns, 1, i64), [0])
    return binary(graph.GreaterEqualOp, queries, keys)


def batched_attention(op: graph.BatchedAttentionOp, adjoint: Adjoint) -> Contributions:
    """By the products that it is made of."""
    rows, columns = dims_of(op.query)[1], dims_of(op.key)[1]
    visible = _visible(rows, columns, const(0)) if op.attributes["causal"].value else None
    mask = None if op.mask is None else widen(op.mask)
    query, key, value = (widen(each) for each in (op.query, op.key, op.value))
    parts = _Attention(query, key, value, mask, op.attributes["scale"].value, visible)
    *gradients, scores = parts.gradients(widen(adjoint.seed))
    yield from zip((op.query, op.key, op.value), gradients, strict=True)
    if op.mask is not None:
        yield op.mask, scores


def attention(op: graph.AttentionOp, adjoint: Adjoint) -> Contributions:
    """As of a batch of one, over the cached tokens that are visible."""
    (position,) = exact_dims(graph.dims_of_attr(op.attributes["position"].dims))
    rows = dims_of(op.query)[0]
    end = position + rows
    visible = _visible(rows, end, position) if op.attributes["causal"].value else None
    key, value = (
        expand_dims(permute(part(widen(cache), 1, const(0), end), [1, 0, 2]), [0])
        for cache in (op.key_cache, op.value_cache)
    )
    query = expand_dims(widen(op.query), [0])
    parts = _Attention(query, key, value, None, op.attributes["scale"].value, visible)
    of_query, *of_caches, _ = parts.gradients(expand_dims(widen(adjoint.seed), [0]))
    yield op.query, reshape(of_query, dims_of(op.query))
    for cache, gradient in zip((op.key_cache, op.value_cache), of_caches, strict=True):
        heads, capacity, d = dims_of(cache)
        tokens = permute(reshape(gradient, [end, heads, d]), [1, 0, 2])
        zeros = emit(graph.FullOp, scalar(0, element_of(tokens)), shape=[heads, capacity, d])
        bounds = {"axes": [1], "begin": [0], "end": [end], "strides": [1]}
        yield cache, emit(graph.SliceScatterOp, zeros, tokens, **bounds)


def rotary(op: graph.RotaryOp, adjoint: Adjoint) -> Contributions:
    """The rotation back; of the tables the products of each pair, over all heads."""
    x, seed, cos, sin = (widen(each) for each in (op.input, adjoint.seed, op.cos, op.sin))
    if adjoint.wants(op.input):
        yield op.input, emit(graph.RotaryOp, seed, cos, emit(graph.NegativeOp, sin))
    half = dims_of(op.cos)[1]
    low, high = (part(x, 2, start, start + half) for start in (const(0), half))
    g_low, g_high = (part(seed, 2, start, start + half) for start in (const(0), half))
    if adjoint.wants(op.cos):
        own = add(multiply(g_low, low), multiply(g_high, high))
        yield op.cos, reduce(graph.SumOp, own, [1])
    if adjoint.wants(op.sin):
        crossed = subtract(multiply(g_high, low), multiply(g_low, high))
        yield op.sin, reduce(graph.SumOp, crossed, [1])


def kv_append(op: graph.KvAppendOp, adjoint: Adjoint) -> Contributions:
    """The new tokens' positions go to them, the rest to the caches."""
    (position,) = exact_dims(graph.dims_of_attr(op.attributes["position"].dims))
    pairs = ((op.key_cache, op.key), (op.value_cache, op.value))
    for (cache, new), seed in zip(pairs, adjoint.seeds, strict=True):
        if seed is None:
            continue
        end = position + dims_of(new)[0]
        bounds = {"axes": [1], "begin": [position], "end": [end], "strides": [1]}
        zeros = permute(zeros_like(new), [1, 0, 2])
        yield cache, emit(graph.SliceScatterOp, seed, zeros, **bounds)
        yield new, permute(part(seed, 1, position, end), [1, 0, 2])
