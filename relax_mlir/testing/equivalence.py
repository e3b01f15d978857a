"""Holds a module against what it meant before passes, on a few arguments.

    checker = Equivalence(module)
    for each pass: run it; checker.check("relax-fuse-ops", module)

Public functions are interpreted, with sizes that their facts allow, among them 0, 1, primes, powers
of two and their neighbours, and bounds. Integers and moved elements have to be the same, floats as
near as rounding allows.

A pass that lays out or rounds parameters makes `@main_params` or `@main_quantize`, functions from
the old parameters of `@main` to its new ones: these are made first. Rounding changes numbers, so
from there on modules are held against what is left of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_mlir.analysis.functions import NUM_INPUTS
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import remark
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.interpreter import Function, Interpreted
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts

from .compare import EPSILON, Expected, moved
from .inputs import UNKNOWN, arguments, dims_of
from .sizes import valuations

MAKERS = ("quantize", "params")
"""What functions that make parameters end in, in the order in which they are applied."""
HOST = "rx_fn_"
"""In front of the name of a function that has become host code."""
TRIALS = 3
MAX_ELEMENTS = 1 << 20
"""Of the arguments of a call."""


@dataclass(frozen=True)
class _Sample:
    """A call: the sizes, the arguments, and the results that are expected."""

    sizes: Mapping[str, int]
    arrays: Sequence[Any]
    expected: Sequence[Expected]


@dataclass
class _Checked:
    """A function, the number of its inputs that are no parameters, and calls of it."""

    function: Function
    num_inputs: int
    coarsest: str | None
    samples: list[_Sample] = field(default_factory=list)


class Equivalence:
    """What the public functions of a module compute, to be held against later ones."""

    def __init__(self, module: ir.Module | ir.Operation, seed: int = 0) -> None:
        """Interprets the module; `seed` chooses arguments."""
        self._seed = seed
        self._skipped: set[str] = set()
        self._checked: dict[str, _Checked] = {}
        self._made: set[str] = set()
        self._last: Interpreted | None = None
        self._expect(self._interpreted(module), module, None)

    def check(self, passed: str, module: ir.Module | ir.Operation) -> None:
        """Holds a module against what it was before the pass of this name.

        Raises PassFailure at the function whose results differ, with sizes and the first element.
        """
        now = self._interpreted(module)
        for name, checked in self._checked.items():
            if name in self._skipped:
                continue
            place, location = _function(module, name), module.operation.location
            if place is None and HOST + name in _names(module):
                self._skipped.add(name)  # it is host code
                continue
            if place is None:
                raise PassFailure(location, f"the pass '{passed}' drops the function @{name}")
            makers = [now[m] for m in _makers(name) if m in now.functions]
            if f"{name}_quantize" in now.functions and f"{name}_quantize" not in self._made:
                self._made.add(f"{name}_quantize")
                remark(place.location, f"'{passed}' rounds weights: @{name} is compared anew")
                self._expect(now, module, name)
                continue
            self._check(passed, place, now[name], makers, checked)

    def _check(
        self,
        passed: str,
        place: func.FuncOp,
        function: Function,
        makers: Sequence[Function],
        checked: _Checked,
    ) -> None:
        for sample in checked.samples:
            told = ", ".join(f"{name} = {size}" for name, size in sample.sizes.items())
            where = f" for {told}" if told else ""
            try:
                results = _results(function, makers, checked.num_inputs, sample.arrays)
            except CompileError as error:
                self._skip(function.name, place.location, str(error))
                return
            except ExecutionError as error:
                text = f"after '{passed}', @{function.name} fails{where}: {error}"
                raise PassFailure(place.location, text) from None
            for index, (got, want) in enumerate(zip(results, sample.expected, strict=True)):
                difference = want.difference(got, checked.coarsest)
                if difference is not None:
                    raise PassFailure(
                        place.location,
                        f"the pass '{passed}' changes what @{function.name} computes{where}: "
                        f"result {index} {difference}",
                    )

    def _interpreted(self, module: ir.Module | ir.Operation) -> Interpreted:
        """The module, with kernels that are scheduled as the programs that they were last."""
        self._last = Interpreted(module, self._last)
        return self._last

    def _expect(self, now: Interpreted, module: ir.Module | ir.Operation, only: str | None) -> None:
        """Notes what the functions of a module compute, or one of them."""
        for name in now.functions:
            if only not in (None, name) or name.endswith(tuple(f"_{m}" for m in MAKERS)):
                continue
            place = _function(module, name)
            assert place is not None
            known = self._checked.get(name)
            if known is None:
                known = _Checked(now[name], _num_inputs(place), _coarsest(place))
                self._checked[name] = known
            makers = [now[m] for m in _makers(name) if m in now.functions]
            self._sample(now[name], makers, known, place.location)

    def _sample(
        self,
        function: Function,
        makers: Sequence[Function],
        checked: _Checked,
        location: ir.Location,
    ) -> None:
        """Calls the function on arguments of the original one."""
        random = np.random.default_rng(self._seed)
        refused: list[str] = []
        checked.samples.clear()
        for sizes in _sizes(checked.function):
            arrays = arguments(checked.function.arguments, sizes, random)
            try:
                calls = [arrays, *(self._near(checked, arrays, random) for _ in range(TRIALS))]
                found = [_results(function, makers, checked.num_inputs, call) for call in calls]
            except ExecutionError as error:
                refused.append(str(error))
                continue
            except CompileError as error:
                self._skip(function.name, location, str(error))
                return
            kinds = [result.dtype for result in function.results]
            expected = [Expected.of(v[0], kind, v[1:]) for kind, *v in zip(kinds, *found)]
            checked.samples.append(_Sample(sizes, arrays, expected))
        if not checked.samples:
            why = refused[0] if refused else "no sizes satisfy its facts"
            self._skip(function.name, location, why)

    def _near(
        self, checked: _Checked, arrays: Sequence[Any], random: np.random.Generator
    ) -> list[Any]:
        epsilon = EPSILON[checked.coarsest] if checked.coarsest else 0.0
        kinds = [argument.dtype for argument in checked.function.arguments]
        return [moved(x, kind, random, epsilon) for x, kind in zip(arrays, kinds, strict=True)]

    def _skip(self, name: str, location: ir.Location, why: str) -> None:
        self._skipped.add(name)
        remark(location, f"@{name} is not compared from here on: {why}")


def _makers(name: str) -> list[str]:
    return [f"{name}_{maker}" for maker in MAKERS]


def _function(module: ir.Module | ir.Operation, name: str) -> func.FuncOp | None:
    for op in module.operation.regions[0].blocks[0].operations:
        if isinstance(op, func.FuncOp) and op.name.value == name:
            return op
    return None


def _names(module: ir.Module | ir.Operation) -> set[str]:
    operations = module.operation.regions[0].blocks[0].operations
    return {op.attributes["sym_name"].value for op in operations if "sym_name" in op.attributes}


def _num_inputs(function: func.FuncOp) -> int:
    if NUM_INPUTS in function.attributes:
        return function.attributes[NUM_INPUTS].value
    return len(function.type.inputs)


def _coarsest(function: func.FuncOp) -> str | None:
    """The float type of fewest bits among the values of a function."""
    values = [value for op in walk_ops(function) for value in op.operation.results]
    types = [value.type for value in values] + list(function.type.inputs)
    elements = {str(t.element_type) for t in types if isinstance(t, ir.ShapedType)}
    return max(elements & EPSILON.keys(), key=EPSILON.__getitem__, default=None)


def _sizes(function: Function) -> list[dict[str, int]]:
    """Sizes that the arguments may have, and that are not too many elements."""
    symbols, unknown = list(function.symbols), False
    for argument in function.arguments:
        unknown |= argument.dims is None or None in argument.dims
    if unknown:
        symbols.append(UNKNOWN)

    def accepts(sizes: Mapping[str, int]) -> bool:
        dims = [dims_of(argument, sizes) for argument in function.arguments]
        count = sum(int(np.prod(d, dtype=object)) for d in dims)
        return all(dim >= 0 for d in dims for dim in d) and count <= MAX_ELEMENTS

    facts = [fact for fact in Facts.parse(function.facts) if fact.symbols <= set(symbols)]
    return valuations(symbols, Facts(tuple(facts)), accepts)


def _results(
    function: Function, makers: Sequence[Function], num_inputs: int, arrays: Sequence[Any]
) -> list[np.ndarray]:
    """What a function returns, as stored; parameters are made for it first."""
    inputs = [x.copy() if isinstance(x, np.ndarray) else x for x in arrays[:num_inputs]]
    parameters = list(arrays[num_inputs:])
    for maker in makers:
        made = maker(*parameters)
        parameters = list(made) if isinstance(made, tuple) else [made]
    found = function(*inputs, *parameters)
    results = () if found is None else found if isinstance(found, tuple) else (found,)
    return [
        np.asarray(value).view(stored_dtype(result.dtype))
        for value, result in zip(results, function.results, strict=True)
    ]
