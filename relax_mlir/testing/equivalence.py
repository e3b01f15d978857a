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

from collections.abc import Callable
from typing import Any

from relax_mlir.analysis.functions import NUM_INPUTS
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import remark
from relax_mlir.errors import CompileError
from relax_mlir.interpreter import Function, Interpreted
from relax_mlir.passes import PassFailure

from .calls import Calls

QUANTIZE, PARAMS = "_quantize", "_params"
"""What functions that make parameters end in, in the order in which they are applied."""
HOST = "rx_fn_"
"""In front of the name of a function that has become host code."""


class Equivalence:
    """What the public functions of a module compute, to be held against later ones."""

    def __init__(self, module: ir.Module | ir.Operation, seed: int = 0) -> None:
        """Interprets the module; `seed` chooses arguments."""
        self._seed = seed
        self._last: Interpreted | None = None
        self._rounded: set[str] = set()
        self._calls: dict[str, Calls] = {}
        first = self._interpreted(module)
        for name in first.functions:
            self._expect(first[name], _function(module, name), None)

    @property
    def compared(self) -> tuple[str, ...]:
        """The functions that are still compared."""
        return tuple(self._calls)

    def check(self, passed: str, module: ir.Module | ir.Operation) -> None:
        """Holds a module against what it was before the pass of this name.

        Raises PassFailure at the function whose results differ, with sizes and the first element.
        """
        now = self._interpreted(module)
        for name, calls in list(self._calls.items()):
            place = _function(module, name)
            if place is None and HOST + name in _names(module):
                del self._calls[name]
                continue
            if place is None:
                text = f"the pass '{passed}' drops the function @{name}"
                raise PassFailure(module.operation.location, text)
            call = _with_parameters(now, name, calls.function)
            if name + QUANTIZE in now.functions and name not in self._rounded:
                self._rounded.add(name)
                remark(place.location, f"'{passed}' rounds weights: @{name} is compared anew")
                self._expect(calls.function, place, call)
                continue
            try:
                difference = calls.difference(call)
            except CompileError as error:
                self._leave_out(name, place, str(error))
                continue
            if difference is not None:
                raise PassFailure(place.location, f"after '{passed}', @{name} {difference}")

    def _interpreted(self, module: ir.Module | ir.Operation) -> Interpreted:
        """The module; kernels run once they are scheduled, and then stand for what they were."""
        self._last = Interpreted(module, self._last)
        return self._last

    def _expect(
        self, function: Function, place: func.FuncOp | None, call: Callable[..., Any] | None
    ) -> None:
        """Notes what a function returns, or a call with its arguments."""
        assert place is not None
        try:
            calls = Calls(function, self._seed, call)
        except CompileError as error:
            self._leave_out(function.name, place, str(error))
            return
        self._calls[function.name] = calls
        if not len(calls):
            self._leave_out(function.name, place, calls.refused)

    def _leave_out(self, name: str, place: func.FuncOp, why: str) -> None:
        self._calls.pop(name, None)
        remark(place.location, f"@{name} is not compared from here on: {why}")


def _with_parameters(now: Interpreted, name: str, before: Function) -> Callable[..., Any]:
    """The function of that name, which takes what it took before: parameters are made for it."""
    attributes = before.operation.attributes
    makers = [now[name + end] for end in (QUANTIZE, PARAMS) if name + end in now.functions]
    count = attributes[NUM_INPUTS].value if NUM_INPUTS in attributes else len(before.arguments)

    def call(*arrays: Any) -> Any:
        parameters = arrays[count:]
        for maker in makers:
            made = maker(*parameters)
            parameters = made if isinstance(made, tuple) else (made,)
        return now[name](*arrays[:count], *parameters)

    return call


def _function(module: ir.Module | ir.Operation, name: str) -> func.FuncOp | None:
    for op in module.operation.regions[0].blocks[0].operations:
        if isinstance(op, func.FuncOp) and op.name.value == name:
            return op
    return None


def _names(module: ir.Module | ir.Operation) -> set[str]:
    operations = module.operation.regions[0].blocks[0].operations
    return {op.attributes["sym_name"].value for op in operations if "sym_name" in op.attributes}
