# RUN: %PYTHON %s | FileCheck %s
"""Explanations of imported models name inputs and nodes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

# CHECK-LABEL: @main
# CHECK:      symbols
# CHECK-NEXT:   rows dim 0 of 'x'
# CHECK-NEXT:   nonzero count that graph.nonzero finds
# CHECK:      facts, checked at each call
# CHECK-NEXT:   rows <= 64 given
# CHECK:      dims that no expression gives
# CHECK-NEXT:   {{.*}}node 'chosen' (NonZero)
# CHECK:      constants
# CHECK-NEXT:   {{[0-9]+}} bytes
# CHECK:      kernels
# CHECK-NEXT:   1x fused_matmul_relu_packed matmul matmul, relu node 'clipped' (Relu)
nodes = [
    helper.make_node("MatMul", ["x", "w"], ["h"], "product"),
    helper.make_node("Relu", ["h"], ["r"], "clipped"),
    helper.make_node("NonZero", ["r"], ["y"], "chosen"),
]
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])
y = helper.make_empty_tensor_value_info("y")
w = numpy_helper.from_array(np.arange(96, dtype=np.float32).reshape(8, 12), "w")
graph = helper.make_graph(nodes, "graph", [x], [y], [w])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
print(relax_mlir.explain(from_onnx(model, facts=["rows <= 64"])))
