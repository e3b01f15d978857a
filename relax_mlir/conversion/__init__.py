"""Converts modules of other dialects to graph functions and tensor programs.

    convert(module, ("linalg",))

A function of linalg on tensors becomes a graph function: its structured ops are tensor programs,
its dims symbols. Of other dialects, ops become operators.
"""

from collections.abc import Sequence

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import func, ir
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import walk_ops

from . import rules, tosa  # noqa: F401  # registers them
from .function import Conversion
from .programs import Programs
from .supported import needs_conversion, report_unsupported

FIRST = ("lower-affine", "convert-elementwise-to-linalg")
"""Passes of MLIR for ops that have no rules: affine.min, arith and math on tensors."""
BRANCHES = ("tosa.cond_if", "tosa.while_loop")
"""Ops for which another one is run."""


def convert(module: ir.Operation, dialects: Sequence[str], broadcasts: bool = False) -> None:
    """Converts the functions that have ops of `dialects`, and those that call them.

    Emits an error at each op that is not supported, and changes nothing then. `broadcasts` is that
    of `Conversion`.
    """
    functions = graph_functions(module)
    chosen = [each for each in functions if needs_conversion(each, dialects)]
    if not chosen or report_unsupported(chosen, dialects):
        return
    for function in chosen:
        names = {op.operation.name for op in walk_ops(function)}
        first = FIRST if names.isdisjoint(BRANCHES) else ("tosa-to-scf", *FIRST)
        run_upstream(f"func.func({','.join(first)})", function.operation)
    programs = Programs(module.regions[0].blocks[0])
    callees = {each.name.value: each for each in functions}
    for function in _callees_first(chosen):
        name = function.name.value
        callees[name] = Conversion(function, programs, callees, broadcasts).run()
        function.operation.erase()


def _callees_first(functions: Sequence[func.FuncOp]) -> list[func.FuncOp]:
    """The functions so that each follows those that it calls, except in a recursion."""
    by_name = {function.name.value: function for function in functions}
    calls = {
        name: [ir.FlatSymbolRefAttr(call.attributes["callee"]).value
               for call in walk_ops(each, func.CallOp)]
        for name, each in by_name.items()
    }  # fmt: skip
    ordered: dict[str, func.FuncOp] = {}
    entered: set[str] = set()
    for first in by_name:
        stack = [first]
        while stack:
            name = stack[-1]
            if name in entered:
                ordered.setdefault(name, by_name[stack.pop()])
                continue
            entered.add(name)
            stack += [n for n in reversed(calls[name]) if n in by_name and n not in entered]
    return list(ordered.values())


__all__ = ["convert"]
