"""Control flow, on single values."""

from itertools import product
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, scf
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

from .arith import unsigned
from .tensor import mixed, parts_of

__all__ = ["read"]


def execute_region(frame: Frame, op: scf.ExecuteRegionOp) -> list[Any]:
    """Runs the region."""
    return frame.nested().run(op.regions[0].blocks[0])


def if_(frame: Frame, op: scf.IfOp, condition: np.bool_) -> list[Any]:
    """Runs one of two regions."""
    region = op.regions[0 if condition else 1]
    return frame.nested().run(region.blocks[0]) if len(region.blocks) else []


def for_(frame: Frame, op: scf.ForOp, lower: Any, upper: Any, step: Any, *carried: Any) -> Any:
    """Runs the body for lower, lower + step, ... below upper."""
    is_unsigned = "unsignedCmp" in op.attributes
    bounds = [unsigned(x) if is_unsigned else x for x in (lower, upper, step)]
    begin, end, by = map(int, bounds)
    if by <= 0:
        raise ValueError("has a step that is not positive")
    block, values = op.regions[0].blocks[0], list(carried)
    for index in range(begin, end, by):
        at = index if isinstance(lower, int) else np.asarray(index).astype(lower.dtype)[()]
        values = frame.nested().run(block, [at, *values])
    return values


def parallel(frame: Frame, op: scf.ParallelOp, *bounds: int) -> list[Any]:
    """Runs the body for each index in reverse order: no iteration may depend on another."""
    if len(op.operation.results):
        raise ValueError("reduces, which is not known")
    block = op.regions[0].blocks[0]
    count = len(block.arguments)
    lower, upper, step = (bounds[i * count : (i + 1) * count] for i in range(3))
    for at in product(*(reversed(range(*loop)) for loop in zip(lower, upper, step, strict=True))):
        frame.nested().run(block, at)
    return []


def forall(frame: Frame, op: scf.ForallOp, *operands: Any) -> list[Any]:
    """Runs the body for each index, the last ones first; each sees the outputs as they were."""
    rest, bounds = list(operands), []
    for static in (op.staticLowerBound, op.staticUpperBound, op.staticStep):
        bounds.append(mixed(static, rest))
        rest = rest[sum(value == ir.ShapedType.get_dynamic_size() for value in static) :]
    block, results = op.regions[0].blocks[0], [np.array(out) for out in rest]
    terminator = block.operations[len(block.operations) - 1]
    outs = list(block.arguments)[len(bounds[0]) :]
    for at in product(*(reversed(range(*loop)) for loop in zip(*bounds, strict=True))):
        inner = frame.nested()
        inner.run(block, [*at, *rest])
        for insertion in terminator.regions[0].blocks[0].operations:
            part, _, *dynamic = (inner.values[value] for value in insertion.operands)
            statics = (insertion.static_offsets, insertion.static_sizes, insertion.static_strides)
            result = results[outs.index(insertion.dest)]
            where = parts_of(result.shape, dynamic, *statics)
            result[where] = part.reshape(result[where].shape)
    return results


def while_(frame: Frame, op: scf.WhileOp, *carried: Any) -> list[Any]:
    """Runs the second region while the condition of the first holds."""
    before, after = (region.blocks[0] for region in op.regions)
    values = list(carried)
    while True:
        condition, *values = frame.nested().run(before, values)
        if not condition:
            return values
        values = frame.nested().run(after, values)


def index_switch(frame: Frame, op: ir.OpView, index: int) -> list[Any]:
    """Runs the region of the case of the index, or the default region."""
    cases = list(ir.DenseI64ArrayAttr(op.attributes["cases"]))
    region = op.regions[1 + cases.index(index) if index in cases else 0]
    return frame.nested().run(region.blocks[0])
