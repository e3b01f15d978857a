"""Checks that passes preserve the results of a module, on a few arguments.

    checker = Equivalence(module)
    for each pass: run it; checker.check("relax-fuse-ops", module)

Public functions are interpreted, with sizes that their facts allow, among them 0, 1, primes, powers
of two and their neighbours, and bounds. Integers and copied elements must be equal, floats within
rounding errors.

A pass that lays out or rounds parameters makes `@main_params` or `@main_quantize`, functions from
the old parameters of `@main` to its new ones: these are computed first. Quantisation changes
results, so later modules are compared with the quantised one.
"""

from typing import Any

from relax_mlir.analysis.functions import NUM_INPUTS
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import remark
from relax_mlir.dialects.graph import leaf_types
from relax_mlir.errors import CompileError
from relax_mlir.interpreter import Function, Interpreted
from relax_mlir.passes import PassFailure

from .calls import Calls, Flat

QUANTIZE, PARAMS = "_quantize", "_params"
"""The suffixes of functions that compute parameters, in order of application."""
HOST = "rx_fn_"
"""The prefix of functions that are lowered to host code."""


class Equivalence:
    """The results of a module's public functions, to be compared with later ones."""

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
        """The functions that are compared."""
        return tuple(self._calls)

    def check(self, passed: str, module: ir.Module | ir.Operation) -> None:
        """Compares a module with the state before the pass of this name.

        Raises PassFailure at the function whose results differ, with sizes and the first element.
        """
        now = self._interpreted(module)
        for name, calls in list(self._calls.items()):
            after = _function(module, name)
            if after is None and HOST + name in _names(module):
                del self._calls[name]
                continue
            if after is None:
                text = f"the pass '{passed}' drops the function @{name}"
                raise PassFailure(module.operation.location, text)
            call = _WithParameters(now, name, calls.function)
            if name + QUANTIZE in now.functions and name not in self._rounded:
                self._rounded.add(name)
                remark(after.location, f"'{passed}' rounds weights: @{name} is compared anew")
                self._expect(calls.function, after, call)
                continue
            try:
                difference = calls.difference(call)
            except CompileError as error:
                self._leave_out(name, after, str(error))
                continue
            if difference is not None:
                raise PassFailure(after.location, f"after '{passed}', @{name} {difference}")

    def _interpreted(self, module: ir.Module | ir.Operation) -> Interpreted:
        """The module; kernels are run when they are scheduled, later as tensor programs."""
        self._last = Interpreted(module, self._last)
        return self._last

    def _expect(self, function: Function, now: func.FuncOp | None, call: Flat | None) -> None:
        """Records the results of a function, or of a call with its arguments."""
        assert now is not None
        try:
            calls = Calls(function, self._seed, call)
        except CompileError as error:
            self._leave_out(function.name, now, str(error))
            return
        self._calls[function.name] = calls
        if not len(calls):
            self._leave_out(function.name, now, calls.refused)

    def _leave_out(self, name: str, now: func.FuncOp, why: str) -> None:
        self._calls.pop(name, None)
        remark(now.location, f"@{name} is not compared any more: {why}")


class _WithParameters:
    """The function of that name with its earlier signature: it computes new parameters first."""

    def __init__(self, now: Interpreted, name: str, before: Function) -> None:
        attributes, inputs = before.operation.attributes, list(before.operation.type.inputs)
        count = attributes[NUM_INPUTS].value if NUM_INPUTS in attributes else len(inputs)
        self._makers = [
            now[name + end] for end in (QUANTIZE, PARAMS) if name + end in now.functions
        ]
        self._count = sum(len(leaf_types(type_)) for type_ in inputs[:count])
        self._function = now[name]

    def flat(self, *leaves: Any) -> tuple[Any, ...]:
        """Calls it."""
        parameters = leaves[self._count :]
        for maker in self._makers:
            parameters = maker.flat(*parameters)
        return self._function.flat(*leaves[: self._count], *parameters)


def _function(module: ir.Module | ir.Operation, name: str) -> func.FuncOp | None:
    for op in module.operation.regions[0].blocks[0].operations:
        if isinstance(op, func.FuncOp) and op.name.value == name:
            return op
    return None


def _names(module: ir.Module | ir.Operation) -> set[str]:
    operations = module.operation.regions[0].blocks[0].operations
    return {op.attributes["sym_name"].value for op in operations if "sym_name" in op.attributes}
