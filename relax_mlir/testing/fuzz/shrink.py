"""Shrinks a failing program: drops results and ops, preserving the failure."""

from collections.abc import Callable

from relax_mlir.analysis.functions import INOUT, is_public
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.rewriting import is_unused, safe_erase

Fails = Callable[[str], bool]
"""Whether a module, as text, has the same failure."""


def shrink(text: str, fails: Fails) -> str:
    """A smaller module with the failure; each step removes as much as possible."""
    changed = True
    while changed:
        changed = False
        for change in (_drop_result, _replace_op, _drop_attribute, _drop_argument):
            index = 0
            while (smaller := _changed(text, change, index)) is not None:
                if smaller != text and fails(smaller):
                    text, changed = smaller, True
                else:
                    index += 1
    return text


def _changed(text: str, change: Callable[[func.FuncOp, int], bool], index: int) -> str | None:
    """The module after change `index`; None past the last one, unchanged if it is invalid."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        (main,) = [op for op in module.body.operations if _is_main(op)]
        if not change(main, index):
            return None
        _clean(main)
        _drop_callees(module)
        return "\n".join(
            op.operation.get_asm(use_local_scope=True) for op in module.body.operations
        )


def _is_main(op: ir.OpView) -> bool:
    return isinstance(op, func.FuncOp) and is_public(op)


def _drop_result(main: func.FuncOp, index: int) -> bool:
    """Drops a result."""
    returned = main.entry_block.operations[len(main.entry_block.operations) - 1]
    values = list(returned.operands)
    if index >= len(values) or len(values) == 1:
        return False
    _drop_inout(main)
    _return(main, values[:index] + values[index + 1 :])
    return True


def _return(main: func.FuncOp, values: list[ir.Value]) -> None:
    block = main.entry_block
    block.operations[len(block.operations) - 1].operation.erase()
    with ir.InsertionPoint(block):
        func.ReturnOp(values)
    inputs = [argument.type for argument in block.arguments]
    type_ = ir.FunctionType.get(inputs, [value.type for value in values])
    main.attributes["function_type"] = ir.TypeAttr.get(type_)


def _drop_inout(main: func.FuncOp) -> None:
    if "arg_attrs" in main.attributes:
        del main.attributes["arg_attrs"]


def _replace_op(main: func.FuncOp, index: int) -> bool:
    """Replaces the results of an op by arguments; erases an op without results."""
    ops = list(main.entry_block.operations)[:-1]
    if index >= len(ops):
        return False
    op = ops[len(ops) - 1 - index]
    for result in op.operation.results:
        if list(result.uses):
            result.replace_all_uses_with(
                main.entry_block.add_argument(result.type, ir.Location.unknown())
            )
    safe_erase(op)
    _refresh(main)
    return True


def _refresh(main: func.FuncOp) -> None:
    block = main.entry_block
    returned = list(block.operations)[-1]
    attributes = list(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []
    inputs = [argument.type for argument in block.arguments]
    if attributes:
        empty = ir.DictAttr.get({})
        attributes += [empty] * (len(inputs) - len(attributes))
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes[: len(inputs)])
    type_ = ir.FunctionType.get(inputs, [value.type for value in returned.operands])
    main.attributes["function_type"] = ir.TypeAttr.get(type_)


def _drop_attribute(main: func.FuncOp, index: int) -> bool:
    """Drops facts, the count of inputs, or in-place updates."""
    names = [name for name in ("graph.facts", "graph.num_inputs") if name in main.attributes]
    names += ["arg_attrs"] if INOUT in str(main.attributes) else []
    if index >= len(names):
        return False
    del main.attributes[names[index]]
    return True


def _drop_argument(main: func.FuncOp, index: int) -> bool:
    """Drops an unused argument."""
    block = main.entry_block
    unused = [i for i, argument in enumerate(block.arguments) if not list(argument.uses)]
    if index >= len(unused) or "graph.num_inputs" in main.attributes:
        return False
    index_ = unused[len(unused) - 1 - index]
    if "arg_attrs" in main.attributes:
        attributes = list(main.attributes["arg_attrs"])
        del attributes[index_]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    block.erase_argument(index_)
    _refresh(main)
    return True


def _clean(main: func.FuncOp) -> None:
    """Erases unused ops."""
    for op in reversed(list(main.entry_block.operations)[:-1]):
        if op.operation.results and is_unused(op):
            safe_erase(op)


def _drop_callees(module: ir.Module) -> None:
    """Erases unreferenced private functions."""
    while True:
        text = "\n".join(
            str(op.operation.get_asm(use_local_scope=True)) for op in module.body.operations
        )
        private = [op for op in module.body.operations if not _is_main(op)]
        dead = [op for op in private if text.count(f"@{op.attributes['sym_name'].value}") < 2]
        if not dead:
            return
        safe_erase(dead[0])
