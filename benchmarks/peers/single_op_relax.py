"""This compiler: batch, length, height, width and counts of indices are symbols."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import single_op_cases
from worker import Prepared

import relax_mlir
from relax_mlir import decompositions
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType


class Operators:
    """Compiled for each case's settings, not for its sizes."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        executable = relax_mlir.compile(export(case), opt_level=3)
        executable.threads = self._threads
        given = single_op_cases.arguments(case)
        arrays = [x for name, x in given.items() if name not in single_op_cases.WEIGHTS]
        parameters = [x for name, x in given.items() if name in single_op_cases.WEIGHTS]
        if "main_params" in executable.functions:
            packed = executable["main_params"](*parameters)
            parameters = list(packed) if isinstance(packed, tuple) else [packed]
        main = executable["main"]
        result = main(*arrays, *parameters)
        if case["kernel"] == "unique":
            return Prepared(lambda: [main(*arrays, *parameters)])
        call = main.bind(*arrays, *parameters, results=[np.empty_like(result)])
        return Prepared(lambda: [call.run()])


def export(case: dict) -> str:
    """The operator as a module with one result."""
    given = single_op_cases.arguments(case)
    names = sorted(given, key=lambda name: name in single_op_cases.WEIGHTS)
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        types = []
        for name in names:
            element = ir.F32Type.get() if given[name].dtype == np.float32 else ir.Type.parse("i64")
            types.append(TensorType.make(_dims(case, name, given[name]), element).to_mlir())
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        count = sum(name not in single_op_cases.WEIGHTS for name in names)
        kind = ir.IntegerType.get_signless(64)
        main.attributes["graph.num_inputs"] = ir.IntegerAttr.get(kind, count)
        values = dict(zip(names, main.add_entry_block().arguments, strict=True))
        with ir.InsertionPoint(main.entry_block):
            result = _OPERATORS[case["kernel"]](**values, **case["settings"])
            func.ReturnOp([result])
        signature = ir.FunctionType.get(types, [result.type])
        main.attributes["function_type"] = ir.TypeAttr.get(signature)
        return str(module)


def _dims(case: dict, name: str, array: np.ndarray) -> Sequence[str | int]:
    """Symbols for all but extents of weights; images keep their channels."""
    shape = array.shape
    if name in single_op_cases.WEIGHTS:
        return shape
    if name in ("indices", "updates") and "count" in case["settings"]:
        return ["count", *shape[1:]]
    if case["kernel"] in ("lstm", "gru"):
        return ["t", "n", shape[2]]
    if case["kernel"] == "layer_norm":
        return ["n", shape[1]]
    if len(shape) == 4:
        return ["n", shape[1], "h", "w"]
    if "count" in case["settings"]:
        return ["n", *shape[1:]]
    return "mn"[2 - len(shape) :] if len(shape) <= 2 else shape


def _first(kind: Any, *operands: ir.Value, result: int = 0, **attributes) -> ir.Value:
    return kind.build(*operands, **attributes).operation.results[result]


def _sort(x, axis, descending=False, result=0):
    return _first(graph.SortOp, x, axis=axis, descending=descending, result=result)


def _scatter_elements(x, indices, updates, axis):
    return _first(graph.ScatterElementsOp, x, indices, updates, axis=axis, reduction="add")


def _scatter_nd(x, indices, updates, count):
    return _first(graph.ScatterNdOp, x, indices, updates, reduction="add")


def _scan(kind: Any, x, axis):
    return _first(kind, x, axis=axis, exclusive=False, reverse=False)


def _resize(x, mode):
    return decompositions.resize(x, [2, 3], scales=[2, 2], mode=mode)


def _depthwise(x, w, window, stride):
    channels = TensorType.of(x).dims[1].value
    padding = [window // 2] * 4
    return decompositions.conv(x, w, strides=[stride] * 2, padding=padding, groups=channels)


def _gru(x, w, r, bias, hidden):
    return decompositions.gru(x, w, r, bias=bias, linear_before_reset=True)[0]


_EPSILON: dict[str, Any] = {"epsilon": single_op_cases.EPSILON}
_OPERATORS: Mapping[str, Callable[..., ir.Value]] = {
    "sort": _sort,
    "argsort": partial(_sort, result=1),
    "topk": lambda x, k: _first(graph.TopkOp, x, k=[k], axis=-1, largest=True),
    "unique": lambda x, values: _first(graph.UniqueOp, x, axes=[], sorted=True),
    "cumsum": partial(_scan, graph.CumsumOp),
    "cumprod": partial(_scan, graph.CumprodOp),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "gather_elements": lambda x, indices, axis: _first(
        graph.GatherElementsOp, x, indices, axis=axis
    ),
    "gather_nd": lambda x, indices, count: _first(graph.GatherNdOp, x, indices, batch_dims=0),
    "take": lambda x, indices, count: _first(graph.TakeOp, x, indices, axis=0),
    "resize": _resize,
    "conv_transpose": lambda x, w, out, window, stride: decompositions.conv_transpose(
        x, w, strides=[stride] * 2
    ),
    "depthwise": _depthwise,
    "batch_norm": partial(decompositions.batch_norm, **_EPSILON),
    "group_norm": partial(decompositions.group_norm, **_EPSILON),
    "instance_norm": partial(decompositions.instance_norm, **_EPSILON),
    "layer_norm": partial(decompositions.layer_norm, **_EPSILON),
    "lstm": lambda x, w, r, bias, hidden: decompositions.lstm(x, w, r, bias=bias)[0],
    "gru": _gru,
}
