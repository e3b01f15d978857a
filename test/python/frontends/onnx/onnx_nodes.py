"""Builds small models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT, INT64, BOOL = (onnx.TensorProto.DataType.Value(n) for n in ("FLOAT", "INT64", "BOOL"))


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node of operands and results by names, `-` for one that is absent."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    kinds: Mapping[str, int] | None = None,
    opset: int = 21,
) -> Any:
    """A model of nodes; inputs are of f32, or of another kind."""
    kinds = kinds or {}
    values = [
        helper.make_tensor_value_info(name, kinds.get(name, FLOAT), dims)
        for name, dims in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    initializers = [
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in (constants or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "graph", values, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def graph(
    nodes: Sequence[Any], inputs: Mapping[str, tuple[int, Any]], outputs: Sequence[str]
) -> Any:
    """A graph of a node: inputs are pairs of a kind and dims."""
    values = [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    return helper.make_graph(list(nodes), "inner", values, results)
