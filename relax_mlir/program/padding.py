"""Reads a tensor without the zeros around it: who needs them computes which elements they are.

%p = tensor.insert_slice %x into %zeros[0, 0, 1, 1]
linalg.generic %p[n, c, y + u, x + v]                  ->  %x[n, c, y + u - 1, x + v - 1], or 0
"""

from typing import TypeAlias

from relax_mlir.bindings import arith, ir

from .access import root_of
from .contraction import constant_of
from .program import Computed, Empty, MixedIndex, Operand, Program, Splat, Stage, Tensor

Padding: TypeAlias = tuple[int | None, ...]
"""For each dim the zeros in front of it, or None if there are none on either side."""


def take_padding(program: Program, stage: Stage, read: int, value: ir.Value) -> Padding | None:
    """Lets a stage, which multiplies by `value` of a read, read the tensor without its padding.

    Empty without padding. None, and nothing is changed, if it is not of zeros, of which the value
    is zero too, or if others read it.
    """
    operand = stage.reads[read]
    tensor = operand.tensor
    if not isinstance(tensor, Computed) or tensor.stage.window is None:
        return ()
    insertion, window, whole = tensor.stage, tensor.stage.window, tensor.stage.inits[0].tensor
    if window.dropped or any(stride != 1 for stride in window.strides):
        return None
    if constant_of(whole) != 0 or not _keeps_zero(stage, read, value):
        return None
    if not _is_read_once(program, tensor):
        return None
    fronts: list[int | None] = []
    sizes = zip(_sizes(whole), window.sizes, window.offsets, strict=True)
    for size, own, offset in sizes:
        if not isinstance(offset, int):
            return None
        fronts.append(None if offset == 0 and _is_same(size, own) else offset)
    stage.reads[read] = Operand(insertion.reads[0].tensor, operand.indices)
    program.items[:] = [item for item in program.items if item is not insertion]
    return tuple(fronts)


def _keeps_zero(stage: Stage, read: int, value: ir.Value) -> bool:
    """Whether a value of the body is the element that it reads, widened or not."""
    argument = stage.body.arguments[read]
    if value == argument:
        return True
    is_widened = not isinstance(value.owner, ir.Block) and isinstance(
        value.owner.opview, arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp
    )
    return is_widened and value.owner.operands[0] == argument


def _is_read_once(program: Program, tensor: Tensor) -> bool:
    tensors = [o.tensor for stage in program.stages for o in (*stage.reads, *stage.inits)]
    tensors += [gathered for stage in program.stages for gathered in stage.gathers]
    return [root_of(x) for x in (*tensors, *program.returned)].count(tensor) == 1


def _sizes(tensor: Tensor) -> list[MixedIndex | None]:
    """The extents of a tensor of equal elements; None where they are not known."""
    while isinstance(tensor, Splat) and tensor.like is not None:
        tensor = tensor.like
    return list(tensor.sizes if isinstance(tensor, Empty) else tensor.shape)


def _is_same(a: MixedIndex | None, b: MixedIndex) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is not None and a == b
