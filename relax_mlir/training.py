"""Training: gradients of a function, and steps that update its parameters in place.

    trainer = Trainer("model.mlir", {"w": w, "b": b}, optimizer="adamw", weight_decay=0.01)
    for x, y in batches:
        loss = trainer.step(x, y, rate=1e-3)
    trainer.parameters["w"]

The model is a function `@main` that returns a loss, of arguments of any dims. See docs/training.md.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.dialects import make_context
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.source import read_source
from relax_mlir.target import Target
from relax_mlir.transforms.gradient import Gradient
from relax_mlir.transforms.train_step import TrainStep

BEFORE = "relax-flatten-tuples,relax-infer-shapes,relax-inline-functions,relax-name-dims"
"""The passes that gradients need."""
DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i64": "int64"}


def with_gradient(
    source: "ir.Module | str | os.PathLike", function: str = "main", wrt: Sequence[str] = ()
) -> str:
    """The text of a module, with a function `<name>_adjoint` that also returns gradients.

    It returns what the function does, and a tuple of the gradients of result 0 by the arguments of
    the given names, or by all tensors of floats. Raises CompileError with located diagnostics where
    an op has no gradient.
    """
    return _extended(source, Gradient(function, tuple(wrt)))


def _extended(source: "ir.Module | str | os.PathLike", last: Gradient | TrainStep) -> str:
    read = read_source(source)
    if read.blobs:
        raise UsageError("a module with large constants cannot be trained; pass them as parameters")
    with make_context(), ir.Location.unknown():
        module = read.parse()
        Pipeline.parse(f"{BEFORE},{last}").run(module, verify=True)
        return str(module)


class Trainer:
    """A model, its parameters and the state of an optimizer, which each step updates in place.

    `source` is a module with a function of a loss. `parameters` are arrays for the arguments of
    those names; these are updated, so they have to be writable. `settings` are options of the pass
    `relax-train-step`: `momentum`, `weight_decay`, `clip_norm`, `beta1` and others.

    Raises CompileError where an op has no gradient, UsageError for an unknown optimizer or option.
    """

    def __init__(
        self,
        source: "ir.Module | str | os.PathLike",
        parameters: Mapping[str, np.ndarray],
        optimizer: str = "sgd",
        function: str = "main",
        target: str | Target = "native",
        opt_level: int = 2,
        **settings: Any,
    ) -> None:
        self.parameters = dict(parameters)
        try:
            step = TrainStep(function, tuple(parameters), optimizer, **settings)
        except TypeError as error:
            raise UsageError(f"cannot train: {error}") from None
        self.executable = executable = compile(_extended(source, step), target, opt_level)
        """The compiled module; its `threads` are those of a step."""
        self._step = executable[f"{function}_step"]
        signature = executable.metadata["functions"][f"{function}_step"]
        self._arguments = [argument["name"] for argument in signature["arguments"]]
        self.state = dict(self._zeros(signature["arguments"]))
        """The state of the optimizer, by name; save it with the parameters."""

    def step(self, *inputs: Any, rate: float) -> Any:
        """Updates the parameters for a batch; returns what the function does, the loss first.

        `inputs` are the arguments that are no parameters, in order. Raises ExecutionError for
        wrong arguments; nothing is updated then.
        """
        arrays = self.parameters | self.state
        rest = list(inputs)
        *names, _ = self._arguments
        taken = [arrays[n] if n in arrays else rest.pop(0) for n in names if n in arrays or rest]
        results = self._step(*taken, *rest, np.array(rate, np.float64))
        own = results[:-2]
        return own[0] if len(own) == 1 else own

    def _zeros(self, arguments: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
        """State of the dims of the parameters, and the count of steps."""
        for argument in arguments:
            parameter = argument["name"].rpartition(".")[0]
            if parameter in self.parameters and argument["inout"]:
                shape = np.shape(self.parameters[parameter])
                yield argument["name"], np.zeros(shape, DTYPES[argument["dtype"]])
            elif argument["name"] == "step" and argument["inout"]:
                yield "step", np.zeros((), np.int64)
