"""Facts: relations between symbols, which are non-negative in any case."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from relax_mlir.symbolic.expr import Expr, SymbolicError
from relax_mlir.symbolic.parser import RELATIONS, parse_relation

_COMPARE = {
    "==": operator.eq,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Fact:
    """`lhs op rhs`, where `op` is one of `==`, `<=`, `<`, `>=`, `>`, `!=`."""

    lhs: Expr
    op: str
    rhs: Expr

    def __post_init__(self) -> None:
        if self.op not in RELATIONS:
            raise SymbolicError(f"'{self.op}' is not a relation; {' '.join(RELATIONS)} are")

    @classmethod
    def parse(cls, text: str) -> "Fact":
        """Parses a fact, such as `n mod 16 == 0`; raises SymbolicError."""
        return cls(*parse_relation(text))

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the fact."""
        return self.lhs.symbols | self.rhs.symbols

    def substitute(self, values: Mapping[str, Expr | int]) -> "Fact":
        """The fact with every named symbol replaced."""
        return Fact(self.lhs.substitute(values), self.op, self.rhs.substitute(values))

    def evaluate(self, values: Mapping[str, int]) -> bool:
        """Whether an assignment makes the fact true; raises SymbolicError as Expr.evaluate."""
        return _COMPARE[self.op](self.lhs.evaluate(values), self.rhs.evaluate(values))

    def __str__(self) -> str:
        return f"{self.lhs} {self.op} {self.rhs}"


@dataclass(frozen=True)
class Facts:
    """A conjunction of facts, in the given order, without duplicates."""

    items: tuple[Fact, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(dict.fromkeys(self.items)))
        object.__setattr__(self, "_hash", hash(self.items))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Facts":
        """Parses facts; raises SymbolicError for the first invalid one."""
        if isinstance(texts, str):
            raise TypeError("facts are a list of texts, not one text")
        return cls(tuple(Fact.parse(text) for text in texts))

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the facts."""
        return frozenset().union(*(fact.symbols for fact in self.items))

    def substitute(self, values: Mapping[str, Expr | int]) -> "Facts":
        """The facts with every named symbol replaced, as for a call."""
        return Facts(tuple(fact.substitute(values) for fact in self.items))

    def evaluate(self, values: Mapping[str, int]) -> bool:
        """Whether an assignment makes all facts true."""
        return all(fact.evaluate(values) for fact in self.items)

    def __add__(self, other: "Facts") -> "Facts":
        return Facts(self.items + other.items)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
