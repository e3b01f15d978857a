"""Operators that slide a window over the last two dims: convolution and pooling."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import at_most

from .assumed import assume
from .elementwise import require_float, require_number, require_one_element_type
from .op import InferredOp, IntsAttr
from .types import Dim, ShapeError, TensorType, dims_differ


class Conv2dOp(InferredOp, name="nn_conv2d", traits=[ext.Pure]):
    """Sums of products of a window of the input with each of `o` filters.

        input : tensor<n, groups * c, h, w>    weight : tensor<o, c, kh, kw>
        result[i, f, y, x] = sum over j, u, v of weight[f, j, u, v]
            * input[i, g * c + j, y * strides[0] + u * dilation[0] - top,
                                  x * strides[1] + v * dilation[1] - left]

    with g = f floordiv (o / groups); outside of the input there are zeros. `padding` is top, left,
    bottom, right. A result dim is (h + top + bottom - (kh - 1) * dilation[0] - 1) floordiv
    strides[0] + 1, and likewise for w.

    C1  both operands have rank 4
    C2  both operands have one element type, a float
    C3  strides and dilation are two positive numbers, the padding is four that are not negative
    C4  the filters' height and width are positive constants
    C5  the input has `groups` times as many channels as a filter
    C6  the groups divide the number of filters, which is a constant if there are several
    C7  the padded input is not provably smaller than a filter by a stride or more

    An attribute `graph.fastmath` may hold the flags of its arithmetic: with `reassoc`, `nnan` and
    `ninf`, equal expressions of finite numbers will do.

    Source: TVM `relax.nn.conv2d`, layouts NCHW and OIHW.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    weight: ext.Operand[Any]
    strides: IntsAttr
    padding: IntsAttr
    dilation: IntsAttr
    groups: ir.IntegerAttr

    @staticmethod
    def infer_return_type(
        input: TensorType,
        weight: TensorType,
        strides: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
    ) -> TensorType:
        _require_images(input)  # C1
        _require_images(weight)
        require_one_element_type(input, weight)  # C2
        require_float(input)
        _require_window(strides, padding, dilation)  # C3
        if input.dims is None or weight.dims is None:
            return TensorType(None, input.element)
        filters, channels, *window = weight.dims
        sizes = [_constant(size, "a filter of constant height and width") for size in window]  # C4
        _require_groups(input.dims[1], channels, filters, groups)  # C5, C6
        rows, columns = _slide(input.dims[2:], sizes, strides, padding, dilation)  # C7
        return TensorType((input.dims[0], filters, rows, columns), input.element)


class _PoolOp(InferredOp, traits=[ext.Pure]):
    """Combines the elements of each window."""

    result: ext.Result[Any]
    input: ext.Operand[Any]
    window: IntsAttr
    strides: IntsAttr
    padding: IntsAttr
    dilation: IntsAttr

    @staticmethod
    def infer_return_type(
        input: TensorType,
        window: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> TensorType:
        """C1: rank 4; C2: no truth values; C3: positive integers; C4: the window fits."""
        _require_images(input)
        require_number(input)
        _require_pair("window", window)
        _require_window(strides, padding, dilation)
        if input.dims is None:
            return input
        rows, columns = _slide(input.dims[2:], window, strides, padding, dilation)
        return TensorType((*input.dims[:2], rows, columns), input.element)


class MaxPool2dOp(_PoolOp, name="nn_max_pool2d"):
    """The greatest element of each window; NaN if there is one.

        input : tensor<n, c, h, w>    result : tensor<n, c, y, x>

    Windows lie as those of `nn_conv2d`; what is outside of the input is left out. A window without
    an element of the input gives the least number of the type.

    C1  the input has rank 4
    C2  the element type is a number
    C3  the window is two positive numbers, and so are strides and dilation; the padding is four
        that are not negative
    C4  the padded input is not provably smaller than the window by a stride or more

    Source: TVM `relax.nn.max_pool2d`, layout NCHW, without `ceil_mode`.
    """


class SumPool2dOp(_PoolOp, name="nn_sum_pool2d"):
    """The sum of the elements of each window; integers wrap.

        input : tensor<n, c, h, w>    result : tensor<n, c, y, x>

    Windows lie as those of `nn_conv2d`; outside of the input there are zeros.

    C1  the input has rank 4
    C2  the element type is a float or an integer
    C3  window, strides and dilation are two positive integers each, the padding is four that are
        not negative
    C4  the padded input is not provably smaller than the window by a stride or more

    Source: StableHLO `reduce_window`; averages of TVM `relax.nn.avg_pool2d` are quotients of it.
    """


def _require_images(annotation: TensorType) -> None:
    if annotation.dims is not None and len(annotation.dims) != 4:
        raise ShapeError(f"expects operands of rank 4, but got '{annotation}'")


def _require_pair(name: str, values: Sequence[int]) -> None:
    if len(values) != 2 or min(values) < 1:
        raise ShapeError(f"expects '{name}' to be two positive numbers, but got {list(values)}")


def _require_window(
    strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> None:
    _require_pair("strides", strides)
    _require_pair("dilation", dilation)
    if len(padding) != 4 or min(padding) < 0:
        raise ShapeError(
            f"expects 'padding' to be four numbers that are not negative, but got {list(padding)}"
        )


def _constant(dim: Dim, what: str) -> int:
    if dim is None or dim.value is None or dim.value < 1:
        raise ShapeError(f"expects {what}, but got {'?' if dim is None else dim}")
    return dim.value


def _require_groups(inputs: Dim, channels: Dim, filters: Dim, groups: int) -> None:
    if groups < 1:
        raise ShapeError(f"expects one group or more, but got {groups}")
    if channels is not None and dims_differ(inputs, channels * groups):
        raise ShapeError(
            f"expects {channels * groups} channels, {channels} for each of {groups} groups, "
            f"but got {inputs}"
        )
    if groups > 1 and _constant(filters, "a constant number of filters") % groups:
        raise ShapeError(f"expects groups to divide the filters, but got {groups} and {filters}")


def _slide(
    sizes: Sequence[Dim],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[Dim]:
    """The number of places of a window along each dim."""
    dims: list[Dim] = []
    for axis, size in enumerate(sizes):
        if size is None:
            dims.append(None)
            continue
        padded = size + padding[axis] + padding[axis + 2]
        extent = (window[axis] - 1) * dilation[axis] + 1
        if at_most(padded + strides[axis] + 1, extent).proved:
            raise ShapeError(f"slides a window of {extent} over {padded} elements")
        assume(extent, "<=", padded + strides[axis])
        dims.append((padded - extent) // strides[axis] + 1)
    return dims
