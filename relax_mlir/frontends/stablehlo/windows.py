"""The windows of a tensor, along any axes."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, arange, dims_of, emit, expand_dims, permute
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError
from relax_mlir.symbolic import Expr, Fact, as_expr, at_most, bounds, const, maximum


def count_of(dim: Expr, size: Expr | int, stride: int, dilation: int) -> Expr:
    """How many windows there are along a dim; none if it is shorter than one."""
    extent = (as_expr(size) - 1) * dilation + 1
    count = (dim - extent) // stride + 1
    low, _ = bounds(count)
    return count if low is not None and low >= 0 else maximum(count, 0)


def windows(
    x: ir.Value, sizes: Sequence[Expr | int], strides: Sequence[int], dilation: Sequence[int]
) -> ir.Value:
    """[windows along each axis..., size along each axis...]: the elements of windows."""
    rank = len(sizes)
    for axis in reversed(range(rank)):
        x = taken(x, axis, sizes[axis], strides[axis], dilation[axis])
    return permute(x, [*(2 * i + 1 for i in range(rank)), *(2 * i for i in range(rank))])


def taken(x: ir.Value, axis: int, size: Expr | int, stride: int, dilation: int) -> ir.Value:
    """The windows along an axis, which becomes two: of elements, and of windows."""
    dim = dims_of(x)[axis]
    if as_expr(size) == const(1) and stride == 1:
        return expand_dims(x, [axis])
    _require(dim, (as_expr(size) - 1) * dilation + 1)
    i64 = ir.IntegerType.get_signless(64)
    steps = expand_dims(arange(0, as_expr(size), dilation, i64), [1])
    starts = arange(0, count_of(dim, size, stride, dilation), stride, i64)
    return emit(graph.TakeOp, x, add(steps, expand_dims(starts, [0])), axis=axis)


def _require(dim: Expr, extent: Expr) -> None:
    """Refuses tensors that are smaller than one window, which have no element to take."""
    fits = at_most(extent, dim)
    if dim.value is not None and extent.value is not None and not fits.proved:
        raise ShapeError(f"has a window of {extent} elements, but a dim of {dim}")
    if not fits.proved:
        RequireOp.build([Fact(extent, "<=", dim)], "@windows")
