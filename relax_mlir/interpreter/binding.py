"""Binds symbols in a call: solved from the dims of arguments, and checked on all others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relax_mlir.analysis.functions import (
    argument_attribute,
    argument_name,
    facts_of,
    inout_arguments,
)
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    ShapeValueType,
    annotation_of,
    elements_of,
)
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.dialects.tir.prim_func import SYMBOL
from relax_mlir.errors import ExecutionError
from relax_mlir.symbolic import (
    Expr,
    Fact,
    JointSolution,
    SymbolicError,
    linear_in,
    parse,
    solve_jointly,
)


class Absent:
    """What an optional argument is that the caller has left out."""


ABSENT = Absent()


class Symbols(dict[str, int]):
    """The value of each symbol, and, for messages, the dim that bound it."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, str] = {}

    def nested(self) -> "Symbols":
        """A copy, for a region that may bind more symbols."""
        copy = Symbols()
        copy.update(self)
        copy.origins.update(self.origins)
        return copy

    def described(self, *subjects: Expr | Fact) -> str:
        """The values of the symbols of expressions, as text."""
        text = " ".join(map(str, subjects))
        names = frozenset().union(*(subject.symbols for subject in subjects))
        return ", ".join(
            f"{name} = {self[name]}"
            + (f" from {self.origins[name]}" if name in self.origins else "")
            for name in sorted(names & self.keys(), key=text.find)
        )

    def require(self, fact: Fact, who: str) -> None:
        """Raises ExecutionError if a fact does not hold; ignores facts on unbound symbols."""
        if not fact.symbols <= self.keys():
            return
        try:
            holds, why = fact.evaluate(self), ""
        except SymbolicError as error:
            holds, why = False, f"; {error}"
        if not holds:
            raise ExecutionError(f"'{who}' requires {fact}, but {self.described(fact)}{why}")


@dataclass(frozen=True)
class BoundDim:
    """A dim of an annotation, its extent, and its location for messages.

    `origin` is empty if messages need not say that a symbol is bound here.
    """

    dim: Expr
    extent: int
    where: str
    origin: str = ""


def bind(dims: Iterable[BoundDim], symbols: Symbols, all_known: bool = True) -> None:
    """Adds the symbols that the dims bind, plain ones first.

    Each symbol is a non-negative integer, and all dims must agree.

    Raises ExecutionError otherwise, and if `all_known`, if a symbol remains unbound.
    """
    waiting = sorted(dims, key=lambda each: str(each.dim) not in each.dim.symbols)
    progress = True
    while progress:
        progress, rest = False, []
        for each in waiting:
            free = each.dim.symbols - symbols.keys()
            parts = linear_in(each.dim, *free) if len(free) == 1 else None
            if not free:
                _check(each, symbols)
            elif parts is None or (factor := _value(each, parts[0], symbols)) <= 0:
                rest.append(each)
            else:
                (name,) = free
                symbols[name] = _solved(each, name, factor, _value(each, parts[1], symbols))
                if each.origin:
                    symbols.origins[name] = each.origin
                progress = True
        waiting = rest
        if not progress:
            progress = _bind_jointly(waiting, symbols)
    for each in waiting if all_known else ():
        missing = ", ".join(sorted(each.dim.symbols - symbols.keys()))
        raise ExecutionError(f"{each.where} is {each.extent}, but nothing determines {missing}")


def _value(dim: BoundDim, part: Expr, symbols: Symbols) -> int:
    """The value of a part of a dim, whose symbols are bound."""
    try:
        return part.evaluate(symbols)
    except SymbolicError as error:
        raise ExecutionError(f"{dim.where} is {dim.extent}, but the {error}") from None


def _solved(dim: BoundDim, name: str, factor: int, offset: int) -> int:
    rest = dim.extent - offset
    if rest % factor or rest // factor < 0:
        reason = f"'{dim.dim}' cannot be {dim.extent} for any integer {name} >= 0"
        if str(dim.dim) == name:
            reason = f"'{name}' must not be negative"
        raise ExecutionError(f"{dim.where} is {dim.extent}, but {reason}")
    return rest // factor


def _bind_jointly(waiting: Sequence[BoundDim], symbols: Symbols) -> bool:
    """Adds symbols that dims determine together; whether there are any."""
    solutions = solve_jointly([each.dim for each in waiting], symbols.keys())
    for solution in solutions:
        dims = [waiting[index] for index, _ in solution.weights]
        symbols[solution.symbol] = _solved_jointly(dims, solution, symbols)
    return bool(solutions)


