"""Key and value caches: their parts, and how a layer appends to them and attends to them.

    f32     keys, values                          exact
    bf16    keys, values                          rounded to bfloat16
    int8    keys, values, a scale for each 32     rounded to 8 bits by blocks of 32 features

All are tensors [kv_heads, capacity, columns] that a call updates in place. The graph decodes them
explicitly; fusion moves decoding into attention. Those of many sequences are pages of `PAGE`
tokens, [pages, kv_heads, PAGE, columns]; `graph.nn_paged_attention` decodes them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import BLOCK
from relax_mlir.dialects.graph.types import static_extent
from relax_mlir.llm.modules.nn import (
    arange,
    capped,
    constant,
    dims_of,
    matmul,
    permute,
    reshape,
    scaled,
    slice_axis,
)

BF16, INT8 = "bf16", "int8"
PAGE = 16
"""Tokens of a page."""


def cache_parts(kind: str, columns: tuple[int, int]) -> list[tuple[str, int, str]]:
    """Name, columns and element type of the tensors of a layer's cache.

    `columns` are the elements of a head of keys, and of one of values.
    """
    keys, values = columns
    element = "i8" if kind == INT8 else kind
    parts = [("key_cache", keys, element), ("value_cache", values, element)]
    if kind == INT8:
        parts += [("key_scale", keys // BLOCK, "f32"), ("value_scale", values // BLOCK, "f32")]
    return parts


@dataclass(frozen=True)
class Pages:
    """Tokens of many sequences: the sequence and position of each, int32[n].

    `tables` has the pages of each sequence, int32[b, s], `lengths` its tokens with the new ones.
    """

    tables: ir.Value
    sequences: ir.Value
    positions: ir.Value
    lengths: ir.Value

    @property
    def tokens(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The operands that operators on pages share."""
        return self.tables, self.sequences, self.positions


@dataclass(frozen=True)
class Reading:
    """How queries read a cache: `position` cached tokens come before the new ones.

    Scores are multiplied by `scale`, and bounded by a soft `cap` unless that is 0. The boolean
    `mask` [1, n, position + n], where a key is visible, is needed if that is not all of the past,
    or with a cap. With `pages`, position and mask are not needed, but the `window`, 0 for all. If
    the cache `is_shared`, keys are the values too, which have no columns of their own.
    """

    position: str
    scale: float
    cap: float = 0.0
    mask: ir.Value | None = None
    window: int = 0
    pages: Pages | None = None
    is_shared: bool = False

    def values(self, keys: ir.Value, values: ir.Value) -> ir.Value:
        """What is read as values."""
        return keys if self.is_shared else values


def attend(
    kind: str,
    rounds: bool,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    cache: Sequence[ir.Value],
    how: Reading,
) -> tuple[ir.Value, list[ir.Value]]:
    """Appends keys and values [n, kv_heads, d]; queries attend to all that they see.

    Returns float32[n, heads, d] and the parts of the cache. With `rounds`, queries and results
    are rounded to bfloat16 if the cache is bfloat16, so that bf16 dot products can be used.
    """
    caches = list(cache)
    if how.pages is not None:
        return _attend_to_pages(kind, rounds, query, key, value, caches, how, how.pages)
    if kind == INT8:
        blocks = [graph.QuantizeBlocksOp.build(x, symmetric=True).results for x in (key, value)]
        for i, quantized in enumerate(zip(*blocks, strict=True)):
            part = slice(2 * i, 2 * i + 2)
            appended = graph.KvAppendOp.build(*caches[part], *quantized, position=[how.position])
            caches[part] = appended.results
        pairs = zip(caches[:2], caches[2:], strict=True)
        read = [graph.DequantizeBlocksOp.build(*pair).result for pair in pairs]
    else:
        new = [_as(x, ir.BF16Type.get()) if kind == BF16 else x for x in (key, value)]
        caches = list(graph.KvAppendOp.build(*caches, *new, position=[how.position]).results)
        read = list(caches)
    halves = kind == BF16 and rounds and how.mask is None
    if halves:
        query = _as(query, ir.BF16Type.get())
    elif kind == BF16:
        read = [_as(x, ir.F32Type.get()) for x in caches]
    if how.mask is not None:
        return _attend_masked(query, read[0], read[1], how.mask, how), caches
    read[1] = how.values(*read)
    mixed = graph.AttentionOp.build(
        query, *read, position=[how.position], scale=how.scale, causal=True
    ).result
    return (_as(mixed, ir.F32Type.get()) if halves else mixed), caches


