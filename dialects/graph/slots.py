"""Ops with any number of operands or results of different types.

IRDL gives all elements of one variadic operand one type, so such ops declare a run of optional
single operands and results instead; `ins` and `outs` hide them. Ops of more are declared by arity,
see `relax_mlir/bindings/arities.py`. These are the places to change once the bindings allow better.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

from relax_mlir.bindings import arities, ext, ir

from .annotations import Annotation
from .op import GraphOp
from .types import ShapeError

Slotted = TypeVar("Slotted", bound="SlotOp")
InferredSlotted = TypeVar("InferredSlotted", bound="InferredSlotOp")

MAX_INS = 32
MAX_OUTS = 8
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


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
    """Base of the ops with any number of operands and results of independent types."""

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(name=name, **options)
        if name is not None:
            arities.register(cls, (MAX_INS, MAX_OUTS))

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
        """Creates the op at the insertion point; raises ShapeError beyond `arities.LIMIT`."""
        counts = len(ins), len(out_types)
        if max(counts) > arities.LIMIT:
            raise ShapeError(
                f"takes at most {arities.LIMIT} operands and results, but got {counts[0]} and "
                f"{counts[1]}"
            )
        own = {name: value for name, value in attributes.items() if name not in _SEGMENTS}
        name = cls.OPERATION_NAME
        if counts[0] <= MAX_INS and counts[1] <= MAX_OUTS:
            own |= zip(_SEGMENTS, (_segments(counts[0], MAX_INS), _segments(counts[1], MAX_OUTS)))
        else:
            name = arities.declare(cls, *counts)
        return ir.Operation.create(
            name, results=list(out_types), operands=list(ins), attributes=own
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
