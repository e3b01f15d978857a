"""Tensor programs of transformer blocks."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, linalg, math, tensor
from relax_mlir.dialects.graph import (
    AttentionOp,
    BatchedAttentionOp,
    KvAppendOp,
    RotaryOp,
    dims_of_attr,
    exact_dims,
)

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
from ..scalars import (
    add,
    compute_type,
    divide,
    from_compute,
    maximum,
    multiply,
    subtract,
    to_compute,
)


def rotary(op: RotaryOp, kernel: KernelBuilder) -> None:
    """Rotates both halves of each head at once: the input is read as [n, heads, 2, d/2]."""
    source, cos, sin = kernel.ins
    out = kernel.outs[0]
    split = [[0], [1], [2, 3]]
    # The two may have different static extents.
    pairs, target = (
        _expand(x, split, [extent(x, 0), extent(x, 1), 2, _half(x, cos)]) for x in (source, out)
    )
    other = ir.AffineExpr.get_constant(1) - ir.AffineExpr.get_dim(2)
    maps = [
        affine_map(4, [0, 1, 2, 3]),
        affine_map(4, [0, 1, other, 3]),
        affine_map(4, [0, 3]),
        affine_map(4, [0, 3]),
        affine_map(4, [0, 1, 2, 3]),
    ]

    def body(x: ir.Value, y: ir.Value, c: ir.Value, s: ir.Value, old: ir.Value) -> ir.Value:
        x, y, c, s = map(to_compute, (x, y, c, s))
        first = arith.CmpIOp(arith.CmpIPredicate.eq, linalg.IndexOp(2).result, index(0)).result
        signed = arith.SelectOp(first, arith.NegFOp(s).result, s).result
        return from_compute(add(multiply(x, c), multiply(y, signed)), old.type)

    rotated = generic([pairs, pairs, cos, sin], [target], maps, [PARALLEL] * 4, body)[0]
    kernel.finish(tensor.CollapseShapeOp(out.type, rotated, split).result)


def _half(heads: ir.Value, table: ir.Value) -> int | ir.Value:
    """Half the last extent of the heads, which equals that of a table."""
    kind = ir.RankedTensorType(heads.type)
    return dim(table, 1) if kind.is_dynamic_dim(2) else kind.get_dim_size(2) // 2


def _expand(value: ir.Value, groups: list[list[int]], shape: list[int | ir.Value]) -> ir.Value:
    static, sizes = mixed(shape)
    type_ = ir.RankedTensorType.get(static, ir.ShapedType(value.type).element_type)
    return tensor.ExpandShapeOp(type_, value, groups, sizes, static).result


def mixed(extents: Sequence[int | ir.Value]) -> tuple[list[int], list[ir.Value]]:
    """Extents as static attribute and dynamic operands."""
    dynamic = ir.ShapedType.get_dynamic_size()
    static = [dynamic if isinstance(extent, ir.Value) else extent for extent in extents]
    return static, [extent for extent in extents if isinstance(extent, ir.Value)]


def kv_append(op: KvAppendOp, kernel: KernelBuilder) -> None:
    """Transposes the new rows to [kv_heads, n, d] and inserts them after the cached ones."""
    key, value = kernel.ins
    position = kernel.symbol(exact_dims(dims_of_attr(op.position.dims))[0])
    results = []
    for new, cache in zip((key, value), kernel.outs):
        extents = [extent(new, axis) for axis in (1, 0, 2)]
        transposed = empty(extents, ir.ShapedType(new.type).element_type)
        maps = [affine_map(3, [1, 0, 2]), affine_map(3, [0, 1, 2])]
        transposed = generic([new], [transposed], maps, [PARALLEL] * 3, lambda x, _: x)[0]
        results.append(_insert_rows(transposed, cache, position, extents))
    kernel.finish(*results)


def _insert_rows(
    rows: ir.Value, cache: ir.Value, position: ir.Value, extents: Sequence[int | ir.Value]
) -> ir.Value:
    """Writes rows of the given extents at `position` of dim 1."""
    dynamic = ir.ShapedType.get_dynamic_size()
    static, sizes = mixed(extents)
    return tensor.InsertSliceOp(
        rows, cache, [position], sizes, [], [0, dynamic, 0], static, [1, 1, 1]
    ).result


def attention(op: AttentionOp, kernel: KernelBuilder) -> None:
    """Scores of all valid keys, masked softmax, weighted sum: the reference program.

    The hint lets schedules replace it by one pass over the keys.
    """
    query, key_cache, value_cache = kernel.ins
    out = kernel.outs[0]
    position = kernel.symbol(exact_dims(dims_of_attr(op.position.dims))[0])
    heads = ir.RankedTensorType(query.type).get_dim_size(1)
    kv_heads = ir.RankedTensorType(key_cache.type).get_dim_size(0)
    length = arith.AddIOp(position, dim(query, 0)).result
    keys, values = (_valid(cache, length) for cache in (key_cache, value_cache))
    group = heads // kv_heads
    compute = compute_type(ir.ShapedType(out.type).element_type)
    scores = empty([heads, extent(query, 0), length], compute)
    head, row, key, column = (ir.AffineExpr.get_dim(i) for i in range(4))
    shared = ir.AffineExpr.get_floor_div(head, group)
    maps = [[row, head, column], [shared, key, column], [head, row, key]]
    scores = _products(query, keys, scores, maps)
    seen = position if op.attributes["causal"].value else None
    scores = _scale_and_mask(scores, op.attributes["scale"].value, seen)
    weights = weights_of(scores, ir.ShapedType(out.type).element_type)
    row, head, column, key = (ir.AffineExpr.get_dim(i) for i in range(4))
    shared = ir.AffineExpr.get_floor_div(head, group)
    maps = [[head, row, key], [shared, key, column], [row, head, column]]
    mixed = empty_like(out, compute)
    mixed = _products(weights, values, mixed, maps, _sees(seen, 0, 3))
    _finish(op, kernel, mixed, "attention")


def batched_attention(op: BatchedAttentionOp, kernel: KernelBuilder) -> None:
    """As `attention` for each sequence of a batch, with a mask that is added to the scores."""
    query, keys, values, *masks = kernel.ins
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    heads = ir.RankedTensorType(query.type).get_dim_size(2)
    group = heads // ir.RankedTensorType(keys.type).get_dim_size(2)
    extents = [extent(x, i) for x, i in ((query, 0), (query, 2), (query, 1), (keys, 1))]
    compute = compute_type(element)
    batch, head, row, key, column = (ir.AffineExpr.get_dim(i) for i in range(5))
    shared = ir.AffineExpr.get_floor_div(head, group)
    maps = [[batch, row, head, column], [batch, key, shared, column], [batch, head, row, key]]
    scores = _products(query, keys, empty(extents, compute), maps)
    position = index(0) if op.attributes["causal"].value else None
    scores = _scale_and_mask(scores, op.attributes["scale"].value, position, *masks)
    weights = weights_of(scores, element)
    batch, row, head, column, key = (ir.AffineExpr.get_dim(i) for i in range(5))
    shared = ir.AffineExpr.get_floor_div(head, group)
    maps = [[batch, head, row, key], [batch, key, shared, column], [batch, row, head, column]]
    mixed = _products(weights, values, empty_like(out, compute), maps, _sees(position, 1, 4))
    _finish(op, kernel, mixed, "batched_attention")


def _finish(
    op: AttentionOp | BatchedAttentionOp, kernel: KernelBuilder, mixed: ir.Value, hint: str
) -> None:
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    result = elementwise([mixed], out, lambda x: from_compute(x, element))
    kernel.attribute("tir.schedule_hint", ir.StringAttr.get(hint))
    settings = {name: op.attributes[name] for name in ("scale", "causal")}
    kernel.attribute("tir.attention", ir.DictAttr.get(settings))
    kernel.finish(result)


def extent(value: ir.Value, axis: int) -> int | ir.Value:
    """An extent of a tensor: a constant, or an index value."""
    kind = ir.RankedTensorType(value.type)
    return dim(value, axis) if kind.is_dynamic_dim(axis) else kind.get_dim_size(axis)


def weights_of(scores: ir.Value, element: ir.Type) -> ir.Value:
    """The softmax of the scores; as bf16 if that is the element type, for bf16 dot products."""
    weights = _softmax_rows(scores)
    if not isinstance(element, ir.BF16Type):
        return weights
    rounded = empty_like(weights, element)
    return elementwise([weights], rounded, lambda x: from_compute(x, element))


def _valid(cache: ir.Value, length: ir.Value) -> ir.Value:
    """The filled part of a cache, [kv_heads, length, d]."""
    static, sizes = mixed([extent(cache, 0), length, extent(cache, 2)])
    type_ = ir.RankedTensorType.get(static, ir.ShapedType(cache.type).element_type)
    return tensor.ExtractSliceOp(type_, cache, [], sizes, [], [0, 0, 0], static, [1, 1, 1]).result


def _products(
    lhs: ir.Value,
    rhs: ir.Value,
    out: ir.Value,
    maps: list[list[ir.AffineExpr]],
    is_seen: Callable[[], ir.Value] | None = None,
) -> ir.Value:
    """Products of two tensors, summed over the loop after those of the output.

    Masked products are skipped, not multiplied by 0, which would not hide a NaN.
    """
    count = len(maps[2]) + 1
    zero = fill(scalar(ir.ShapedType(out.type).element_type, 0), out)
    iterators = [PARALLEL] * (count - 1) + [REDUCTION]
    affine_maps = [affine_map(count, exprs) for exprs in maps]

    def accumulate(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        product = multiply(to_compute(a), to_compute(b))
        if is_seen is not None:
            product = arith.SelectOp(is_seen(), product, scalar(product.type, 0)).result
        return add(total, product)

    return generic([lhs, rhs], [zero], affine_maps, iterators, accumulate)[0]


def _sees(position: ir.Value | None, row: int, key: int) -> Callable[[], ir.Value] | None:
    """A predicate for causal masks, from the loops of rows and keys: key <= position + row."""
    if position is None:
        return None

    def is_seen() -> ir.Value:
        last = arith.AddIOp(position, linalg.IndexOp(row).result).result
        return arith.CmpIOp(arith.CmpIPredicate.sle, linalg.IndexOp(key).result, last).result

    return is_seen


def _scale_and_mask(
    scores: ir.Value, scale: float, position: ir.Value | None, *masks: ir.Value
) -> ir.Value:
    """scores * scale + mask; -inf for keys that are masked for a row."""
    rank = ir.RankedTensorType(scores.type).rank
    is_seen = _sees(position, rank - 2, rank - 1)

    def body(x: ir.Value, *added: ir.Value) -> ir.Value:
        x = multiply(x, scalar(x.type, scale))
        for mask in added:
            x = add(x, to_compute(mask))
        if is_seen is None:
            return x
        return arith.SelectOp(is_seen(), x, scalar(x.type, float("-inf"))).result

    return elementwise([scores, *masks], empty_like(scores), body)


def _softmax_rows(scores: ir.Value) -> ir.Value:
    """exp(x - max) / sum over the last dim."""
    compute = ir.ShapedType(scores.type).element_type
    rank = ir.RankedTensorType(scores.type).rank
    rows = [extent(scores, i) for i in range(rank - 1)]
    loops = list(range(rank))
    identity, by_row = affine_map(rank, loops), affine_map(rank, loops[:-1])
    reduce_last = [PARALLEL] * (rank - 1) + [REDUCTION]
    top = fill(scalar(compute, float("-inf")), empty(rows, compute))
    top = generic([scores], [top], [identity, by_row], reduce_last, maximum)[0]

    def shifted_exp(x: ir.Value, m: ir.Value, _: ir.Value) -> ir.Value:
        return math.ExpOp(subtract(x, m)).result

    maps, each = [identity, by_row, identity], [PARALLEL] * rank
    powers = generic([scores, top], [empty_like(scores)], maps, each, shifted_exp)[0]
    total = fill(scalar(compute, 0), empty(rows, compute))
    total = generic([powers], [total], [identity, by_row], reduce_last, add)[0]
    return generic([powers, total], [empty_like(scores)], maps, each, lambda x, t, _: divide(x, t))[
        0
    ]