def _attend_to_pages(
    kind: str,
    rounds: bool,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    caches: list[ir.Value],
    how: Reading,
    pages: Pages,
) -> tuple[ir.Value, list[ir.Value]]:
    """As `attend`, of each token to its own sequence."""
    new = [key, value]
    if kind == BF16:
        new = [_as(x, ir.BF16Type.get()) for x in new]
    elif kind == INT8:
        blocks = [graph.QuantizeBlocksOp.build(x, symmetric=True).results for x in new]
        new = [x for pair in zip(*blocks, strict=True) for x in pair]
    for i in range(0, len(new), 2):
        part = slice(i, i + 2)
        appended = graph.PagedKvAppendOp.build(*caches[part], *new[part], *pages.tokens)
        caches[part] = appended.results
    halves = kind == BF16 and rounds
    query = _as(query, ir.BF16Type.get()) if halves else query
    keys, values, *scales = caches
    values = how.values(keys, values)
    factors = (scales[0], how.values(*scales)) if scales else (None, None)
    mixed = graph.PagedAttentionOp.build(
        *(query, keys, values, *pages.tokens, *factors),
        scale=how.scale,
        window=how.window,
        cap=how.cap,
    ).result
    return (_as(mixed, ir.F32Type.get()) if halves else mixed), caches


def _attend_masked(
    query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value, how: Reading
) -> ir.Value:
    """Attention under a mask, of products, a softmax, and products."""
    _, length, total = dims_of(mask)
    rows, heads, size = dims_of(query)
    kv_heads = dims_of(key)[0]
    key, value = (slice_axis(x, 1, 0, total) for x in (key, value))
    # Queries of a group are rows of one matrix.
    counts = [static_extent(dim) for dim in (heads, kv_heads)]
    assert counts[0] is not None
    assert counts[1] is not None
    assert length is not None
    group = length * (counts[0] // counts[1])
    query = reshape(permute(query, [1, 0, 2]), [kv_heads, group, size])
    scores = capped(scaled(matmul(query, permute(key, [0, 2, 1])), how.scale), how.cap)
    scores = reshape(scores, [heads, length, total])
    scores = graph.WhereOp.build(mask, scores, constant(-math.inf)).result
    weights = graph.SoftmaxOp.build(scores, axis=-1).result
    mixed = matmul(reshape(weights, [kv_heads, group, total]), value)
    return permute(reshape(mixed, [heads, rows, size]), [1, 0, 2])


def visible(position: str, new: str, window: int) -> ir.Value:
    """The mask of `Reading`: keys up to each new token, the last `window` of them if not 0."""
    i32 = ir.IntegerType.get_signless(32)
    total = f"{position} + {new}"
    keys = arange("0", total, i32)
    rows = graph.ExpandDimsOp.build(arange(position, total, i32), axes=[1]).result
    mask = graph.LessEqualOp.build(keys, rows).result
    if window:
        first = graph.ExpandDimsOp.build(
            arange(f"{position} - {window}", f"{total} - {window}", i32), axes=[1]
        ).result
        mask = graph.LogicalAndOp.build(mask, graph.GreaterOp.build(keys, first).result).result
    return graph.ExpandDimsOp.build(mask, axes=[0]).result


def _as(x: ir.Value, element: ir.Type) -> ir.Value:
    return graph.AstypeOp.build(x, dtype=element).result
