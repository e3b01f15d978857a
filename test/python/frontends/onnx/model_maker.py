"""A model that grows by random nodes, which ONNX Runtime computes, or the reference of `onnx`."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

EXTENTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9)
MAX_ELEMENTS = 20_000
DOMAINS = {"com.microsoft": 1}

Arrays = dict[str, np.ndarray]
Recipe = Callable[["Maker"], "Sequence[str] | None"]
"""Adds a node by `Maker.node`; None where no value fits."""

RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Callable[["Maker", str], Any]], Any]:
    """Registers a function that adds a node of one of several operators."""

    def register(function: Callable[["Maker", str], Any]) -> Any:
        for name in names:
            RECIPES[name] = lambda maker, name=name: function(maker, name)
        return function

    return register


@dataclass
class Maker:
    """A model that grows by nodes, with the value of each tensor for one set of inputs.

    `fixed` are the inputs whose dims are known; `grows` says that no dim may be smaller.
    """

    rng: random.Random
    opset: int
    inputs: Arrays = field(default_factory=dict)
    constants: Arrays = field(default_factory=dict)
    values: Arrays = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    grows: bool = False
    _names: Any = field(default_factory=itertools.count)

    def fresh(self, prefix: str) -> str:
        """A new name."""
        return f"{prefix}{next(self._names)}"

    def extent(self) -> int:
        """A random extent, seldom zero."""
        return self.rng.choice(EXTENTS if self.rng.random() < 0.3 else EXTENTS[1:])

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """A random shape of a rank within bounds."""
        return [self.extent() for _ in range(self.rng.randint(low, high))]

    def array(self, shape: Sequence[int], dtype: Any = "f4") -> np.ndarray:
        """Random elements: few digits, so that sums and products are exact."""
        kind = np.dtype(dtype).kind
        bounds = {"b": (0, 1), "u": (0, 9), "i": (-5, 5), "f": (-8, 8)}[kind]
        count = int(np.prod(shape))
        elements = np.array([self.rng.randint(*bounds) for _ in range(count)], np.int64)
        scaled = elements / 4 if kind == "f" else elements
        return scaled.astype(dtype).reshape(shape)

    def input(self, array: np.ndarray) -> str:
        """A new input of the model."""
        name = self.fresh("x")
        self.inputs[name] = self.values[name] = array
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """A new constant."""
        name = self.fresh("c")
        self.constants[name] = self.values[name] = np.asarray(array, dtype)
        return name

    def new(self, shape: Sequence[int], dtype: Any = "f4") -> str:
        """A tensor of a shape: an input, seldom a constant."""
        array = self.array(shape, dtype)
        return self.constant(array) if self.rng.random() < 0.2 else self.input(array)

    def weight(self, shape: Sequence[int], dtype: Any = "f4") -> str:
        """A tensor of a shape that is known: an input or a constant."""
        name = self.new(shape, dtype)
        self.fixed.add(name)
        return name

    def any(self, ranks: tuple[int, int] = (0, 4), dtypes: str = "f4") -> str:
        """A tensor of a rank and one of several dtypes: an earlier result or a new one."""
        kinds = [np.dtype(each) for each in dtypes.split()]
        fits = [
            name
            for name, value in self.values.items()
            if value.dtype in kinds
            and ranks[0] <= value.ndim <= ranks[1]
            and name not in self.constants
            and is_finite(value)
        ]
        if fits and self.rng.random() < 0.75:
            return fits[-1] if self.rng.random() < 0.5 else self.rng.choice(fits)
        return self.new(self.shape(*ranks), self.rng.choice(kinds))

    def dims(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.values[name].shape

    def rank(self, name: str) -> int:
        """The rank of a tensor."""
        return self.values[name].ndim

    def axis(self, name: str) -> int:
        """An axis of a tensor, also from the back."""
        return self.rng.randrange(-self.rank(name), self.rank(name))

    def maybe(self, **attributes: Any) -> dict[str, Any]:
        """Some of several attributes."""
        return {name: value for name, value in attributes.items() if self.rng.random() < 0.5}

    def like(self, name: str) -> str:
        """A tensor of the same dtype whose dims broadcast with those of another."""
        dims = list(self.dims(name))
        dims = [dim if self.rng.random() < 0.8 else 1 for dim in dims]
        dims = dims[self.rng.randint(0, len(dims)) if self.rng.random() < 0.3 else 0 :]
        return self.new(dims, self.values[name].dtype)

    def node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Adds a node, whose results the reference computes; raises what that raises."""
        results = [self.fresh("y") for _ in range(outputs)]
        made = helper.make_node(op, list(inputs), results, domain=domain, **attributes)
        given = {name: self.values[name] for name in inputs if name}
        found = reference(model_of([made], given, {}, results, self.opset, None), given)
        if any(np.size(each) > MAX_ELEMENTS for each in found):
            raise ValueError("large")
        self.nodes.append(made)
        self.values.update(zip(results, map(np.asarray, found), strict=True))
        return results


def model_of(
    nodes: Sequence[Any],
    inputs: Arrays,
    constants: Arrays,
    outputs: Sequence[str],
    opset: int,
    dims: Callable[[str, int, int], int | str] | None,
) -> Any:
    """A model; `dims` gives the dim of an input by its name, axis and extent."""
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(value.dtype),
            [dims(name, i, n) if dims else n for i, n in enumerate(value.shape)],
        )
        for name, value in inputs.items()
    ]
    graph = helper.make_graph(
        list(nodes),
        "random",
        infos,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    domains = {"": opset, **DOMAINS}
    ids = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=ids, ir_version=10)


def is_finite(value: np.ndarray) -> bool:
    """Whether it has neither infinities nor NaNs, with which operators do as they like."""
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())


@cache
def runtime() -> Any:
    """ONNX Runtime; None without it."""
    try:
        import onnxruntime
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


def reference(model: Any, inputs: Arrays) -> list[np.ndarray]:
    """The outputs of a model."""
    if runtime() is None:
        from onnx.reference import ReferenceEvaluator

        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, inputs)
    options = runtime().SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime().GraphOptimizationLevel.ORT_DISABLE_ALL
    bytes_ = model.SerializeToString()
    session = runtime().InferenceSession(bytes_, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)
