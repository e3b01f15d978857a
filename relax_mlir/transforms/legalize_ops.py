"""Lowers graph operators to calls of tensor programs.

    %y = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, ...>
      ->
    func.func private @exp(%x, %out) attributes {tir.prim_func} { linalg.generic ... }
    %y = "graph.call_tir"(%x) {callee = @exp}

Equal programs are built once. Calls, shape values and memory ops stay. An operator without a
legalization fails, or stays with `allow-unknown`.

Needs: known dims of every result (`relax-infer-shapes`). Leaves: no operator.
Source: paper §4.7; TVM `LegalizeOps`.
"""

from dataclasses import dataclass

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    MakeShapeOp,
    ShapeOfOp,
    TensorType,
    annotation_of,
)
from relax_mlir.legalize import KernelBuilder, legalizations
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase

PLACEHOLDER = "__kernel"


@dataclass(frozen=True)
class LegalizeOps(Pass):
    """Lowers graph operators to calls of tensor programs."""

    allow_unknown: bool = False

    def run(self, op: ir.Operation) -> None:
        """Rewrites every operator of the module's graph functions, nested ones included."""
        kernels = _Kernels(op)
        for function in graph_functions(op):
            for operator in _operators(function):
                if type(operator) in legalizations():
                    _legalize(operator, kernels)
                elif not self.allow_unknown:
                    raise PassFailure(operator, "has no legalization")


def _operators(function: func.FuncOp) -> list[GraphOp]:
    """Returns the operators with a deduction rule, apart from shape values."""
    found: list[GraphOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, GraphOp) and view.has_rule():
            if not isinstance(view, MakeShapeOp | ShapeOfOp):
                found.append(view)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return found


class _Kernels:
    """The tensor programs of a module, by their text."""

    def __init__(self, module: ir.Operation) -> None:
        self.block = module.regions[0].blocks[0]
        self.names = {
            op.attributes["sym_name"].value
            for op in self.block.operations
            if "sym_name" in op.attributes
        }
        self.known: dict[str, str] = {}

    def share(self, kernel: func.FuncOp, base: str) -> str:
        """Names a new kernel, or erases it in favour of an equal one; returns the name."""
        text = kernel.operation.get_asm(assume_verified=True)
        if text in self.known:
            safe_erase(kernel)
            return self.known[text]
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        kernel.attributes["sym_name"] = ir.StringAttr.get(name)
        self.names.add(name)
        self.known[text] = name
        return name


def _legalize(op: GraphOp, kernels: _Kernels) -> None:
    values = [value for value in op.slots() if value is not None]
    in_types = [annotation_of(value) for value in values]
    out_types = [annotation_of(result) for result in op.results]
    for type_ in (*in_types, *out_types):
        if not isinstance(type_, TensorType) or not type_.is_exact:
            raise PassFailure(
                op, f"has '{type_}', whose dims are not all known; assert it with graph.match_cast"
            )
    inplace = getattr(type(op), "inplace_operands", None)
    kept = [t for i, t in enumerate(in_types) if inplace is None or i not in inplace]
    with op.location:
        builder = KernelBuilder(PLACEHOLDER, kept, out_types, kernels.block)
        with builder.insertion_point:
            legalizations()[type(op)](op, builder)
        base = op.operation.name.split(".", 1)[1].removeprefix("nn_")
        name = kernels.share(builder.function, base)
        with ir.InsertionPoint(op):
            if inplace is None:
                call = CallTirOp.build(name, values, out_types, builder.sym_args)
            else:
                call = CallTirInplaceOp.build(name, values, inplace, out_types, builder.sym_args)
    for old, new in zip(op.results, call.outs):
        old.replace_all_uses_with(new)
    safe_erase(op)
