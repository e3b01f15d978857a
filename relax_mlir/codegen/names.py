"""Symbol names that no C function has.

    func.func private @floor(...)      ->      func.func private @relax.floor(...)

Machine code calls functions of C on its own account: on machines without the instruction,
rounding a number down is a call of `floor`. It must not find a kernel of that name.
"""

from collections.abc import Collection

from relax_mlir.bindings import func, ir

PREFIX = "relax."


def protect_names(module: ir.Module, exports: Collection[str]) -> None:
    """Renames every function with a body that is not exported, and all uses of its name."""
    renamed: dict[str, ir.Attribute] = {}
    for op in module.body.operations:
        if isinstance(op, func.FuncOp) and not op.is_external and op.name.value not in exports:
            name = PREFIX + op.name.value
            renamed[op.name.value] = ir.FlatSymbolRefAttr.get(name)
            op.attributes["sym_name"] = ir.StringAttr.get(name)

    def visit(op: ir.Operation) -> ir.WalkResult:
        for name, attribute in list(op.attributes.items()):
            if isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in renamed:
                op.attributes[name] = renamed[attribute.value]
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
