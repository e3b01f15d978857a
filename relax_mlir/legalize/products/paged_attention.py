"""Tensor programs of attention over pages."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, linalg, math, tensor
from relax_mlir.dialects.graph import PagedAttentionOp, PagedKvAppendOp
from relax_mlir.dialects.graph.quantized import BLOCK

from ..kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    empty_like,
    fill,
    generic,
    index,
    scalar,
)
from ..movement.index import clamped, last_of
from ..scalars import add, compute_type, from_compute, multiply, to_index
from ..tasks import if_else, in_order
from .attention import extent, mixed, weights_of

HINT = "paged_attention"


def paged_kv_append(op: PagedKvAppendOp, kernel: KernelBuilder) -> None:
    """Inserts the tokens one after another, those whose page there is."""
    key, value, tables, sequences, positions = kernel.ins
    # A static slice must begin inside of a tensor.
    filled = [not _is_empty(pages) for pages in kernel.outs]
    if any(map(_is_empty, (tables, sequences, positions))) or not any(filled):
        kernel.finish(*kernel.outs)
        return
    size = dim(kernel.outs[0], 2)
    most = arith.MulIOp(dim(tables, 1), size).result

    def token(i: ir.Value, *pages: ir.Value) -> list[ir.Value]:
        sequence, position = (
            to_index(tensor.ExtractOp(x, [i]).result) for x in (sequences, positions)
        )
        kinds = [x.type for x in pages]

        def of_sequence() -> list[ir.Value]:
            slot, row = _divided(position, size)
            page = to_index(tensor.ExtractOp(tables, [sequence, slot]).result)
            fits = _below(page, dim(pages[0], 0))
            pairs = list(zip((key, value), pages, filled))
            return if_else(
                fits,
                kinds,
                lambda: [
                    _insert_token(x, i, to, page, row) if any_ else to for x, to, any_ in pairs
                ],
                lambda: list(pages),
            )

        inside = arith.AndIOp(_below(sequence, dim(tables, 0)), _below(position, most)).result
        return if_else(inside, kinds, of_sequence, lambda: list(pages))

    kernel.finish(*in_order(dim(key, 0), kernel.outs, token))


def _is_empty(x: ir.Value) -> bool:
    """Whether a dim is known to be 0."""
    return 0 in ir.RankedTensorType(x.type).shape


def _divided(position: ir.Value, size: ir.Value) -> tuple[ir.Value, ir.Value]:
    return arith.DivUIOp(position, size).result, arith.RemUIOp(position, size).result


def _below(at: ir.Value, count: ir.Value) -> ir.Value:
    """Whether an index is in range: one below 0 is above all, unsigned."""
    return arith.CmpIOp(arith.CmpIPredicate.ult, at, count).result


def _insert_token(
    new: ir.Value, token: ir.Value, pages: ir.Value, page: ir.Value, row: ir.Value
) -> ir.Value:
    """The pages with all heads of one token in a row of a page."""
    dynamic = ir.ShapedType.get_dynamic_size()
    heads, width = extent(pages, 1), extent(pages, 3)
    static, sizes = mixed([heads, width])
    kind = ir.RankedTensorType.get(static, ir.ShapedType(new.type).element_type)
    part = tensor.ExtractSliceOp(
        kind, new, [token], sizes, [], [dynamic, 0, 0], [1, *static], [1, 1, 1]
    ).result
    whole = [1, static[0], 1, static[1]]
    offsets = [dynamic, 0, dynamic, 0]
    return tensor.InsertSliceOp(
        part, pages, [page, row], sizes, [], offsets, whole, [1, 1, 1, 1]
    ).result


@dataclass(frozen=True)
class _Pages:
    """Pages of keys or of values, and the tables that name them, by the loops of a stage.

    `most` is the count of keys of a table, 0 if there is no page or table. `group` heads of queries
    share a head of keys.
    """

    pages: ir.Value
    scales: ir.Value | None
    tables: ir.Value
    most: ir.Value
    window: int
    group: int

    def sums(self, x: ir.Value, tokens: list[ir.Value], out: ir.Value, key: int) -> ir.Value:
        """Of each token and head, x[i, h, k] times elements of the pages, summed over k.

        `key` is the loop over keys: 2, of the output, or 3, over which is summed. `tokens` are
        sequences and positions. What is hidden is skipped, not multiplied by 0.
        """
        compute = ir.ShapedType(out.type).element_type
        zero = fill(scalar(compute, 0), out)
        maps = [affine_map(4, loops) for loops in ([0, 1, 3], [0], [0], [0, 1, 2])]

        def body(a: ir.Value, sequence: ir.Value, position: ir.Value, total: ir.Value) -> ir.Value:
            loops = [linalg.IndexOp(i).result for i in range(4)]
            b = self._element(sequence, loops[1], loops[key], loops[5 - key], compute)
            product = multiply(_widened(a, compute), b)
            seen = self.sees(position, loops[key])
            return add(total, arith.SelectOp(seen, product, scalar(compute, 0)).result)

        iterators = [PARALLEL] * 3 + [REDUCTION]
        return generic([x, *tokens], [zero], maps, iterators, body)[0]

    def _element(
        self, sequence: ir.Value, head: ir.Value, key: ir.Value, column: ir.Value, kind: ir.Type
    ) -> ir.Value:
        shared = arith.DivUIOp(head, index(self.group)).result
        slot, row = _divided(key, dim(self.pages, 2))
        sequence = clamped(sequence, last_of(self.tables, 0))
        page = tensor.ExtractOp(self.tables, [sequence, slot]).result
        page = clamped(page, last_of(self.pages, 0))
        x = tensor.ExtractOp(self.pages, [page, shared, row, column]).result
        if self.scales is None:
            return _widened(x, kind)
        block = arith.DivUIOp(column, index(BLOCK)).result
        factor = tensor.ExtractOp(self.scales, [page, shared, row, block]).result
        return multiply(arith.SIToFPOp(kind, x).result, factor)

    def sees(self, position: ir.Value, key: ir.Value) -> ir.Value:
        """Whether a token at a position attends to a key."""
        last = clamped(position, arith.SubIOp(self.most, index(1)).result)
        seen = arith.CmpIOp(arith.CmpIPredicate.sle, key, last).result
        if not self.window:
            return seen
        age = arith.SubIOp(last, key).result
        near = arith.CmpIOp(arith.CmpIPredicate.slt, age, index(self.window)).result
        return arith.AndIOp(seen, near).result


def _widened(x: ir.Value, kind: ir.Type) -> ir.Value:
    return x if x.type == kind else arith.ExtFOp(kind, x).result


def paged_attention(op: PagedAttentionOp, kernel: KernelBuilder) -> None:
    """Scores of all keys of a table, masked softmax, weighted sum: the reference program.

    The hint lets schedules replace it by one pass over the keys that a token sees.
    """
    query, key_pages, value_pages, tables, sequences, positions, *scales = kernel.ins
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    compute = compute_type(element)
    heads = ir.RankedTensorType(query.type).get_dim_size(1)
    group = heads // ir.RankedTensorType(key_pages.type).get_dim_size(1)
    settings = {name: op.attributes[name] for name in ("scale", "window", "cap")}
    most = _count_of_keys(tables, key_pages)
    keys, values = (
        _Pages(pages, factors, tables, most, settings["window"].value, group)
        for pages, factors in zip((key_pages, value_pages), scales or (None, None))
    )
    tokens = [sequences, positions]
    scores = keys.sums(query, tokens, empty([extent(query, 0), heads, most], compute), 2)
    scale, cap = settings["scale"].value, settings["cap"].value
    scores = _finished(scores, positions, lambda x: _capped(x, scale, cap), keys)
    weights = weights_of(scores, element)
    mixed = values.sums(weights, tokens, empty_like(out, compute), 3)
    if not any(
        ir.IntegerType(ir.ShapedType(x.type).element_type).is_unsigned for x in (tables, *tokens)
    ):
        kernel.attribute("tir.schedule_hint", ir.StringAttr.get(HINT))
    kernel.attribute("tir.paged_attention", ir.DictAttr.get(settings))
    kernel.finish(elementwise([mixed], out, lambda x: from_compute(x, element)))


def _count_of_keys(tables: ir.Value, pages: ir.Value) -> ir.Value:
    count = arith.MulIOp(dim(tables, 1), dim(pages, 2)).result
    some = arith.MinSIOp(dim(tables, 0), dim(pages, 0)).result
    return arith.MulIOp(count, arith.MinSIOp(some, index(1)).result).result


def _capped(x: ir.Value, scale: float, cap: float) -> ir.Value:
    x = multiply(x, scalar(x.type, scale))
    if not cap:
        return x
    bounded = math.TanhOp(multiply(x, scalar(x.type, 1 / cap))).result
    return multiply(bounded, scalar(x.type, cap))


def _finished(
    scores: ir.Value, positions: ir.Value, finish: Callable[[ir.Value], ir.Value], keys: _Pages
) -> ir.Value:
    """The scores, finished, or -infinity for keys that are hidden."""

    def body(position: ir.Value, x: ir.Value, _: ir.Value) -> ir.Value:
        seen = keys.sees(position, linalg.IndexOp(2).result)
        return arith.SelectOp(seen, finish(x), scalar(x.type, float("-inf"))).result

    maps = [affine_map(3, loops) for loops in ([0], [0, 1, 2], [0, 1, 2])]
    return generic([positions, scores], [empty_like(scores)], maps, [PARALLEL] * 3, body)[0]
