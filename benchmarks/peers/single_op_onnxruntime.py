"""ONNX Runtime, its CPU provider: one node, with static shapes and weights as constants."""

from typing import Any

import numpy as np
import onnxruntime
import single_op_cases
from onnx import TensorProto, helper, numpy_helper
from worker import Prepared

_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


class Operators:
    """One session each, whose arguments are bound once; results are its own."""

    version = onnxruntime.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        given = single_op_cases.arguments(case)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            _model(case, given), options, ["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        for argument in session.get_inputs():
            binding.bind_cpu_input(argument.name, given[argument.name])
        result = session.get_outputs()[0].name
        binding.bind_output(result)

        def run() -> list:
            session.run_with_iobinding(binding)
            return binding.get_outputs()

        return Prepared(run, finish=lambda value: value.numpy(), retained=given)


def _model(case: dict, given: dict[str, np.ndarray]) -> bytes:
    constants, node = _node(case, given)
    constants |= {name: x for name, x in given.items() if name in single_op_cases.WEIGHTS}
    inputs = [
        helper.make_tensor_value_info(name, _TYPES[x.dtype.name], x.shape)
        for name, x in given.items()
        if name not in constants
    ]
    kind = TensorProto.INT64 if case["kernel"] == "argsort" else TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    initializers = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    graph = helper.make_graph([node], "case", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def _node(case: dict, given: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], Any]:
    """Constants, and the node whose result y is compared."""
    kernel, settings, dims = case["kernel"], case["settings"], case["dims"]
    make = helper.make_node
    if kernel in ("sort", "argsort", "topk"):
        axis = settings.get("axis", -1)
        largest = int(kernel == "topk" or settings.get("descending", False))
        outs = ["other", "y"] if kernel == "argsort" else ["y", "other"]
        count = {"k": np.array([settings.get("k", dims[axis])])}
        return count, make("TopK", ["x", "k"], outs, axis=axis, largest=largest)
    if kernel == "cumsum":
        return {"axis": np.array(settings["axis"])}, make("CumSum", ["x", "axis"], ["y"])
    if kernel == "resize":
        sizes = {"sizes": np.array([*dims[:2], 2 * dims[2], 2 * dims[3]])}
        names = ["x", "", "", "sizes"]
        return sizes, make("Resize", names, ["y"], mode=settings["mode"])
    if kernel in ("lstm", "gru"):
        own = {"linear_before_reset": 1} if kernel == "gru" else {}
        hidden = settings["hidden"]
        return {}, make(kernel.upper(), ["x", "w", "r", "bias"], ["y"], hidden_size=hidden, **own)
    if kernel not in _NODES:
        raise NotImplementedError(f"no {kernel}")
    name, attributes = _NODES[kernel]
    groups = {"group": dims[1]} if kernel == "depthwise" else {}
    return {}, make(name, list(given), ["y"], **attributes(**settings), **groups)


def _plain(**_: Any) -> dict[str, Any]:
    return {}


def _added(axis: int | None = None, **_: Any) -> dict[str, Any]:
    return {"reduction": "add"} | ({} if axis is None else {"axis": axis})


def _epsilon(**_: Any) -> dict[str, Any]:
    return {"epsilon": single_op_cases.EPSILON}


_NODES: dict[str, tuple[str, Any]] = {
    "unique": ("Unique", _plain),
    "scatter_elements": ("ScatterElements", _added),
    "scatter_nd": ("ScatterND", _added),
    "gather_elements": ("GatherElements", lambda axis: {"axis": axis}),
    "gather_nd": ("GatherND", _plain),
    "take": ("Gather", _plain),
    "conv_transpose": ("ConvTranspose", lambda out, window, stride: {"strides": [stride] * 2}),
    "depthwise": (
        "Conv",
        lambda window, stride: {"strides": [stride] * 2, "pads": [window // 2] * 4},
    ),
    "batch_norm": ("BatchNormalization", _epsilon),
    "group_norm": ("GroupNormalization", lambda groups: {"num_groups": groups, **_epsilon()}),
    "instance_norm": ("InstanceNormalization", _epsilon),
    "layer_norm": ("LayerNormalization", _epsilon),
}
