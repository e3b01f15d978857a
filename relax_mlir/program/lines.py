"""Programs that order the lines of a tensor, as their legalization says.

attributes {tir.sort = {axis = 1 : i64, descending = true, unsigned = false}}
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import SORT, PrimFunc


@dataclass(frozen=True)
class SortedLines:
    """Lines of a tensor along an axis, in order; where an output is shorter, the first elements.

    `element` is signed or unsigned.
    """

    axis: int
    descending: bool
    element: ir.Type


def find_sorted_lines(prim_func: PrimFunc) -> SortedLines | None:
    """What a program does to its input; None if nobody said that it orders lines."""
    attributes = prim_func.op.operation.attributes
    if SORT not in attributes or len(prim_func.ins) != 1:
        return None
    settings, source = attributes[SORT], ir.RankedTensorType(prim_func.ins[0].type)
    values, *positions = (ir.RankedTensorType(out.type) for out in prim_func.outs)
    axis, element = settings["axis"].value, source.element_type
    ranks = {source.rank, values.rank, *(kind.rank for kind in positions)}
    i64 = ir.IntegerType.get_signless(64)
    if not 0 <= axis < source.rank or len(ranks) != 1 or values.element_type != element:
        return None
    if [kind.element_type for kind in positions] not in ([], [i64]):
        return None
    if settings["unsigned"].value and isinstance(element, ir.IntegerType):
        element = ir.IntegerType.get_unsigned(element.width)
    return SortedLines(axis, settings["descending"].value, element)
