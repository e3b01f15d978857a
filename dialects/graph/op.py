"""The base class of operators: one deduction rule serves builder, verifier and inference."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from relax_mlir.bindings import ext, ir

from .annotations import Annotation, annotation_of, compatible, to_mlir
from .dialect import Graph, ShapeAttr
from .memo import recall
from .types import ShapeError, TensorType, dims_of_attr, shape_attr


class IntsAttr(ir.Attribute):
    """Constraint "array of 64-bit integers", for which the bindings have no name of their own."""

    attr_name = "builtin.dense_array"

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[int]: ...


class FlagAttr(ir.Attribute):
    """Constraint "true or false" (an `i1` integer attribute)."""

    attr_name = "builtin.integer"


Built = TypeVar("Built", bound="GraphOp")


def attribute_to_python(attribute: ir.Attribute) -> Any:
    """Reads an attribute as the Python value that deduction rules take.

    Integers, floats, bools and strings become themselves, integer arrays and shapes tuples,
    type attributes the type; everything else stays an attribute.
    """
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.TypeAttr):
        return attribute.value
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return attribute.value
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(attribute)
    if isinstance(attribute, ShapeAttr):
        return dims_of_attr(attribute.dims)
    return attribute


def read_attribute(name: str, kind: type[ir.Attribute], attribute: ir.Attribute) -> Any:
    """An attribute as Python data; raises ShapeError if it is of another kind."""
    if kind is IntsAttr and not isinstance(attribute, ir.DenseI64ArrayAttr):
        raise ShapeError(f"expects '{name}' to be an array of i64, but got {attribute}")
    if kind is FlagAttr and not isinstance(attribute, ir.BoolAttr):
        raise ShapeError(f"expects '{name}' to be true or false, but got {attribute}")
    return attribute_to_python(attribute)


def python_to_attribute(kind: type[ir.Attribute], value: Any) -> ir.Attribute:
    """Builds an attribute of the declared class from a Python value; attributes pass through."""
    if isinstance(value, ir.Attribute):
        return value
    if kind is IntsAttr:
        return ir.DenseI64ArrayAttr.get(list(value))
    if kind is FlagAttr:
        return ir.BoolAttr.get(bool(value))
    if kind is ir.IntegerAttr:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if kind is ir.FloatAttr:
        return ir.FloatAttr.get(ir.F64Type.get(), float(value))
    if kind is ShapeAttr:
        return shape_attr(value)
    return kind.get(value)  # type: ignore[attr-defined]  # each class has its own


class GraphOp(Graph.Operation):
    """An op of the dialect, which can check itself; `relax-verify` calls `check`.

    An operator whose result annotations follow from operands and attributes states its rule
    once, in a static method `infer_return_type`: it takes the annotations of the operands by
    position and the attributes as keywords (Python values), returns one annotation or a
    sequence of them, and raises ShapeError if a constraint is broken. Builder, inference and
    verifier all use it.
    """

    @classmethod
    def has_rule(cls) -> bool:
        """True if the result annotations are deduced."""
        return hasattr(cls, "infer_return_type")

    @classmethod
    def declared_attributes(cls) -> dict[str, type[ir.Attribute]]:
        """Returns the attributes of the declaration: name to attribute class."""
        fields = (field for field in cls._fields if isinstance(field, ext.AttributeDef))
        return {field.name: field.constraint for field in fields}

    @classmethod
    def to_attributes(cls, values: Mapping[str, Any]) -> dict[str, ir.Attribute]:
        """Builds the declared attributes from Python values."""
        declared = cls.declared_attributes()
        return {name: python_to_attribute(declared[name], v) for name, v in values.items()}

    @classmethod
    def result_types(
        cls, annotations: Sequence[Annotation | None], attributes: Mapping[str, ir.Attribute]
    ) -> list[ir.Type]:
        """Returns the types of the results that the rule deduces."""
        return [to_mlir(result) for result in cls.apply_rule(annotations, attributes)]

    @classmethod
    def types_for(
        cls, operands: Sequence[ir.Value | None], attributes: Mapping[str, ir.Attribute]
    ) -> list[ir.Type]:
        """Returns the types of the results that the rule deduces for these operands."""
        types = [None if value is None else value.type for value in operands]

        def deduce() -> list[ir.Type]:
            annotations = [None if type_ is None else annotation_of(type_) for type_ in types]
            return cls.result_types(annotations, attributes)

        return recall(("build", cls, *attributes.items(), *types), deduce)

    @classmethod
    def apply_rule(
        cls, annotations: Sequence[Annotation | None], attributes: Mapping[str, ir.Attribute]
    ) -> list[Annotation]:
        """Hands operands and attributes to `infer_return_type` as the data it deals in.

        Raises ShapeError if an operand is no tensor of known elements, an attribute of the wrong
        kind, or a constraint is broken.
        """
        for annotation in annotations:
            if annotation is not None and not isinstance(annotation, TensorType):
                raise ShapeError(f"expects a tensor, but got '{annotation}'")
            if annotation is not None and annotation.is_of_any_element:
                raise ShapeError(
                    f"expects elements of a known type, but got '{annotation}', which "
                    "graph.match_cast can tell"
                )
        declared = cls.declared_attributes()
        values = {
            name: read_attribute(name, declared[name], attribute)
            for name, attribute in attributes.items()
        }
        return list(as_sequence(cls.infer_return_type(*annotations, **values)))

    def infer(self, operand_types: Sequence[Annotation | None] | None = None) -> list[Annotation]:
        """Applies the rule to this op, or to it with other operand annotations."""
        if operand_types is not None:
            return self._infer(operand_types)
        return list(recall(("infer", *self._signature()), lambda: self._infer(None)))

    def _infer(self, operand_types: Sequence[Annotation | None] | None) -> list[Annotation]:
        if operand_types is None:
            operand_types = [
                None if value is None else annotation_of(value) for value in self.slots()
            ]
        attributes = {name: self.attributes[name] for name in self.declared_attributes()}
        return self.apply_rule(operand_types, attributes)

    def _signature(self) -> tuple[Hashable, ...]:
        """All that a rule depends on: the op, its attributes, and the types of its operands."""
        op = self.operation
        return (type(self), *op.attributes.items(), *[value.type for value in op.operands])

    def slots(self) -> list[ir.Value | None]:
        """Returns the operands by declared position, None for an absent optional one."""
        return [
            getattr(self, field.name) for field in self._fields if isinstance(field, ext.OperandDef)
        ]

    def check(self) -> None:
        """Holds the declared result annotations against the deduced ones.

        Raises ShapeError if the op breaks a rule that its declaration cannot state.
        """
        if self.has_rule():
            results = tuple(value.type for value in self.operation.results)
            recall(("check", results, *self._signature()), self._check)

    def _check(self) -> None:
        inferred = self.infer()
        if len(inferred) != len(self.results):
            raise ShapeError(f"infers {len(inferred)} results, but has {len(self.results)}")
        for annotation, value in zip(inferred, self.results):
            if not compatible(annotation, annotation_of(value)):
                raise ShapeError(
                    f"infers result type '{to_mlir(annotation)}', but has '{value.type}'"
                )


class InferredOp(GraphOp):
    """An operator with a fixed number of operands and results."""

    @classmethod
    def build(cls: type[Built], *operands: ir.Value | None, **attributes: Any) -> Built:
        """Creates the op at the insertion point with deduced result types.

        Raises ShapeError if the rule refuses the operands. Attributes are Python values.
        """
        built = cls.to_attributes(attributes)
        return create(cls, cls.types_for(operands, built), operands, built)


def as_sequence(inferred: Annotation | Sequence[Annotation]) -> Sequence[Annotation]:
    """Wraps the single annotation of a one-result rule."""
    return inferred if isinstance(inferred, list | tuple) else (inferred,)


def create(
    cls: type[Built],
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value | None],
    attributes: Mapping[str, ir.Attribute],
) -> Built:
    """Creates an op from declared positions, with segment sizes where slots are optional.

    Results that are left out are the last ones.
    """
    named = dict(attributes)
    optional = any(
        isinstance(field, ext.OperandDef) and field.variadicity != ext.Variadicity.single
        for field in cls._fields
    )
    if optional:
        sizes = [0 if value is None else 1 for value in operands]
        declared = sum(isinstance(field, ext.OperandDef) for field in cls._fields)
        sizes += [0] * (declared - len(sizes))
        named["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    kinds = [field.variadicity for field in cls._fields if isinstance(field, ext.ResultDef)]
    if any(kind != ext.Variadicity.single for kind in kinds):
        sizes = [1] * len(results) + [0] * (len(kinds) - len(results))
        named["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    present = [value for value in operands if value is not None]
    return ir.Operation.create(
        cls.OPERATION_NAME, results=list(results), operands=present, attributes=named
    ).opview
