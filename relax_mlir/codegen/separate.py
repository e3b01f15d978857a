"""Moves each kernel to a module of its own, so that LLVM compiles one while the next is lowered.

    @rx_fn_main calls @a and @b      ->      module 1: @rx_fn_main, declarations of @a and @b
    @a refers to @table                      module 2: @a, @table
    @b                                       module 3: @b

A kernel's module has the functions that it calls, and copies of the constants that it reads.
Kernels that share a function share a module. Symbols that are exported, written to or visible
outside stay in the original module.
"""

from collections.abc import Collection, Mapping

from relax_mlir.bindings import func, ir, llvm, memref

_GLOBALS = (llvm.GlobalOp, memref.GlobalOp)


def separate_kernels(
    module: ir.Module, exports: Collection[str], references: Mapping[str, Collection[str]]
) -> list[tuple[ir.Module, set[str]]]:
    """Moves scheduled functions and their callees out of the module, which declares them instead.

    `references` maps symbols to those that their definitions refer to. Returns the modules, the
    largest first, each with the names of its functions that are called from outside it.
    """
    symbols = {
        name: op
        for op in module.body.operations
        if (name := _name(op)) is not None and name in references
    }
    groups: list[set[str]] = []
    for name, op in symbols.items():
        if "tir.scheduled" in op.operation.attributes and _is_body(op):
            group = _closure(name, references)
            shared = [other for other in groups if any(_is_body(symbols[n]) for n in group & other)]
            groups = [other for other in groups if other not in shared]
            groups.append(group.union(*shared))
    fixed = {name for name, op in symbols.items() if name in exports or _is_pinned(op)}
    groups = [group for group in groups if not group & fixed]
    outside = set().union(*(references[name] for name in symbols.keys() - set().union(*groups)))
    modules = [(_move(module, group, symbols), group & outside) for group in groups]
    return sorted(modules, key=lambda pair: _size(pair[0]), reverse=True)


def _name(op: ir.OpView) -> str | None:
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None


def _is_body(op: ir.OpView) -> bool:
    """Whether an op is a function with a body."""
    return not isinstance(op, _GLOBALS) and bool(len(op.operation.regions[0].blocks))


def _is_pinned(op: ir.OpView) -> bool:
    """Whether a variable must not be copied: it is written to, or visible outside."""
    if isinstance(op, memref.GlobalOp):
        return "constant" not in op.attributes
    if isinstance(op, llvm.GlobalOp):
        return "constant" not in op.attributes or "private" not in str(op.attributes["linkage"])
    return False


def _closure(name: str, references: Mapping[str, Collection[str]]) -> set[str]:
    """The symbol and those that it refers to, transitively."""
    closure, todo = set(), [name]
    while todo:
        name = todo.pop()
        if name not in closure:
            closure.add(name)
            todo.extend(references.get(name, ()))
    return closure


def _move(module: ir.Module, group: Collection[str], symbols: Mapping[str, ir.OpView]) -> ir.Module:
    """A module with the functions of the group, moved from `module`, and copies of the rest."""
    with module.context, ir.Location.unknown():
        result = ir.Module.create()
        for name in filter(symbols.__contains__, sorted(group)):
            op = symbols[name]
            if not _is_body(op):
                result.body.append(op.operation.clone())
                continue
            if isinstance(op, func.FuncOp):
                func.FuncOp(name, op.type, visibility="private", ip=ir.InsertionPoint(module.body))
            op.operation.detach_from_parent()
            result.body.append(op)
    return result


def _size(module: ir.Module) -> int:
    """The count of ops."""
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count
