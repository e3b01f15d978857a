"""PyTorch's dialect: torch-mlir's own passes lower it to linalg.

They do not need PyTorch. They give up at the first op that they have no lowering for; all others
show when each op is lowered by itself.
"""

from collections.abc import Iterator, Sequence

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import Diagnostic, collecting, diagnostics_of
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import is_unused, safe_erase, walk_ops

PASSES = (
    "func.func(torch-match-quantized-custom-ops)",
    "torchdynamo-export-to-torch-backend-pipeline{extra-library= backend-legal-ops=}",
    "torch-backend-to-linalg-on-tensors-backend-pipeline",
)
"""As torch-mlir runs them on what it imports."""
PLAIN = ("torch.constant.", "torch.vtensor.literal", "torch.prim.")
"""Ops that need no lowering of their own."""
COMMENTS = ("torch.bind_symbolic_shape", "torch.symbolic_int")
"""Ops that say how exported dims are related: nothing relies on it, so nothing has to check it."""
PIPELINE = f"builtin.module({','.join(PASSES)})"


def has_torch(module: ir.Operation) -> bool:
    """Whether a function of the module has ops or arguments of PyTorch's dialect."""
    return any(
        any(str(type_).startswith("!torch.") for type_ in function.type.inputs)
        or any(_is_torch(op.operation) for op in walk_ops(function))
        for function in graph_functions(module)
    )


def lower_torch(module: ir.Operation) -> bool:
    """Lowers PyTorch's dialect to linalg; emits an error at each op that has no lowering.

    Returns whether it is lowered; the module is of no use if not.
    """
    for comment in reversed(walk_ops(module)):
        if comment.operation.name in COMMENTS and is_unused(comment):
            safe_erase(comment)
    before = module.clone()
    failures = _failures(module)
    if not failures:
        return True
    unlowered = [op for op in _ops(before) if _failures(_alone(op).operation)]
    for op in unlowered:
        op.location.emit_error(f"'{op.name}' op is not supported: torch-mlir does not lower it")
    if not unlowered:
        module.location.emit_error(f"torch-mlir does not lower the module: {failures[0].message}")
    return False


def _failures(module: ir.Operation) -> Sequence[Diagnostic]:
    """Lowers a module; returns the errors."""
    with collecting(module.context, ("error", "remark")) as errors:
        try:
            run_upstream(PIPELINE, module)
        except (ir.MLIRError, RuntimeError) as error:
            return [*errors, *diagnostics_of(error)]
    return errors


def _ops(module: ir.Operation) -> Iterator[ir.Operation]:
    """The ops of PyTorch's dialect that make tensors."""
    for function in graph_functions(module):
        for op in walk_ops(function):
            own = op.operation
            plain = own.name.startswith(PLAIN) or len(own.regions)
            if _is_torch(own) and not plain and any(map(_is_tensor, own.results)):
                yield own


def _alone(op: ir.Operation) -> ir.Module:
    """A module of an op, whose tensor operands are arguments, with a copy of what else it needs."""
    needed: dict[ir.Operation, None] = {}
    tensors: dict[ir.Value, None] = {}
    _collect(op, needed, tensors)
    results = [result.type for result in op.results if _is_tensor(result)]
    module = ir.Module.create(op.location)
    with ir.InsertionPoint(module.body), op.location:
        function = func.FuncOp("main", ([value.type for value in tensors], results))
        block = function.add_entry_block()
        values = dict(zip(tensors, block.arguments))
        with ir.InsertionPoint(block):
            for each in (*needed, op):
                copy = each.clone().operation
                for index, value in enumerate(each.operands):
                    copy.operands[index] = values[value]
                values.update(zip(each.results, copy.results))
            func.ReturnOp([values[result] for result in op.results if _is_tensor(result)])
    return module


def _collect(
    op: ir.Operation, needed: dict[ir.Operation, None], tensors: dict[ir.Value, None]
) -> None:
    """Adds what an op needs: the ops that make lists and scalars, in order, and tensors."""
    for value in op.operands:
        owner = value.owner
        if _is_tensor(value) or isinstance(owner, ir.Block):
            tensors[value] = None
        elif owner.operation not in needed:
            _collect(owner.operation, needed, tensors)
            needed[owner.operation] = None


def _is_torch(op: ir.Operation) -> bool:
    return op.name.startswith("torch.")


def _is_tensor(value: ir.Value) -> bool:
    return str(value.type).startswith("!torch.vtensor")
