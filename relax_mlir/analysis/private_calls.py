"""The calls of private graph functions, where their signatures are the module's own business."""

from collections import defaultdict
from collections.abc import Sequence

from relax_mlir.bindings import func
from relax_mlir.dialects.graph import CallOp
from relax_mlir.rewriting import walk_ops

from .functions import PRIMITIVE, is_public


class PrivateCalls:
    """Which functions call which; computed once, and true while no function gets a new callee."""

    def __init__(self, functions: Sequence[func.FuncOp]) -> None:
        self._callers: dict[str, dict[str, func.FuncOp]] = defaultdict(dict)
        for caller in functions:
            for call in walk_ops(caller, CallOp):
                self._callers[call.callee_name][caller.name.value] = caller

    def callers(self, function: func.FuncOp) -> list[func.FuncOp]:
        """The functions that have called this one."""
        return list(self._callers[function.name.value].values())

    def of(self, function: func.FuncOp) -> list[CallOp]:
        """The calls of a function whose signature may change with them; none if it has to stay.

        That is a public one, one that runs as one kernel, and one that calls itself.
        """
        name = function.name.value
        if is_public(function) or PRIMITIVE in function.attributes or name in self._callers[name]:
            return []
        calls = [call for caller in self.callers(function) for call in walk_ops(caller, CallOp)]
        return [call for call in calls if call.callee_name == name]
