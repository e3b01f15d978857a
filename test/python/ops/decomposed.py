"""Builds functions of decompositions, and interprets them.

run = Decomposed(lambda x: elu(x, alpha=0.5), spec("f32", "n", 3))
run(x)                                         # any n, built once
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import NUMPY, Spec
from operator_cases import Case

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context

_CONTEXT = make_context()
Build = Callable[..., ir.Value | Sequence[ir.Value]]


def add_decomposition(module: ir.Module, name: str, build: Build, specs: Sequence[Spec]) -> None:
    """Adds a function around what `build` makes of its arguments."""
    types = [
        graph.TensorType.make(item.dims, ir.Type.parse(item.dtype)).to_mlir() for item in specs
    ]
    with ir.InsertionPoint(module.body):
        main = func.FuncOp(name, (types, []))
        block = main.add_entry_block()
    with ir.InsertionPoint(block):
        built = build(*block.arguments)
        results = [built] if isinstance(built, ir.Value) else list(built)
        func.ReturnOp(results)
    outs = [value.type for value in results]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, outs))


def module_of(functions: Mapping[str, tuple[Build, Sequence[Spec]]]) -> str:
    """The text of a module with a function for each name."""
    with _CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        for name, (build, specs) in functions.items():
            add_decomposition(module, name, build, specs)
        assert module.operation.verify()
        return str(module)


class Decomposed:
    """A function of one decomposition; calls take arrays in operand order."""

    def __init__(self, build: Build, *specs: Spec) -> None:
        self._specs = specs
        self._main = relax_mlir.interpret(module_of({"main": (build, specs)}))["main"]

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Runs it; returns one array, or a tuple of them."""
        for item, array in zip(self._specs, arrays, strict=True):
            assert array.dtype == NUMPY[item.dtype], (array.dtype, item)
        return self._main(*arrays)


@dataclass(frozen=True)
class Decomposition:
    """A function, the annotations of its operands, and the interval of their elements."""

    name: str
    build: Callable[..., Any]
    specs: Sequence[Spec]
    low: float = -3
    high: float = 3

    @property
    def case(self) -> Case:
        """What makes operands and compares results."""
        return Case(None, self.specs, {}, None, self.low, self.high)
