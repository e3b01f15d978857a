"""Key and value caches: their parts, and how a layer appends to them and attends to them.

    f32     keys, values                          exact
    bf16    keys, values                          rounded to bfloat16
    int8    keys, values, a scale for each 32     rounded to 8 bits by blocks of 32 features

All are tensors [kv_heads, capacity, columns] that a call updates in place. The graph decodes them
explicitly; fusion moves decoding into attention.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import BLOCK

BF16, INT8 = "bf16", "int8"


def cache_parts(kind: str, head_dim: int) -> list[tuple[str, int, str]]:
    """Name, columns and element type of the tensors of a layer's cache."""
    element = "i8" if kind == INT8 else kind
    parts = [("key_cache", head_dim, element), ("value_cache", head_dim, element)]
    if kind == INT8:
        parts += [
            ("key_scale", head_dim // BLOCK, "f32"),
            ("value_scale", head_dim // BLOCK, "f32"),
        ]
    return parts


def attend(
    kind: str,
    rounds: bool,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    cache: Sequence[ir.Value],
    position: str,
    scale: float,
) -> tuple[ir.Value, list[ir.Value]]:
    """Appends keys and values [n, kv_heads, d] at `position`; queries attend to all.

    Returns float32[n, heads, d] and the parts of the cache. With `rounds`, queries and results
    are rounded to bfloat16 if the cache is bfloat16, so that bf16 dot products can be used.
    """
    caches = list(cache)
    if kind == INT8:
        blocks = [graph.QuantizeBlocksOp.build(x, symmetric=True).results for x in (key, value)]
        for i, quantized in enumerate(zip(*blocks, strict=True)):
            part = slice(2 * i, 2 * i + 2)
            appended = graph.KvAppendOp.build(*caches[part], *quantized, position=[position])
            caches[part] = appended.results
        pairs = zip(caches[:2], caches[2:], strict=True)
        read = [graph.DequantizeBlocksOp.build(*pair).result for pair in pairs]
    else:
        new = [_as(x, ir.BF16Type.get()) if kind == BF16 else x for x in (key, value)]
        caches = list(graph.KvAppendOp.build(*caches, *new, position=[position]).results)
        read = caches
    if kind == BF16 and rounds:
        query = _as(query, ir.BF16Type.get())
    elif kind == BF16:
        read = [_as(x, ir.F32Type.get()) for x in caches]
    mixed = graph.AttentionOp.build(
        query, *read, position=[position], scale=scale, causal=True
    ).result
    return (_as(mixed, ir.F32Type.get()) if kind == BF16 and rounds else mixed), caches


def _as(x: ir.Value, element: ir.Type) -> ir.Value:
    return graph.AstypeOp.build(x, dtype=element).result
