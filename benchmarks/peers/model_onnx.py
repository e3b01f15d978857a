"""The models as ONNX models with symbolic dims, for the programs that read them."""

import math

import model_cases
import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

_TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64}


def export(case: dict) -> ModelProto:
    """The model of a case, for all sizes; weights are constants."""
    model = model_cases.model(case)
    ops = _Onnx()
    for name, array in model_cases.weights(case).items():
        ops.initializers.append(numpy_helper.from_array(array, name))
    inputs = [
        helper.make_tensor_value_info(name, _TYPES[dtype], dims)
        for name, (dims, dtype) in model.arguments.items()
    ]
    names = {name: name for name in (*model.arguments, *model.weights)}
    result = model.run(ops, names, names)
    output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
    graph = helper.make_graph(ops.nodes, case["model"], inputs, [output], ops.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


class _Onnx:
    """The operators of `model_cases` as nodes; values are names."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.initializers: list = []

    def _node(self, kind: str, *inputs: str, **attributes) -> str:
        name = f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, value, dtype=np.float32) -> str:
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def _reshape(self, x: str, *dims: int) -> str:
        return self._node("Reshape", x, self._constant(dims, np.int64))

    def add(self, a, b):
        return self._node("Add", a, b)

    def multiply(self, a, b):
        return self._node("Mul", a, b)

    def take(self, table, ids):
        return self._node("Gather", table, ids, axis=0)

    def first_rows(self, table, ids):
        count = self._node("Shape", ids, start=1, end=2)
        begin, axis = (self._constant([0], np.int64) for _ in range(2))
        return self._node("Slice", table, begin, count, axis)

    def linear(self, x, w, bias=None):
        """The matrix as MatMul takes it: [in, out]."""
        index = next(i for i, each in enumerate(self.initializers) if each.name == w)
        array = np.ascontiguousarray(numpy_helper.to_array(self.initializers[index]).T)
        self.initializers[index] = numpy_helper.from_array(array, w)
        y = self._node("MatMul", x, w)
        return y if bias is None else self.add(y, bias)

    def layer_norm(self, x, gain, bias):
        return self._node("LayerNormalization", x, gain, bias, epsilon=model_cases.EPSILON, axis=-1)

    def rms_norm(self, x, gain):
        """Its parts: programs know them better than the operator of opset 23."""
        squares = self._node("ReduceMean", self.multiply(x, x), self._constant([-1], np.int64))
        root = self._node("Sqrt", self.add(squares, self._constant(model_cases.EPSILON)))
        return self.multiply(self._node("Div", x, root), gain)

    def gelu(self, x):
        return self._node("Gelu", x)

    def silu(self, x):
        return self.multiply(x, self._node("Sigmoid", x))

    def relu(self, x):
        return self._node("Relu", x)

    def mask(self, mask, masked):
        added = self.multiply(self._node("Sub", self._constant(1), mask), self._constant(masked))
        return self._node("Unsqueeze", added, self._constant([1, 2], np.int64))

    def rotary(self, x, heads, cos, sin):
        x = self._reshape(x, 0, 0, heads, -1)
        names = [f"value_{len(self.nodes)}_{i}" for i in range(2)]
        self.nodes.append(helper.make_node("Split", [x], names, axis=3, num_outputs=2))
        rotated = self._node("Concat", self._node("Neg", names[1]), names[0], axis=3)
        axes = self._constant([1], np.int64)
        cos, sin = (self._node("Unsqueeze", each, axes) for each in (cos, sin))
        return self._reshape(self.add(self.multiply(x, cos), self.multiply(rotated, sin)), 0, 0, -1)

    def attention(self, q, k, v, heads, kv_heads, d, mask):
        q, k, v = (
            self._reshape(each, 0, 0, count, -1)
            for each, count in ((q, heads), (k, kv_heads), (v, kv_heads))
        )
        q, k, v = (
            self._node("Transpose", each, perm=perm)
            for each, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3]))
        )
        if heads > kv_heads:
            k, v = (self._repeated(each, heads // kv_heads) for each in (k, v))
        scores = self.multiply(self._node("MatMul", q, k), self._constant(1 / math.sqrt(d)))
        if mask == "causal":
            mask = self._causal(scores)
        scores = self._node("Softmax", self.add(scores, mask), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", scores, v), perm=[0, 2, 1, 3])
        return self._reshape(mixed, 0, 0, -1)

    def _repeated(self, x: str, count: int) -> str:
        """Each head of x[b, heads, ...] so many times."""
        x = self._node("Unsqueeze", x, self._constant([2], np.int64))
        x = self._node("Expand", x, self._constant([1, 1, count, 1, 1], np.int64))
        shape = self._node("Shape", x)
        ends = [self._constant([i], np.int64) for i in (0, 1, 3, 5)]
        first = self._node("Slice", shape, ends[0], ends[1])
        last = self._node("Slice", shape, ends[2], ends[3])
        dims = self._node("Concat", first, self._constant([-1], np.int64), last, axis=0)
        return self._node("Reshape", x, dims)

    def _causal(self, scores: str) -> str:
        """-inf where a key comes after its query, else 0."""
        square = self._node("Shape", scores, start=2, end=4)
        least = numpy_helper.from_array(np.array([-np.inf], np.float32))
        full = self._node("ConstantOfShape", square, value=least)
        return self._node("Trilu", full, self._constant(1, np.int64), upper=1)

    def conv(self, x, w, bias, stride, pad):
        inputs = [x, w] if bias is None else [x, w, bias]
        return self._node("Conv", *inputs, strides=[stride] * 2, pads=[pad] * 4)

    def batch_norm(self, x, gain, bias, mean, variance):
        return self._node(
            "BatchNormalization", x, gain, bias, mean, variance, epsilon=model_cases.EPSILON
        )

    def max_pool(self, x):
        return self._node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
