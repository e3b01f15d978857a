"""Removes the signs of integers from tensor programs, which name them in their ops instead.

    linalg.generic ins(%x : tensor<4xui8>) { %1 = arith.maxui %a, %b : ui8 }
      ->
    linalg.generic ins(%x : tensor<4xi8>) { %1 = arith.maxui %a, %b : i8 }

Legalisations choose ops by the types of graph values. Nothing verifies a program before this.
Floats of 8 bits, which programs only move, become their bits.
"""

from collections.abc import Iterable

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import is_small_float, signless, storage_element


def erase_signs(function: func.FuncOp) -> None:
    """Makes all types of a tensor program signless, and drops casts between equal ones."""
    kind, visited = function.type, []
    if not any(map(_has_sign, (*kind.inputs, *kind.results))):
        return

    def visit(op: ir.Operation) -> ir.WalkResult:
        for region in op.regions:
            for block in region.blocks:
                _erase(block.arguments)
        make_signless(op)
        visited.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for op in visited:
        if op.name == "arith.bitcast" and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    signless = [[_signless(type_) for type_ in types] for types in (kind.inputs, kind.results)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*signless))


def make_signless(op: ir.Operation) -> None:
    """Makes the results of an op signless, and its elements if it is a constant."""
    _erase(op.results)
    if op.name != "arith.constant":
        return
    value = op.attributes["value"]
    if isinstance(value.type, ir.RankedTensorType):
        op.attributes["value"] = signless(value)
    elif is_small_float(value.type):
        one = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], value.type), value)
        op.attributes["value"] = ir.DenseElementsAttr(signless(one)).get_splat_value()


def _erase(values: Iterable[ir.Value]) -> None:
    for value in values:
        if _has_sign(value.type):
            value.set_type(_signless(value.type))


def _has_sign(type_: ir.Type) -> bool:
    return _signless(type_) != type_


def _signless(type_: ir.Type) -> ir.Type:
    if isinstance(type_, ir.RankedTensorType):
        element = storage_element(type_.element_type)
        return ir.RankedTensorType.get(type_.shape, element, type_.encoding)
    return storage_element(type_)
