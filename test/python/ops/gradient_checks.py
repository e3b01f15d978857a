"""Compares the gradients of a module's loss with differences of the loss itself, interpreted.

The loss is a sum of results times weights of their own, in f64, so that no two elements of a
gradient can be exchanged unnoticed. Each argument moves in random directions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from harness import _CONTEXT, FLOATS, NUMPY, Spec, _symbols

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import add, multiply
from relax_mlir.decompositions.emit import reduce as reduced
from relax_mlir.dialects import graph
from relax_mlir.passes import Pipeline

BEFORE = "relax-infer-shapes,relax-inline-functions,relax-name-dims"
AFTER = "relax-verify,relax-state-assumptions"
DIRECTIONS = 2
STEP = 1e-6


class Gradients:
    """A function of a loss with its gradients; `text` is the module that has both."""

    def __init__(self, module: ir.Module, options: str = "") -> None:
        self.text = str(module)
        Pipeline.parse(f"{BEFORE},relax-gradient{options},{AFTER}").run(module, verify=True)
        self.adjoint_text = str(module)
        functions = relax_mlir.interpret(module)
        self.loss, self.adjoint = functions["main"], functions["main_adjoint"]

    def check(self, *arrays: Any, seed: int = 0, tolerance: float = 1e-6) -> None:
        """Raises AssertionError unless gradients are those of the differences."""
        loss, gradients = results_of(self.adjoint(*arrays))
        np.testing.assert_allclose(loss, results_of(self.loss(*arrays))[0], rtol=1e-12)
        random = np.random.default_rng(seed)
        moving = [i for i, a in enumerate(arrays) if is_float(a)]
        assert len(gradients) == len(moving)
        for i, gradient in zip(moving, gradients, strict=True):
            assert gradient.shape == arrays[i].shape
            assert gradient.dtype == arrays[i].dtype
            for _ in range(DIRECTIONS if gradient.size and np.isfinite(loss) else 0):
                direction = random.standard_normal(gradient.shape)
                expected = self._difference(arrays, i, direction)
                scale = max(1, np.linalg.norm(gradient) * np.sqrt(gradient.size))
                actual = float(np.vdot(gradient, direction))
                assert abs(actual - expected) <= tolerance * scale, (i, actual, expected)

    def _difference(self, arrays: Sequence[Any], index: int, direction: np.ndarray) -> float:
        """The slope of the loss along a direction of one argument."""
        ends = []
        for step in (STEP, -STEP):
            moved = list(arrays)
            moved[index] = arrays[index] + step * direction
            ends.append(results_of(self.loss(*moved))[0])
        return float(ends[0] - ends[1]) / (2 * STEP)


def is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"


def results_of(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def loss_of(
    build: Callable[..., Any], specs: Sequence[Spec], **attributes: Any
) -> "Weighted | None":
    """A loss over the floats that a function of graph values returns; None if there are none.

    They are of an element type that operands have, and their dims do not depend on data.
    """
    free = sorted(
        _symbols(specs, attributes)
        - {dim for item in specs for dim in item.dims if isinstance(dim, str)}
    )
    with _CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        types = [_type(item) for item in specs]
        types += [graph.shape_value_type(free)] if free else []
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            values = build(*list(block.arguments)[: len(specs)])
            values = values if isinstance(values, list | tuple) else [values]
            floats = {item.dtype for item in specs if item.dtype in FLOATS}
            values = [v for v in values if str(graph.TensorType.of(v).element) in floats]
            values = [v for v in values if graph.TensorType.of(v).is_exact]
            if not values:
                return None
            loss, weights = _weighted(block, values, len(types))
            func.ReturnOp([loss])
        types += [weight.type for weight in weights]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [loss.type]))
        assert module.operation.verify()
        kinds = [graph.TensorType.of(weight) for weight in weights]
        kinds = [(kind.dims, NUMPY[str(kind.element)]) for kind in kinds]
        return Weighted(Gradients(module), kinds, free, specs)


def _type(item: Spec) -> ir.Type:
    return graph.TensorType.make(item.dims, ir.Type.parse(item.dtype)).to_mlir()


def _weighted(block: ir.Block, values: Any, first: int) -> tuple[ir.Value, list[ir.Value]]:
    """The sum of results of floats times arguments, which are added to the block."""
    weights = [block.add_argument(v.type, v.location) for v in values]
    terms = [
        reduced(
            graph.SumOp, multiply(v, w), list(range(len(graph.TensorType.of(v).dims))) or [], False
        )
        for v, w in zip(values, weights, strict=True)
    ]
    return reduce(add, terms), weights


class Weighted:
    """The gradients of a loss over results with random weights."""

    def __init__(self, gradients: Gradients, kinds: Any, free: Any, specs: Sequence[Spec]) -> None:
        self.gradients, self._kinds, self._free, self._specs = gradients, kinds, free, specs

    def check(self, *arrays: np.ndarray, tolerance: float = 1e-6, **symbols: int) -> None:
        """Compares at arguments; `symbols` has what their dims do not tell."""
        self.gradients.check(*self.arguments(arrays, symbols), tolerance=tolerance)

    def arguments(self, arrays: Sequence[np.ndarray], symbols: Mapping[str, int]) -> list[Any]:
        """All arguments, weights of the results included."""
        values = dict(symbols)
        for item, array in zip(self._specs, arrays, strict=True):
            for dim, extent in zip(item.dims, array.shape, strict=True):
                values.setdefault(dim, extent) if isinstance(dim, str) else None
        random = np.random.default_rng(len(arrays))
        more = [[values[name] for name in self._free]] if self._free else []
        for dims, dtype in self._kinds:
            shape = [dim.evaluate(values) for dim in dims]
            more.append(random.standard_normal(shape).astype(dtype))
        return [*arrays, *more]
