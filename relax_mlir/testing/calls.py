"""Calls of a function with chosen sizes and random arguments, and their expected results.

    calls = Calls(interpret(text)["main"])
    calls.difference(compile(text)["main"])        # None, or what differs: sizes and first element

The compared function takes the same arguments: it is compiled, or interpreted after passes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from relax_mlir.bindings import func, ir
from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import Function
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts

from .compare import EPSILON, Expected, perturbed
from .inputs import UNKNOWN, arguments, dims_of
from .sizes import valuations

TRIALS = 3
"""Calls with perturbed arguments, which measure the sensitivity of results."""
MAX_ELEMENTS = 1 << 20
"""The limit of elements in the arguments of a call."""


class Flat(Protocol):
    """A function that can be called with the elements of tuples one by one."""

    def flat(self, *leaves: Any) -> tuple[Any, ...]:
        """Calls it; returns the elements of the results likewise."""


@dataclass(frozen=True)
class _Sample:
    """A call: the sizes, the arguments, and the expected results."""

    sizes: Mapping[str, int]
    arrays: Sequence[Any]
    expected: Sequence[Expected]

    @property
    def where(self) -> str:
        """The sizes, as text."""
        told = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return f" for {told}" if told else ""


class Calls:
    """Calls of an interpreted function, with sizes that its facts allow.

    `refused` is the reason if there are none: the error of the first call.
    """

    def __init__(
        self,
        function: Function,
        seed: int = 0,
        call: Flat | None = None,
    ) -> None:
        """Calls the function, or `call` with the same arguments, and stores the results.

        Raises CompileError if it has an op that cannot be interpreted.
        """
        self.function = function
        self._coarsest = coarsest_float(function.operation)
        self._samples: list[_Sample] = []
        self.refused = "no sizes satisfy its facts"
        random = np.random.default_rng(seed)
        for sizes in sizes_of(function):
            arrays = arguments(function.arguments, sizes, random)
            calls = [arrays, *(self._near(arrays, random) for _ in range(TRIALS))]
            try:
                results = [self._results(call or function, near) for near in calls]
            except ExecutionError as error:
                self.refused = str(error)
                continue
            kinds = [result.dtype for result in function.results]
            expected = [Expected.of(v[0], kind, v[1:]) for kind, *v in zip(kinds, *results)]
            self._samples.append(_Sample(sizes, arrays, expected))

    def __len__(self) -> int:
        """The count of calls."""
        return len(self._samples)

    def difference(self, call: Flat) -> str | None:
        """The first difference of a result, as the end of a sentence; None if there is none."""
        for sample in self._samples:
            try:
                results = self._results(call, sample.arrays)
            except ExecutionError as error:
                return f"fails{sample.where}: {error}"
            for index, (got, want) in enumerate(zip(results, sample.expected, strict=True)):
                if (difference := want.difference(got, self._coarsest)) is not None:
                    return f"differs{sample.where}: result {index} {difference}"
        return None

    def _near(self, arrays: Sequence[Any], random: np.random.Generator) -> list[Any]:
        epsilon = EPSILON[self._coarsest] if self._coarsest else 0.0
        kinds = [argument.dtype for argument in self.function.arguments]
        return [perturbed(x, kind, random, epsilon) for x, kind in zip(arrays, kinds, strict=True)]

    def _results(self, call: Flat, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The stored results of a call, which gets copies of the arguments."""
        results = call.flat(*(x.copy() if isinstance(x, np.ndarray) else x for x in arrays))
        return [
            _stored(np.asarray(value), stored_dtype(result.dtype))
            for value, result in zip(results, self.function.results, strict=True)
        ]


def _stored(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array as elements are stored: a number of Python may be wider."""
    is_wider = array.ndim == 0 and array.dtype.itemsize != dtype.itemsize
    return array.astype(dtype) if is_wider else array.view(dtype)


def coarsest_float(function: func.FuncOp) -> str | None:
    """The narrowest float type among the values of a function."""
    values = [value for op in walk_ops(function) for value in op.operation.results]
    types = [value.type for value in values] + list(function.type.inputs)
    elements = {str(t.element_type) for t in types if isinstance(t, ir.ShapedType)}
    return max(elements & EPSILON.keys(), key=EPSILON.__getitem__, default=None)


def sizes_of(function: Function) -> list[dict[str, int]]:
    """Valid sizes of the arguments, with at most `MAX_ELEMENTS` elements."""
    symbols = list(function.symbols)
    if any(a.dims is None or None in a.dims for a in function.arguments):
        symbols.append(UNKNOWN)

    def accepts(sizes: Mapping[str, int]) -> bool:
        dims = [dims_of(argument, sizes) for argument in function.arguments]
        count = sum(int(np.prod(d, dtype=object)) for d in dims)
        return all(dim >= 0 for d in dims for dim in d) and count <= MAX_ELEMENTS

    facts = [fact for fact in Facts.parse(function.facts) if fact.symbols <= set(symbols)]
    return valuations(symbols, Facts(tuple(facts)), accepts)
