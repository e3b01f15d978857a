"""Quantised tensors."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    divide,
    element_of,
    emit,
    multiply,
    reshape,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr

from ...elements import mlir_element
from ..node import Node
from ..registry import Value, operator
from ..types import element_name
from .convolution import geometry, spatial_size
from .windows import windows_of


@operator("QuantizeLinear")
def quantize_linear(node: Node) -> ir.Value:
    """Elements as multiples of a scale."""
    name = "ui8" if node.value(2) is None else node.element(2)
    if node.attribute("output_dtype", 0):
        name = element_name(node.attribute("output_dtype"))
    element, x = mlir_element(name), node.tensor(0)
    scale, zero, axis = _scales(node)
    if not node.attribute("block_size", 0):
        return d.quantize_linear(x, scale, zero, element=element, axis=axis)
    steps = emit(graph.RoundOp, divide(x, scale))
    if zero is not None:
        steps = add(steps, astype(zero, element_of(steps)))
    return d.quantize_linear(steps, scalar(1, element_of(steps)), element=element)


@operator("DequantizeLinear")
def dequantize_linear(node: Node) -> ir.Value:
    """Multiples of a scale as elements."""
    x = node.tensor(0)
    scale, zero, axis = _scales(node)
    if node.attribute("block_size", 0):
        steps = astype(x, element_of(scale))
        if zero is not None:
            steps = subtract(steps, astype(zero, element_of(scale)))
        y = multiply(steps, scale)
    else:
        y = d.dequantize_linear(x, scale, zero, axis=axis)
    if node.attribute("output_dtype", 0):
        y = astype(y, mlir_element(element_name(node.attribute("output_dtype"))))
    return y


def _scales(node: Node) -> tuple[ir.Value, ir.Value | None, int]:
    """Scales, zero points and their axis: of the tensor, of each index, or of each block."""
    values = [node.tensor(1), node.optional(2)]
    block = node.attribute("block_size", 0)
    if block:
        axis = node.axis(1)
        extent = node.dims(0)[axis]
        own = [None if each is None else _repeated(each, block, extent, axis) for each in values]
    else:
        axis = node.attribute("axis", 1)
        own = [None if each is None else _single(each) for each in values]
        axis = axis if -node.rank() <= axis < node.rank() else 0
    scale, zero = own
    assert scale is not None
    return scale, zero, axis


def _single(value: ir.Value) -> ir.Value:
    """A vector of one element as that."""
    dims = graph.TensorType.of(value).dims
    return reshape(value, []) if dims is not None and list(dims) == [1] else value


def _repeated(value: ir.Value, block: int, extent: Expr, axis: int) -> ir.Value:
    whole = emit(graph.RepeatOp, value, repeats=[block], axis=axis)
    return emit(graph.StridedSliceOp, whole, axes=[axis], begin=[0], end=[extent], strides=[1])


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> tuple[Value, ...]:
    """Elements as multiples of a scale that follows from their range."""
    return d.dynamic_quantize_linear(node.tensor(0))


@operator("MatMulInteger")
def matmul_integer(node: Node) -> ir.Value:
    """A product of integers."""
    operands = node.tensor(0), node.tensor(1), node.optional(2), node.optional(3)
    return d.matmul_integer(*operands)


@operator("MatMulIntegerToFloat", domain="com.microsoft")
def matmul_integer_to_float(node: Node) -> ir.Value:
    """A product of integers, by scales."""
    a, b, a_scale, b_scale = (node.tensor(i) for i in range(4))
    product = d.matmul_integer(a, b, node.optional(4), node.optional(5))
    result = multiply(astype(product, element_of(a_scale)), multiply(a_scale, b_scale))
    return emit(graph.AddOp, result, node.tensor(6)) if node.value(6) is not None else result


@operator("QLinearMatMul")
def qlinear_matmul(node: Node) -> ir.Value:
    """A product of quantised matrices."""
    return d.qlinear_matmul(*(node.tensor(i) for i in range(8)))


@operator("QLinearConv")
def qlinear_conv(node: Node) -> ir.Value:
    """A convolution of quantised tensors."""
    windows = windows_of(node, spatial_size(node, 3), node.dims(0)[2:])
    if windows.before is not None:
        raise ModelError("has padding that depends on dims, which is not supported here")
    x, x_scale, x_zero, weight, weight_scale, weight_zero, y_scale, y_zero = node.tensors()[:8]
    return d.qlinear_conv(
        x,
        x_scale,
        x_zero,
        weight,
        weight_scale,
        weight_zero,
        y_scale,
        y_zero,
        node.optional(8),
        **geometry(node, windows),
    )
