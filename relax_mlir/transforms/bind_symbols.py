"""Gives symbols of signatures values that are known before the call.

    relax-bind-symbols{symbols=n=4,m=2*k}
    func.func @main(%x: tensor<n x m>, ...) attributes {graph.facts = ["n <= 8", "m mod 2 == 0"]}
      ->
    func.func @main(%x: tensor<4 x 2*k>, ...)

A symbol is replaced everywhere in each public function whose arguments show it, or in those that
the option `functions` names: in signatures, annotations, shapes, facts and requirements. Facts that
follow go. A value is an integer or an expression, over symbols that the function has or that its
arguments then show; all are replaced at once. What calls return is deduced again, so dims after
them become finer too.

Fails where no function shows a symbol, at a function whose facts a value contradicts, and at an op
of which it makes a dim negative.

Needs: a verified module. Leaves: none of the symbols in the functions.
Source: TVM `BindSymbolicVars`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from relax_mlir.analysis.functions import FACTS, facts_of, graph_functions, is_public
from relax_mlir.analysis.rename import rename_symbols
from relax_mlir.analysis.scopes import argument_symbols
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import annotation_of
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Fact, Facts, SymbolicError, holds, parse, sym

from .infer_shapes import Inference
from .state_assumptions import OPPOSITE

Substitutable = TypeVar("Substitutable", Expr, Fact)


@dataclass(frozen=True)
class BindSymbols(Pass):
    """Gives symbols of signatures values that are known before the call."""

    symbols: tuple[str, ...]
    """Each as `name=value`."""
    functions: tuple[str, ...] = ()
    """Names of functions; none are all public ones."""

    needs_verified: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("expects at least one symbol, as name=value")

    @property
    def values(self) -> dict[str, Expr]:
        """The symbols with their values; raises ValueError where the text is none."""
        result: dict[str, Expr] = {}
        for text in self.symbols:
            name, separator, value = text.partition("=")
            try:
                if not separator or str(sym(name.strip())) != name.strip():
                    raise ValueError
                expression = parse(value)
            except (SymbolicError, ValueError):
                raise ValueError(f"'{text}' is not a symbol and its value, as n=4") from None
            if name.strip() in result:
                raise ValueError(f"'{name.strip()}' has two values")
            result[name.strip()] = expression
        return result

    def run(self, op: ir.Operation) -> None:
        """Replaces the symbols, and deduces annotations again."""
        values = self.values
        chosen = [function for function in graph_functions(op) if self._is_chosen(function)]
        missing = set(self.functions) - {function.name.value for function in chosen}
        if missing:
            raise PassFailure(op.location, f"there is no graph function '@{sorted(missing)[0]}'")
        shown = [argument_symbols(function) for function in chosen]
        for name in values:
            if not any(name in symbols for symbols in shown):
                raise PassFailure(op.location, f"no argument shows the symbol '{name}'")
        inference = Inference(op)
        for function, symbols in zip(chosen, shown, strict=True):
            own = {name: value for name, value in values.items() if name in symbols}
            if own:
                _bind(function, own)
                inference.function(function)

    def _is_chosen(self, function: func.FuncOp) -> bool:
        return function.name.value in self.functions if self.functions else is_public(function)


def _bind(function: func.FuncOp, values: Mapping[str, Expr]) -> None:
    """Replaces the symbols of one function, whose facts the values have to satisfy."""
    _check(function, values)
    rename_symbols(function, values)
    left = [fact for fact in facts_of(function) if not holds(fact).proved]
    if FACTS in function.attributes:
        del function.attributes[FACTS]
    if left:
        texts = [ir.StringAttr.get(str(fact)) for fact in left]
        function.attributes[FACTS] = ir.ArrayAttr.get(texts)
    unbound = sorted(_used(values.values()) - argument_symbols(function))
    if unbound:
        raise PassFailure(function, f"has no argument that shows '{unbound[0]}', a value's symbol")


def _used(expressions: Iterable[Expr]) -> set[str]:
    return set().union(*(expression.symbols for expression in expressions))


def _check(function: func.FuncOp, values: Mapping[str, Expr]) -> None:
    """Raises PassFailure where the values contradict a fact, or make a dim negative."""
    told = " and ".join(f"{name} = {value}" for name, value in values.items())
    facts = [(fact, _substituted(function, fact, values)) for fact in facts_of(function)]
    for index, (fact, new) in enumerate(facts):
        others = Facts(tuple(other for i, (_, other) in enumerate(facts) if i != index))
        if holds(Fact(new.lhs, OPPOSITE[new.op], new.rhs), others).proved:
            raise PassFailure(function, f"has the fact '{fact}', which cannot be with {told}")
    ops: list[ir.OpView] = walk_ops(function)
    for op in ops:
        blocks = [block for region in op.operation.regions for block in region.blocks]
        for value in (*op.operation.results, *(a for block in blocks for a in block.arguments)):
            for dim in dims_of(annotation_of(value)):
                extent = None if dim is None else _substituted(op, dim, values)
                if extent is not None and extent.value is not None and extent.value < 0:
                    raise PassFailure(op, f"has a dim {dim}, which is {extent} with {told}")


def _substituted(op: ir.OpView, item: Substitutable, values: Mapping[str, Expr]) -> Substitutable:
    try:
        return item.substitute(values)
    except SymbolicError as error:
        raise PassFailure(op, f"has '{item}', which has no value: {error}") from None
