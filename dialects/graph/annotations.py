"""Annotations, and which of them say more: subsumption (paper §3.1; TVM `type_base_check`).

!graph.object                               any value
!graph.any_tuple      tuple<!graph.object>  tuples: any, and those of one element
!graph.callable       (tensor<*xf32>) -> .. functions: any, and those of one type
tensor<*x!graph.any_element>                tensors: any, of any rank and elements
tensor<?x!graph.any_element>  tensor<?xf32> of one rank, and of one element type too
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relax_mlir.bindings import ir

from .dialect import AnyElementType, AnyTupleType, CallableType, ObjectType, ShapeValueType
from .types import (
    Dim,
    TensorType,
    dims_differ,
    dims_equal,
    join_dims,
    shape_value_dims,
    shape_value_type,
)

Annotation: TypeAlias = TensorType | ir.Type
"""What a rule deals in: tensors as `TensorType`, every other type as it is."""


def annotation_of(value: ir.Value | ir.Type) -> Annotation:
    """Reads the annotation of a value: tensors become `TensorType`, the rest stays."""
    type_ = value if isinstance(value, ir.Type) else value.type
    if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        return TensorType.of(type_)
    return type_


def to_mlir(annotation: Annotation) -> ir.Type:
    """Returns the MLIR type of an annotation."""
    return annotation.to_mlir() if isinstance(annotation, TensorType) else annotation


def tuple_type(elements: Sequence[ir.Type]) -> ir.Type:
    """The type of a tuple."""
    return ir.TupleType.get_tuple(list(elements))  # type: ignore[attr-defined]


def elements_of(type_: Annotation) -> list[ir.Type] | None:
    """The types of a tuple's elements; None for another type."""
    if not isinstance(type_, ir.TupleType):
        return None
    count: int = type_.num_types  # type: ignore[attr-defined]
    return [type_.get_type(index) for index in range(count)]  # type: ignore[attr-defined]


def is_function(type_: Annotation) -> bool:
    """Whether values of a type are functions."""
    return isinstance(type_, ir.FunctionType | CallableType)


def compatible(a: Annotation, b: Annotation) -> bool:
    """True unless the annotations are proved to describe different values."""
    if isinstance(a, ObjectType) or isinstance(b, ObjectType):
        return True
    if isinstance(a, ShapeValueType) and isinstance(b, ShapeValueType):
        ours, theirs = shape_value_dims(a), shape_value_dims(b)
        return len(ours) == len(theirs) and not any(map(dims_differ, ours, theirs))
    if isinstance(a, CallableType) or isinstance(b, CallableType):
        return is_function(a) and is_function(b)
    if isinstance(a, ir.FunctionType) and isinstance(b, ir.FunctionType):
        return _same_kinds(a.inputs, b.inputs) and _same_kinds(a.results, b.results)
    if isinstance(a, AnyTupleType | ir.TupleType) and isinstance(b, AnyTupleType | ir.TupleType):
        inner, other = elements_of(a), elements_of(b)
        if inner is None or other is None:
            return True
        return len(inner) == len(other) and all(
            compatible(annotation_of(x), annotation_of(y)) for x, y in zip(inner, other)
        )
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return to_mlir(a) == to_mlir(b)
    if a.element != b.element and not (a.is_of_any_element or b.is_of_any_element):
        return False
    if a.dims is None or b.dims is None:
        return True
    return len(a.dims) == len(b.dims) and not any(map(dims_differ, a.dims, b.dims))


def _same_kinds(ours: Sequence[ir.Type], theirs: Sequence[ir.Type]) -> bool:
    """Whether types in those of functions, whose symbols are their own, are not provably others."""

    def static(type_: ir.Type) -> Annotation:
        annotation = annotation_of(type_)
        return substitute_dims(annotation, lambda d: d if d and d.value is not None else None)

    return len(ours) == len(theirs) and all(
        compatible(static(x), static(y)) for x, y in zip(ours, theirs)
    )


def join(a: Annotation, b: Annotation) -> Annotation:
    """Returns the finer annotation, part by part; `a` wins between two equally fine ones."""
    if isinstance(a, ObjectType):
        return b
    if isinstance(a, ShapeValueType) and isinstance(b, ShapeValueType):
        return shape_value_type(list(map(join_dims, shape_value_dims(a), shape_value_dims(b))))
    if isinstance(a, CallableType) and isinstance(b, ir.FunctionType):
        return b
    if isinstance(a, AnyTupleType) and isinstance(b, ir.TupleType):
        return b
    inner, other = elements_of(a), elements_of(b)
    if inner is not None and other is not None and len(inner) == len(other):
        pairs = zip(map(annotation_of, inner), map(annotation_of, other))
        return tuple_type([to_mlir(join(x, y)) for x, y in pairs])
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a
    element = b.element if a.is_of_any_element else a.element
    if a.dims is None or b.dims is None:
        return TensorType(b.dims if a.dims is None else a.dims, element)
    dims: tuple[Dim, ...] = tuple(map(join_dims, a.dims, b.dims))
    return TensorType(dims, element)


def coarser(a: Annotation, b: Annotation) -> Annotation:
    """The finest annotation of which both are (TVM `type_lca`)."""
    if isinstance(a, ShapeValueType) and isinstance(b, ShapeValueType):
        if len(shape_value_dims(a)) != len(shape_value_dims(b)):
            return ObjectType.get()
        pairs = zip(shape_value_dims(a), shape_value_dims(b))
        return shape_value_type([x if dims_equal(x, y) else None for x, y in pairs])
    if to_mlir(a) == to_mlir(b):
        return a
    if is_function(a) and is_function(b):
        return CallableType.get()
    if isinstance(a, AnyTupleType | ir.TupleType) and isinstance(b, AnyTupleType | ir.TupleType):
        inner, other = elements_of(a), elements_of(b)
        if inner is None or other is None or len(inner) != len(other):
            return AnyTupleType.get()
        both = zip(map(annotation_of, inner), map(annotation_of, other))
        return tuple_type([to_mlir(coarser(x, y)) for x, y in both])
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return ObjectType.get()
    element = a.element if a.element == b.element else AnyElementType.get()
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return TensorType(None, element)
    dims = tuple(x if dims_equal(x, y) else None for x, y in zip(a.dims, b.dims))
    return TensorType(dims, element)


def substitute_dims(annotation: Annotation, change: Callable[[Dim], Dim]) -> Annotation:
    """The annotation with each of its dims changed, those of a tuple's elements too."""
    inner = elements_of(annotation)
    if inner is not None:
        changed = [substitute_dims(annotation_of(each), change) for each in inner]
        return tuple_type(list(map(to_mlir, changed)))
    if isinstance(annotation, TensorType):
        if annotation.dims is None:
            return annotation
        return TensorType(tuple(map(change, annotation.dims)), annotation.element)
    if isinstance(annotation, ShapeValueType):
        return shape_value_type(list(map(change, shape_value_dims(annotation))))
    return annotation


def is_open(annotation: Annotation) -> bool:
    """Whether the kind of a value is not known: which tuple, which elements, or not even these."""
    if isinstance(annotation, TensorType):
        return annotation.is_of_any_element
    inner = elements_of(annotation)
    if inner is not None:
        return any(is_open(annotation_of(each)) for each in inner)
    return isinstance(annotation, ObjectType | AnyTupleType | CallableType)
