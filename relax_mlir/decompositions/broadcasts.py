"""Operators that undo broadcasting, or are element-wise: collapse_sum_to, ewise_fma."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, dims_equal, exact_dims
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import const

from .emit import add, dims_of, multiply, reduce


def collapse_sum_to(value: ir.Value, dims: Sequence[Dim | int | str]) -> ir.Value:
    """The sum over what broadcasting to the tensor's dims from the given ones would repeat.

    Raises ShapeError where it cannot be told whether a dim is repeated. Source: TVM
    `relax.collapse_sum_to`.
    """
    target, own = exact_dims(as_dims(dims)), dims_of(value)
    lead = len(own) - len(target)
    if lead < 0:
        raise ShapeError(f"has rank {len(own)}, which no sum brings to {len(target)}")
    axes = []
    for axis, dim in enumerate(target):
        if dims_equal(dim, own[lead + axis]):
            continue
        if dim != const(1):
            raise ShapeError(f"cannot tell whether dim {own[lead + axis]} is a repeated {dim}")
        axes.append(axis)
    return reduce(graph.SumOp, reduce(graph.SumOp, value, range(lead)), axes, keepdims=True)


def collapse_sum_like(value: ir.Value, other: ir.Value) -> ir.Value:
    """`collapse_sum_to` the dims of another tensor. Source: TVM `relax.collapse_sum_like`."""
    return collapse_sum_to(value, dims_of(other))


def ewise_fma(x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """x * y + z. Source: TVM `relax.ewise_fma`."""
    return add(multiply(x, y), z)
