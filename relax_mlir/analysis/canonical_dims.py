"""Writes dims in canonical form, so that equal dims are equal attributes to MLIR.

    tensor<?xf32, #graph.shape<["1+k"]>>  ->  tensor<?xf32, #graph.shape<["k + 1"]>>

Passes build canonical dims; people need not write them.
"""

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    ShapeAttr,
    ShapeValueType,
    annotation_of,
    dims_of_attr,
    elements_of,
    shape_attr,
    shape_value_type,
    to_mlir,
    tuple_type,
)


def write_canonically(root: ir.Operation) -> None:
    """Rewrites the types and shapes below `root` that are not canonical; all must parse."""
    types: dict[ir.Type, ir.Type] = {}
    shapes: dict[ir.Attribute, ir.Attribute] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.constant":
            return ir.WalkResult.ADVANCE  # its value has the type too, which is static
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
        for value in values:
            old = value.type
            new = types.get(old) or types.setdefault(old, _canonical(old))
            if new != old:
                value.set_type(new)
        for name, attribute in op.attributes.items():
            if isinstance(attribute, ShapeAttr):
                if attribute not in shapes:
                    shapes[attribute] = shape_attr(dims_of_attr(attribute.dims))
                if shapes[attribute] != attribute:
                    op.attributes[name] = shapes[attribute]
        if op.name == "func.func":
            _write_signature(op.opview)
        return ir.WalkResult.ADVANCE

    root.walk(visit)


def _canonical(type_: ir.Type) -> ir.Type:
    if isinstance(type_, ShapeValueType):
        return shape_value_type(dims_of_attr(ShapeValueType(type_).dims))
    if isinstance(type_, ir.RankedTensorType) and isinstance(type_.encoding, ShapeAttr):
        return to_mlir(annotation_of(type_))
    elements = elements_of(type_)
    return type_ if elements is None else tuple_type(list(map(_canonical, elements)))


def _write_signature(function: func.FuncOp) -> None:
    old = function.type
    new = ir.FunctionType.get(*([*map(_canonical, types)] for types in (old.inputs, old.results)))
    if new != old:
        function.attributes["function_type"] = ir.TypeAttr.get(new)
