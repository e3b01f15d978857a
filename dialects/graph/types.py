"""Annotations as Python data: dims, tensor types, shape values, and rules on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.symbolic import Expr, Fact, as_expr, const, differ, equal

from .dialect import ShapeAttr, ShapeValueType

Dim = Expr | None
"""One dim: a canonical integer expression, or None where nothing is known."""

UNKNOWN = "?"


class ShapeError(Exception):
    """Raised by a deduction rule; its text becomes the diagnostic of the op."""


def dims_to_attr(dims: Sequence[Dim]) -> ir.ArrayAttr:
    """Writes dims as the array that `#graph.shape` and `!graph.shape_value` hold."""
    return ir.ArrayAttr.get([_dim_to_attr(dim) for dim in dims])


def _dim_to_attr(dim: Dim) -> ir.Attribute:
    if dim is None:
        return ir.StringAttr.get(UNKNOWN)
    if dim.value is not None:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim.value)
    return ir.StringAttr.get(str(dim))


def dims_of_attr(attribute: ir.Attribute) -> tuple[Dim, ...]:
    """Reads dims back from the array; raises SymbolicError on malformed text."""
    values = (dim.value for dim in ir.ArrayAttr(attribute))
    return tuple(None if value == UNKNOWN else as_expr(value) for value in values)


def shape_attr(dims: Sequence[Dim | int | str]) -> ir.Attribute:
    """Builds `#graph.shape<dims>`; ints and strings are taken as expressions."""
    return ShapeAttr.get(dims_to_attr(as_dims(dims)))


def shape_value_type(dims: Sequence[Dim | int | str]) -> ir.Type:
    """Builds `!graph.shape_value<dims>`."""
    return ShapeValueType.get(dims_to_attr(as_dims(dims)))


def shape_value_dims(type_: ir.Type) -> tuple[Dim, ...]:
    """Returns the dims of a `!graph.shape_value`; raises ShapeError for another type."""
    if not isinstance(type_, ShapeValueType):
        raise ShapeError(f"expects a shape value, but got '{type_}'")
    return dims_of_attr(ShapeValueType(type_).dims)


def as_dims(dims: Iterable[Dim | int | str]) -> tuple[Dim, ...]:
    """Takes ints and strings as expressions; "?" is an unknown dim."""
    return tuple(None if dim is None or dim == UNKNOWN else as_expr(dim) for dim in dims)


def known_dims(dims: Sequence[Dim] | None) -> tuple[Expr, ...] | None:
    """Returns the dims if each is a known expression, else None."""
    known = tuple(dim for dim in dims or () if dim is not None)
    return None if dims is None or len(known) < len(dims) else known


def exact_dims(dims: Sequence[Dim] | None) -> tuple[Expr, ...]:
    """Returns the dims where each is a known expression; raises ShapeError where one is not."""
    known = known_dims(dims)
    if known is None:
        raise ShapeError("expects known dims")
    return known


def static_extent(dim: Dim) -> int | None:
    """Returns the extent that a dim has for every value of symbols, if there is one."""
    return None if dim is None else dim.value


def element_bits(element: ir.Type) -> int:
    """Width of an element in memory, in bits: a byte at least, 64 for an index."""
    if isinstance(element, ir.IndexType):
        return 64
    if isinstance(element, ir.IntegerType):
        return max(8, element.width)
    return ir.FloatType(element).width


@dataclass(frozen=True)
class TensorType:
    """A tensor annotation: dims and element type; `dims` is None where the rank is unknown.

    The MLIR form is a builtin tensor. Symbolic dims are written into its encoding; a type whose
    dims are all static or unknown has none, so that plain MLIR stays plain.
    """

    dims: tuple[Dim, ...] | None
    element: ir.Type

    @staticmethod
    def make(dims: Sequence[Dim | int | str], element: ir.Type) -> "TensorType":
        """Builds a ranked annotation from expressions, ints and canonical strings."""
        return TensorType(as_dims(dims), element)

    @staticmethod
    def of(value: ir.Value | ir.Type) -> "TensorType":
        """Reads the annotation of a value or a type; raises ShapeError if it is no tensor."""
        type_ = value if isinstance(value, ir.Type) else value.type
        if isinstance(type_, ir.UnrankedTensorType):
            return TensorType(None, type_.element_type)
        if not isinstance(type_, ir.RankedTensorType):
            raise ShapeError(f"expects a tensor, but got '{type_}'")
        if isinstance(type_.encoding, ShapeAttr):
            dims = dims_of_attr(type_.encoding.dims)
            if len(dims) != type_.rank:
                raise ShapeError(
                    f"annotation names {len(dims)} dims of rank {type_.rank} '{type_}'"
                )
            return TensorType(dims, type_.element_type)
        dynamic = ir.ShapedType.get_dynamic_size()
        dims = tuple(None if dim == dynamic else const(dim) for dim in type_.shape)
        return TensorType(dims, type_.element_type)

    def to_mlir(self) -> ir.Type:
        """Returns the builtin tensor type that carries this annotation."""
        if self.dims is None:
            return ir.UnrankedTensorType.get(self.element)
        dynamic = ir.ShapedType.get_dynamic_size()
        values = [static_extent(dim) for dim in self.dims]
        extents = [dynamic if value is None else value for value in values]
        if all(dim is None or value is not None for dim, value in zip(self.dims, values)):
            return ir.RankedTensorType.get(extents, self.element)
        return ir.RankedTensorType.get(extents, self.element, shape_attr(self.dims))

    @property
    def rank(self) -> int | None:
        """Number of dims, or None where unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_exact(self) -> bool:
        """True if every dim is a known expression."""
        return self.dims is not None and all(dim is not None for dim in self.dims)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols that occur in the dims."""
        return frozenset().union(*(dim.symbols for dim in self.dims or () if dim is not None))

    def with_dims(self, dims: Sequence[Dim | int | str]) -> "TensorType":
        """Returns this element type with other dims."""
        return TensorType.make(dims, self.element)

    def substitute(self, values: Mapping[str, Expr | int]) -> "TensorType":
        """Replaces symbols by expressions in every dim."""
        if self.dims is None:
            return self
        return TensorType(
            tuple(None if dim is None else dim.substitute(values) for dim in self.dims),
            self.element,
        )

    def __str__(self) -> str:
        if self.dims is None:
            return f"tensor<*x{self.element}>"
        dims = [UNKNOWN if dim is None else str(dim) for dim in self.dims]
        return "tensor<" + " x ".join([*dims, str(self.element)]) + ">"


_ASSUMED: ContextVar[list[Fact] | None] = ContextVar("assumed", default=None)


@contextmanager
def assumptions() -> Iterator[list[Fact]]:
    """Collects what rules within the block take for granted: neither refused nor plain to see.

    A kernel reads beyond its operands if such a fact does not hold when it runs.
    """
    found: list[Fact] = []
    token = _ASSUMED.set(found)
    try:
        yield found
    finally:
        _ASSUMED.reset(token)


def assume(lhs: Dim | int, relation: str, rhs: Dim) -> None:
    """Notes that a rule takes a relation of two dims for granted; unknown dims are let pass."""
    found = _ASSUMED.get()
    if found is None or lhs is None or rhs is None or lhs == rhs:
        return
    found.append(Fact(as_expr(lhs), relation, rhs))


def dims_differ(a: Dim, b: Dim) -> bool:
    """True only if the two dims are proved different for every value of their symbols.

    Rules ask this of dims that must agree: where it is False, they go on as if they did.
    """
    if _proved_different(a, b):
        return True
    assume(a, "==", b)
    return False


def _proved_different(a: Dim, b: Dim) -> bool:
    return a is not None and b is not None and differ(a, b).proved


def dims_equal(a: Dim, b: Dim) -> bool:
    """True only if the two dims are proved equal."""
    return a is not None and b is not None and equal(a, b).proved


def join_dims(a: Dim, b: Dim) -> Dim:
    """Returns the finer of two annotations of one dim (paper §4.1: never lose one)."""
    if a is None:
        return b
    if b is None or a.value is not None:
        return a
    return b if b.value is not None else a


def broadcast(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    """Broadcasts two shapes as NumPy does, aligned at the last dim.

    Where neither equality nor a 1 can be proved, the dim is unknown. Raises ShapeError if two
    dims are proved different and neither can be 1.
    """
    rank = max(len(a), len(b))
    one = const(1)
    left, right = (one,) * (rank - len(a)) + tuple(a), (one,) * (rank - len(b)) + tuple(b)
    return tuple(_broadcast_dim(x, y) for x, y in zip(left, right))


def _broadcast_dim(x: Dim, y: Dim) -> Dim:
    one = const(1)
    if y == one:
        return x
    if x == one:
        return y
    if dims_equal(x, y):
        return x
    if all(_proved_different(*pair) for pair in ((x, y), (x, one), (y, one))):
        raise ShapeError(f"cannot broadcast dim {x} with dim {y}")
    if _ASSUMED.get() is not None:
        # Kernels repeat only what is written as 1, so the dims have to agree.
        assume(x, "==", y)
        return x if y is None or y.value is None else y
    # A static dim other than 1 decides the result whatever the other one is.
    return next((dim for dim in (x, y) if dim is not None and dim.value is not None), None)
