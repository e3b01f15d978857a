"""Finds exponentials of differences from a maximum, as in softmax, and makes them approximate.

    %m = max of each row of %x                  math.exp %d  ->  math.exp %d fastmath<afn>
    %d = %x - %m                                             {tir.not_positive}
    %e = exp %d

The relative rounding error of `%d` is up to 2^-24; the approximate exponential adds an error of
that kind and size. Together they are below 2^-22.4 of the largest exponential, which is 1.
"""

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects.tir import NOT_POSITIVE
from relax_mlir.program.program import Computed, Program, Reshape, Stage, Tensor
from relax_mlir.schedule.build.horizontal_reduction import combiner_of


def approximate_exponentials(program: Program) -> None:
    """Flags, in place, the exponentials whose operands are never positive by construction."""
    for stage in program.stages:
        for op in stage.block.operations if stage.block is not None else ():
            if isinstance(op, math.ExpOp) and _is_difference_from_maximum(stage, op.operand):
                flag = ir.Attribute.parse("#arith.fastmath<afn>", op.context)
                op.operation.attributes["fastmath"] = flag
                op.operation.attributes[NOT_POSITIVE] = ir.UnitAttr.get(op.context)


def _is_difference_from_maximum(stage: Stage, value: ir.Value) -> bool:
    """Whether the value is an element of a tensor minus the maximum of its elements."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, arith.SubFOp):
        return False
    source, maximum = (_tensor_of(stage, operand) for operand in value.owner.operands)
    return isinstance(maximum, Computed) and source is not None and _is_maximum(maximum, source)


def _tensor_of(stage: Stage, value: ir.Value) -> Tensor | None:
    """The tensor whose element a scalar of the stage's block is, widened or not."""
    while not isinstance(value.owner, ir.Block):
        if not isinstance(value.owner.opview, arith.ExtFOp):
            return None
        value = value.owner.operands[0]
    if value.owner != stage.block or ir.BlockArgument(value).arg_number >= len(stage.reads):
        return None
    tensor = stage.reads[ir.BlockArgument(value).arg_number].tensor
    while isinstance(tensor, Reshape):
        tensor = tensor.source
    return tensor


def _is_maximum(result: Computed, source: Tensor) -> bool:
    """Whether a reduction's result is the maximum of elements of `source`."""
    stage = result.stage
    combiner = combiner_of(stage, {}) if stage.has_reduction else None
    if combiner is None:
        return False
    term = combiner.terms[result.index]
    return combiner.finds_maximum(result.index) and _tensor_of(stage, term) is source
