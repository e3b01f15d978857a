"""Parts of tensors in other dims: center_crop_pad, as_strided."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, RequireOp, ShapeError
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, Fact, at_most, const, maximum, product

from .emit import (
    add,
    arange,
    dims_of,
    element_of,
    emit,
    expand_dims,
    multiply,
    rank_of,
    reshape,
    scalar,
    symbol,
)


def center_crop_pad(
    x: ir.Value, sizes: Sequence[Dim | int | str], axes: Sequence[int] | None = None
) -> ir.Value:
    """The middle of some axes, or the tensor in the middle of zeros, in the given sizes.

    Of an odd difference the half that is further is one more. Source: ONNX `CenterCropPad`.
    """
    rank, exact = rank_of(x), graph.exact_dims(as_dims(sizes))
    along = [graph.normalize_axis(axis, rank) for axis in axes or range(rank)]
    if len(set(along)) != len(along) or len(along) != len(exact):
        raise ShapeError(f"has {len(exact)} sizes for axes {along}")
    low, high = [const(0)] * rank, [const(0)] * rank
    for axis, size in zip(along, exact):
        dim = dims_of(x)[axis]
        low[axis] = maximum(size - dim, 0) // 2 - maximum(dim - size, 0) // 2
        high[axis] = size - dim - low[axis]
    zero = scalar(0, element_of(x))
    widths = {"low": low, "high": high, "interior": [0] * rank}
    padded = emit(graph.PadOp, x, zero, mode="constant", **widths)
    wanted = [exact[along.index(i)] if i in along else dim for i, dim in enumerate(dims_of(x))]
    return reshape(padded, wanted)


def as_strided(
    x: ir.Value,
    sizes: Sequence[Dim | int | str],
    strides: Sequence[Dim | int | str],
    offset: Dim | int | str = 0,
) -> ir.Value:
    """Element (i, j, ...) is that at offset + i * strides[0] + ... in row-major order.

    Strides are 0 or more. Source: ATen `as_strided`.
    """
    exact, steps = (graph.exact_dims(as_dims(each)) for each in (sizes, strides))
    (start,) = graph.exact_dims(as_dims([offset]))
    if len(exact) != len(steps):
        raise ShapeError(f"has {len(exact)} sizes, but {len(steps)} strides")
    if any(each.value is not None and each.value < 0 for each in (start, *steps)):
        raise ShapeError(f"expects an offset and strides of 0 or more, but got {start} and {steps}")
    last, elements = start, product(dims_of(x))
    for size, step in zip(exact, steps):
        last = last + (size - 1) * step
    if all(size.value != 0 for size in exact):
        _require_below(last, elements)
    i64 = ir.IntegerType.get_signless(64)
    index = reshape(symbol(start, i64), [])
    for axis, (size, step) in enumerate(zip(exact, steps)):
        along = multiply(arange(0, size, 1, i64), reshape(symbol(step, i64), []))
        index = add(index, expand_dims(along, [i for i in range(len(exact)) if i != axis]))
    return emit(graph.TakeOp, reshape(x, [elements]), index, axis=0)


def _require_below(last: Expr, count: Expr) -> None:
    """Refuses an index that is not below a count, at once or when it runs."""
    inside = at_most(last + 1, count)
    if last.value is not None and count.value is not None and not inside.proved:
        raise ShapeError(f"reads element {last} of {count}")
    if not inside.proved:
        RequireOp.build([Fact(last + 1, "<=", count)], "as_strided")
