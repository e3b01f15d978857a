"""Operators of many sequences at once, whose keys and values are in pages of equally many tokens.

A token has the index of its sequence and its position there. The page of position p of sequence s
is `tables[s, p floordiv size]`, an index of the first dim of all pages, its row `p mod size`.
"""

from typing import Any

from relax_mlir.bindings import ext, ir

from .assumed import assume
from .attention import require_equal_dims, require_grouped_heads, require_rank
from .elementwise import require_float, require_one_element_type
from .indices import require_indices
from .op import InferredOp
from .quantized import DequantizeBlocksOp
from .types import ShapeError, TensorType

_NARROWER = {"f64": ("f32", "f16", "bf16"), "f32": ("f16", "bf16")}
"""The floats that are widened to a type."""


class PagedKvAppendOp(InferredOp, name="nn_paged_kv_append", traits=[ext.Pure]):
    """Writes the keys and values of new tokens of any sequences to their pages.

        key_pages, value_pages : tensor<pages, kv_heads, size, d>
        key, value             : tensor<n, kv_heads, d>
        tables : tensor<sequences, pages of one>    sequences, positions : tensor<n>
        new_key_pages[page of token i, h, row of token i, j] = key[i, h, j], the rest as it was

    The pages are updated in place, unless their old contents are needed later. Of equal places the
    last token stays; a token whose sequence, position or page is out of range is not written.

    C1  pages have rank 4, tokens rank 3, and all one element type
    C2  kv_heads and d are not provably different, nor are the counts and sizes of pages
    C3  tables are integers of rank 2, sequences and positions of rank 1
    C4  the counts of tokens are not provably different

    Source: PagedAttention (arXiv 2309.06180); TVM `relax.vm.PagedAttentionKVCache`.
    """

    new_key_pages: ext.Result[Any]
    new_value_pages: ext.Result[Any]
    key_pages: ext.Operand[Any]
    value_pages: ext.Operand[Any]
    key: ext.Operand[Any]
    value: ext.Operand[Any]
    tables: ext.Operand[Any]
    sequences: ext.Operand[Any]
    positions: ext.Operand[Any]

    # Operand that each result is computed into; without an annotation, since that is a field.
    inplace_operands = (0, 1)

    @staticmethod
    def infer_return_type(
        key_pages: TensorType,
        value_pages: TensorType,
        key: TensorType,
        value: TensorType,
        tables: TensorType,
        sequences: TensorType,
        positions: TensorType,
    ) -> list[TensorType]:
        require_one_element_type(key_pages, value_pages, key, value)  # C1
        _require_pages(key_pages, value_pages)
        for pages, new in ((key_pages, key), (value_pages, value)):
            require_rank(new, 3, "new tokens")
            require_equal_dims(pages, 1, new, 1, "number of heads")  # C2
            require_equal_dims(pages, 3, new, 2, "head dim")
        _require_tables(tables, sequences, positions, key, value)  # C3, C4
        return [key_pages, value_pages]


