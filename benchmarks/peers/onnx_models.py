"""The cases as ONNX models, for the programs that read them; weights are constants."""

from collections.abc import Sequence

import cases
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "int32": TensorProto.INT32,
          "int64": TensorProto.INT64}  # fmt: skip


def model(case: dict) -> tuple[ModelProto, list[np.ndarray]]:
    """A model with static shapes, and what it is called with.

    Raises NotImplementedError for what ONNX has no operators for.
    """
    x, *others = cases.inputs(case)
    m, n = case["m"], case["n"]
    if case["kernel"] == "matmul":
        if case["dtype"] == "q8_0":
            raise NotImplementedError("no products by blocks of 32")
        w = np.ascontiguousarray(others[0].T)
        is_integer = case["dtype"] == "int8"
        node = helper.make_node("MatMulInteger" if is_integer else "MatMul", ["x", "w"], ["y"])
        return _model([node], [x], {"w": w}, (m, n), "int32" if is_integer else "float32"), [x]
    nodes, shape, dtype = _nodes(case)
    if case["kernel"] == "eltwise":
        half = {"half": np.array(0.5, np.float32)}
        return _model(nodes, [x, *others], half, shape, dtype), [x, *others]
    constants = dict(zip(("w", "b"), others, strict=False))
    return _model(nodes, [x], {**constants, **_CONSTANTS.get(case["kernel"], {})}, shape, dtype), [
        x
    ]


_CONSTANTS = {
    "sum_of_columns": {"axes": np.array([0])},
    "sum_of_rows": {"axes": np.array([1])},
}


def _nodes(case: dict) -> tuple[list[NodeProto], tuple[int, ...], str]:
    """Nodes, the result's shape and its type."""
    m, n = case["m"], case["n"]
    node = helper.make_node
    epsilon = {"epsilon": cases.EPSILON, "axis": -1}
    known = {
        "softmax": ([node("Softmax", ["x"], ["y"], axis=1)], (m, n)),
        "softmax_of_columns": ([node("Softmax", ["x"], ["y"], axis=0)], (m, n)),
        "rms_norm": ([node("RMSNormalization", ["x", "w"], ["y"], **epsilon)], (m, n)),
        "layer_norm": ([node("LayerNormalization", ["x", "w", "b"], ["y"], **epsilon)], (m, n)),
        "eltwise": (
            [
                node("Sigmoid", ["x"], ["s"]),
                node("Mul", ["x", "s"], ["silu"]),
                node("Mul", ["silu", "u"], ["gated"]),
                node("Mul", ["x", "half"], ["halved"]),
                node("Add", ["gated", "halved"], ["y"]),
            ],
            (m, n),
        ),
        "gelu": ([node("Gelu", ["x"], ["y"], approximate="tanh")], (m, n)),
        "sum_of_columns": ([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], (n,)),
        "sum_of_rows": ([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], (m,)),
        "transpose": ([node("Transpose", ["x"], ["y"], perm=[1, 0])], (n, m)),
    }
    if case["kernel"] == "argmax":
        return [node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], (m,), "int64"
    return (*known[case["kernel"]], "float32")


def _model(
    nodes: Sequence[NodeProto],
    arguments: Sequence[np.ndarray],
    constants: dict[str, np.ndarray],
    shape: Sequence[int],
    dtype: str,
) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, _TYPES[array.dtype.name], array.shape)
        for name, array in zip("xu", arguments, strict=False)
    ]
    output = helper.make_tensor_value_info("y", _TYPES[dtype], shape)
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "case", inputs, [output], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
