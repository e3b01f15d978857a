"""Tuples of values, which `relax-flatten-tuples` takes apart; the type is MLIR's own."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from relax_mlir.bindings import ext, ir

from .annotations import elements_of, tuple_type
from .dialect import AnyTupleType, ObjectType
from .op import GraphOp
from .slots import SlotOp
from .types import ShapeError

Tree: TypeAlias = "int | list[Tree]"
"""The structure of nested tuples; a leaf is an index into the values that are no tuples."""


class TupleOp(SlotOp, name="tuple", traits=[ext.Pure]):
    """Makes a tuple of values of any types, of which some may be tuples.

        %t = "graph.tuple"(%x, %k) : (tensor<4xf32>, index) -> tuple<tensor<4xf32>, index>

    C1  the only result is a tuple of the operands' types

    Source: TVM `relax.Tuple`.
    """

    @classmethod
    def build(cls, *elements: ir.Value) -> "TupleOp":
        """Creates the tuple at the insertion point."""
        return cls.create(elements, [tuple_type([element.type for element in elements])], {})

    def check(self) -> None:
        """Raises ShapeError if the result is not what the operands make."""
        made = tuple_type([element.type for element in self.ins])
        if [out.type for out in self.outs] != [made]:  # C1
            results = ", ".join(str(out.type) for out in self.outs)
            raise ShapeError(f"makes '{made}', but has results ({results})")


class TupleGetOp(GraphOp, name="tuple_get", traits=[ext.Pure]):
    """An element of a tuple.

        %k = "graph.tuple_get"(%t) {index = 1 : i64} : (tuple<tensor<4xf32>, index>) -> index

    C1  the operand is a tuple
    C2  the index is that of an element
    C3  the result has the type of the element; of an `!graph.any_tuple`, it is an object

    Source: TVM `relax.TupleGetItem`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    index: ir.IntegerAttr = ext.attribute(kw_only=True)

    @property
    def element(self) -> int:
        """The index of the element."""
        return ir.IntegerAttr(self.attributes["index"]).value

    @classmethod
    def build(cls, value: ir.Value, index: int) -> "TupleGetOp":
        """Creates the access at the insertion point; the value is a tuple with such an element."""
        elements = elements_of(value.type)
        assert elements is not None, value.type
        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index)
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=[elements[index]],
            operands=[value],
            attributes={"index": attribute},
        ).opview

    def check(self) -> None:
        """Raises ShapeError if there is no such element, or if it is of another type."""
        types = elements_of(self.input.type)
        if isinstance(self.input.type, AnyTupleType) and self.element >= 0:
            types = [ObjectType.get()] * (self.element + 1)
        if types is None:  # C1
            raise ShapeError(f"expects a tuple, but got '{self.input.type}'")
        if not 0 <= self.element < len(types):  # C2
            raise ShapeError(f"has index {self.element}, but the tuple has {len(types)} elements")
        if types[self.element] != self.result.type:  # C3
            raise ShapeError(
                f"has the result '{self.result.type}', but the element is '{types[self.element]}'"
            )


def leaf_types(type_: ir.Type) -> list[ir.Type]:
    """The types of a tuple's elements, with those of nested tuples; else the type."""
    types = elements_of(type_)
    return [type_] if types is None else [leaf for each in types for leaf in leaf_types(each)]


def leaf_suffixes(type_: ir.Type) -> list[str]:
    """What the names of leaves add to that of an argument of the type: `.1.0`."""
    types = elements_of(type_)
    if types is None:
        return [""]
    inner = [leaf_suffixes(each) for each in types]
    return [f".{index}{rest}" for index, each in enumerate(inner) for rest in each]


def trees_of(types: Sequence[ir.Type]) -> list[Tree]:
    """The structure of values of these types."""
    leaf = iter(range(sum(len(leaf_types(type_)) for type_ in types)))
    return [_tree(type_, leaf) for type_ in types]


def _tree(type_: ir.Type, leaf: Iterator[int]) -> Tree:
    types = elements_of(type_)
    return next(leaf) if types is None else [_tree(each, leaf) for each in types]
