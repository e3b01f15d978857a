"""The backend interface of ONNX: what its tools and tests run models by.

    rep = backend.prepare(model)
    outputs = rep.run([x, axes])

A model is compiled when it is run. Inputs that have to be known, such as axes, and those that say
dims, are constants: for other values of them it is compiled again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.dialects import make_context
from relax_mlir.errors import ModelError
from relax_mlir.source import Imported

from .importer import Wanted, import_model
from .reading import check, read
from .weights import Files


class RelaxRep(BackendRep):
    """A model that is compiled for the values that it is run with, where they have to be known."""

    def __init__(
        self, model: "onnx.ModelProto", dims: dict[str, int | str], **options: Any
    ) -> None:
        self.model, self.dims, self.options = model, dims, options
        own = {each.name for each in model.graph.initializer}
        self.inputs = [each.name for each in model.graph.input if each.name not in own]
        self.wanted = Wanted()
        self._functions: dict[tuple, Any] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on values for its inputs, in order or by name; returns its outputs."""
        if len(inputs) != len(self.inputs):
            raise ModelError(f"expects {len(self.inputs)} inputs, but got {len(inputs)}")
        named = inputs if isinstance(inputs, dict) else dict(zip(self.inputs, inputs))
        missing = [name for name in self.inputs if name not in named]
        if missing:
            raise ModelError(f"expects input '{missing[0]}', but got {', '.join(named)}")
        given = {name: named[name] for name in self.inputs}  # in the order of the function
        function, values = self._function(given)
        arguments = [
            tuple(each) if isinstance(each, list) else each
            for name, each in given.items()
            if name not in values or isinstance(each, list)
        ]
        outputs = function(*arguments)
        outputs = outputs if len(self.model.graph.output) != 1 else (outputs,)
        return tuple(list(each) if isinstance(each, tuple) else each for each in outputs)

    def _function(self, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What is compiled for these inputs, and the values that it was compiled for."""
        while True:
            values, dims = self._values(given), self._known_dims(given)
            key = (_key(values), tuple(sorted(dims.items())))
            if key in self._functions:
                return self._functions[key], values
            before, failure = len(self.wanted.values) + len(self.wanted.dims), None
            try:
                imported = self._import(values, dims)
            except ModelError as error:
                failure = error
            if len(self.wanted.values) + len(self.wanted.dims) == before:
                if failure is not None:
                    raise failure
                self._functions[key] = self._compiled(imported)

    def _values(self, given: dict[str, Any]) -> dict[str, Any]:
        """Values of inputs that have to be known, that are sequences, or absent."""
        return {
            name: each
            for name, each in given.items()
            if each is None or isinstance(each, list) or name in self.wanted.values
        }

    def _known_dims(self, given: dict[str, Any]) -> dict[tuple[str, int], int]:
        return {
            (name, axis): given[name].shape[axis]
            for name, axis in self.wanted.dims
            if isinstance(given[name], np.ndarray) and axis < given[name].ndim
        }

    def _import(self, values: dict[str, Any], dims: dict[tuple[str, int], int]) -> Imported:
        with make_context(), ir.Location.unknown():
            model = _with_dims(self.model, dims)
            return import_model(model, self.dims, (), values, self.wanted, Files(None))

    def _compiled(self, imported: Imported) -> Any:
        return compile(imported, **self.options)["main"]


def _with_dims(model: "onnx.ModelProto", known: dict[tuple[str, int], int]) -> "onnx.ModelProto":
    """A model with values for some dims of inputs, and for those of the same name."""
    if not known:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    positions = {each.name: each.type.tensor_type.shape.dim for each in result.graph.input}
    for (name, axis), value in known.items():
        text = positions[name][axis].dim_param
        for dims in positions.values():
            for dim in dims:
                if text and dim.dim_param == text:
                    dim.dim_value = value
        positions[name][axis].dim_value = value
    return result


def _key(values: dict[str, Any]) -> tuple:
    return tuple((name, _describe(each)) for name, each in sorted(values.items()))


def _describe(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple((each.dtype.str, each.ndim) for each in map(np.asarray, value))
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


class RelaxBackend(Backend):
    """Compiles models for CPUs."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> RelaxRep:
        """Checks a model; raises ModelError for what is not supported."""
        if not cls.supports_device(device):
            raise ModelError(f"is to run on '{device}', but is compiled for CPUs")
        proto = read(model)
        check(proto)
        return RelaxRep(proto, kwargs.pop("dims", {}), **kwargs)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Runs a model once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: "onnx.NodeProto",
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Runs one node once."""
        arrays = [np.asarray(each) for each in inputs]
        infos = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(node.input, arrays)
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        return cls.run_model(onnx.helper.make_model(graph, **kwargs), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it is a CPU."""
        return device == "CPU"


prepare = RelaxBackend.prepare
run_model = RelaxBackend.run_model
run_node = RelaxBackend.run_node
supports_device = RelaxBackend.supports_device
