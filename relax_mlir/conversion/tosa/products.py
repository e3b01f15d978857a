"""Products of matrices, convolutions and pooling; images are NHWC, filters OHWI.

Integers are exact: less their zero points they are summed up in the type of the result, those of
convolutions in f64, which holds any sum of products of 8 bits.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.decompositions import avg_pool, conv, conv_transpose, max_pool
from relax_mlir.decompositions.convolution import pad_zeros
from relax_mlir.decompositions.emit import (
    add,
    astype,
    element_of,
    emit,
    permute,
    rank_of,
    reshape,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType

from ..function import Conversion
from ..registry import converts
from .constants import integer_of, require_propagation


def _ints(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _result_element(op: ir.Operation) -> ir.Type:
    return ir.RankedTensorType(op.results[0].type).element_type


def _without_zero_point(
    value: ir.Value, zero: ir.Value | None, element: ir.Type, what: str
) -> ir.Value:
    """The elements in another type, less their zero point."""
    offset = 0
    if zero is not None and isinstance(element_of(value), ir.IntegerType):
        offset = integer_of(zero, what)
    wider = astype(value, element)
    return subtract(wider, offset) if offset else wider


@converts("tosa.matmul")
def matmul(conversion: Conversion, op: ir.Operation) -> None:
    """Products of matrices."""
    element = _result_element(op)
    zeros: list[ir.Value | None] = [*list(op.operands)[2:], None, None]
    a, b = (
        _without_zero_point(conversion.value(value), zero, element, "a zero point")
        for value, zero in zip(list(op.operands)[:2], zeros)
    )
    first, second = (conversion.dims(each)[0] for each in list(op.operands)[:2])
    conversion.same(second, first, "matrices")
    result = emit(graph.MatmulOp, a, b)
    _, *dims = TensorType.of(result).dims or ()
    result.set_type(TensorType((first, *dims), element).to_mlir())
    conversion.define(op, result)


def _axes(rank: int) -> tuple[list[int], list[int]]:
    """The permutations to channels in second position, and back."""
    return [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]


def _convolved(
    conversion: Conversion, op: ir.Operation, compute: Callable[[ir.Value, ir.Value], ir.Value]
) -> None:
    """A convolution of images with channels in second position, and the bias."""
    source, weight, bias = (conversion.value(each) for each in list(op.operands)[:3])
    zeros: list[ir.Value | None] = [*list(op.operands)[3:], None, None]
    element, exact = _result_element(op), element_of(source)
    if isinstance(exact, ir.IntegerType):
        if exact.width != 8 or str(element) != "i32":
            raise ShapeError(f"convolves {exact} to {element}; expects i8 to i32, or floats")
        exact = ir.F64Type.get()
    elif str(element) == "f32":
        exact = element
    parts = [
        _without_zero_point(value, zero, exact, "a zero point")
        for value, zero in zip((source, weight), zeros)
    ]
    forth, back = _axes(rank_of(source))
    result = permute(compute(permute(parts[0], forth), parts[1]), back)
    conversion.define(op, add(astype(result, element), astype(bias, element)))


def _padding(op: ir.Operation) -> list[int]:
    """The padding in front of each spatial dim, then after each."""
    pad = _ints(op, "pad")
    return [*pad[::2], *pad[1::2]]


@converts("tosa.conv2d", "tosa.conv3d")
def convolution(conversion: Conversion, op: ir.Operation) -> None:
    """A convolution of two or three dims."""
    strides, padding, dilation = _ints(op, "stride"), _padding(op), _ints(op, "dilation")

    def compute(images: ir.Value, filters: ir.Value) -> ir.Value:
        forth, _ = _axes(rank_of(filters))
        own = permute(filters, forth)
        return conv(images, own, strides=strides, padding=padding, dilation=dilation)

    _convolved(conversion, op, compute)


@converts("tosa.depthwise_conv2d")
def depthwise(conversion: Conversion, op: ir.Operation) -> None:
    """A convolution of each channel by filters of its own, [h, w, channels, filters of each]."""
    height, width, channels, each = conversion.dims(op.operands[1])
    groups = channels.value
    if groups is None:
        raise ShapeError(f"has {channels} channels; expects a constant")
    strides, padding, dilation = _ints(op, "stride"), _padding(op), _ints(op, "dilation")

    def compute(images: ir.Value, filters: ir.Value) -> ir.Value:
        own = reshape(permute(filters, [2, 3, 0, 1]), [channels * each, 1, height, width])
        return conv(images, own, strides=strides, padding=padding, dilation=dilation, groups=groups)

    _convolved(conversion, op, compute)


@converts("tosa.transpose_conv2d")
def transposed(conversion: Conversion, op: ir.Operation) -> None:
    """The gradient of a convolution by its images, with rows and columns added or taken off."""
    top, bottom, left, right = _ints(op, "out_pad")

    def compute(images: ir.Value, filters: ir.Value) -> ir.Value:
        own = permute(filters, [3, 0, 1, 2])
        whole = conv_transpose(images, own, strides=_ints(op, "stride"))
        return pad_zeros(whole, [2, 3], [top, left], [bottom, right])

    _convolved(conversion, op, compute)


def _pooled(
    conversion: Conversion, op: ir.Operation, pool: Callable[..., ir.Value], window: Sequence[int]
) -> None:
    forth, back = _axes(4)
    images = permute(conversion.value(op.operands[0]), forth)
    pooled = pool(images, window, strides=_ints(op, "stride"), padding=_padding(op))
    conversion.define(op, permute(pooled, back))


@converts("tosa.max_pool2d")
def max_pooled(conversion: Conversion, op: ir.Operation) -> None:
    """The greatest elements of windows."""
    require_propagation(op)
    _pooled(conversion, op, max_pool, _ints(op, "kernel"))


@converts("tosa.avg_pool2d")
def averaged(conversion: Conversion, op: ir.Operation) -> None:
    """Averages of windows, without their padding."""
    element = _result_element(op)
    if isinstance(element, ir.IntegerType):
        raise ShapeError(f"averages elements of {element}; expects floats")
    _pooled(conversion, op, avg_pool, _ints(op, "kernel"))
