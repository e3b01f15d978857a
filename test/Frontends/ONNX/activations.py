# RUN: %PYTHON %s | FileCheck %s
"""Activations that models write out are operators."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

# CHECK:      kernels
# CHECK-NEXT:   1x gelu elementwise gelu node 'half' (Mul)
nodes = [
    helper.make_node("Div", ["x", "root"], ["a"], "divided"),
    helper.make_node("Erf", ["a"], ["b"], "erf"),
    helper.make_node("Add", ["b", "one"], ["c"], "sum"),
    helper.make_node("Mul", ["x", "c"], ["d"], "product"),
    helper.make_node("Mul", ["d", "two"], ["y"], "half"),
]
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])
y = helper.make_empty_tensor_value_info("y")
numbers = {"root": np.sqrt(2), "one": 1, "two": 0.5}
constants = [numpy_helper.from_array(np.float32(v), name) for name, v in numbers.items()]
graph = helper.make_graph(nodes, "graph", [x], [y], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
print(relax_mlir.explain(from_onnx(model)))
