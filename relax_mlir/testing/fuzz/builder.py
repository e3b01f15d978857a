"""Builds a random function: the values that there are, arguments made where one is wanted."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Dim,
    MaximumOp,
    MinimumOp,
    TensorType,
    annotation_of,
    constant,
    exact_dims,
    storage_element,
    stored_integer,
)
from relax_mlir.symbolic import Expr, as_expr, const, sym

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "i8", "i16", "ui8", "ui32", "ui64", "ui16")
ELEMENTS = (*FLOATS, *INTEGERS, "i1")
LIMIT = {"f16": 64.0, "bf16": 1e3, "f32": 1e3, "f64": 1e3}
"""The magnitude from which on values are clamped."""
NORMAL = 5.0
"""The magnitude of arguments, which are normal numbers."""
EXTENT = 64
"""Stands for the extent of a symbolic dim in a bound."""
RECENT = 6
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65)

Dims = tuple[Expr, ...]


@dataclass(frozen=True)
class Value:
    """A tensor of a function.

    `exact` says that levels may not differ in any bit of it, so that it may decide something;
    `bound` is the magnitude that finite elements do not exceed.
    """

    ir: ir.Value
    dims: Dims
    element: str
    exact: bool
    bound: float

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    @property
    def is_float(self) -> bool:
        """Whether elements are floats."""
        return self.element in FLOATS

    @property
    def annotation(self) -> TensorType:
        """What the type says."""
        return TensorType.of(self.ir)


Accepts = Callable[[Value], bool]


class Builder:
    """A function that is being written, at the insertion point of its block."""

    def __init__(
        self,
        chance: random.Random,
        block: ir.Block,
        name: str,
        module: ir.Module,
        element: str,
        group: int,
    ) -> None:
        """`element` is the type of most values; programs of one group have few types and dims."""
        self.random, self.name, self.module, self.element = chance, name, module, element
        self.entry = block
        self.values: list[Value] = []
        self.used: list[str] = []
        """Names of the ops, to be counted."""
        self.more_results: list[Value] = []
        """Values that the function returns, though few operators take them."""
        self.depth = 0
        self.group = group
        names = self.few("symbols", [["n"], ["n"], ["n", "m"], ["n", "m"], ["k", "n"]], 2)
        self.symbols = [sym(name) for name in names]
        widths = [self.few("widths", WIDTHS, 2) for _ in range(2)]
        self.extents: list[Expr] = [*self.symbols, *map(const, widths)]

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return self.random.random() < probability

    def few(self, what: str, options: Sequence[Any], count: int) -> Any:
        """One of the few options that programs of this group have, so that they share kernels."""
        chosen = random.Random(f"{self.group} {what}").sample(options, min(count, len(options)))
        return self.random.choice(chosen)

    def any_symbol(self) -> Expr:
        """A symbol of the function, or a constant if it has none."""
        return self.symbols[0] if self.symbols else const(4)

    def pick_dim(self) -> Expr:
        """A symbol, a small number, now and then an expression."""
        if self.symbols and self.chance(0.5):
            base = self.random.choice(self.symbols)
            if self.chance(0.08):
                other = self.random.choice(self.symbols)
                return self.few("dims", [base * 2, base + 1, base * 4, base + 3, base + other], 1)
            return base
        return self.random.choice(self.extents)

    def pick_dims(self, rank: int) -> Dims:
        """Dims of which the product stays small."""
        dims = [self.pick_dim() for _ in range(rank)]
        wide = [axis for axis, dim in enumerate(dims) if dim.value is None or dim.value > 8]
        for axis in wide[2:]:
            dims[axis] = const(self.few("narrow", [1, 2, 3], 1))
        return tuple(dims)

    def maybe_other(self, dim: Expr) -> Expr:
        """The dim, or now and then another one that may be equal to it when the program runs."""
        if dim.value is None and self.chance(0.08):
            return self.random.choice([*self.symbols, const(4)])
        return dim

    def argument(self, dims: Sequence[Dim | int], element: str | None = None) -> Value:
        """A new argument of the function."""
        kind = ir.Type.parse(element or self.element)
        annotation = TensorType.make(dims, kind)
        value = self.entry.add_argument(annotation.to_mlir(), ir.Location.unknown())
        bound = NORMAL if element in FLOATS else 2.0**63
        return self.add(value, exact=True, bound=bound)

    def parameter(self, like: Value, names: Mapping[Expr, Expr], exact: bool) -> Value:
        """A new argument of a called function, for values like one of the caller."""
        dims = [names.get(dim, dim) for dim in like.dims]
        made = self.argument(dims, like.element)
        self.values[-1] = replace(made, exact=exact, bound=like.bound)
        return self.values[-1]

    def weight(self, dims: Sequence[Expr | int], element: str | None = None) -> Value:
        """An argument, or a constant, which compilation may lay out."""
        known = self.chance(0.3)
        return (
            self.constant(tuple(map(as_expr, dims)), element, 4096)
            if known
            else self.argument(dims, element)
        )

    def constant(self, dims: Dims, element: str | None = None, most: int = 64) -> Value:
        """Small whole numbers, where there are few; an argument of the same dims else."""
        kind = element or self.element
        if any(dim.value is None for dim in dims) or size_of(dims) > most or kind == "i1":
            return self.argument(dims, element)
        shape = [dim.value or 0 for dim in dims]
        element_type = ir.Type.parse(kind)
        type_ = ir.RankedTensorType.get(shape, storage_element(element_type))
        numbers = [self.random.randint(-5, 5) for _ in range(size_of(dims))]
        if numbers:
            dense = ir.DenseElementsAttr.get([_attribute(n, element_type) for n in numbers], type_)
        else:  # which takes no empty list
            dense = ir.DenseElementsAttr(ir.Attribute.parse(f"dense<> : {type_}"))
        return self.add(constant(dense, element_type), exact=True, bound=NORMAL)

    def add(self, value: ir.Value, exact: bool, bound: float) -> Value:
        """Notes a tensor that is there."""
        annotation = TensorType.of(value)
        known = Value(value, exact_dims(annotation.dims), str(annotation.element), exact, bound)
        self.values.append(known)
        return known

    def pick(self, accepts: Accepts = lambda value: True) -> Value | None:
        """A value, a computed and late one rather than another; None if none is accepted."""
        found = [value for value in self.values if accepts(value)]
        if not found:
            return None
        computed = [value for value in found if value.ir.owner != self.entry]
        found = computed if computed and self.chance(0.6) else found
        return self.random.choice(found[-RECENT:] if self.chance(0.8) else found)

    def take(
        self,
        accepts: Accepts = lambda value: True,
        ranks: Sequence[int] = (1, 2, 2, 3),
        element: str | None = None,
    ) -> Value:
        """A value that is accepted, or a new argument of one of the ranks."""
        value = self.pick(accepts) if self.chance(0.85) else None
        if value is not None:
            return value
        dims = self.pick_dims(self.random.choice(ranks))
        return self.constant(dims, element) if self.chance(0.1) else self.argument(dims, element)

    def floats(
        self, accepts: Accepts = lambda value: True, ranks: Sequence[int] = (1, 2, 2, 3)
    ) -> Value:
        """A tensor of floats."""
        element = self.element if self.element in FLOATS else self.random.choice(FLOATS)
        return self.take(lambda value: value.is_float and accepts(value), ranks, element)

    def exact(
        self, accepts: Accepts = lambda value: True, ranks: Sequence[int] = (1, 2, 2, 3)
    ) -> Value:
        """A tensor that levels may not differ in."""
        return self.take(lambda value: value.exact and accepts(value), ranks)

    def beside(self, value: Value, element: str | None = None) -> Value:
        """A tensor that broadcasts with another one: its dims, some of them 1, or fewer."""
        kind = element or value.element

        def fits(other: Value) -> bool:
            pairs = zip(reversed(other.dims), reversed(value.dims))
            return other.element == kind and all(_one_of(a, b) for a, b in pairs)

        found = self.pick(fits) if self.chance(0.75) else None
        if found is not None:
            return found
        rank = self.random.choice([value.rank, value.rank, self.random.randint(0, value.rank)])
        dims = value.dims[value.rank - rank :]
        return self.argument([const(1) if self.chance(0.2) else dim for dim in dims], kind)

    def emit(
        self,
        op: Any,
        operands: Sequence[Value | None],
        exact: bool | None = None,
        bound: float | None = None,
        **attributes: Any,
    ) -> Value:
        """Adds an operator with one result; exact and bounded as its operands, if not said."""
        return self.emit_many(op, operands, exact, bound, **attributes)[0]

    def emit_many(
        self,
        op: Any,
        operands: Sequence[Value | None],
        exact: bool | None = None,
        bound: float | None = None,
        **attributes: Any,
    ) -> list[Value]:
        """Adds an operator; returns its results."""
        given = [value for value in operands if value is not None]
        built = op.build(*(value and value.ir for value in operands), **attributes)
        is_exact = all(value.exact for value in given) if exact is None else exact
        highest = max((value.bound for value in given), default=1.0) if bound is None else bound
        return self.results_of(built, is_exact, highest)

    def results_of(self, built: Any, exact: bool, bound: float) -> list[Value]:
        """Notes the results of an op that was built."""
        self.used.append(built.OPERATION_NAME.partition(".")[2])
        return [
            self._added(result, exact, bound)
            for result in built.operation.results
            if isinstance(annotation_of(result), TensorType)
        ]

    def _added(self, result: ir.Value, exact: bool, bound: float) -> Value:
        kind = str(TensorType.of(result).element)
        value = self.add(result, exact or kind not in FLOATS, bound)
        if kind in FLOATS and bound > LIMIT[kind]:
            return self.clamp(value, -8, 8)
        return value

    def clamp(self, value: Value, low: float, high: float) -> Value:
        """Moves elements into a range."""
        above = self.emit(MaximumOp, [value, self.number(low, value.element)], value.exact, 0)
        end = max(abs(low), abs(high))
        return self.emit(MinimumOp, [above, self.number(high, value.element)], value.exact, end)

    def number(self, number: float, element: str) -> Value:
        """A constant of rank 0."""
        kind = ir.Type.parse(element)
        scalar = ir.RankedTensorType.get([], storage_element(kind))
        dense = ir.DenseElementsAttr.get_splat(scalar, _attribute(number, kind))
        return Value(constant(dense, kind), (), element, True, abs(number))

    @contextmanager
    def nested(self, block: ir.Block) -> Iterator[None]:
        """Writes into a block, whose values nobody sees behind it."""
        outer = list(self.values)
        self.depth += 1
        with ir.InsertionPoint(block):
            yield
        self.depth -= 1
        # Arguments that were made inside belong to the function.
        seen = len(outer)
        self.values = outer + [v for v in self.values[seen:] if v.ir.owner == self.entry]

    def function(self, name: str, element: str | None = None) -> tuple[func.FuncOp, "Builder"]:
        """A private function of the module, empty as yet, and its builder."""
        with ir.InsertionPoint(self.module.body):
            made = func.FuncOp(name, ([], []), visibility="private")
        block = made.add_entry_block()
        builder = Builder(
            self.random, block, name, self.module, element or self.element, self.group
        )
        builder.depth = self.depth + 1
        return made, builder


def _attribute(number: float, element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.IntegerType):
        return stored_integer(element, int(number))
    return ir.FloatAttr.get(element, number)


def size_of(dims: Sequence[Expr]) -> int:
    """About the number of elements, for bounds."""
    count = 1
    for dim in dims:
        count *= EXTENT if dim.value is None else dim.value
    return count


def _one_of(dim: Expr, other: Expr) -> bool:
    return dim == other or dim.value == 1
