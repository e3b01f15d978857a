"""Lowers graph operators to calls of tensor programs.

    %y = "graph.exp"(%x) : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, ...>
      ->
    func.func private @exp(%x, %out) attributes {tir.prim_func} { linalg.generic ... }
    %y = "graph.call_tir"(%x) {callee = @exp}

Conversions of floats of 8 bits become operators on their codes first. Equal programs are built
once. A result that nobody uses is left out if the operator's class says so: elements are sorted
faster without their positions. Calls, shape values and memory ops stay. An operator without a
legalization fails, or stays with `allow-unknown`. Divisions in the tensor programs of users get
results: what is divided by 0 is 0.

Needs: known dims of every result (`relax-infer-shapes`). Leaves: no operator; its tensor programs
know no signs of integers, since ops with signs were chosen by the types of the graph.
Source: paper §4.7; TVM `LegalizeOps`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.small_floats import cast_float8
from relax_mlir.dialects.graph import (
    AstypeOp,
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    MakeShapeOp,
    ShapeOfOp,
    TensorToShapeOp,
    TensorType,
    ToDeviceOp,
    annotation_of,
    is_small_float,
)
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.legalize import KernelBuilder, Legalization, legalization_of
from relax_mlir.legalize.divisions import guard_divisions
from relax_mlir.legalize.movement.broadcasting import repeat_operands
from relax_mlir.legalize.products.convolution import fast_math_of
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, rewrite_walk, safe_erase
from relax_mlir.symbolic import Expr


@dataclass(frozen=True)
class LegalizeOps(Pass):
    """Lowers graph operators to calls of tensor programs."""

    needs_verified: ClassVar[bool] = True

    allow_unknown: bool = False

    def run(self, op: ir.Operation) -> None:
        """Rewrites every operator of the module's graph functions, nested ones included."""
        for prim_func in prim_funcs(op):
            if not prim_func.is_scheduled and not prim_func.op.is_external:
                guard_divisions(prim_func.op)
        kernels = _Kernels(op)
        for function in graph_functions(op):
            rewrite_walk(function, expand_small_floats)
            for operator in _operators(function):
                if (lower := legalization_of(type(operator))) is not None:
                    _legalize(operator, lower, kernels)
                elif not self.allow_unknown:
                    raise PassFailure(operator, "has no legalization")


def expand_small_floats(op: AstypeOp) -> ir.Value | None:
    """The operators on codes that a conversion from or to a float of 8 bits is."""
    element = TensorType.of(op.result).element
    if not any(map(is_small_float, (element, TensorType.of(op.input).element))):
        return None
    return cast_float8(op.input, element)


def _operators(function: func.FuncOp) -> list[GraphOp]:
    """Returns the operators with a deduction rule, apart from shape values and moves."""
    operators: list[GraphOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, GraphOp) and view.has_rule():
            if not isinstance(view, MakeShapeOp | ShapeOfOp | TensorToShapeOp | ToDeviceOp):
                operators.append(view)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return operators


@dataclass(frozen=True)
class _Kernel:
    """A tensor program that calls can share: its name and its index arguments."""

    name: str
    sym_args: tuple[Expr, ...]


class _Kernels:
    """The tensor programs of a module, by the operators that they were built for."""

    def __init__(self, module: ir.Operation) -> None:
        self.block = module.regions[0].blocks[0]
        self.names = SymbolNames(self.block)
        self.known: dict[tuple, _Kernel] = {}

    def kernel_of(self, op: GraphOp, lower: Legalization) -> _Kernel:
        """Returns the program of an operator; builds it unless an equal one exists."""
        key = (
            op.operation.name,
            *(value.type for value in (*op.operands, *computed_results(op))),
            len(computed_results(op)),
            *(op.attributes[n] for n in op.declared_attributes()),
            fast_math_of(op),
        )
        if key not in self.known:
            self.known[key] = self._build(op, lower)
        return self.known[key]

    def _build(self, op: GraphOp, lower: Legalization) -> _Kernel:
        inplace = inplace_of(op) or ()
        in_types = [
            _tensor_type(op, value)
            for index, value in enumerate(operands_of(op))
            if index not in inplace
        ]
        out_types = [_tensor_type(op, result) for result in computed_results(op)]
        name = self.names.fresh(op.operation.name.split(".", 1)[1].removeprefix("nn_"))
        with op.location:
            builder = KernelBuilder(name, in_types, out_types, self.block)
            with builder.insertion_point:
                repeat_operands(op, builder)
                lower(op, builder)
        return _Kernel(name, builder.sym_args)


def _tensor_type(op: GraphOp, value: ir.Value) -> TensorType:
    annotation = annotation_of(value)
    if not isinstance(annotation, TensorType) or not annotation.is_exact:
        raise PassFailure(
            op, f"has '{value.type}', whose dims are not all known; assert it with graph.match_cast"
        )
    return annotation


def operands_of(op: GraphOp) -> list[ir.Value]:
    """Returns the operands that are present."""
    return [value for value in op.slots() if value is not None]


def computed_results(op: GraphOp) -> list[ir.Value]:
    """The results but those that nobody uses and the op's tensor program can do without."""
    droppable = getattr(type(op), "droppable_results", ())
    return [
        value
        for index, value in enumerate(op.results)
        if index not in droppable or next(iter(value.uses), None) is not None
    ]


def inplace_of(op: GraphOp) -> tuple[int, ...] | None:
    """Returns the operand that each result is computed into, None for new results."""
    return getattr(type(op), "inplace_operands", None)


def _legalize(op: GraphOp, lower: Legalization, kernels: _Kernels) -> None:
    kernel = kernels.kernel_of(op, lower)
    inplace = inplace_of(op)
    values = operands_of(op)
    results = computed_results(op)
    out_types = [annotation_of(result) for result in results]
    with ir.InsertionPoint(op), op.location:
        call: CallTirOp | CallTirInplaceOp
        if inplace is None:
            call = CallTirOp.build(kernel.name, values, out_types, kernel.sym_args)
        else:
            call = CallTirInplaceOp.build(kernel.name, values, inplace, out_types, kernel.sym_args)
    for old, new in zip(results, call.outs, strict=True):
        old.replace_all_uses_with(new)
    safe_erase(op)
