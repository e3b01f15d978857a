"""Neural-network operators on whole tensors: activations and normalisations (TVM `nn`)."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .elementwise import FloatUnaryOp, UnaryOp, require_float, require_one_element_type
from .manipulate import normalize_axis
from .op import InferredOp
from .types import ShapeError, TensorType, dims_differ


class ReluOp(UnaryOp, name="nn_relu"):
    """The element, or 0 if it is negative.

    C1  the element type is a number (integer or float)
    """


class SiluOp(FloatUnaryOp, name="nn_silu"):
    """x * sigmoid(x), which goes to -0 at -infinity.

    C1  the element type is a float

    Source: arXiv 1702.03118.
    """


class GeluOp(FloatUnaryOp, name="nn_gelu"):
    """x * erfc(-x / sqrt(2)) / 2, which goes to -0 at -infinity.

    C1  the element type is a float

    Source: arXiv 1606.08415.
    """


class GeluTanhOp(FloatUnaryOp, name="nn_gelu_tanh"):
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, which goes to -0 at -infinity.

    C1  the element type is a float

    Source: arXiv 1606.08415, section 2.
    """


class SoftmaxOp(InferredOp, name="nn_softmax", traits=[ext.Pure]):
    """exp(x - max) / sum(exp(x - max)) along one axis.

    C1  the axis is in range
    C2  the element type is a float
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, axis: int) -> TensorType:
        require_float(input)  # C2
        if input.dims is not None:
            normalize_axis(axis, len(input.dims))  # C1
        return input


class LogSoftmaxOp(InferredOp, name="nn_log_softmax", traits=[ext.Pure]):
    """x - max - log(sum(exp(x - max))) along one axis: the logarithm of the softmax.

    C1  the axis is in range
    C2  the element type is a float

    Source: ONNX `LogSoftmax`; TVM `relax.nn.log_softmax`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, axis: int) -> TensorType:
        require_float(input)  # C2
        if input.dims is not None:
            normalize_axis(axis, len(input.dims))  # C1
        return input


class RmsNormOp(InferredOp, name="nn_rms_norm", traits=[ext.Pure]):
    """x / sqrt(mean(x^2) + epsilon) * weight over the last dim.

    C1  both operands have one element type, a float
    C2  the weight has rank 1
    C3  the weight's dim is not provably different from the last dim
    C4  the input has rank 1 or more

    Source: arXiv 1910.07467.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    weight: ext.Operand[Any]
    epsilon: ir.FloatAttr

    @staticmethod
    def infer_return_type(input: TensorType, weight: TensorType, epsilon: float) -> TensorType:
        _require_norm_parameters(input, weight)
        return input


class LayerNormOp(InferredOp, name="nn_layer_norm", traits=[ext.Pure]):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last dim.

    C1  all operands have one element type, a float
    C2  weight and bias have rank 1
    C3  their dim is not provably different from the last dim
    C4  the input has rank 1 or more

    Source: arXiv 1607.06450.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    weight: ext.Operand[Any]
    bias: ext.Operand[Any]
    epsilon: ir.FloatAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, weight: TensorType, bias: TensorType, epsilon: float
    ) -> TensorType:
        _require_norm_parameters(input, weight, bias)
        return input


def _require_norm_parameters(input: TensorType, *parameters: TensorType) -> None:
    require_one_element_type(input, *parameters)  # C1
    require_float(input)
    if input.dims == ():  # C4
        raise ShapeError(f"expects an input of rank 1 or more, but got '{input}'")
    for parameter in parameters:
        if parameter.dims is not None and len(parameter.dims) != 1:  # C2
            raise ShapeError(f"expects parameters of rank 1, but got '{parameter}'")
        if not input.dims or not parameter.dims:
            continue
        if dims_differ(parameter.dims[0], input.dims[-1]):  # C3
            raise ShapeError(
                f"normalises dim {input.dims[-1]} with a parameter of dim {parameter.dims[0]}"
            )
