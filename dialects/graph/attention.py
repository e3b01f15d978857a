"""Operators of transformer blocks: rotary embedding, key/value cache, attention."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .assumed import assume
from .dialect import ShapeAttr
from .elementwise import require_float, require_one_element_type
from .op import FlagAttr, InferredOp
from .types import Dim, ShapeError, TensorType, dims_differ, static_extent


def require_rank(annotation: TensorType, rank: int, what: str) -> None:
    """Raises ShapeError unless the rank is this, or unknown."""
    if annotation.dims is not None and len(annotation.dims) != rank:
        raise ShapeError(f"expects {what} of rank {rank}, but got '{annotation}'")


def require_equal_dims(a: TensorType, i: int, b: TensorType, j: int, what: str) -> None:
    """Raises ShapeError if dim i of one is provably not dim j of the other."""
    if a.dims is None or b.dims is None:
        return
    if dims_differ(a.dims[i], b.dims[j]):
        raise ShapeError(f"expects one {what}, but got {a.dims[i]} and {b.dims[j]}")


class RotaryOp(InferredOp, name="nn_rotary", traits=[ext.Pure]):
    """Rotates pairs of features by an angle that depends on the position.

        input : tensor<n, heads, d>    cos, sin : tensor<n, d/2>    result : tensor<n, heads, d>
        result[i, h, j]       = input[i, h, j] * cos[i, j] - input[i, h, j + d/2] * sin[i, j]
        result[i, h, j + d/2] = input[i, h, j + d/2] * cos[i, j] + input[i, h, j] * sin[i, j]

    C1  the input has rank 3, the tables have rank 2
    C2  all operands have one element type, a float
    C3  the rows are not provably different
    C4  the head dim is not provably different from twice the tables' columns

    Source: arXiv 2104.09864, in the half-split layout of Hugging Face.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    cos: ext.Operand[Any]
    sin: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType, cos: TensorType, sin: TensorType) -> TensorType:
        require_rank(input, 3, "an input")  # C1
        require_one_element_type(input, cos, sin)  # C2
        require_float(input)
        for table in (cos, sin):
            require_rank(table, 2, "tables")
            require_equal_dims(input, 0, table, 0, "number of rows")  # C3
            if input.dims is None or table.dims is None or table.dims[1] is None:
                continue
            if dims_differ(input.dims[2], table.dims[1] * 2):  # C4
                raise ShapeError(
                    f"rotates a head dim of {input.dims[2]} with tables of {table.dims[1]} columns"
                )
        return input


class KvAppendOp(InferredOp, name="nn_kv_append", traits=[ext.Pure]):
    """Writes the keys and values of n new tokens behind `position` cached ones.

        key_cache, value_cache : tensor<kv_heads, capacity, d>
        key, value             : tensor<n, kv_heads, d>
        new_key_cache[h, position + i, j] = key[i, h, j], the rest as it was; likewise values

    The caches are updated in place, unless their old contents are needed later.

    C1  all operands have rank 3 and one element type
    C2  kv_heads and d are not provably different
    C3  the position is one known expression

    Source: TVM `vm.builtin.attention_kv_cache_append`, as a pure operator.
    """

    new_key_cache: ext.Result[Any]
    new_value_cache: ext.Result[Any]
    key_cache: ext.Operand[Any]
    value_cache: ext.Operand[Any]
    key: ext.Operand[Any]
    value: ext.Operand[Any]
    position: ShapeAttr

    # Operand that each result is computed into; without an annotation, since that is a field.
    inplace_operands = (0, 1)

    @staticmethod
    def infer_return_type(
        key_cache: TensorType,
        value_cache: TensorType,
        key: TensorType,
        value: TensorType,
        position: Sequence[Dim],
    ) -> Sequence[TensorType]:
        require_one_element_type(key_cache, value_cache, key, value)  # C1
        for annotation in (key_cache, value_cache, key, value):
            require_rank(annotation, 3, "operands")
        for cache, new in ((key_cache, key), (value_cache, value)):
            require_equal_dims(cache, 0, new, 1, "number of heads")  # C2
            require_equal_dims(cache, 2, new, 2, "head dim")
        _require_position(position)  # C3
        _assume_one_layout(key_cache, value_cache, position, key, value)
        return [key_cache, value_cache]


class AttentionOp(InferredOp, name="nn_attention", traits=[ext.Pure]):
    """Scaled dot-product attention of n queries over cached keys and values.

        query                  : tensor<n, heads, d>
        key_cache, value_cache : tensor<kv_heads, capacity, d>
        result[i, h] = sum over t of p[t] * value_cache[g, t]
        p            = softmax over t of scale * (query[i, h] . key_cache[g, t])

    with g = h floordiv (heads / kv_heads) (grouped queries) and t < position + n, or
    t <= position + i if causal: the caches already hold the n new tokens. What other keys and
    values hold does not matter, NaN and infinities included. Of bf16 tensors, p is rounded to bf16
    too; sums are f32.

    C1  all operands have rank 3 and one element type, a float
    C2  the head dims are not provably different
    C3  heads is a multiple of kv_heads, both constants
    C4  the position is one known expression

    Source: arXiv 1706.03762, 2305.13245; TVM `relax.nn.attention`.
    """

    result: ext.Result[Any]
    query: ext.Operand[Any]
    key_cache: ext.Operand[Any]
    value_cache: ext.Operand[Any]
    position: ShapeAttr
    scale: ir.FloatAttr
    causal: FlagAttr

    @staticmethod
    def infer_return_type(
        query: TensorType,
        key_cache: TensorType,
        value_cache: TensorType,
        position: Sequence[Dim],
        scale: float,
        causal: bool,
    ) -> TensorType:
        require_one_element_type(query, key_cache, value_cache)  # C1
        require_float(query)
        for annotation in (query, key_cache, value_cache):
            require_rank(annotation, 3, "operands")
        for cache in (key_cache, value_cache):
            require_equal_dims(query, 2, cache, 2, "head dim")  # C2
        require_grouped_heads(query, key_cache)  # C3
        _require_position(position)  # C4
        _assume_one_layout(key_cache, value_cache, position, query)
        return query


