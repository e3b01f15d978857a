"""Attention of ONNX Runtime's generators of text, with caches of keys and values."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    arange,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    maximum,
    permute,
    reshape,
    scalar,
    subtract,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const
from relax_mlir.symbolic import maximum as greatest

from ..node import Node
from ..registry import MICROSOFT, operator

QUERY, KEY, VALUE, PAST, LENGTHS, TOTAL, COSINES = 0, 1, 2, 3, 5, 6, 7
BY_HEADS = [0, 2, 1, 3]


@operator("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> tuple[ir.Value, ...]:
    """Causal attention of heads that share keys, and the caches with new keys and values in them.

    The new rows of a batch are at the end of its length, or from 0 on where that is less than
    they are. Source: ONNX Runtime `GroupQueryAttention`.
    """
    _check(node)
    heads, kv_heads = node.required("num_heads"), node.required("kv_num_heads")
    q, k, v = _operands(node, heads, kv_heads)
    b, n, _ = dims_of(q)
    i64 = ir.IntegerType.get_signless(64)
    ends = add(reshape(astype(node.tensor(LENGTHS), i64), [b]), 1)
    starts = maximum(subtract(ends, symbol(n, i64)), 0)
    if node.flag("do_rotary"):
        positions = add(expand_dims(starts, [1]), expand_dims(arange(0, n, 1, i64), [0]))
        tables = node.tensor(COSINES), node.tensor(COSINES + 1)
        is_interleaved = node.flag("rotary_interleaved")
        width = dims_of(tables[0])[1] * 2
        q, k = (
            d.rotary_embedding(
                x, *tables, positions, interleaved=is_interleaved, width=width.value, heads=count
            )
            for x, count in ((q, heads), (k, kv_heads))
        )
    q, k, v = (_by_heads(x, count) for x, count in ((q, heads), (k, kv_heads), (v, kv_heads)))
    (total,) = node.exprs(TOTAL, "a length")
    keys, values = (_written(node, PAST + i, x, starts, total) for i, x in enumerate((k, v)))
    window = node.attribute("local_window_size", -1)
    y = d.attention(
        q,
        keys,
        values,
        lengths=add(starts, symbol(n, i64)),
        scale=node.attribute("scale", 0.0) or None,
        causal=True,
        window=(None if window < 1 else window - 1, None),
        softcap=node.attribute("softcap", 0.0) or None,
    )[0]
    joined = permute(y, BY_HEADS)
    return reshape(joined, [b, n, dims_of(joined)[2] * dims_of(joined)[3]]), keys, values


def _check(node: Node) -> None:
    for index in range(9, len(node.inputs)):
        if node.value(index) is not None:
            raise ModelError(f"has input {index}, of positions, a bias or sinks: not supported")
    if node.attribute("smooth_softmax", 0) == 1 or node.wants(3):
        raise ModelError("has a smooth softmax or scores, which are not supported")
    for name in ("k_quant_type", "v_quant_type"):
        if node.attribute(name, "NONE") != "NONE":
            raise ModelError(f"has {name} '{node.attribute(name)}', which is not supported")


def _operands(node: Node, heads: int, kv_heads: int) -> list[ir.Value]:
    """Query, key and value, [b, n, heads * size]; they may be parts of one tensor."""
    if node.value(KEY) is not None:
        return [node.tensor(i) for i in (QUERY, KEY, VALUE)]
    width = node.dims(QUERY)[-1]
    size = width // (heads + 2 * kv_heads)
    sizes = [size * heads, size * kv_heads, size * kv_heads]
    return list(graph.SplitOp.build(node.tensor(QUERY), sizes=sizes, axis=2).operation.results)


def _by_heads(x: ir.Value, heads: int) -> ir.Value:
    b, n, width = dims_of(x)
    return permute(reshape(x, [b, n, heads, width // heads]), BY_HEADS)


def _written(node: Node, past: int, new: ir.Value, starts: ir.Value, total: Expr) -> ir.Value:
    """The past [b, heads, p, d] with new rows; as long as it is, or as `total` says."""
    b, heads, _, size = dims_of(new)
    if node.value(past) is None:
        zero = scalar(0, element_of(new))
        return d.tensor_scatter(broadcast_to(zero, [b, heads, total, size]), new, starts, axis=2)
    cache, length = node.tensor(past), node.dims(past)[2]
    rest = greatest(total, length) - length
    none = [const(0)] * 4
    padded = emit(
        graph.PadOp, cache, scalar(0, element_of(cache)), low=none,
        high=[*none[:2], rest, const(0)], interior=[0] * 4, mode="constant",
    )  # fmt: skip
    return d.tensor_scatter(padded, new, starts, axis=2)
