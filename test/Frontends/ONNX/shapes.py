# RUN: %PYTHON %s | FileCheck %s
"""Shape arithmetic becomes expressions; branches and loops become regions."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from relax_mlir.frontends.onnx import from_onnx


def show(nodes, inputs, output, constants, kinds=()):
    """Prints the module of a model."""
    kinds = dict(kinds)
    values = [
        helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), dims)
        for name, dims in inputs.items()
    ]
    arrays = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    outputs = [helper.make_empty_tensor_value_info(output)]
    graph = helper.make_graph(nodes, "graph", values, outputs, arrays)
    opset = helper.make_opsetid("", 21)
    print(from_onnx(helper.make_model(graph, opset_imports=[opset])).module)


# CHECK-LABEL: func.func @main
# CHECK-SAME: {graph.name = "x"}
# CHECK-NEXT: graph.reshape
# CHECK-SAME: shape = #graph.shape<["batch", "3*length"]>
# CHECK-NEXT: return
show(
    [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["dims"], axis=0),
        helper.make_node("Reshape", ["x", "dims"], ["y"]),
    ],
    {"x": ["batch", 3, "length"]},
    "y",
    {"zero": np.array([0]), "rest": np.array([-1])},
)

# A large constant is a parameter, a small one is written.
# CHECK-LABEL: func.func @main
# CHECK-SAME: %arg1: tensor<17xf32> {graph.name = "constant_0"}
# CHECK: arith.constant dense<1.000000e+00> : tensor<f32>
# CHECK: "graph.add"(%arg0, %{{.*}}) :
# CHECK: "graph.multiply"(%{{.*}}, %arg1) :
show(
    [
        helper.make_node("Add", ["x", "one"], ["a"]),
        helper.make_node("Mul", ["a", "w"], ["y"]),
    ],
    {"x": ["n", 17]},
    "y",
    {"one": np.array(1, np.float32), "w": np.ones(17, np.float32)},
)

# CHECK-LABEL: func.func @main
# CHECK: scf.if %{{.*}} -> (tensor<?xf32>) {
# CHECK: "graph.concat"
# CHECK: scf.yield
# CHECK: } else {
# CHECK: "graph.negative"
show(
    [
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=helper.make_graph(
                [helper.make_node("Concat", ["x", "x"], ["a"], axis=0)],
                "yes",
                [],
                [helper.make_empty_tensor_value_info("a")],
            ),
            else_branch=helper.make_graph(
                [helper.make_node("Neg", ["x"], ["b"])],
                "no",
                [],
                [helper.make_empty_tensor_value_info("b")],
            ),
        )
    ],
    {"c": [], "x": ["n"]},
    "y",
    {},
    {"c": TensorProto.BOOL},
)
