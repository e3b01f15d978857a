"""Which calls of a function may be made once, since they depend on its parameters alone."""

from relax_mlir.analysis.functions import (
    NUM_INPUTS,
    inout_arguments,
    is_public,
    lifted_parameters,
)
from relax_mlir.analysis.symbols import bindings, symbols_of
from relax_mlir.bindings import arith, func, ir
from relax_mlir.data import is_data
from relax_mlir.dialects.graph import CallTirOp, annotation_of


def liftable(function: func.FuncOp) -> list[CallTirOp]:
    """Returns the calls that depend on parameters and constants alone, in program order."""
    if not is_public(function) or NUM_INPUTS not in function.attributes:
        return []
    first = function.attributes[NUM_INPUTS].value
    if any(index >= first for index in inout_arguments(function).values()):
        return []
    parameters = list(function.arguments)[first:]
    bound = bindings([annotation_of(value) for value in parameters]).keys()
    fixed: set[ir.Value] = set(lifted_parameters(function))
    splats: set[ir.Value] = set()
    calls = []
    for op in function.entry_block.operations:
        if isinstance(op, arith.ConstantOp):
            (splats if _is_splat(op) else fixed).add(op.result)
        elif isinstance(op, CallTirOp) and not op.symbol_arguments:
            known = all(value in fixed or value in splats for value in op.ins)
            shown = bound >= set(symbols_of(map(annotation_of, op.outs)))
            if known and shown and not fixed.isdisjoint(op.ins):
                calls.append(op)
                fixed.update(op.outs)
    return calls


def _is_splat(constant: arith.ConstantOp) -> bool:
    """Whether a constant is a splat, which takes no memory."""
    value = constant.attributes["value"]
    if is_data(value):
        return False
    return not isinstance(value, ir.DenseElementsAttr) or value.is_splat
