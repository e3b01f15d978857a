"""Annotations as Python data: dims, tensor types, shape values, and rules on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.symbolic import Expr, as_expr, const, differ, equal

from .assumed import assume
from .dialect import AnyElementType, ShapeAttr, ShapeValueType
from .memo import memo

Dim = Expr | None
"""One dim: a canonical integer expression, or None where nothing is known."""

UNKNOWN = "?"


class ShapeError(Exception):
    """Raised by a deduction rule; its text becomes the diagnostic of the op.

    `location` is the one at hand, where a pass builds an op that breaks a rule.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.location: ir.Location | None = ir.Location.current


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


SMALL_FLOATS = (
    *(ir.Float8E4M3FNType, ir.Float8E5M2Type),
    *(ir.Float8E4M3FNUZType, ir.Float8E5M2FNUZType),
)
"""Floats of 8 bits: they are stored, moved and converted, but nothing computes with them."""


def is_small_float(element: ir.Type) -> bool:
    """True for f8E4M3FN, f8E5M2, f8E4M3FNUZ and f8E5M2FNUZ."""
    return isinstance(element, SMALL_FLOATS)


def storage_element(element: ir.Type) -> ir.Type:
    """What tensor programs have for an element: signless integers of the bits of other ones.

    Others are integers that have a sign, and floats of 8 bits.
    """
    if isinstance(element, ir.IntegerType) and not element.is_signless:
        return ir.IntegerType.get_signless(element.width)
    return ir.IntegerType.get_signless(8) if is_small_float(element) else element


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
        known = memo()
        if known is None:
            return TensorType._read(type_)
        annotation = known.annotations.get(type_)
        if annotation is None:
            annotation = known.annotations[type_] = TensorType._read(type_)
        return annotation

    @staticmethod
    def _read(type_: ir.Type) -> "TensorType":
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
        known = memo()
        if known is None:
            return self._written()
        type_ = known.types.get(self)
        if type_ is None:
            type_ = known.types[self] = self._written()
        return type_

    def _written(self) -> ir.Type:
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
    def is_of_any_element(self) -> bool:
        """True if the element type is not known."""
        return isinstance(self.element, AnyElementType)

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

    @property
    def storage(self) -> "TensorType":
        """The annotation of the same memory in tensor programs."""
        return TensorType(self.dims, storage_element(self.element))

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


def dims_differ(a: Dim, b: Dim) -> bool:
    """True only if the two dims are proved different for every value of their symbols.

    Rules ask this of dims that must agree: where it is False, they go on as if they did.
    """
    if proved_different(a, b):
        return True
    assume(a, "==", b)
    return False


def proved_different(a: Dim, b: Dim) -> bool:
    """True only if the two dims are proved different; nothing is taken for granted if not."""
    if a is None or b is None:
        return False
    ours, theirs = a.value, b.value
    if ours is not None and theirs is not None:
        return ours != theirs
    return differ(a, b).proved


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
