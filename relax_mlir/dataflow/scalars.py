"""What a leaf computes with: scalars, elements of tensors, loops, and the ids of the instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from relax_mlir.bindings import arith, ir, math, scf, tensor
from relax_mlir.dialects.tir import AtomicOp, BarrierOp, GridSizeOp, NodeIdOp
from relax_mlir.errors import UsageError

Operand: TypeAlias = "Scalar | int | float"

_ARITHMETIC = {
    "add": (arith.AddFOp, arith.AddIOp),
    "sub": (arith.SubFOp, arith.SubIOp),
    "mul": (arith.MulFOp, arith.MulIOp),
    "truediv": (arith.DivFOp, None),
    "floordiv": (None, arith.FloorDivSIOp),
    "mod": (None, arith.RemSIOp),
    "and": (None, arith.AndIOp),
    "or": (None, arith.OrIOp),
    "xor": (None, arith.XOrIOp),
    "maximum": (arith.MaximumFOp, arith.MaxSIOp),
    "minimum": (arith.MinimumFOp, arith.MinSIOp),
}
"""Operators on floats and on integers, which are signed."""
_COMPARISONS = {"eq": "OEQ", "ne": "UNE", "lt": "OLT", "le": "OLE", "gt": "OGT", "ge": "OGE"}


Method: TypeAlias = Callable[["Scalar", Operand], "Scalar"]


def _arithmetic(name: str, swapped: bool = False) -> Method:
    return lambda self, other: self._combine(name, other, swapped)


def _comparison(name: str) -> Method:
    return lambda self, other: self._compare(name, other)


class Scalar:
    """A float, an integer or an index of a leaf; Python's operators compute with it.

    Both sides have one type; constants of Python take the type of the other side. `%` is the
    remainder with the sign of the left side, and integers are signed.
    """

    __hash__ = None  # type: ignore[assignment]  # `==` makes a scalar

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return isinstance(self.value.type, ir.FloatType)

    @property
    def is_bool(self) -> bool:
        """Whether it is what a comparison gives, `i1`."""
        return bool(self.value.type == ir.IntegerType.get_signless(1))

    def like(self, other: Operand) -> ir.Value:
        """Another operand as a value of this type; raises UsageError if it is of another one."""
        type_ = self.value.type
        if isinstance(other, Scalar):
            if other.value.type != type_:
                raise UsageError(f"combines {type_} with {other.value.type}; cast one by .astype")
            return other.value
        if isinstance(other, float) and not self.is_float:
            raise UsageError(f"combines {type_} with {other}, which is a float")
        return constant(other, type_)

    def astype(self, element: str) -> Scalar:
        """The scalar as another type: `f32`, `i64`, `index`, ...

        A comparison is 1 or 0, and `i1` says what is not 0. Floats are truncated and clamped to the
        integers of the type; NaN is 0.
        """
        to, value = ir.Type.parse(element), self.value
        if to == value.type:
            return self
        if to == ir.IntegerType.get_signless(1):
            return self._compare("ne", 0)
        if isinstance(to, ir.IndexType):
            if self.is_float:
                return self.astype("i64").astype(element)
            cast = arith.IndexCastUIOp if self.is_bool else arith.IndexCastOp
            return Scalar(cast(to, value).result)
        if isinstance(value.type, ir.IndexType):
            between = ir.IntegerType.get_signless(64)
            return Scalar(arith.IndexCastOp(between, value).result).astype(element)
        is_float = isinstance(to, ir.FloatType)
        if self.is_float and is_float:
            return self._as_float(ir.FloatType(to))
        if self.is_float:
            return Scalar(arith.FPToSIOp(to, value).result)
        if is_float:
            return Scalar((arith.UIToFPOp if self.is_bool else arith.SIToFPOp)(to, value).result)
        if ir.IntegerType(to).width < ir.IntegerType(value.type).width:
            return Scalar(arith.TruncIOp(to, value).result)
        return Scalar((arith.ExtUIOp if self.is_bool else arith.ExtSIOp)(to, value).result)

    def _as_float(self, to: ir.FloatType) -> Scalar:
        before = ir.FloatType(self.value.type).width
        if before == to.width:  # f16 and bf16
            return self.astype("f32").astype(str(to))
        return Scalar(
            (arith.ExtFOp if before < to.width else arith.TruncFOp)(to, self.value).result
        )

    def _combine(self, name: str, other: Operand, swapped: bool = False) -> Scalar:
        of_floats, of_integers = _ARITHMETIC[name]
        kind = of_floats if self.is_float else of_integers
        if kind is None:
            raise UsageError(f"'{name}' of {self.value.type} is not defined")
        sides = (self.value, self.like(other))
        return Scalar(kind(*(reversed(sides) if swapped else sides)).result)

    def _compare(self, name: str, other: Operand) -> Scalar:
        if self.is_float:
            predicate = getattr(arith.CmpFPredicate, _COMPARISONS[name])
            return Scalar(arith.CmpFOp(predicate, self.value, self.like(other)).result)
        signed = name if name in ("eq", "ne") else f"s{name}"
        predicate = getattr(arith.CmpIPredicate, signed)
        return Scalar(arith.CmpIOp(predicate, self.value, self.like(other)).result)

    def __neg__(self) -> Scalar:
        return self._combine("mul", -1)

    __add__ = _arithmetic("add")
    __radd__ = _arithmetic("add", swapped=True)
    __sub__ = _arithmetic("sub")
    __rsub__ = _arithmetic("sub", swapped=True)
    __mul__ = _arithmetic("mul")
    __rmul__ = _arithmetic("mul", swapped=True)
    __truediv__ = _arithmetic("truediv")
    __rtruediv__ = _arithmetic("truediv", swapped=True)
    __floordiv__ = _arithmetic("floordiv")
    __mod__ = _arithmetic("mod")
    __and__ = _arithmetic("and")
    __or__ = _arithmetic("or")
    __xor__ = _arithmetic("xor")
    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")
    __eq__ = _comparison("eq")  # type: ignore[assignment]
    __ne__ = _comparison("ne")  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise UsageError("a scalar of a leaf has no value in Python; choose by dataflow.where")


@dataclass(frozen=True)
class Tensor:
    """A tensor that an instance gets: `x[i, j]` is an element, of which indices are clamped."""

    value: ir.Value

    def __getitem__(self, at: Operand | tuple[Operand, ...]) -> Scalar:
        indices = at if isinstance(at, tuple) else (at,)
        rank = ir.RankedTensorType(self.value.type).rank
        if len(indices) != rank:
            raise UsageError(f"reads a tensor of rank {rank} at {len(indices)} indices")
        return Scalar(tensor.ExtractOp(self.value, [as_index(each) for each in indices]).result)

    def set(self, at: Operand | tuple[Operand, ...], value: Operand) -> Tensor:
        """The tensor with another element; as it is if an index is outside.

        Its dims are static, and it is `inout` or the leaf's own.
        """
        indices = at if isinstance(at, tuple) else (at,)
        type_ = ir.RankedTensorType(self.value.type)
        if len(indices) != type_.rank:
            raise UsageError(f"stores to a tensor of rank {type_.rank} at {len(indices)} indices")
        element = value if isinstance(value, Scalar) else constant(value, type_.element_type)
        stored = element.value if isinstance(element, Scalar) else element
        return Tensor(
            tensor.InsertOp(stored, self.value, [as_index(each) for each in indices]).result
        )

    def atomic(self, kind: str, at: Operand | tuple[Operand, ...], value: Operand) -> Tensor:
        """The tensor, which is `shared`, with an element updated; an index outside does nothing.

        Kinds are "add", "sub", "min", "max", "and", "or", "xor" and "exchange".
        """
        indices = at if isinstance(at, tuple) else (at,)
        element = ir.RankedTensorType(self.value.type).element_type
        given = value.value if isinstance(value, Scalar) else constant(value, element)
        ids = [as_index(each) for each in indices]
        return Tensor(AtomicOp.build(kind, given, self.value, ids).result)

    def like(self, other: Operand | Tensor) -> ir.Value:
        """Another tensor of this type; raises UsageError for anything else."""
        if not isinstance(other, Tensor) or other.value.type != self.value.type:
            raise UsageError(f"expects a tensor of '{self.value.type}'")
        return other.value

    def extent(self, axis: int) -> Scalar:
        """An extent, an index."""
        return Scalar(tensor.DimOp(self.value, constant(axis, ir.IndexType.get())).result)


@dataclass(frozen=True)
class Instance:
    """The instance of a leaf: its indices, and those of the nodes around it by level."""

    def id(self, dim: int = 0, level: int = 0) -> Scalar:
        """An index in a dim of the grid; level 1 is that of the node around, and so on."""
        return Scalar(NodeIdOp.build(level, dim))

    def size(self, dim: int = 0, level: int = 0) -> Scalar:
        """The extent of a dim of a grid."""
        return Scalar(GridSizeOp.build(level, dim))

    def ids(self, rank: int = 1, level: int = 0) -> list[Scalar]:
        """The indices in the first dims of a grid."""
        return [self.id(dim, level) for dim in range(rank)]

    def barrier(self, *shared: Tensor) -> Tensor | tuple[Tensor, ...]:
        """All shared tensors of the leaf, when all instances have come here."""
        tensors = tuple(Tensor(BarrierOp.build(each.value).result) for each in shared)
        return tensors[0] if len(tensors) == 1 else tensors

    def filled(self, value: float, *shape: int, element: str = "f32") -> Tensor:
        """A tensor of the instance's own, of static dims."""
        kind = ir.Type.parse(element)
        return Tensor(
            tensor.SplatOp(ir.RankedTensorType.get(shape, kind), constant(value, kind), []).result
        )

    @overload
    def loop(
        self,
        end: Operand,
        start: Tensor,
        body: Callable[[Scalar, Tensor], Tensor],
        first: Operand = 0,
    ) -> Tensor: ...
    @overload
    def loop(
        self,
        end: Operand,
        start: Operand,
        body: Callable[[Scalar, Scalar], Scalar],
        first: Operand = 0,
        until: Callable[[Scalar], Scalar] | None = None,
    ) -> Scalar: ...
    def loop(
        self,
        end: Operand,
        start: Any,
        body: Callable[..., Any],
        first: Operand = 0,
        until: Callable[[Scalar], Scalar] | None = None,
    ) -> Any:
        """`start`, after `value = body(i, value)` for each i from `first` below `end`.

        Rounds end once `until(value)` holds.
        """
        index = ir.IndexType.get()
        kind = Tensor if isinstance(start, Tensor) else Scalar
        before = start if isinstance(start, kind) else kind(constant(start, ir.F32Type.get()))
        bounds = (as_index(first), as_index(end), constant(1, index))
        loop = scf.ForOp(*bounds, [before.value])
        with ir.InsertionPoint(loop.body):
            carried = kind(loop.inner_iter_args[0])
            at = Scalar(loop.induction_variable)
            if until is None:
                scf.YieldOp([carried.like(body(at, carried))])
            else:
                assert isinstance(carried, Scalar), "a tensor decides nothing"
                scf.YieldOp([_unless(until(carried), carried, lambda: body(at, carried))])
        return kind(loop.results[0])

    def loops(self, ends: Sequence[Operand], start: Operand, body: Callable[..., Scalar]) -> Scalar:
        """Nested loops: `value = body(i, j, ..., value)` for each i, j, ... from 0."""

        def inner(outer: Sequence[Scalar], value: Operand) -> Scalar:
            if len(outer) == len(ends):
                assert isinstance(value, Scalar)
                return body(*outer, value)
            return self.loop(ends[len(outer)], value, lambda i, made: inner([*outer, i], made))

        return inner([], start)


