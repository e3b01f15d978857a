"""Ops with any number of operands or results of different types.

IRDL gives all elements of one variadic operand one type, so such ops declare a run of optional
single operands and results instead; `ins` and `outs` hide them. This is the one place to change
once the bindings allow better.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

from relax_mlir.bindings import ext, ir

from .op import Annotation, GraphOp
from .types import ShapeError

Slotted = TypeVar("Slotted", bound="SlotOp")
InferredSlotted = TypeVar("InferredSlotted", bound="InferredSlotOp")

MAX_INS = 32
MAX_OUTS = 8


def _fields(kind: type[Any], prefix: str, count: int) -> dict[str, Any]:
    return {f"{prefix}{index}": kind[Any] | None for index in range(count)}


_SLOTS = {**_fields(ext.Result, "out", MAX_OUTS), **_fields(ext.Operand, "in", MAX_INS)}

if TYPE_CHECKING:
    _SlotBase = GraphOp
else:
    _SlotBase = type(
        "_SlotBase", (GraphOp,), {**dict.fromkeys(_SLOTS), "__annotations__": dict(_SLOTS)}
    )


class SlotOp(_SlotBase):
    """Base of the ops with up to 32 operands and 8 results of independent types."""

    @property
    def ins(self) -> list[ir.Value]:
        """The operands."""
        return list(self.operation.operands)

    @property
    def outs(self) -> list[ir.Value]:
        """The results."""
        return list(self.operation.results)

    @classmethod
    def create(
        cls: type[Slotted],
        ins: Sequence[ir.Value],
        out_types: Sequence[ir.Type],
        attributes: Mapping[str, ir.Attribute],
    ) -> Slotted:
        """Creates the op at the insertion point; raises ShapeError past the number of slots."""
        if len(ins) > MAX_INS or len(out_types) > MAX_OUTS:
            raise ShapeError(
                f"takes at most {MAX_INS} operands and {MAX_OUTS} results,"
                f" but got {len(ins)} and {len(out_types)}"
            )
        segments = {
            "operandSegmentSizes": _segments(len(ins), MAX_INS),
            "resultSegmentSizes": _segments(len(out_types), MAX_OUTS),
        }
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=list(out_types),
            operands=list(ins),
            attributes={**attributes, **segments},
        ).opview


class InferredSlotOp(SlotOp):
    """An operator with any number of operands or results, which follow from its rule."""

    @classmethod
    def build(
        cls: type[InferredSlotted], *operands: ir.Value, **attributes: Any
    ) -> InferredSlotted:
        """Creates the op at the insertion point with deduced result types.

        Raises ShapeError if the rule refuses the operands. Attributes are Python values.
        """
        built = cls.to_attributes(attributes)
        return cls.create(operands, cls.types_for(operands, built), built)

    @classmethod
    def apply_rule(
        cls, annotations: Sequence[Annotation | None], attributes: Mapping[str, ir.Attribute]
    ) -> list[Annotation]:
        """As other operators do it; the rule says how many operands there may be."""
        expected = _num_operands(cls)
        if expected not in (None, len(annotations)):
            raise ShapeError(f"expects {expected} operand(s), but got {len(annotations)}")
        return super().apply_rule(annotations, attributes)

    def slots(self) -> list[ir.Value | None]:
        """The operands."""
        return list[ir.Value | None](self.ins)


@cache
def _num_operands(cls: type[InferredSlotOp]) -> int | None:
    """How many operands the rule of an op takes, None if any number."""
    parameters = signature(cls.infer_return_type).parameters
    operands = [parameters[name] for name in parameters.keys() - cls.declared_attributes().keys()]
    kinds = [parameter.kind for parameter in operands]
    return None if Parameter.VAR_POSITIONAL in kinds else len(kinds)


def _segments(used: int, slots: int) -> ir.Attribute:
    return ir.DenseI32ArrayAttr.get([1] * used + [0] * (slots - used))
