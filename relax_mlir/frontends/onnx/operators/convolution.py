"""Convolutions, also transposed, of integers and with offsets."""

from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import element_of, scalar
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import const

from ..node import Node
from ..registry import operator
from .manipulation import padded
from .windows import Windows, spatial_size, windows_of


def with_padding(node: Node, x: ir.Value, windows: Windows) -> ir.Value:
    """A tensor with the padding that depends on its dims."""
    if windows.before is None:
        return x
    low, high = ([const(0), const(0), *ends] for ends in windows.before)
    return padded(x, low, high, "constant", scalar(0, element_of(x)))


def geometry(node: Node, windows: Windows) -> dict[str, Any]:
    """How windows move, as decompositions take it."""
    return {
        "strides": windows.strides,
        "padding": windows.padding,
        "dilation": windows.dilation,
        "groups": node.attribute("group", 1),
    }


@operator("Conv")
def conv(node: Node) -> ir.Value:
    """Sums over windows, by weights."""
    windows = windows_of(node, spatial_size(node), node.dims(0)[2:])
    return d.conv(
        with_padding(node, node.tensor(0), windows),
        node.tensor(1),
        node.optional(2),
        **geometry(node, windows),
    )


@operator("ConvInteger")
def conv_integer(node: Node) -> ir.Value:
    """The same of integers, less zero points."""
    windows = windows_of(node, spatial_size(node), node.dims(0)[2:])
    if windows.before is not None:
        raise ModelError("has padding that depends on dims, which is not supported here")
    return d.conv_integer(
        node.tensor(0),
        node.tensor(1),
        node.optional(2),
        node.optional(3),
        **geometry(node, windows),
    )


@operator("ConvTranspose")
def conv_transpose(node: Node) -> ir.Value:
    """The transposed convolution."""
    dims, size = node.dims(0)[2:], spatial_size(node)
    strides = node.attribute("strides") or [1] * len(size)
    dilation = node.attribute("dilations") or [1] * len(size)
    more = node.attribute("output_padding") or [0] * len(size)
    padding = node.attribute("pads") or [0] * (2 * len(size))
    mode, wanted = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape")
    if wanted:
        wanted = wanted[-len(size) :]
    if mode == "VALID":
        padding = [0] * (2 * len(size))
    if wanted or mode in ("SAME_UPPER", "SAME_LOWER"):
        low, high = [], []
        for i, dim in enumerate(dims):
            target = const(wanted[i]) if wanted else dim * strides[i]
            whole = (dim - 1) * strides[i] + more[i] + (size[i] - 1) * dilation[i] + 1
            total = whole - target
            if total.value is None:
                raise ModelError("has padding that depends on dims, which is not supported here")
            more[i] += max(-total.constant, 0)
            count = max(total.constant, 0)
            less = count // 2
            upper = mode == "SAME_UPPER"
            low.append(less if upper else count - less)
            high.append(count - less if upper else less)
        padding = [*low, *high]
    return d.conv_transpose(
        node.tensor(0),
        node.tensor(1),
        node.optional(2),
        strides=strides,
        padding=padding,
        output_padding=more,
        dilation=dilation,
        groups=node.attribute("group", 1),
    )


@operator("DeformConv")
def deform_conv(node: Node) -> ir.Value:
    """A convolution at positions with offsets."""
    windows = windows_of(node, spatial_size(node), node.dims(0)[2:])
    return d.deform_conv2d(
        node.tensor(0),
        node.tensor(2),
        node.tensor(1),
        node.optional(3),
        node.optional(4),
        **geometry(node, windows),
        offset_groups=node.attribute("offset_group", 1),
    )