def _solved_jointly(dims: Sequence[BoundDim], solution: JointSolution, symbols: Symbols) -> int:
    weights = [weight for _, weight in solution.weights]
    total = sum(weight * each.extent for weight, each in zip(weights, dims, strict=True))
    offset = _value(dims[0], solution.offset, symbols)
    value, rest = divmod(total - offset, solution.divisor)
    if rest or value < 0:
        where = ", ".join(f"{each.where} is {each.extent}" for each in dims)
        sides = ", ".join(f"'{each.dim}'" for each in dims)
        extents = ", ".join(str(each.extent) for each in dims)
        raise ExecutionError(
            f"{where}, but {sides} cannot be {extents} for any integer {solution.symbol} >= 0"
        )
    return value


def _check(dim: BoundDim, symbols: Symbols) -> None:
    want = _value(dim, dim.dim, symbols)
    if want == dim.extent:
        return
    if dim.dim.value is not None:
        raise ExecutionError(f"{dim.where} is {dim.extent}, but {want} is expected")
    known = f" ({symbols.described(dim.dim)})"
    if str(dim.dim) in dim.dim.symbols:
        origin = symbols.origins.get(str(dim.dim))
        known = f" (from {origin})" if origin and dim.origin else ""
    raise ExecutionError(f"{dim.where} is {dim.extent}, but '{dim.dim}' is {want}{known}")


@dataclass(frozen=True)
class Signature:
    """The argument annotations and facts of a function."""

    function: func.FuncOp

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.name.value

    @cached_property
    def annotations(self) -> list[Annotation]:
        """The annotations of the arguments."""
        return [annotation_of(type_) for type_ in self.function.type.inputs]

    @cached_property
    def names(self) -> list[str]:
        """The names of the arguments in messages: `argument 0 'x'`."""
        count = len(self.annotations)
        return [f"argument {i} '{argument_name(self.function, i)}'" for i in range(count)]

    @cached_property
    def facts(self) -> list[Fact]:
        """The facts on the symbols."""
        return list(facts_of(self.function))

    @cached_property
    def inout(self) -> dict[int, int]:
        """Maps each result that is an argument updated in place to the argument."""
        return inout_arguments(self.function)

    @cached_property
    def _carried(self) -> dict[int, Expr]:
        """The expressions that a tensor program's index arguments are the values of."""
        attributes = [argument_attribute(self.function, i, SYMBOL) for i in range(len(self.names))]
        return {
            index: parse(ir.StringAttr(attribute).value)
            for index, attribute in enumerate(attributes)
            if attribute is not None
        }

    def bind(self, arguments: Sequence[Any]) -> Symbols:
        """The symbols bound by arrays, shapes and indices; raises ExecutionError."""
        symbols = Symbols()
        bind(self._dims(arguments), symbols, not PrimFunc.is_prim_func(self.function))
        for fact in self.facts:
            symbols.require(fact, self.name)
        return symbols

    def _dims(self, arguments: Sequence[Any]) -> Iterable[BoundDim]:
        named = zip(self.annotations, arguments, self.names, strict=True)
        for index, (annotation, argument, name) in enumerate(named):
            if argument is ABSENT:
                continue
            if index in self._carried:
                yield BoundDim(self._carried[index], argument, name, name)
            else:
                yield from _dims_of_argument(annotation, argument, name)


def _dims_of_argument(annotation: Annotation, argument: Any, name: str) -> Iterable[BoundDim]:
    """The dims of an argument, of all elements if it is a tuple."""
    types = elements_of(annotation) if isinstance(annotation, ir.TupleType) else None
    for index, type_ in enumerate(types or ()):
        yield from _dims_of_argument(
            annotation_of(type_), argument[index], f"{name}, element {index}"
        )
    if not dims_of(annotation):
        return
    is_shape = isinstance(annotation, ShapeValueType)
    extents, word = (argument, "value") if is_shape else (argument.shape, "dim")
    for axis, dim in enumerate(dims_of(annotation)):
        if dim is not None:
            at = f"{word} {axis}"
            yield BoundDim(dim, extents[axis], f"{name}: {at}", f"{name}, {at}")
