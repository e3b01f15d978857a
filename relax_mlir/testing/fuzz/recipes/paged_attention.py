"""Recipes of attention over pages, and of their updates."""

from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const

from ..builder import FLOATS, Builder, Value
from .attention import HEADS, WIDTHS
from .table import recipe


def _pages(b: Builder, element: str, heads: int, width: int) -> list[Value]:
    """Pages of keys and of values; as many as a symbol says, or few."""
    count = b.random.choice([*b.symbols, const(3)])
    size = const(b.few("sizes of pages", [1, 4, 16], 1))
    return [b.argument([count, const(heads), size, const(width)], element) for _ in range(2)]


def _tokens(b: Builder, rows: Expr) -> list[Value]:
    """Tables, sequences and positions, of which many are out of range."""
    tables = [b.random.choice([*b.symbols, const(2)]), const(b.few("pages of one", [1, 3], 1))]
    kind = b.random.choice(["i32", "i64"])
    return [b.argument(dims, kind) for dims in (tables, [rows], [rows])]


def _rows(b: Builder) -> Expr:
    return b.random.choice([*b.symbols, const(b.few("rows", [1, 3, 17], 1))])


@recipe("attention", graph.PagedKvAppendOp)
def paged_kv_append(b: Builder, op: Any) -> None:
    """New tokens of pages that are arguments; now and then attended to."""
    element = b.element if b.element in FLOATS else "f32"
    heads, width = b.few("cached heads", [1, 2, 3], 1), b.few("head dims", WIDTHS, 1)
    pages, rows = _pages(b, element, heads, width), _rows(b)
    new = [b.argument([rows, const(heads), const(width)], element) for _ in range(2)]
    b.emit_many(op, [*pages, *new, *_tokens(b, rows)])


@recipe("attention", graph.PagedAttentionOp)
def paged_attention(b: Builder, op: Any) -> None:
    """With a window or a cap or neither."""
    element = b.element if b.element in FLOATS else "f32"
    (heads, shared), width = b.few("heads", HEADS, 1), b.few("head dims", WIDTHS, 1)
    rows = _rows(b)
    query = b.argument([rows, const(heads), const(width)], element)
    operands = [query, *_pages(b, element, shared, width), *_tokens(b, rows), None, None]
    settings = {"scale": width**-0.5, "window": b.few("windows", [0, 3], 1)}
    b.emit(op, operands, False, 5, cap=b.few("caps", [0.0, 2.0], 1), **settings)
