"""Recipes of attention, its caches and rotary embeddings."""

from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const, sym

from ..builder import FLOATS, Builder, Value
from .table import recipe

HEADS = ((1, 1), (4, 1), (4, 2), (2, 2), (6, 3), (8, 1))
"""Heads of queries and of keys."""
WIDTHS = (2, 4, 8, 16, 24, 32, 64)


def _element(b: Builder) -> str:
    return b.element if b.element in FLOATS else "f32"


def _rows(b: Builder) -> Expr:
    return b.random.choice([*b.symbols, const(b.few("rows", [1, 3, 17], 1))])


def _tokens(b: Builder, heads: int, width: int) -> Value:
    dims = [_rows(b), const(heads), const(width)]
    return b.argument(dims, _element(b))


@recipe("attention", graph.RotaryOp)
def rotary(b: Builder, op: Any) -> None:
    """Tables that are arguments."""
    element = _element(b)

    def turns(v: Value) -> bool:
        return v.element == element and v.rank == 3 and not (v.dims[2].value or 1) % 2

    x = b.pick(turns) or _tokens(
        b, b.few("cached heads", [1, 2, 3], 1), b.few("head dims", WIDTHS, 1)
    )
    if b.symbols and b.chance(0.1):
        x = b.argument([_rows(b), b.pick_dim(), b.any_symbol() * 2], element)
    tables = [b.argument([x.dims[0], x.dims[2] // 2], element) for _ in range(2)]
    b.emit(op, [x, *tables], False, 2 * x.bound * max(t.bound for t in tables))


def _caches(b: Builder, heads: int, width: int, count: Expr) -> tuple[list[Value], Expr]:
    """Caches with room for more tokens, and how many are there."""
    position = b.random.choice([const(0), const(3), sym("past")])
    if not b.symbols or b.chance(0.5):
        capacity = position + count + b.random.choice([0, 1, 5])
        if position.value is None:
            # A dim alone binds the symbol.
            b.argument([position], "f32")
    else:
        position, capacity = const(2), count + 9
    pair = [b.argument([const(heads), capacity, const(width)], _element(b)) for _ in range(2)]
    return pair, position


@recipe("attention", graph.KvAppendOp)
def kv_append(b: Builder, op: Any) -> None:
    """New tokens behind those of two caches; now and then of as many heads as a symbol says."""
    heads, width = b.few("cached heads", [1, 2, 3], 1), b.few("head dims", WIDTHS, 1)
    if b.symbols and b.chance(0.1):
        _append_any(b, op)
        return
    key = _tokens(b, heads, width)
    value = b.argument(key.dims, key.element)
    caches, position = _caches(b, heads, width, key.dims[0])
    b.emit_many(op, [*caches, key, value], position=[position])
    if b.chance(0.5):
        query = b.argument([key.dims[0], const(heads * 2), const(width)], key.element)
        pair = b.values[-3:-1]
        settings = {"scale": width**-0.5, "causal": b.chance(0.5)}
        b.used.append("nn_attention")
        b.emit(graph.AttentionOp, [query, *pair], False, 5, position=[position], **settings)


def _append_any(b: Builder, op: Any) -> None:
    heads, width, rows = b.symbols[0], b.symbols[-1] * 2, _rows(b)
    caches = [b.argument([heads, rows + 2, width], _element(b)) for _ in range(2)]
    new = b.argument([rows, heads, width], _element(b))
    b.emit_many(op, [*caches, new, new], position=[const(1)])


@recipe("attention", graph.AttentionOp)
def attention(b: Builder, op: Any) -> None:
    """Over caches that are arguments."""
    (heads, shared), width = b.few("heads", HEADS, 1), b.few("head dims", WIDTHS, 1)
    query = _tokens(b, heads, width)
    caches, position = _caches(b, shared, width, query.dims[0])
    settings = {"scale": width**-0.5, "causal": b.chance(0.5)}
    b.emit(op, [query, *caches], False, 5, position=[position], **settings)


@recipe("attention", graph.BatchedAttentionOp)
def batched_attention(b: Builder, op: Any) -> None:
    """With a mask or without, keys of one width and values of another."""
    (heads, shared), width = b.few("heads", HEADS, 1), b.few("head dims", WIDTHS, 1)
    element, batch = _element(b), b.few("batch", [const(1), const(2), *b.symbols], 1)
    rows, keys = _rows(b), _rows(b)
    query = b.argument([batch, rows, const(heads), const(width)], element)
    key = b.argument([batch, keys, const(shared), const(width)], element)
    wide = const(b.few("value dims", [width, *WIDTHS], 1))
    value = b.argument([batch, keys, const(shared), wide], element)
    mask = None
    if b.chance(0.4):
        whole = (batch, const(heads), rows, keys)
        mask = b.argument([const(1) if b.chance(0.4) else dim for dim in whole], element)
    settings = {"scale": width**-0.5, "causal": b.chance(0.4)}
    b.emit(op, [query, key, value, mask], False, 5, **settings)
