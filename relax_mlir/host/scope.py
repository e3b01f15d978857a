"""What is known at a point of a host function: symbols, expressions over them, tensors.

A scope begins where symbols become known, which is where a region begins or a cast binds some, and
ends with the region. Its expressions are computed where it begins, whoever needs them later, so
that a single branch leaves the function if one of them does not fit 64 bits:

    head:   %bytes, %fault = 4*n*m, ...
            cond_br %fault, ^cold, ^body
    body:   the ops of the scope
    cold:   rx_refuse_sizes(ctx, table of the expressions, values of the symbols)
"""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.symbolic import Expr, Facts
from relax_mlir.symbolic.domain import domain_of
from relax_mlir.symbolic.intervals import NATURAL, interval_of

from .arithmetic import Arithmetic, Number, in_64_bits
from .builder import Builder
from .tables import DIMENSION, INTEGER, Globals

Size: TypeAlias = Expr | ir.Value
"""An integer at run time: as an expression over symbols, or computed already."""

NO_FACTS = Facts()


@dataclass(frozen=True)
class HostTensor:
    """A tensor at run time: where it is, and its dims."""

    pointer: ir.Value
    dims: tuple[Size, ...]
    element: ir.Type


Symbols: TypeAlias = ChainMap[str, ir.Value]
Expressions: TypeAlias = ChainMap[Expr, ir.Value]
Scalars: TypeAlias = ChainMap[ir.Value, ir.Value]
Tensors: TypeAlias = ChainMap[ir.Value, HostTensor]
Shapes: TypeAlias = ChainMap[ir.Value, tuple[Size, ...]]
"""What is known outside and inside of a scope; what is added is known inside only."""


class Scope:
    """Begins at the end of the current block of `out`, inside of `outer`; `close` ends it.

    `symbols` become known here, and `facts` hold, which something has checked. `tensors`, `shapes`
    and `scalars`, addresses of storages among these, say what values of the graph function are.
    """

    def __init__(
        self,
        out: Builder,
        symbols: Mapping[str, ir.Value],
        facts: Facts = NO_FACTS,
        outer: "Scope | None" = None,
    ) -> None:
        self.outer: Scope = outer or self
        self.facts: Facts = outer.facts + facts if outer else facts
        self.symbols: Symbols = outer.symbols.new_child() if outer else ChainMap()
        self.tensors: Tensors = outer.tensors.new_child() if outer else ChainMap()
        self.scalars: Scalars = outer.scalars.new_child() if outer else ChainMap()
        self.shapes: Shapes = outer.shapes.new_child() if outer else ChainMap()
        self._expressions: Expressions = outer._expressions.new_child() if outer else ChainMap()
        self.symbols.update(symbols)
        self._ranges = domain_of(self.facts).ranges
        self._numbers = {
            name: Number(value, in_64_bits(self._ranges.get(name, NATURAL)))
            for name, value in self.symbols.items()
        }
        self._checked: dict[Expr, int] = {}
        self._out, self._head = out, out.block
        self._arithmetic = Arithmetic(out)
        self._body = out.new_block()
        out.enter(self._body)

    def inside(
        self, symbols: Mapping[str, ir.Value] | None = None, facts: Facts = NO_FACTS
    ) -> "Scope":
        """A scope in this one, which begins at the end of the current block."""
        return Scope(self._out, symbols or {}, facts, self)

    def integer(self, size: Expr, kind: int = INTEGER) -> ir.Value:
        """The value of an expression over the symbols that are known here.

        `kind` is that of an `RxSize`, for messages. Raises OverflowError for a constant beyond 64
        bits.
        """
        if size not in self._expressions:
            with self._out.inserting(self._head):
                before = self._arithmetic.fault
                number = self._arithmetic.compute(size, self._numbers)
            if self._arithmetic.fault is not before:
                self._checked[size] = kind
            self._expressions[size] = number.value
        return self._expressions[size]

    def require_natural(self, dim: Expr) -> None:
        """Leaves the function if a dim is negative; raises OverflowError as `integer` does."""
        low, _ = interval_of(dim, self._ranges)
        if (low is not None and low >= 0) or self._checked.get(dim) == DIMENSION:
            return
        value = self.integer(dim)
        with self._out.inserting(self._head):
            self._arithmetic.refuse_negative(value)
        self._checked[dim] = DIMENSION

    def close(self, table: Globals, function: str) -> None:
        """Writes the exit, from the beginning of the scope, for sizes that do not fit."""
        out, fault = self._out, self._arithmetic.fault
        with out.inserting(self._head):
            if fault is None:
                out.branch(self._body)
            else:
                out.branch_if(fault, self._refusal(table, function), self._body)

    def _refusal(self, table: Globals, function: str) -> ir.Block:
        """A block that says which of the checked expressions is too large, and fails."""
        out = self._out
        symbols = sorted(frozenset().union(*(size.symbols for size in self._checked)))
        sizes = table.sizes(function, self._checked, symbols)
        cold = out.new_cold_block()
        with out.inserting(cold):
            values = out.stack(len(symbols))
            out.store_integers([self.symbols[name] for name in symbols], values)
            out.call_runtime("rx_refuse_sizes", [out.context, out.address(sizes), values])
            out.branch(out.failure)
        return cold