def _unless(done: Scalar, value: Scalar, body: Callable[[], Scalar]) -> ir.Value:
    """A value as it is, or what a body makes of it."""
    branch = scf.IfOp(done.value, [value.value.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([value.value])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([value.like(body())])
    return branch.results[0]


def constant(value: Operand, type_: ir.Type) -> ir.Value:
    """A constant of a type."""
    assert not isinstance(value, Scalar)
    if isinstance(type_, ir.FloatType):
        return arith.ConstantOp(type_, ir.FloatAttr.get(type_, float(value))).result
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, int(value))).result


def as_index(value: Operand) -> ir.Value:
    """An index or integer as an index."""
    if not isinstance(value, Scalar):
        return constant(value, ir.IndexType.get())
    return value.astype("index").value


def where(condition: Scalar, then: Operand, otherwise: Operand) -> Scalar:
    """One of two scalars, of which one at least is no constant of Python."""
    typed = then if isinstance(then, Scalar) else otherwise
    if not isinstance(typed, Scalar):
        raise UsageError("where takes a scalar of the leaf as one of its sides")
    sides = [typed.like(then), typed.like(otherwise)]
    return Scalar(arith.SelectOp(condition.value, *sides).result)


def maximum(a: Scalar, b: Operand) -> Scalar:
    """The greater one; NaN if one is."""
    return a._combine("maximum", b)


def minimum(a: Scalar, b: Operand) -> Scalar:
    """The lesser one; NaN if one is."""
    return a._combine("minimum", b)


def sqrt(x: Scalar) -> Scalar:
    """The square root."""
    return Scalar(math.SqrtOp(x.value).result)


def exp(x: Scalar) -> Scalar:
    """e to the power x."""
    return Scalar(math.ExpOp(x.value).result)


def values_of(results: Scalar | Tensor | Sequence[Scalar | Tensor]) -> list[ir.Value]:
    """The values of what a leaf returns; raises UsageError for anything else."""
    several = [results] if isinstance(results, Scalar | Tensor) else results
    if not isinstance(several, list | tuple) or not several:
        raise UsageError(f"a leaf returns scalars and tensors, but got {results!r}")
    if not all(isinstance(x, Scalar | Tensor) for x in several):
        raise UsageError(f"a leaf returns scalars and tensors, but got {results!r}")
    return [x.value for x in several]
