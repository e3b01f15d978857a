"""Tensor programs of transformer blocks."""

from relax_mlir.bindings import arith, ir, linalg, math, tensor
from relax_mlir.dialects.graph import AttentionOp, KvAppendOp, RotaryOp, dims_of_attr

from .kernel import (
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
from .scalars import (
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
    n, heads, d = ir.RankedTensorType(out.type).shape
    split = [[0], [1], [2, 3]]
    half = d // 2
    halves = ir.RankedTensorType.get([n, heads, 2, half], ir.ShapedType(out.type).element_type)
    shape = [dim(out, 0) if n < 0 else n, heads, 2, half]
    pairs = _expand(source, halves, split, shape)
    target = _expand(out, halves, split, shape)
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


def _expand(
    value: ir.Value, type_: ir.Type, groups: list[list[int]], shape: list[int | ir.Value]
) -> ir.Value:
    dynamic = ir.ShapedType.get_dynamic_size()
    static = [dynamic if isinstance(extent, ir.Value) else extent for extent in shape]
    sizes = [extent for extent in shape if isinstance(extent, ir.Value)]
    return tensor.ExpandShapeOp(type_, value, groups, sizes, static).result


def kv_append(op: KvAppendOp, kernel: KernelBuilder) -> None:
    """Transposes the new rows to [kv_heads, n, d] and inserts them behind the cached ones."""
    key, value = kernel.ins
    position = kernel.symbol(dims_of_attr(op.position.dims)[0])
    results = []
    for new, cache in zip((key, value), kernel.outs):
        n, heads, d = ir.RankedTensorType(new.type).shape
        rows = dim(new, 0) if n < 0 else n
        turned = empty([heads, rows, d], ir.ShapedType(new.type).element_type)
        maps = [affine_map(3, [1, 0, 2]), affine_map(3, [0, 1, 2])]
        turned = generic([new], [turned], maps, [PARALLEL] * 3, lambda x, _: x)[0]
        results.append(_insert_rows(turned, cache, position, rows))
    kernel.finish(*results)


def _insert_rows(
    rows: ir.Value, cache: ir.Value, position: ir.Value, count: int | ir.Value
) -> ir.Value:
    """Writes `count` rows of dim 1 at `position`."""
    dynamic = ir.ShapedType.get_dynamic_size()
    heads, _, d = ir.RankedTensorType(rows.type).shape
    fixed = isinstance(count, int)
    moves = isinstance(position, ir.Value)
    return tensor.InsertSliceOp(
        rows,
        cache,
        [position] if moves else [],
        [] if fixed else [count],
        [],
        [0, dynamic, 0],
        [heads, count if fixed else dynamic, d],
        [1, 1, 1],
    ).result


def attention(op: AttentionOp, kernel: KernelBuilder) -> None:
    """Scores of all valid keys, masked softmax, weighted sum: the reference program.

    The hint lets schedules replace it by one pass over the keys.
    """
    query, key_cache, value_cache = kernel.ins
    out = kernel.outs[0]
    position = kernel.symbol(dims_of_attr(op.position.dims)[0])
    n, heads, d = ir.RankedTensorType(query.type).shape
    kv_heads = ir.RankedTensorType(key_cache.type).get_dim_size(0)
    rows = dim(query, 0)
    length = arith.AddIOp(position, rows).result
    keys, values = (_valid(cache, length) for cache in (key_cache, value_cache))
    group = heads // kv_heads
    compute = compute_type(ir.ShapedType(out.type).element_type)
    row_extent = rows if n < 0 else n
    scores = _scores(query, keys, empty([heads, row_extent, length], compute), group)
    scores = _scale_and_mask(op, scores, position)
    weights = _softmax_rows(scores, heads, row_extent)
    if isinstance(ir.ShapedType(out.type).element_type, ir.BF16Type):
        weights = _rounded(weights)
    mixed = fill(scalar(compute, 0), empty([row_extent, heads, d], compute))
    head, row, key, column = (ir.AffineExpr.get_dim(i) for i in (1, 0, 3, 2))
    shared = ir.AffineExpr.get_floor_div(head, group)
    maps = [
        affine_map(4, [head, row, key]),
        affine_map(4, [shared, key, column]),
        affine_map(4, [row, head, column]),
    ]
    iterators = [PARALLEL] * 3 + [REDUCTION]
    mixed = generic([weights, values], [mixed], maps, iterators, _accumulate)[0]
    result = elementwise(
        [mixed], out, lambda x: from_compute(x, ir.ShapedType(out.type).element_type)
    )
    kernel.attribute("tir.schedule_hint", ir.StringAttr.get("attention"))
    settings = {"scale": op.attributes["scale"], "causal": op.attributes["causal"]}
    kernel.attribute("tir.attention", ir.DictAttr.get(settings))
    kernel.finish(result)


def _rounded(weights: ir.Value) -> ir.Value:
    """The weights as bf16, so that machines may multiply pairs of them."""
    kind = ir.RankedTensorType(weights.type)
    extents = [
        dim(weights, i) if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(3)
    ]
    out = empty(extents, ir.BF16Type.get())
    return elementwise([weights], out, lambda x: from_compute(x, ir.BF16Type.get()))


def _valid(cache: ir.Value, length: ir.Value) -> ir.Value:
    """The filled part of a cache, [kv_heads, length, d]."""
    dynamic = ir.ShapedType.get_dynamic_size()
    heads, _, d = ir.RankedTensorType(cache.type).shape
    type_ = ir.RankedTensorType.get([heads, dynamic, d], ir.ShapedType(cache.type).element_type)
    return tensor.ExtractSliceOp(
        type_, cache, [], [length], [], [0, 0, 0], [heads, dynamic, d], [1, 1, 1]
    ).result


def _accumulate(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    return add(total, multiply(to_compute(a), to_compute(b)))


def _scores(query: ir.Value, keys: ir.Value, out: ir.Value, group: int) -> ir.Value:
    """query[i, h] . keys[h floordiv group, t] as [heads, n, length]."""
    head, row, key, column = (ir.AffineExpr.get_dim(i) for i in range(4))
    maps = [
        affine_map(4, [row, head, column]),
        affine_map(4, [ir.AffineExpr.get_floor_div(head, group), key, column]),
        affine_map(4, [head, row, key]),
    ]
    zero = fill(scalar(ir.ShapedType(out.type).element_type, 0), out)
    return generic([query, keys], [zero], maps, [PARALLEL] * 3 + [REDUCTION], _accumulate)[0]


def _scale_and_mask(op: AttentionOp, scores: ir.Value, position: ir.Value) -> ir.Value:
    scale = op.attributes["scale"].value
    causal = bool(op.attributes["causal"].value)

    def body(x: ir.Value, _: ir.Value) -> ir.Value:
        scaled = multiply(x, scalar(x.type, scale))
        if not causal:
            return scaled
        last = arith.AddIOp(position, linalg.IndexOp(1).result).result
        seen = arith.CmpIOp(arith.CmpIPredicate.sle, linalg.IndexOp(2).result, last).result
        return arith.SelectOp(seen, scaled, scalar(x.type, float("-inf"))).result

    identity = affine_map(3, [0, 1, 2])
    out = empty_like(scores)
    return generic([scores], [out], [identity, identity], [PARALLEL] * 3, body)[0]


def _softmax_rows(scores: ir.Value, heads: int, rows: int | ir.Value) -> ir.Value:
    """exp(x - max) / sum over the last of three dims."""
    compute = ir.ShapedType(scores.type).element_type
    identity, by_row = affine_map(3, [0, 1, 2]), affine_map(3, [0, 1])
    reduce_last = [PARALLEL, PARALLEL, REDUCTION]
    top = fill(scalar(compute, float("-inf")), empty([heads, rows], compute))
    top = generic([scores], [top], [identity, by_row], reduce_last, maximum)[0]

    def shifted_exp(x: ir.Value, m: ir.Value, _: ir.Value) -> ir.Value:
        return math.ExpOp(subtract(x, m)).result

    maps = [identity, by_row, identity]
    powers = generic([scores, top], [empty_like(scores)], maps, [PARALLEL] * 3, shifted_exp)[0]
    total = fill(scalar(compute, 0), empty([heads, rows], compute))
    total = generic([powers], [total], [identity, by_row], reduce_last, add)[0]
    return generic(
        [powers, total], [empty_like(scores)], maps, [PARALLEL] * 3, lambda x, t, _: divide(x, t)
    )[0]
