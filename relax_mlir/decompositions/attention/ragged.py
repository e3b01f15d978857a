"""Attention of sequences of several lengths in a row: attention_var_len."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

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
    rank_of,
    scalar,
    subtract,
    where,
)
from .scores import Scored, attend

CAUSAL = (None, "TopLeft", "BottomRight")


def attention_var_len(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    starts: ir.Value,
    key_starts: ir.Value | None = None,
    *,
    scale: float | None = None,
    causal: str | None = None,
) -> ir.Value:
    """Attention of each sequence alone: query [1, rows, heads, d], key and value alike.

    `starts` are the rows where sequences begin, and the end of the last one; `key_starts` those of
    keys, if they differ. Scores are of all rows, and hidden where sequences differ; with `causal`
    a query sees as many keys as it is old from the first ones on (TopLeft), or up to the last
    (BottomRight). Source: TVM `relax.nn.attention_var_len`.
    """
    if causal not in CAUSAL:
        raise ShapeError(f"expects causal TopLeft or BottomRight, but got '{causal}'")
    if any(rank_of(x) != 4 for x in (query, key, value)):
        ranks = [rank_of(x) for x in (query, key, value)]
        raise ShapeError(f"expects query, key and value of rank 4, but got ranks {ranks}")
    other = starts if key_starts is None else key_starts
    for x in (starts, other):
        if rank_of(x) != 1 or not is_integer(element_of(x)):
            raise ShapeError(f"expects a vector of starts, but got '{graph.TensorType.of(x)}'")
    sequence, age, size = (expand_dims(x, [1]) for x in _rows(query, starts))
    key_sequence, key_age, key_size = (expand_dims(x, [0]) for x in _rows(key, other))
    allowed = binary(graph.EqualOp, sequence, key_sequence)
    if causal is not None:
        if causal == "BottomRight":
            age = add(age, subtract(key_size, size))
        later = binary(graph.GreaterEqualOp, age, key_age)
        allowed = binary(graph.LogicalAndOp, allowed, later)
    element = element_of(query)
    bias = expand_dims(where(allowed, scalar(0, element), float("-inf")), [0, 1])
    return attend(query, key, value, Scored(scale, bias))[0]


def _rows(x: ir.Value, starts: ir.Value) -> list[ir.Value]:
    """Of each row its sequence, its position there, and the length of the sequence."""
    i64 = ir.IntegerType.get_signless(64)
    rows, begins = arange(0, dims_of(x)[1], 1, i64), astype(starts, i64)
    after = emit(graph.SearchsortedOp, begins, rows, right=True)
    first = emit(graph.TakeOp, begins, subtract(after, 1), axis=0)
    size = subtract(emit(graph.TakeOp, begins, after, axis=0), first)
    return [after, subtract(rows, first), size]
