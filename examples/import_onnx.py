"""Compiles an ONNX model once, for batches of any size.

pip install 'relax-mlir[onnx]'
python examples/import_onnx.py
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx


def classifier() -> bytes:
    """A file's contents: a layer, flattened by a shape that is computed from the input's."""
    x = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 8, 8])
    y = helper.make_tensor_value_info("classes", TensorProto.FLOAT, None)
    weight = np.random.default_rng(0).standard_normal((64, 10), np.float32)
    nodes = [
        helper.make_node("Shape", ["images"], ["rows"], start=0, end=1),
        helper.make_node("Concat", ["rows", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["images", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weight"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["classes"]),
    ]
    constants = {"weight": weight, "rest": np.array([-1])}
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "classifier", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString()


def main() -> None:
    """Prints the signature, in which the batch is a symbol, and the shapes of three results."""
    exe = relax_mlir.compile(from_onnx(classifier(), dims={"batch": "n"}))
    print(exe["main"])
    for n in (1, 3, 16):
        classes = exe["main"](images=np.ones((n, 1, 8, 8), np.float32))
        print(f"n = {n}: {classes.shape}")


if __name__ == "__main__":
    main()
