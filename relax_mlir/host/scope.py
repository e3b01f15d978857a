"""The symbols, expressions over them, and tensors at a point of a host function.

A scope begins where symbols are bound, which is the beginning of a region or a cast, and ends with
the region. All its expressions are computed where it begins, so that a single branch returns from
the function if one of them does not fit 64 bits:

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

from .arithmetic import Arithmetic, Ranged, in_64_bits
from .builder import Builder
from .tables import DIMENSION, INTEGER, Globals

Size: TypeAlias = Expr | ir.Value
"""An integer at run time: an expression over symbols, or a value."""

NO_FACTS = Facts()


@dataclass(frozen=True)
class HostTensor:
    """A tensor at run time: its address and dims."""

    pointer: ir.Value
    dims: tuple[Size, ...]
    element: ir.Type


Symbols: TypeAlias = ChainMap[str, ir.Value]
Expressions: TypeAlias = ChainMap[Expr, ir.Value]
Scalars: TypeAlias = ChainMap[ir.Value, ir.Value]
Tensors: TypeAlias = ChainMap[ir.Value, HostTensor]
Shapes: TypeAlias = ChainMap[ir.Value, tuple[Size, ...]]
"""Maps of outer and inner scopes; additions are local to the inner scope."""


class Scope:
    """Begins at the end of the current block of `out`, nested in `outer`; `close` ends it.

    `symbols` are bound here, and `facts` hold, which were checked before. `tensors`, `shapes` and
    `scalars`, which include addresses of storages, map values of the graph function.
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
        self._ranged = {
            name: Ranged(value, in_64_bits(self._ranges.get(name, NATURAL)))
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
        """The value of an expression over the symbols in scope.

        `kind` is that of an `RxSize`, for messages. Raises OverflowError for a constant beyond 64
        bits.
        """
        if size not in self._expressions:
            with self._out.inserting(self._head):
                before = self._arithmetic.fault
                computed = self._arithmetic.compute(size, self._ranged)
            if self._arithmetic.fault is not before:
                self._checked[size] = kind
            self._expressions[size] = computed.value
        return self._expressions[size]

    def require_natural(self, dim: Expr) -> None:
        """Returns with an error if a dim is negative; raises OverflowError as `integer` does."""
        low, _ = interval_of(dim, self._ranges)
        if (low is not None and low >= 0) or self._checked.get(dim) == DIMENSION:
            return
        value = self.integer(dim)
        with self._out.inserting(self._head):
            self._arithmetic.refuse_negative(value)
        self._checked[dim] = DIMENSION

    def close(self, table: Globals, function: str) -> None:
        """Emits the exit, from the beginning of the scope, for sizes that do not fit."""
        out, fault = self._out, self._arithmetic.fault
        with out.inserting(self._head):
            if fault is None:
                out.branch(self._body)
            else:
                out.branch_if(fault, self._refusal(table, function), self._body)

    def _refusal(self, table: Globals, function: str) -> ir.Block:
        """A block that reports which of the checked expressions is too large, and fails."""
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
