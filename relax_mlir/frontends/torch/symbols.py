"""Sizes of PyTorch as expressions."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch

from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, as_expr, const, maximum, minimum, product, sym


def _quotient(pair: list[Expr]) -> Expr:
    top, bottom = pair
    if bottom.value is not None and bottom.value < 0:
        return (top * -1) // (bottom * -1)
    return top // bottom


_OPERATIONS: dict[str, Callable[[list[Expr]], Expr]] = {
    "Add": lambda terms: reduce(lambda a, b: a + b, terms),
    "Mul": product,
    "FloorDiv": _quotient,
    "CleanDiv": _quotient,
    "Mod": lambda pair: pair[0] % pair[1],
    "PythonMod": lambda pair: pair[0] % pair[1],
    "ModularIndexing": lambda parts: parts[0] // parts[1] % parts[2],
    "Max": lambda terms: maximum(*terms),
    "Min": lambda terms: minimum(*terms),
    "ToFloat": lambda terms: terms[0],
    "Identity": lambda terms: terms[0],
}

ROUNDINGS = ("TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt")


class Symbols:
    """Names of symbols; PyTorch's are as they are unless `chosen` has others.

    `known` are the names of PyTorch's symbols that are in scope; `offsets` are symbols of PyTorch's
    that are offsets in its memory.
    """

    def __init__(
        self, chosen: Mapping[str, str], compute: Callable[[Any], str] | None = None
    ) -> None:
        self._compute = compute
        self.known = dict(chosen)
        self.used: set[str] = set(chosen.values())
        self.offsets: set[str] = set()

    def expr(self, size: Any) -> Expr:
        """The expression of a size: an int, a `SymInt`, or one of sympy."""
        if isinstance(size, Expr):
            return size
        if isinstance(size, bool | int):
            return const(int(size))
        if isinstance(size, torch.SymInt | torch.SymBool | torch.SymFloat):
            size = size.node.expr
        return self._of(size)

    def exactly(self, expr: Any) -> Expr | None:
        """The expression of a size; None where run time has to compute it, or it is not known."""
        if not all(str(each) in self.known for each in expr.free_symbols):
            return None
        compute, self._compute = self._compute, None
        try:
            return self._of(expr)
        except ModelError:
            return None
        finally:
            self._compute = compute

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
        if kind in ROUNDINGS:
            return self._rounded(kind, expr)
        if kind not in _OPERATIONS:
            return self._computed(expr)
        return _OPERATIONS[kind]([self._of(each) for each in expr.args])

    def _rounded(self, kind: str, expr: Any) -> Expr:
        """An integer, a quotient of integers that is rounded, or what run time computes."""
        (inner,) = expr.args
        if type(inner).__name__ == "IntTrueDiv":
            top, bottom = (self._of(each) for each in inner.args)
            if kind == "FloorToInt" or (kind == "TruncToInt" and inner.args[0].is_nonnegative):
                return top // bottom
            if kind == "CeilToInt":
                return (top * -1 // bottom) * -1
        try:
            return self._of(inner)
        except ModelError:
            return self._computed(expr)

    def _computed(self, expr: Any) -> Expr:
        """A symbol for what run time computes."""
        if self._compute is None or type(expr).__name__ not in (*ROUNDINGS, "Piecewise"):
            raise ModelError(f"has a size of '{expr}', which is not supported")
        text = str(expr)
        if text not in self.known:
            self.known[text] = self._compute(expr)
        return sym(self.known[text])

    def _fraction(self, expr: Any) -> Expr:
        top, bottom = expr.as_numer_denom()
        return self._of(top) // as_expr(int(bottom))

    def name(self, symbol: str) -> str:
        """Our name of a symbol of PyTorch."""
        if symbol not in self.known:
            self.known[symbol] = self.fresh(symbol)
        return self.known[symbol]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A graph, whose symbols mean other values at each import of it."""
        before = dict(self.known)
        yield
        self.known = before

    def fresh(self, wanted: str) -> str:
        """A symbol that is not used yet."""
        index = 0
        name = wanted
        while name in self.used:
            index += 1
            name = f"{wanted}_{index}"
        self.used.add(name)
        return name
