"""How many sites of kernel calls a graph function has, with those of the functions that it calls.

    func.func @main() { call_dps @kernel; call_dps @f; call_dps @f }     1 + 2 * 2
    func.func private @f() { call_dps @kernel; call_dps @g }             1 + 1
    func.func private @g() { call_dps @kernel; call_dps @g }             1

Each call of a function has sites of its own, but for calls between functions that call themselves:
those of one group share the sites of the call that enters the group, one function after another.
"""

from collections.abc import Mapping

from relax_mlir.analysis.recursion import Recursion
from relax_mlir.bindings import func
from relax_mlir.dialects.graph import CallDpsOp
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops

MOST = 1 << 17
"""More are refused: a chain of functions each of which calls the next one twice doubles them."""


class SiteCounts:
    """The counts for the graph functions of a module.

    Raises PassFailure at a function of too many sites.
    """

    def __init__(self, functions: Mapping[str, func.FuncOp]) -> None:
        self.recursion = Recursion(list(functions.values()))
        self._own: dict[str, int] = {}
        for name in self.recursion.order:
            count = 0
            for call in walk_ops(functions[name], CallDpsOp):
                callee = call.callee_name
                if not self.recursion.is_recursive(name, callee):
                    count += self.total(callee) if callee in functions else 1
            if count > MOST:
                text = f"calls more than {MOST} kernels, each call of a function counted apart"
                raise PassFailure(functions[name], text)
            self._own[name] = count

    def total(self, name: str) -> int:
        """The sites of a call of the function from outside of its group."""
        return sum(self._own[member] for member in self.recursion.group(name))

    def offset(self, name: str) -> int:
        """The index of the function's first site among those of its group."""
        group = self.recursion.group(name)
        return sum(self._own[member] for member in group[: group.index(name)])
