"""Converts one function: values of other dialects become values with symbolic dims.

A new function is built op by op, by the rules of `registry`; the old one is erased when that is
complete. Dims of arguments that are not known become symbols, dims of results follow from the ops.
Scalars stay scalars; those that are sizes are expressions as well, and where nothing says what such
a size is, run time binds a symbol to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_mlir.analysis.functions import FACTS, argument_name, facts_of
from relax_mlir.analysis.rename import FreshSymbols, rename_symbols
from relax_mlir.analysis.scopes import argument_symbols
from relax_mlir.bindings import arith, func, ir, tensor
from relax_mlir.decompositions.emit import emit, scalar
from relax_mlir.dialects.graph import (
    FullOp,
    MatchCastOp,
    RequireOp,
    ShapeError,
    TensorToShapeOp,
    TensorType,
    annotation_of,
    known_dims,
    shape_value_type,
    to_mlir,
)
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import is_unused, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, Fact, Facts, const, differ, equal, holds

from .programs import Programs
from .registry import rule_of

AnyOf = tuple[Fact, ...]
"""Facts of which one has to hold."""
OPPOSITE = {"==": "!=", "!=": "==", "<=": ">", ">": "<=", "<": ">=", ">=": "<"}


@dataclass(frozen=True)
class Init:
    """A tensor that ops begin with: of one element, an old scalar, or of no particular ones."""

    dims: tuple[Expr, ...]
    fill: ir.Value | None = None


@dataclass
class Conversion:
    """The conversion of a function: `values` has the new values of old ones.

    With `broadcasts`, elements that a body extracts of a dim of 1 or by a loop are broadcast: the
    dim is 1 or as long as the loop. `exprs` are the expressions of scalars that are sizes,
    `conditions` what scalars of i1 say. `inits` are tensors that are only made where something else
    than an op that fills them is used, `shapes` the dims of values that are shapes.
    """

    old: func.FuncOp
    programs: Programs
    callees: Mapping[str, func.FuncOp]
    broadcasts: bool = False
    values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    exprs: dict[ir.Value, Expr] = field(default_factory=dict)
    conditions: dict[ir.Value, list[AnyOf]] = field(default_factory=dict)
    inits: dict[ir.Value, Init] = field(default_factory=dict)
    shapes: dict[ir.Value, list[Expr]] = field(default_factory=dict)
    current: str = "func.func"
    _stated: list[Fact] = field(default_factory=list)

    def run(self) -> func.FuncOp:
        """Builds the new function after the old one, under the same name; returns it."""
        self.fresh = FreshSymbols(self.old)
        self.facts = facts_of(self.old)
        types = [
            to_mlir(self._argument(index, argument))
            for index, argument in enumerate(self.old.arguments)
        ]
        with ir.InsertionPoint.after(self.old), self.old.location:
            self.new = func.FuncOp(self.old.name.value, (types, []))
        for name in self.old.attributes:
            if name not in ("function_type", "sym_name"):
                self.new.attributes[name] = self.old.attributes[name]
        self.entry = self.new.add_entry_block([each.location for each in self.old.arguments])
        self.bound = argument_symbols(self.new)
        try:
            self.enter(self.old.entry_block, self.entry)
        except PassFailure:
            self.new.operation.erase()
            raise
        self._sign()
        self._unite_symbols()
        _erase_unused(self.new)
        return self.new

    def _argument(self, index: int, argument: ir.Value) -> TensorType | ir.Type:
        annotation = annotation_of(argument)
        if not isinstance(annotation, TensorType) or annotation.dims is None:
            return annotation
        base = argument_name(self.old, index)
        dims = [self.fresh(f"{base}_{axis}") if dim is None else dim
                for axis, dim in enumerate(annotation.dims)]  # fmt: skip
        return annotation.with_dims(dims)

    def _sign(self) -> None:
        """Sets the results' types to those of the values that are returned."""
        *_, last = self.entry.operations
        results = [value.type for value in last.operation.operands]
        type_ = ir.FunctionType.get([each.type for each in self.entry.arguments], results)
        self.new.attributes["function_type"] = ir.TypeAttr.get(type_)

    def _unite_symbols(self) -> None:
        """Makes dims of arguments that always have to be equal one symbol."""
        bound = {
            dim
            for argument in self.entry.arguments
            for dim in _dims_of(argument)
            if _is_symbol(dim) and dim not in self.facts.symbols
        }
        known: dict[str, Expr] = {}
        for fact in self._stated:
            if fact.op != "==":
                continue
            first, second = (side.substitute(known) for side in (fact.lhs, fact.rhs))
            for name, value in ((first, second), (second, first)):
                if name != value and name in bound and (value in bound or value.value is not None):
                    own = {str(name): value}
                    known = {key: each.substitute(own) for key, each in known.items()} | own
                    break
        if known:
            rename_symbols(self.new, known)
        left = Facts()
        for fact in (each.substitute(known) for each in self._stated):
            if not holds(fact, left).proved:
                left += Facts((fact,))
        if left.items:
            facts = [*facts_of(self.new), *left]
            texts = [ir.StringAttr.get(str(fact)) for fact in facts]
            self.new.attributes[FACTS] = ir.ArrayAttr.get(texts)

    # Blocks and ops.

    def enter(self, old: ir.Block, new: ir.Block) -> None:
        """Converts a block into another one, which has the same arguments."""
        for argument, value in zip(old.arguments, new.arguments, strict=True):
            self._forget(argument)
            self.values[argument] = value
        facts, current = self.facts, self.current
        with ir.InsertionPoint(new):
            for op in old.operations:
                self.op(op.operation)
        self.facts, self.current = facts, current

    def op(self, op: ir.Operation) -> None:
        """Converts an op at the insertion point."""
        rule = rule_of(op.name)
        self.current = op.name
        with op.location:
            try:
                if rule is not None:
                    rule(self, op)
                else:
                    self.copy(op)
            except ShapeError as error:
                raise PassFailure(op, str(error)) from None

    def copy(self, op: ir.Operation) -> None:
        """Keeps an op that is one of the dialect's, or on scalars."""
        new = ir.Operation.create(
            op.name,
            results=[result.type for result in op.results],
            operands=[self.value(value) for value in op.operands],
            attributes={name: op.attributes[name] for name in op.attributes},
        )
        self.define(op, *new.results)

    def define(self, op: ir.Operation, *values: ir.Value) -> None:
        """Gives the results of an op their new values, with dims that its types state."""
        for old, new in zip(op.results, values, strict=True):
            self._forget(old)
            self.values[old] = self.refined(new, old.type)

    def _forget(self, old: ir.Value) -> None:
        """Forgets what is known of a value, whose op may be converted a second time."""
        for known in (self.exprs, self.conditions, self.inits):
            known.pop(old, None)

    def refined(self, value: ir.Value, declared: ir.Type) -> ir.Value:
        """A value with the constant dims of the type that it had, which run time checks."""
        own = annotation_of(value)
        wanted = annotation_of(declared)
        if not isinstance(own, TensorType) or not isinstance(wanted, TensorType):
            return value
        if own.dims is None or wanted.dims is None or own.dims == wanted.dims:
            return value
        dims = [mine if its is None else its for mine, its in zip(own.dims, wanted.dims)]
        for axis, (mine, its) in enumerate(zip(own.dims, dims)):
            if mine is not None and its is not None and differ(mine, its, self.facts).proved:
                raise ShapeError(f"has a result with dim {axis} of {mine}, which is declared {its}")
        refined = own.with_dims(dims)
        return value if refined == own else MatchCastOp.build(value, refined).result

    # What rules ask for.

    def value(self, old: ir.Value) -> ir.Value:
        """The new value of an old one; a tensor has known dims."""
        if old in self.inits:
            return self._made(old)
        value = self.values[old]
        annotation = annotation_of(value)
        if not isinstance(annotation, TensorType) or known_dims(annotation.dims) is not None:
            return value
        if annotation.dims is None:
            raise ShapeError(f"has an operand of '{value.type}'; expects a known rank")
        base = "arg" if isinstance(value.owner, ir.Block) else value.owner.name.partition(".")[2]
        dims = [
            self.fresh(f"{base}_{axis}") if dim is None else dim
            for axis, dim in enumerate(annotation.dims)
        ]
        with self.after(value):
            named = MatchCastOp.build(value, annotation.with_dims(dims)).result
        self.values[old] = named
        return named

    def _made(self, old: ir.Value) -> ir.Value:
        """A tensor of `inits`, made at the insertion point; of no particular elements, zeros."""
        init, element = self.inits[old], ir.RankedTensorType(old.type).element_type
        value = (
            scalar(0, element) if init.fill is None else self.scalar_tensor(self.value(init.fill))
        )
        return emit(FullOp, value, shape=list(init.dims))

    def begin(self, old: ir.Value, dims: Sequence[Expr], fill: ir.Value | None = None) -> None:
        """Defines a result as a tensor that other ops begin with."""
        self._forget(old)
        self.inits[old] = Init(tuple(dims), fill)

    def dims(self, old: ir.Value) -> tuple[Expr, ...]:
        """The dims of a tensor."""
        if old in self.inits:
            return self.inits[old].dims
        return tuple(_dims_of(self.value(old)))

    def shape(self, old: ir.Value) -> list[Expr]:
        """The dims of a shape of TOSA."""
        return self.shapes[old]

    def expr(self, old: ir.Value) -> Expr:
        """The expression of an integer that is a size or a position, and so not negative."""
        if old not in self.exprs:
            symbol = self.fresh("size")
            self._bind(self.values[old], symbol)
            self.exprs[old] = symbol
        return self.exprs[old]

    def _bind(self, value: ir.Value, expr: Expr) -> None:
        """Binds a new symbol to a scalar after its definition, or checks what the scalar is."""
        i64 = ir.IntegerType.get_signless(64)
        with self.after(value):
            shape = emit(TensorToShapeOp, self.vector([value], i64))
            MatchCastOp.build(shape, shape_value_type([expr]))

    def vector(self, scalars: Sequence[ir.Value | int], element: ir.Type) -> ir.Value:
        """Integers as a tensor of rank 1."""
        own = [each if isinstance(each, ir.Value) else self.index(each) for each in scalars]
        made = [integer(each, element) for each in own]
        kind = ir.RankedTensorType.get([len(made)], element)
        return tensor.FromElementsOp(kind, made).result

    def scalar_tensor(self, scalar: ir.Value) -> ir.Value:
        """A scalar as a tensor of rank 0; an index as one of i64."""
        if isinstance(scalar.type, ir.IndexType):
            scalar = integer(scalar, ir.IntegerType.get_signless(64))
        return tensor.FromElementsOp(ir.RankedTensorType.get([], scalar.type), [scalar]).result

    @staticmethod
    def index(value: int) -> ir.Value:
        """An index constant."""
        return arith.ConstantOp(ir.IndexType.get(), value).result

    @contextmanager
    def after(self, value: ir.Value) -> Iterator[None]:
        """An insertion point where a value, and all that uses it may need, is defined."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            point = ir.InsertionPoint.at_block_begin(owner)
        else:
            point = ir.InsertionPoint.after(owner)
        with point:
            yield

    # What is checked.

    def same(self, a: Expr, b: Expr, what: str) -> None:
        """Has two dims agree; raises ShapeError, about `what`, if they never do."""
        if a == b or equal(a, b, self.facts).proved:
            return
        if differ(a, b, self.facts).proved:
            raise ShapeError(f"has {what} of {a}, which has to be {b}")
        self.require(Fact(a, "==", b))

    def require(self, *any_of: Fact) -> None:
        """Has one of the facts checked at run time, unless one is proved.

        Raises ShapeError if none of them ever holds.
        """
        if any(holds(fact, self.facts).proved for fact in any_of):
            return
        opposites = [Fact(fact.lhs, OPPOSITE[fact.op], fact.rhs) for fact in any_of]
        left = [f for f, no in zip(any_of, opposites) if not holds(no, self.facts).proved]
        if not left:
            raise ShapeError(f"requires {' or '.join(map(str, any_of))}, which never holds")
        if len(left) == 1:
            self.facts += Facts(tuple(left))
        symbols = frozenset().union(*(fact.symbols for fact in left))
        if len(left) == 1 and self._always_runs() and symbols <= self.bound:
            self._stated += left
        else:
            RequireOp.build(left, self.current)

    def check(self, condition: ir.Value) -> None:
        """Ends the call at run time unless a scalar of i1 is true."""
        if condition in self.conditions:
            for any_of in self.conditions[condition]:
                self.require(*any_of)
            return
        self._bind(self.values[condition], const(1))

    def decided(self, condition: ir.Value) -> bool | None:
        """Whether a scalar of i1 is true; None where that is not known."""
        known = self.conditions.get(condition)
        if known is None or any(len(any_of) > 1 for any_of in known):
            return None
        facts = [any_of[0] for any_of in known]
        if all(holds(fact, self.facts).proved for fact in facts):
            return True
        opposites = [Fact(fact.lhs, OPPOSITE[fact.op], fact.rhs) for fact in facts]
        return False if any(holds(fact, self.facts).proved for fact in opposites) else None

    def _always_runs(self) -> bool:
        return ir.InsertionPoint.current.block == self.entry


def integer(value: ir.Value, element: ir.Type) -> ir.Value:
    """An integer in another type; an i1 counts from 0."""
    if value.type == element:
        return value
    if isinstance(value.type, ir.IndexType) or isinstance(element, ir.IndexType):
        return arith.IndexCastOp(element, value).result
    if value.type.width == 1:
        return arith.ExtUIOp(element, value).result
    op = arith.ExtSIOp if value.type.width < element.width else arith.TruncIOp  # type: ignore[attr-defined]
    return op(element, value).result


def _erase_unused(function: func.FuncOp) -> None:
    """Erases scalars that became expressions, and were not needed otherwise."""
    for op in reversed(walk_ops(function)):
        name = op.operation.name
        scalar = name.startswith("arith.") or name in ("tensor.dim", "tensor.from_elements")
        if scalar and is_unused(op):
            safe_erase(op)


def _dims_of(value: ir.Value) -> list[Expr]:
    annotation = annotation_of(value)
    if not isinstance(annotation, TensorType):
        return []
    return [dim for dim in annotation.dims or () if dim is not None]


def _is_symbol(dim: Expr) -> bool:
    return dim.symbols == {str(dim)}
