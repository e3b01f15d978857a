"""Products with the quantised weights of a GGUF file, for a float32 model of ONNX Runtime.

    Q8_0   W = d q        x W = MatMulNBits(x; d, q)
    Q4_1   W = d q + m    x W = MatMulNBits(x; d, q) + (sums of 32 neighbours of x) (m + 8 d)

MatMulNBits takes d (q - 8) in 4 bits, and its zero points are integers, which m / d is not.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from peers.weight_blocks import BLOCK, blocks_of

ACCURACY_INT8 = 4
"""Activations are rounded to 8 bits in blocks, as in the builder's own quantised models."""


def convert(source: Path, target: Path) -> None:
    """Writes the model of one file, quantised, to another, with its data in a file next to it."""
    model = onnx.load(str(source))
    quantise(model)
    onnx.save(model, str(target), save_as_external_data=True, location=target.name + ".data")


def quantise(model: onnx.ModelProto) -> None:
    """Gives each product with constant weights its blocks; raises ValueError if it has none."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    rewriter = _Rewriter()
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            rewriter.product(node, numpy_helper.to_array(constants[node.input[1]]))
        elif node.op_type == "Transpose" and node.input[0] in constants:
            table = numpy_helper.to_array(constants[node.input[0]]).T
            rewriter.constant(node.output[0], np.ascontiguousarray(table))
        else:
            rewriter.nodes.append(node)
    used = {name for node in rewriter.nodes for name in node.input}
    used_tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(rewriter.nodes)
    graph.initializer.extend([*used_tensors, *rewriter.constants])


class _Rewriter:
    """The nodes and new constants of the quantised graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._sums: dict[str, str] = {}

    def constant(self, name: str, array: np.ndarray) -> str:
        """Adds a constant of that name, and returns it."""
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def product(self, node: onnx.NodeProto, weights: np.ndarray) -> None:
        """Adds what computes a product with weights [k, n]."""
        x, name = node.input
        blocks = blocks_of(weights.T, name)
        elements = self.constant(f"{name}_blocks", blocks.packed)
        scales = self.constant(f"{name}_scales", blocks.scales.reshape(-1))
        attributes = {"bits": blocks.bits, "block_size": BLOCK, "accuracy_level": ACCURACY_INT8}
        attributes["K"], attributes["N"] = weights.shape
        words = [x, elements, scales]
        scaled = node.output[0] if blocks.offsets is None else f"{node.output[0]}_scaled"
        domain = "com.microsoft"
        self.nodes.append(
            helper.make_node("MatMulNBits", words, [scaled], domain=domain, **attributes)
        )
        if blocks.offsets is not None:
            rows = np.ascontiguousarray((blocks.offsets + 8 * blocks.scales).T)
            words = [self._sums_of(x, len(weights)), self.constant(f"{name}_offsets", rows)]
            product = f"{node.output[0]}_product"
            self.nodes.append(helper.make_node("MatMul", words, [product]))
            self.nodes.append(helper.make_node("Add", [scaled, product], node.output))

    def _sums_of(self, x: str, k: int) -> str:
        """The sums of blocks of x[batch, tokens, k], which products of the same x share."""
        if x not in self._sums:
            self._sums[x] = f"{x}_sums"
            shape = self.constant(f"{x}_shape", np.array([0, 0, k // BLOCK, BLOCK], np.int64))
            axes = self.constant(f"{x}_axes", np.array([-1], np.int64))
            words = [f"{x}_blocks", axes]
            self.nodes += [
                helper.make_node("Reshape", [x, shape], [f"{x}_blocks"]),
                helper.make_node("ReduceSum", words, [f"{x}_sums"], keepdims=0),
            ]
        return self._sums[x]