class BatchedAttentionOp(InferredOp, name="nn_batched_attention", traits=[ext.Pure]):
    """Scaled dot-product attention of a batch, over keys and values that are all known.

        query : tensor<b, n, heads, d>       key   : tensor<b, m, kv_heads, d>
        mask  : tensor<b, heads, n, m>       value : tensor<b, m, kv_heads, e>
        result[z, i, h] = sum over t of p[t] * value[z, t, g] : tensor<b, n, heads, e>
        p = softmax over t of scale * (query[z, i, h] . key[z, t, g]) + mask[z, h, i, t]

    with g = h floordiv (heads / kv_heads) (grouped queries), and of t <= i alone if causal: what
    other keys and values hold does not matter, NaN and infinities included. Any dim of the mask may
    be 1, which is for all; it is added and hides no NaN, and a row whose scores are all -infinity
    is NaN. Without keys the result is 0. Of bf16 tensors, p is rounded to bf16 too; sums are f32.

    C1  all operands have rank 4 and one element type, a float
    C2  batches, head dims of queries and keys, and keys and values are not provably different
    C3  heads is a multiple of kv_heads, both constants
    C4  dims of the mask are 1 or not provably different

    Source: arXiv 1706.03762, 2305.13245; TVM `relax.nn.attention`; ONNX `Attention`.
    """

    result: ext.Result[Any]
    query: ext.Operand[Any]
    key: ext.Operand[Any]
    value: ext.Operand[Any]
    mask: ext.Operand[Any] | None = None
    scale: ir.FloatAttr = ext.attribute(kw_only=True)
    causal: FlagAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        query: TensorType,
        key: TensorType,
        value: TensorType,
        mask: TensorType | None = None,
        *,
        scale: float,
        causal: bool,
    ) -> TensorType:
        operands = [query, key, value] + ([] if mask is None else [mask])
        require_one_element_type(*operands)  # C1
        require_float(query)
        for annotation in operands:
            require_rank(annotation, 4, "operands")
        for other in (key, value):
            require_equal_dims(query, 0, other, 0, "batch")  # C2
        require_equal_dims(query, 3, key, 3, "head dim")
        for axis, what in ((1, "number of keys"), (2, "number of heads")):
            require_equal_dims(key, axis, value, axis, what)
        require_grouped_heads(query, key, axis=2)  # C3
        if mask is not None:
            _require_mask(mask, query, key)
        if query.dims is None or value.dims is None:
            return TensorType(None, query.element)
        return TensorType((*query.dims[:3], value.dims[3]), query.element)


def _require_mask(mask: TensorType, query: TensorType, key: TensorType) -> None:
    if mask.dims is None or query.dims is None or key.dims is None:
        return
    batch, rows, heads, _ = query.dims
    scores = (batch, heads, rows, key.dims[1])
    for dim, extent in zip(mask.dims, scores):
        if dim != const(1) and dims_differ(dim, extent):  # C4
            raise ShapeError(f"masks scores of dim {extent} with a dim of {dim}")


def require_grouped_heads(query: TensorType, keys: TensorType, axis: int = 0) -> None:
    """Raises ShapeError unless constant heads of queries are a multiple of those of keys.

    `axis` is that of the keys' heads; those of the queries are in front of the last one.
    """
    if query.dims is None or keys.dims is None:
        return
    heads, groups = query.dims[-2], keys.dims[axis]
    count, shared = static_extent(heads), static_extent(groups)
    if count is None or not shared or count % shared:
        raise ShapeError(
            f"expects constant heads, a multiple of kv_heads, but got {heads} and {groups}"
        )


def _assume_one_layout(
    keys: TensorType, values: TensorType, position: Sequence[Dim], *new: TensorType
) -> None:
    """Caches have equally many heads, and room for the new tokens behind the cached ones."""
    counts = [tokens.dims[0] for tokens in new if tokens.dims is not None]
    if keys.dims is None or values.dims is None or len(counts) < len(new):
        return
    start, count = position[0], counts[0]
    assume(keys.dims[0], "==", values.dims[0])
    assume(0, "<=", start)
    for other in counts:
        assume(count, "==", other)
    if start is not None and count is not None:
        for cache in (keys.dims, values.dims):
            assume(start + count, "<=", cache[1])


def _require_position(position: Sequence[Dim]) -> None:
    if len(position) != 1 or position[0] is None:
        raise ShapeError(f"expects one known position, but got {len(position)}")
