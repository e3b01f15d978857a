"""Renames functions so that none has the name of a C function.

    func.func private @floor(...)      ->      func.func private @relax.floor(...)

LLVM inserts calls of C functions: on machines without the instruction, `math.floor` is a call of
`floor`. It must not bind to a kernel of that name.
"""

from collections.abc import Collection

from relax_mlir.bindings import func, ir

PREFIX = "relax."
_REFERRING = {
    "func.call": "callee",
    "func.constant": "value",
    "llvm.call": "callee",
    "llvm.mlir.addressof": "global_name",
    "memref.get_global": "name",
}


def protect_names(
    module: ir.Module, exports: Collection[str], elsewhere: Collection[str] = ()
) -> dict[str, set[str]]:
    """Renames every function with a body that is not exported, and all uses of its name.

    Renames also functions that are declared here and defined `elsewhere`. Returns, by the new
    names, which symbols each symbol's definition refers to.
    """
    renamed: dict[str, ir.FlatSymbolRefAttr] = {}
    for op in module.body.operations:
        if not isinstance(op, func.FuncOp) or op.name.value in exports:
            continue
        old = op.name.value
        if not op.is_external or old in elsewhere:
            renamed[old] = ir.FlatSymbolRefAttr.get(PREFIX + old)
            op.attributes["sym_name"] = ir.StringAttr.get(PREFIX + old)
    references: dict[str, set[str]] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        attribute = _REFERRING.get(op.name)
        if attribute and attribute in op.attributes:
            value = ir.FlatSymbolRefAttr(op.attributes[attribute])
            if value.value in renamed:
                op.attributes[attribute] = value = renamed[value.value]
            referenced.add(value.value)
        return ir.WalkResult.ADVANCE

    for op in module.body.operations:
        if "sym_name" in op.operation.attributes:
            name = ir.StringAttr(op.operation.attributes["sym_name"]).value
            referenced = references.setdefault(name, set())
            op.operation.walk(visit)
    return references
