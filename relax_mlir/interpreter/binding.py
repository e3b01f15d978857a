"""What symbols are in a call: read off the dims of arguments, and held against all others."""

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
from relax_mlir.dialects.graph import Annotation, ShapeValueType, annotation_of
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.dialects.tir.prim_func import SYMBOL
from relax_mlir.errors import ExecutionError
from relax_mlir.symbolic import Expr, Fact, parse, solve


class Symbols(dict[str, int]):
    """The value of each symbol, and for messages which dim it was read off."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, str] = {}

    def nested(self) -> "Symbols":
        """A copy, for a region that may bind more."""
        copy = Symbols()
        copy.update(self)
        copy.origins.update(self.origins)
        return copy

    def told(self, *subjects: Expr | Fact) -> str:
        """The values of the symbols of expressions, in words."""
        text = " ".join(map(str, subjects))
        names = frozenset().union(*(subject.symbols for subject in subjects))
        return ", ".join(
            f"{name} = {self[name]}"
            + (f" from {self.origins[name]}" if name in self.origins else "")
            for name in sorted(names & self.keys(), key=text.find)
        )

    def require(self, fact: Fact, who: str) -> None:
        """Raises ExecutionError if a fact does not hold; one of unknown symbols is let pass."""
        if fact.symbols <= self.keys() and not fact.evaluate(self):
            raise ExecutionError(f"'{who}' requires {fact}, but {self.told(fact)}")


@dataclass(frozen=True)
class Place:
    """A dim as an annotation has it, its extent, and for messages where it is.

    `origin` is empty where a symbol that is bound here needs no explanation.
    """

    dim: Expr
    extent: int
    where: str
    origin: str = ""


def bind(places: Iterable[Place], symbols: Symbols, all_known: bool = True) -> None:
    """Adds the symbols that the dims bind, plain ones first.

    Each symbol is an integer that is not negative, and all dims have to agree.

    Raises ExecutionError if that is not so or, unless `all_known` is false, if a symbol stays
    without a value.
    """
    waiting = sorted(places, key=lambda place: str(place.dim) not in place.dim.symbols)
    progress = True
    while progress:
        progress, rest = False, []
        for place in waiting:
            free = place.dim.symbols - symbols.keys()
            solution = solve(place.dim, *free) if len(free) == 1 else None
            if not free:
                _check(place, symbols)
            elif solution is None:
                rest.append(place)
            else:
                (name,) = free
                symbols[name] = _solved(place, name, solution, symbols)
                if place.origin:
                    symbols.origins[name] = place.origin
                progress = True
        waiting = rest
    for place in waiting if all_known else ():
        missing = ", ".join(sorted(place.dim.symbols - symbols.keys()))
        raise ExecutionError(f"{place.where} is {place.extent}, but nothing determines {missing}")


def _solved(place: Place, name: str, solution: tuple[Expr, Expr], symbols: Symbols) -> int:
    factor, offset = (part.evaluate(symbols) for part in solution)
    rest = place.extent - offset
    if factor == 0 or rest % factor or rest // factor < 0:
        reason = f"'{place.dim}' cannot be {place.extent} for any integer {name} >= 0"
        if str(place.dim) == name:
            reason = f"'{name}' must not be negative"
        raise ExecutionError(f"{place.where} is {place.extent}, but {reason}")
    return rest // factor


def _check(place: Place, symbols: Symbols) -> None:
    want = place.dim.evaluate(symbols)
    if want == place.extent:
        return
    if place.dim.value is not None:
        raise ExecutionError(f"{place.where} is {place.extent}, but {want} is expected")
    known = f" ({symbols.told(place.dim)})"
    if str(place.dim) in place.dim.symbols:
        origin = symbols.origins.get(str(place.dim))
        known = f" (from {origin})" if origin and place.origin else ""
    raise ExecutionError(f"{place.where} is {place.extent}, but '{place.dim}' is {want}{known}")


@dataclass(frozen=True)
class Signature:
    """What a function says of its arguments."""

    function: func.FuncOp

    @property
    def name(self) -> str:
        """Of the function."""
        return self.function.name.value

    @cached_property
    def annotations(self) -> list[Annotation]:
        """Those of the arguments."""
        return [annotation_of(type_) for type_ in self.function.type.inputs]

    @cached_property
    def names(self) -> list[str]:
        """Of the arguments, as messages have them: `argument 0 'x'`."""
        count = len(self.annotations)
        return [f"argument {i} '{argument_name(self.function, i)}'" for i in range(count)]

    @cached_property
    def facts(self) -> list[Fact]:
        """What has to hold of the symbols."""
        return list(facts_of(self.function))

    @cached_property
    def inout(self) -> dict[int, int]:
        """Result to the argument that it is the updated value of."""
        return inout_arguments(self.function)

    @cached_property
    def _carried(self) -> dict[int, Expr]:
        """The expressions whose values a tensor program's index arguments are."""
        attributes = [argument_attribute(self.function, i, SYMBOL) for i in range(len(self.names))]
        return {
            index: parse(ir.StringAttr(attribute).value)
            for index, attribute in enumerate(attributes)
            if attribute is not None
        }

    def bind(self, arguments: Sequence[Any]) -> Symbols:
        """What the symbols are for arrays, shapes and indices; raises ExecutionError."""
        symbols = Symbols()
        bind(self._places(arguments), symbols, not PrimFunc.is_prim_func(self.function))
        for fact in self.facts:
            symbols.require(fact, self.name)
        return symbols

    def _places(self, arguments: Sequence[Any]) -> Iterable[Place]:
        named = zip(self.annotations, arguments, self.names, strict=True)
        for index, (annotation, argument, name) in enumerate(named):
            if index in self._carried:
                yield Place(self._carried[index], argument, name, name)
                continue
            if not dims_of(annotation):
                continue
            is_shape = isinstance(annotation, ShapeValueType)
            extents, word = (argument, "value") if is_shape else (argument.shape, "dim")
            for axis, dim in enumerate(dims_of(annotation)):
                if dim is not None:
                    at = f"{word} {axis}"
                    yield Place(dim, extents[axis], f"{name}: {at}", f"{name}, {at}")
