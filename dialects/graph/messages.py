"""Ops that tell the user something: text with values."""

from collections.abc import Sequence
from string import Formatter

from relax_mlir.bindings import ext, ir

from .annotations import annotation_of
from .slots import SlotOp
from .types import ShapeError, ShapeValueType, TensorType, is_small_float

_SCALARS = ir.IndexType | ir.IntegerType | ir.FloatType


class _MessageOp(SlotOp):
    """What they share: a format in Python's notation, `{}` for each value."""

    @property
    def values(self) -> list[ir.Value]:
        """The values that the text shows."""
        return self.ins

    @property
    def pieces(self) -> list[str]:
        """The text before, between and after the values; raises ShapeError if it is malformed."""
        format_ = self.attributes["format"]
        text = ir.StringAttr(format_).value if isinstance(format_, ir.StringAttr) else None
        if text is None:
            raise ShapeError(f"has a 'format' that is no text, but '{format_}'")
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise ShapeError(f"has a malformed 'format': {error}") from None
        pieces = [""]
        for literal, name, spec, conversion in parsed:
            pieces[-1] += literal
            if name is not None:
                if name or spec or conversion:
                    raise ShapeError("expects each value of 'format' to be '{}'")
                pieces.append("")
        return pieces

    def check(self) -> None:
        """Raises ShapeError if text and values do not fit."""
        count = len(self.pieces) - 1
        if count != len(self.values):  # C1
            raise ShapeError(f"shows {count} values, but has {len(self.values)}")
        for index, value in enumerate(self.values):  # C2
            kind = annotation_of(value)
            is_tensor = isinstance(kind, TensorType) and kind.dims is not None
            if isinstance(kind, TensorType) and is_small_float(kind.element):
                raise ShapeError(f"shows no elements of {kind.element}: convert them to f32")
            if not (is_tensor or isinstance(kind, ShapeValueType) or _is_scalar(value)):
                raise ShapeError(
                    f"expects tensors of known rank, scalars and shape values, but value {index} "
                    f"is '{value.type}'"
                )


def _is_scalar(value: ir.Value) -> bool:
    return isinstance(value.type, _SCALARS)


class PrintOp(_MessageOp, name="print"):
    """Writes a line with values to the standard output.

        "graph.print"(%x, %n) {format = "x = {} of {}", ...} : (!x, index) -> ()

    C1  `format` has one `{}` for each value
    C2  the values are tensors of known rank, scalars and shape values

    Source: TVM `relax.print`.
    """

    format: ir.StringAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(cls, format_: str, values: Sequence[ir.Value] = ()) -> "PrintOp":
        """Creates the op at the insertion point."""
        return cls.create(values, [], {"format": ir.StringAttr.get(format_)})


class AssertOp(_MessageOp, name="assert"):
    """Ends the call with a message unless the first operand is true.

        "graph.assert"(%ok, %n) {format = "no more than {} tokens", ...} : (i1, index) -> ()

    C1  `format` has one `{}` for each value after the condition
    C2  the values are tensors of known rank, scalars and shape values
    C3  the condition is an i1, or a tensor of rank 0 of i1

    Source: TVM `relax.assert_op`.
    """

    format: ir.StringAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls, condition: ir.Value, format_: str, values: Sequence[ir.Value] = ()
    ) -> "AssertOp":
        """Creates the op at the insertion point."""
        return cls.create([condition, *values], [], {"format": ir.StringAttr.get(format_)})

    @property
    def condition(self) -> ir.Value:
        """What must be true."""
        return self.ins[0]

    @property
    def values(self) -> list[ir.Value]:
        """The values that the text shows."""
        return self.ins[1:]

    def check(self) -> None:
        """Raises ShapeError if there is no condition, or text and values do not fit."""
        if not self.ins:  # C3
            raise ShapeError("expects a condition")
        boolean, kind = ir.IntegerType.get_signless(1), annotation_of(self.condition)
        if isinstance(kind, TensorType):
            is_condition = kind.dims == () and kind.element == boolean
        else:
            is_condition = self.condition.type == boolean
        if not is_condition:
            raise ShapeError(f"expects a condition of 'i1', but got '{self.condition.type}'")
        super().check()
