"""Attributes of operators with windows: strides, padding, dilation, auto_pad."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const, maximum

from ..node import Node


@dataclass(frozen=True)
class Windows:
    """Of each spatial dim; `before` is padding that depends on dims, in front of the operator."""

    size: list[int]
    strides: list[int]
    dilation: list[int]
    padding: list[int]
    before: tuple[list[Expr], list[Expr]] | None


def windows_of(node: Node, size: Sequence[int], dims: Sequence[Expr]) -> Windows:
    """The attributes of a node, for windows of a size on spatial dims."""
    count = len(size)
    strides = node.attribute("strides") or [1] * count
    dilation = node.attribute("dilations") or [1] * count
    padding = node.attribute("pads") or [0] * (2 * count)
    mode = node.attribute("auto_pad", "NOTSET")
    if not len(dims) == len(strides) == len(dilation) == len(padding) // 2 == count:
        raise ModelError(f"has windows of {count} dims for {len(dims)} spatial dims")
    if mode == "VALID":
        padding = [0] * (2 * count)
    if mode in ("NOTSET", "VALID"):
        return Windows(list(size), strides, dilation, padding, None)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"has auto_pad '{mode}'")
    low, high = [], []
    for extent, stride, dilated, dim in zip(size, strides, dilation, dims, strict=True):
        whole = (extent - 1) * dilated + 1
        if stride == 1:
            total = const(whole - 1)
        else:
            total = maximum(((dim + (stride - 1)) // stride - 1) * stride + whole - dim, 0)
        less = total // 2
        low.append(less if mode == "SAME_UPPER" else total - less)
        high.append(total - less if mode == "SAME_UPPER" else less)
    if all(each.value is not None for each in (*low, *high)):
        fixed = [each.constant for each in (*low, *high)]
        return Windows(list(size), strides, dilation, fixed, None)
    return Windows(list(size), strides, dilation, [0] * (2 * count), (low, high))


def spatial_size(node: Node, weight: int = 1) -> list[int]:
    """The windows of a convolution: its attribute, or the dims of its weight."""
    given = node.attribute("kernel_shape")
    if given:
        return given
    dims = node.dims(weight)[2:]
    if any(dim.value is None for dim in dims):
        raise ModelError("has weights of unknown dims, which is not supported")
    return [dim.constant for dim in dims]
