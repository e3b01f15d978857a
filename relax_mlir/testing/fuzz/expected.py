"""The expected results of a program: interpreted at several sizes, with tolerances."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import Function
from relax_mlir.interpreter.elements import noisy, stored_dtype

from ..calls import coarsest_float, sizes_of
from ..compare import EPSILON, ULPS, Expected, perturbed
from ..inputs import arguments
from .callees import noted
from .program import Program
from .slopes import moved, slope_error

ULPS_OF = {
    "nn_attention": 16,
    "nn_batched_attention": 16,
    "nn_paged_attention": 16,
    "nn_softmax": 16,
    "nn_conv2d": 8,
}
"""Units by which operators differ at most where it is more than 2: docs/numerics.md."""
TRIALS = 2
"""Calls with perturbed arguments, which measure the sensitivity of results."""
MANY_TRIALS = 16
"""Those before a difference counts."""


@dataclass(frozen=True)
class Sample:
    """A call: sizes, arguments, and the results or the error."""

    sizes: Mapping[str, int]
    arrays: Sequence[Any]
    expected: Sequence[Expected]
    refused: str | None = None
    lines: Sequence[str] = ()
    """What the call prints, and which functions with effects it calls."""
    told: list[str] = field(default_factory=list)
    """What compiled code refused the call with before."""

    @property
    def where(self) -> str:
        """The sizes, as text."""
        return ", ".join(f"{name} = {size}" for name, size in self.sizes.items()) or "no symbols"


class Meaning:
    """Samples of an interpreted function."""

    def __init__(self, function: Function, program: Program, count: int) -> None:
        """Calls it with `count` sizes of those that its facts allow."""
        self.function, seed = function, program.seed
        self.ulps = ULPS + sum(ULPS_OF.get(op, 2) * n for op, n in program.ops.items())
        self.coarsest = coarsest_float(function.operation)
        self.slopes: list[str] = []
        """Where gradients differ from finite differences."""
        self._gradients = program.gradients
        chosen = random.Random(seed)
        sizes = sizes_of(function)
        picked = chosen.sample(sizes, min(count, len(sizes)))
        generator = np.random.default_rng(seed)
        samples = [self._sample(size, generator) for size in picked]
        wrong = [(s, _wrong(s.arrays, chosen)) for s in samples[-1:] if s is not None]
        samples += [self._sample(s.sizes, generator, w) for s, w in wrong if w is not None]
        self.samples = [sample for sample in samples if sample is not None]

    def _sample(
        self,
        sizes: Mapping[str, int],
        generator: np.random.Generator,
        arrays: Sequence[Any] | None = None,
    ) -> Sample | None:
        """A call; None if it is refused or not for arguments that are nearly the same."""
        function = self.function
        if arrays is None:
            arrays = arguments(function.arguments, sizes, generator)
        try:
            with noted() as notes:
                value = results(function, arrays)
        except ExecutionError as error:
            return Sample(sizes, arrays, [], str(error))
        try:
            expected = self._expected(value, arrays, generator, TRIALS)
        except ExecutionError:
            return None
        self._check_slopes(sizes, arrays, value, generator)
        return Sample(sizes, arrays, expected, lines=notes.lines)

    def _expected(
        self,
        value: Sequence[np.ndarray],
        arrays: Sequence[Any],
        generator: np.random.Generator,
        trials: int,
    ) -> list[Expected]:
        """The results of a call, and how far they move in trials."""
        epsilon = EPSILON[self.coarsest] if self.coarsest else 0.0
        kinds = [argument.dtype for argument in self.function.arguments]
        calls = [value]
        for _ in range(trials if self.coarsest else 0):
            near = [perturbed(x, kind, generator, epsilon) for x, kind in zip(arrays, kinds)]
            with noisy(generator), noted():
                calls.append(results(self.function, near))
        outs = [result.dtype for result in self.function.results]
        return [
            _evened(Expected.of(v[0], kind, v[1:])) for kind, *v in zip(outs, *calls, strict=True)
        ]

    def surely(self, sample: Sample, index: int) -> Expected:
        """A result with the movement in many trials: in few, single elements may stay by chance."""
        value = [each.value for each in sample.expected]
        generator = np.random.default_rng(index)
        return self._expected(value, sample.arrays, generator, MANY_TRIALS)[index]

    def _check_slopes(
        self,
        sizes: Mapping[str, int],
        arrays: Sequence[Any],
        outputs: Sequence[np.ndarray],
        generator: np.random.Generator,
    ) -> None:
        floats = {argument.dtype for argument in self.function.arguments} & EPSILON.keys()
        if not self._gradients or self.coarsest != "f64" or floats != {"f64"}:
            return

        def loss(near: Sequence[Any]) -> float:
            with noted():
                return float(results(self.function, near)[0])

        wrong = slope_error(loss, arrays, outputs[-self._gradients :], generator)
        if wrong is not None:  # only by what a kink's gradient is taken to be, as at zero?
            near = moved(arrays, generator)
            outputs = results(self.function, near)
            wrong = slope_error(loss, near, outputs[-self._gradients :], generator)
        if wrong is not None:
            self.slopes.append(f"{wrong} for {sizes}")


def _evened(expected: Expected) -> Expected:
    """Lets elements move as far as the others: by chance, few trials move some hardly at all."""
    movement = expected.movement
    if expected.element not in EPSILON:
        return expected
    most = movement[np.isfinite(movement)].max(initial=0) / 2
    return replace(expected, movement=np.maximum(movement, most))


def _wrong(arrays: Sequence[Any], chosen: random.Random) -> list[Any] | None:
    """The arguments, one of which has one more or one less along an axis; None if none has any."""
    some = [i for i, x in enumerate(arrays) if isinstance(x, np.ndarray) and x.ndim]
    if not some:
        return None
    index = chosen.choice(some)
    shape = list(arrays[index].shape)
    axis = chosen.randrange(len(shape))
    shape[axis] = max(0, shape[axis] + chosen.choice([-1, 1]))
    wrong = np.zeros(shape, arrays[index].dtype)
    kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, arrays[index].shape))
    wrong[kept] = arrays[index][kept]
    return [*arrays[:index], wrong, *arrays[index + 1 :]]


def results(call: Any, arrays: Sequence[Any], copy: Callable[[Any], Any] = np.copy) -> list[Any]:
    """What a call returns, as stored; arguments are copied, since it may update them."""
    given = [copy(x) if isinstance(x, np.ndarray) else x for x in arrays]
    values = call.flat(*given)
    return [
        np.asarray(value).view(stored_dtype(result.dtype))
        for value, result in zip(values, call.results, strict=True)
    ]
