"""Poolings."""

from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, element_of, emit, reshape, scalar
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import const, product

from ..node import Node
from ..registry import Value, operator
from .convolution import with_padding
from .manipulation import padded
from .windows import windows_of


@operator("MaxPool")
def max_pool(node: Node) -> Value | tuple[Value, ...]:
    """The greatest element of each window, and where it is."""
    windows = windows_of(node, node.required("kernel_shape"), node.dims(0)[2:])
    x = node.tensor(0)
    if windows.before is not None:
        low, high = ([const(0), const(0), *ends] for ends in windows.before)
        element = element_of(x)
        x = padded(x, low, high, "constant", scalar(d.emit.least(element), element))
    settings: dict[str, Any] = {
        "strides": windows.strides,
        "padding": windows.padding,
        "dilation": windows.dilation,
        "ceil_mode": node.flag("ceil_mode"),
    }
    if not node.wants(1):
        return d.max_pool(x, windows.size, **settings)
    if windows.before is not None:
        raise ModelError("has padding that depends on dims, with indices, which is not supported")
    y, indices = d.max_pool_with_indices(x, windows.size, **settings)
    n, c, *spatial = node.dims(0)
    i64 = ir.IntegerType.get_signless(64)
    indices = astype(indices, i64)
    planes = reshape(d.emit.arange(0, n * c, 1, i64), [n, c, *[1] * len(spatial)])
    if node.flag("storage_order"):
        indices = _by_columns(indices, [*spatial])
    whole = reshape(d.emit.symbol(product(spatial), i64), [])
    return y, d.emit.add(indices, d.emit.multiply(planes, whole))


def _by_columns(indices: ir.Value, spatial: list) -> ir.Value:
    """Indices of elements in column-major order."""
    i64 = ir.IntegerType.get_signless(64)
    result, rest = None, indices
    for axis in reversed(range(len(spatial))):
        extent = reshape(d.emit.symbol(spatial[axis], i64), [])
        at = emit(graph.RemainderOp, rest, extent)
        rest = d.emit.floor_divide(rest, extent)
        stride = reshape(d.emit.symbol(product(spatial[:axis]), i64), [])
        part = d.emit.multiply(at, stride)
        result = part if result is None else d.emit.add(result, part)
    assert result is not None
    return result


@operator("AveragePool")
def average_pool(node: Node) -> ir.Value:
    """The mean of each window."""
    windows = windows_of(node, node.required("kernel_shape"), node.dims(0)[2:])
    x, include = node.tensor(0), node.flag("count_include_pad")
    settings: dict[str, Any] = {"strides": windows.strides, "dilation": windows.dilation}
    if windows.before is None:
        return d.avg_pool(
            x,
            windows.size,
            padding=windows.padding,
            ceil_mode=node.flag("ceil_mode"),
            count_include_pad=include,
            **settings,
        )
    widened = with_padding(node, x, windows)
    if include:
        return d.avg_pool(widened, windows.size, **settings)
    ones = emit(
        graph.FullOp, scalar(1, element_of(x)), shape=[const(1), const(1), *node.dims(0)[2:]]
    )
    count = d.sum_pool(with_padding(node, ones, windows), windows.size, **settings)
    return emit(graph.DivideOp, d.sum_pool(widened, windows.size, **settings), count)


@operator("LpPool")
def lp_pool(node: Node) -> ir.Value:
    """The norm of each window."""
    windows = windows_of(node, node.required("kernel_shape"), node.dims(0)[2:])
    return d.lp_pool(
        with_padding(node, node.tensor(0), windows),
        windows.size,
        p=int(node.attribute("p", 2)),
        strides=windows.strides,
        padding=windows.padding,
        dilation=windows.dilation,
        ceil_mode=node.flag("ceil_mode"),
    )


@operator("GlobalAveragePool")
def global_average_pool(node: Node) -> ir.Value:
    """The mean of each channel."""
    return d.global_avg_pool(node.tensor(0))


@operator("GlobalMaxPool")
def global_max_pool(node: Node) -> ir.Value:
    """The greatest element of each channel."""
    return d.global_max_pool(node.tensor(0))


@operator("GlobalLpPool")
def global_lp_pool(node: Node) -> ir.Value:
    """The norm of each channel."""
    return d.global_lp_pool(node.tensor(0), int(node.attribute("p", 2)))


@operator("MaxUnpool")
def max_unpool(node: Node) -> ir.Value:
    """Elements where they were before a pooling, 0 elsewhere."""
    x, indices = node.tensor(0), node.tensor(1)
    spatial = node.dims(0)[2:]
    windows = windows_of(node, node.required("kernel_shape"), spatial)
    count = len(windows.size)
    sizes = [
        (dim - 1) * windows.strides[i]
        + windows.size[i]
        - windows.padding[i]
        - windows.padding[count + i]
        for i, dim in enumerate(spatial)
    ]
    result = d.max_unpool(x, indices, sizes, flat=True)
    if node.value(2) is None:
        return result
    more = [whole - own for whole, own in zip(node.exprs(2, "dims")[-count:], sizes, strict=True)]
    low = [const(0)] * (count + 2)
    return padded(result, low, [*low[:2], *more], "constant", scalar(0, element_of(x)))
