"""Shapes of gradients: sums over what was broadcast, broadcasts of what was summed, zeros."""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir
from relax_mlir.decompositions.emit import (
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    reduce,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType, dims_equal
from relax_mlir.rewriting import retyped
from relax_mlir.symbolic import Expr, const, maximum

ONE = const(1)


def zeros_like(value: ir.Value) -> ir.Value:
    """Zeros of the dims and the element type of a tensor of known dims; of a scalar, 0."""
    if not isinstance(value.type, ir.ShapedType):
        return arith.ConstantOp(value.type, ir.FloatAttr.get(value.type, 0)).result
    return emit(graph.FullOp, scalar(0, element_of(value)), shape=dims_of(value))


def sum_to(value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """The sum over what broadcasting from the given dims to the tensor's has repeated.

    Where only run time can tell whether a dim n was repeated to reach r, it is summed in parts of
    r / n elements: all of them if n is 1, one by one if n is r.
    """
    lead = len(dims_of(value)) - len(dims)
    value = reduce(graph.SumOp, value, range(lead))
    own = dims_of(value)
    repeated = [i for i, dim in enumerate(dims) if dim == ONE != own[i]]
    value = reduce(graph.SumOp, value, repeated, keepdims=True)
    undecided = [
        i
        for i, dim in enumerate(dims)
        if i not in repeated and not dims_equal(dim, own[i]) and not _decides(own[i])
    ]
    if not undecided:
        return value
    split: list[Expr] = []
    sums: list[int] = []
    for i, (dim, reached) in enumerate(zip(dims, dims_of(value), strict=True)):
        split.append(dim)
        if i in undecided:
            sums.append(len(split))
            split.append(reached // maximum(dim, 1))
    return reduce(graph.SumOp, reshape(value, split), sums)


def _decides(dim: Expr) -> bool:
    """Whether a dim is one that others have to be equal to: a static one other than 1."""
    return dim.value is not None and dim != ONE


def fitted(gradient: ir.Value, value: ir.Value) -> ir.Value:
    """A gradient with the type of the tensor that it is of."""
    annotation = TensorType.of(value)
    known = graph.known_dims(annotation.dims)
    if known is not None and graph.known_dims(TensorType.of(gradient).dims) is not None:
        gradient = sum_to(gradient, known)
    if element_of(gradient) != annotation.element:
        gradient = emit(graph.AstypeOp, gradient, dtype=annotation.element)
    return retyped(gradient, value.type)


def spread(reduced: ir.Value, axes: Sequence[int], keepdims: bool, rank: int) -> ir.Value:
    """A result of a reduction so that it broadcasts to the operand: reduced dims are 1."""
    axes = graph.reduced_axes(axes, rank)
    return reduced if keepdims else expand_dims(reduced, axes)


def repeated_to(value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """The elements repeated to reach the dims; the tensor itself if it has them."""
    return value if dims_of(value) == tuple(dims) else broadcast_to(value, dims)