class PagedAttentionOp(InferredOp, name="nn_paged_attention", traits=[ext.Pure]):
    """Attention of tokens of any sequences, each over the keys of its own up to its position.

        query                  : tensor<n, heads, d>
        key_pages, value_pages : tensor<pages, kv_heads, size, d>
        tables : tensor<sequences, pages of one>    sequences, positions : tensor<n>
        result[i, h] = sum over t of p[t] * value_pages[page of t, g, row of t]
        p = softmax over t of capped(scale * (query[i, h] . key_pages[page of t, g, row of t]))

    with g = h floordiv (heads / kv_heads), positions t <= positions[i], the last `window` of them
    unless that is 0, and capped(x) = cap * tanh(x / cap), or x if the cap is 0. What other keys and
    values hold does not matter. Sequences, positions and pages are clamped to their ranges; with no
    page or table the result is 0. Pages may be narrower floats, or 8-bit values with a scale for
    each 32 of the last dim. If all are bf16, p is rounded to bf16 too; sums are f32.

    C1  the query is of floats of rank 3, pages have rank 4 and one element type
    C2  pages have the query's element type, or narrower floats, or i8 with scales, an f32 query
    C3  head dims are not provably different, nor are the counts and sizes of pages
    C4  heads is a multiple of kv_heads, both constants
    C5  tables are integers of rank 2, sequences and positions of rank 1, of as many tokens
    C6  window and cap are 0 or more

    Source: PagedAttention (arXiv 2309.06180); Mistral (arXiv 2310.06825), Gemma 2 (2408.00118).
    """

    result: ext.Result[Any]
    query: ext.Operand[Any]
    key_pages: ext.Operand[Any]
    value_pages: ext.Operand[Any]
    tables: ext.Operand[Any]
    sequences: ext.Operand[Any]
    positions: ext.Operand[Any]
    key_scales: ext.Operand[Any] | None = None
    value_scales: ext.Operand[Any] | None = None
    scale: ir.FloatAttr = ext.attribute(kw_only=True)
    window: ir.IntegerAttr = ext.attribute(kw_only=True)
    cap: ir.FloatAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        query: TensorType,
        key_pages: TensorType,
        value_pages: TensorType,
        tables: TensorType,
        sequences: TensorType,
        positions: TensorType,
        key_scales: TensorType | None = None,
        value_scales: TensorType | None = None,
        *,
        scale: float,
        window: int,
        cap: float,
    ) -> TensorType:
        require_float(query)  # C1
        require_rank(query, 3, "queries")
        require_one_element_type(key_pages, value_pages)
        _require_pages(key_pages, value_pages)
        _require_elements(query, key_pages, value_pages, key_scales, value_scales)  # C2
        require_equal_dims(query, 2, key_pages, 3, "head dim")  # C3
        require_equal_dims(key_pages, 3, value_pages, 3, "head dim")
        require_grouped_heads(query, key_pages, axis=1)  # C4
        _require_tables(tables, sequences, positions, query)  # C5
        if window < 0 or cap < 0:  # C6
            raise ShapeError(f"expects a window and a cap of 0 or more, but got {window} and {cap}")
        return query


def _require_pages(keys: TensorType, values: TensorType) -> None:
    for pages in (keys, values):
        require_rank(pages, 4, "pages")
    for axis, what in ((0, "number of pages"), (1, "number of heads"), (2, "size of pages")):
        require_equal_dims(keys, axis, values, axis, what)
        if keys.dims is not None and values.dims is not None:
            assume(keys.dims[axis], "==", values.dims[axis])


def _require_elements(
    query: TensorType,
    keys: TensorType,
    values: TensorType,
    key_scales: TensorType | None,
    value_scales: TensorType | None,
) -> None:
    if (key_scales is None) != (value_scales is None):
        raise ShapeError("expects scales of both keys and values, or of neither")
    if key_scales is not None and value_scales is not None:
        if query.element != ir.F32Type.get():
            raise ShapeError(f"expects f32 queries of pages with scales, but got {query.element}")
        DequantizeBlocksOp.infer_return_type(keys, key_scales)
        DequantizeBlocksOp.infer_return_type(values, value_scales)
        return
    narrower = _NARROWER.get(str(query.element), ())
    if keys.element != query.element and str(keys.element) not in narrower:
        raise ShapeError(
            f"expects pages of {query.element}, or of narrower floats, but got {keys.element}"
        )


def _require_tables(
    tables: TensorType, sequences: TensorType, positions: TensorType, *tokens: TensorType
) -> None:
    require_indices(tables, sequences, positions)
    require_rank(tables, 2, "tables")
    for indices, what in ((sequences, "sequences"), (positions, "positions")):
        require_rank(indices, 1, what)
        for new in tokens:
            require_equal_dims(new, 0, indices, 0, "number of tokens")
            if new.dims is not None and indices.dims is not None:
                assume(new.dims[0], "==", indices.dims[0])
