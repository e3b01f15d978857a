"""Sizes of PyTorch as expressions."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import torch

from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, as_expr, const, maximum, minimum, product, sym

_OPERATIONS: dict[str, Callable[[list[Expr]], Expr]] = {
    "Add": lambda terms: reduce(lambda a, b: a + b, terms),
    "Mul": product,
    "FloorDiv": lambda pair: pair[0] // pair[1],
    "CleanDiv": lambda pair: pair[0] // pair[1],
    "IntTrueDiv": lambda pair: pair[0] // pair[1],
    "Mod": lambda pair: pair[0] % pair[1],
    "PythonMod": lambda pair: pair[0] % pair[1],
    "ModularIndexing": lambda parts: parts[0] // parts[1] % parts[2],
    "Max": lambda terms: maximum(*terms),
    "Min": lambda terms: minimum(*terms),
    "ToFloat": lambda terms: terms[0],
    "TruncToInt": lambda terms: terms[0],
    "FloorToInt": lambda terms: terms[0],
    "Identity": lambda terms: terms[0],
}


class Symbols:
    """Names of symbols; PyTorch's are as they are unless `chosen` has others."""

    def __init__(self, chosen: Mapping[str, str]) -> None:
        self.chosen = dict(chosen)
        self.used: set[str] = set(chosen.values())

    def expr(self, size: Any) -> Expr:
        """The expression of a size: an int, a `SymInt`, or one of sympy."""
        if isinstance(size, Expr):
            return size
        if isinstance(size, bool | int):
            return const(int(size))
        if isinstance(size, torch.SymInt | torch.SymBool | torch.SymFloat):
            size = size.node.expr
        return self._of(size)

    def _of(self, expr: Any) -> Expr:
        if expr.is_Integer:
            return const(int(expr))
        if expr.is_Symbol:
            return sym(self.name(str(expr)))
        kind = type(expr).__name__
        if kind == "Pow" and expr.args[1].is_Integer and int(expr.args[1]) > 0:
            return product([self._of(expr.args[0])] * int(expr.args[1]))
        if kind == "Mul" and any(each.is_Rational and not each.is_Integer for each in expr.args):
            return self._fraction(expr)
        if kind == "floor":
            return self._of(expr.args[0])
        if kind not in _OPERATIONS:
            raise ModelError(f"has a size of '{expr}', which is not supported")
        return _OPERATIONS[kind]([self._of(each) for each in expr.args])

    def _fraction(self, expr: Any) -> Expr:
        top, bottom = expr.as_numer_denom()
        return self._of(top) // as_expr(int(bottom))

    def name(self, symbol: str) -> str:
        """Our name of a symbol of PyTorch."""
        name = self.chosen.get(symbol, symbol)
        self.used.add(name)
        return name

    def fresh(self, wanted: str) -> str:
        """A symbol that is not used yet."""
        index = 0
        name = wanted
        while name in self.used:
            index += 1
            name = f"{wanted}_{index}"
        self.used.add(name)
        return name
