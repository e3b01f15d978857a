"""Attention whose state is a matrix for each head, whatever the length of the sequence."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr, const

from ..emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    is_integer,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    subtract,
    symbol,
    widen,
    with_dims,
)
from ..loops import Round, each_index


def linear_attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    past: ir.Value | None = None,
    *,
    heads: int,
    kv_heads: int,
    decay: ir.Value | None = None,
    beta: ir.Value | None = None,
    scale: float | None = None,
) -> tuple[ir.Value, ir.Value]:
    """S = exp(decay) S + k v'^T and o = scale * S^T q for each element, with v' of v, or of beta.

        query : tensor<b, t, heads * d>    key, value : tensor<b, t, kv_heads * d> and of e
        decay : tensor<b, t, kv_heads> or of kv_heads * d    beta : tensor<b, t, kv_heads> or of 1
        past  : tensor<b, kv_heads, d, e>, the state in front of the sequence, 0 without it

    v' is v, or beta * (v - S^T k), the delta rule. `scale` is 1 / sqrt(d) if there is none. Returns
    o, tensor<b, t, heads * e>, and the last state. Source: ONNX `LinearAttention`.
    """
    operands = {"query": query, "key": key, "value": value, "decay": decay, "beta": beta}
    _check(operands, past, heads, kv_heads)
    b, t, width = dims_of(query)
    d, e = width // heads, dims_of(value)[2] // kv_heads
    q = _by_time(query, [b, t, const(kv_heads), const(heads // kv_heads), d])
    k, v = (_by_time(x, [b, t, const(kv_heads), const(1), n]) for x, n in ((key, d), (value, e)))
    rate = None if decay is None else _gates(decay, kv_heads, d)
    share = None if beta is None else _gates(beta, kv_heads, const(1))
    element = element_of(q)
    q = divide(q, emit(graph.SqrtOp, symbol(d, element))) if scale is None else multiply(q, scale)
    state = [b, const(kv_heads), d, e]
    start = broadcast_to(scalar(0, element), state) if past is None else widen(past)

    def body(turn: Round, done: ir.Value, s: ir.Value) -> Sequence[ir.Value]:
        now, new = turn.take(k, 0), turn.take(v, 0)
        if rate is not None:
            s = multiply(s, permute(emit(graph.ExpOp, turn.take(rate, 0)), [0, 1, 3, 2]))
        if share is not None:
            known = emit(graph.MatmulOp, now, s)
            new = multiply(turn.take(share, 0), subtract(new, known))
        s = add(s, multiply(permute(now, [0, 1, 3, 2]), new))
        return [turn.put(done, emit(graph.MatmulOp, turn.take(q, 0), s), 0), s]

    empty = broadcast_to(scalar(0, element), [t, *state[:2], const(heads // kv_heads), e])
    done, last = each_index(q, 0, [empty, with_dims(start, state)], body)
    result = reshape(permute(done, [1, 0, 2, 3, 4]), [b, t, e * heads])
    return astype(result, element_of(query)), astype(
        last, element_of(query if past is None else past)
    )


def _by_time(x: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """[t, b, kv_heads, rows, columns], half precision widened."""
    b, t, *heads = dims
    whole = heads[0] * heads[1] * heads[2]
    return permute(reshape(widen(with_dims(x, [b, t, whole])), dims), [1, 0, 2, 3, 4])


def _gates(x: ir.Value, kv_heads: int, width: Expr) -> ir.Value:
    """[t, b, kv_heads or 1, 1, width or 1] of [b, t, kv_heads * width], [b, t, kv_heads] or 1."""
    b, t, last = dims_of(x)
    if last == const(kv_heads):
        heads, columns = const(kv_heads), const(1)
    else:
        heads, columns = (const(1), last) if last == const(1) else (const(kv_heads), width)
    return _by_time(x, [b, t, heads, const(1), columns])


def _check(
    operands: dict[str, ir.Value | None], past: ir.Value | None, heads: int, kv_heads: int
) -> None:
    if kv_heads < 1 or heads < 1 or heads % kv_heads:
        raise ShapeError(f"expects a multiple of {kv_heads} heads, but got {heads}")
    present = {name: x for name, x in operands.items() if x is not None}
    first = present["query"]
    for name, x in present.items():
        if rank_of(x) != 3 or element_of(x) != element_of(first) or is_integer(element_of(x)):
            raise ShapeError(f"expects {name} of rank 3 and one float type, but got '{_type(x)}'")
        if any(map(dims_differ, dims_of(x)[:2], dims_of(first)[:2])):
            raise ShapeError(f"expects {name} of one batch and length, but got '{_type(x)}'")
    for name, count in (("query", heads), ("key", kv_heads), ("value", kv_heads)):
        dim = dims_of(present[name])[2]
        if dims_differ(dim, dim // count * count):
            raise ShapeError(f"expects {name} of {count} heads, but got dim {dim}")
    d, e = dims_of(first)[2] // heads, dims_of(present["value"])[2] // kv_heads
    if dims_differ(dims_of(present["key"])[2], d * kv_heads):
        raise ShapeError(f"expects keys of {d}, but got dim {dims_of(present['key'])[2]}")
    each = const(kv_heads)
    for name, widths in (("decay", (each, d * kv_heads)), ("beta", (each, const(1)))):
        if name in present and dims_of(present[name])[2] not in widths:
            raise ShapeError(f"expects {name} for each head, but got '{_type(present[name])}'")
    state = [dims_of(first)[0], const(kv_heads), d, e]
    if past is not None and (rank_of(past) != 4 or any(map(dims_differ, dims_of(past), state))):
        raise ShapeError(f"expects a state of [{', '.join(map(str, state))}], not '{_type(past)}'")


def _type(value: ir.Value) -> graph.TensorType:
    return graph.TensorType.of(value)
