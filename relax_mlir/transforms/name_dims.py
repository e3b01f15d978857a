"""Names every dim, by a symbol or an expression, so that sizes can be computed.

    func.func @main(%x: tensor<?x4xf32> {graph.name = "x"}, ...) {
      %0 = "graph.exp"(%x) : (tensor<?x4xf32>) -> tensor<?x?xf32>
      %1 = scf.if ... -> tensor<?xf32>
      ->
    func.func @main(%x: tensor<?x4xf32, #graph.shape<["x_0", 4]>> {graph.name = "x"}, ...) {
      %0 = "graph.exp"(%x) : ... -> tensor<?x4xf32, #graph.shape<["x_0", 4]>>
      %1 = scf.if ... -> tensor<?xf32>
      %2 = "graph.match_cast"(%1) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["if_0"]>>

An unknown dim of an argument becomes a symbol that each call binds; if a cast names it, the cast's
symbol. Operators are inferred again from there. Dims that remain unknown, of yielded, carried and
returned values and of operators whose data decide, are bound by a match_cast at the value.
Arguments of a call that is not inlined are cast to the annotations of the parameters, which is
checked at run time. Symbols that several regions bind under one name are renamed.

Needs: a verified module. Leaves: known dims of every tensor. Fails at a tensor of unknown rank, and
at a `!graph.object`, which compiled code does not support.
Source: paper §3.1 (coarse annotations are legal anywhere), §3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    PRIMITIVE,
    argument_name,
    callees_first,
    graph_functions,
)
from relax_mlir.analysis.rename import FUNCTION_TYPE, FreshSymbols
from relax_mlir.analysis.scopes import Scope, argument_symbols, bound_by, scoped_ops
from relax_mlir.analysis.signatures import (
    Unification,
    parameter_types,
    result_types,
    substitute,
    substitute_axes,
    unify,
)
from relax_mlir.analysis.symbols import dims_of, symbols_of
from relax_mlir.analysis.unique_symbols import make_symbols_unique
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    CallOp,
    DataDependentOp,
    GraphOp,
    MatchCastOp,
    TensorToShapeOp,
    TensorType,
    annotation_of,
    is_open,
    to_mlir,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.passing import bind_together, passed, require_natural
from relax_mlir.symbolic import Expr

from .infer_shapes import Inference

_TOLD_AT_RUN_TIME = CallOp | MatchCastOp | TensorToShapeOp | DataDependentOp
"""The ops of the dialect with results whose dims only running them tells."""


@dataclass(frozen=True)
class NameDims(Pass):
    """Names every dim, by a symbol or an expression, so that sizes can be computed."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Names dims of every graph function, callees first."""
        naming = _Naming(op)
        functions = [f for f in callees_first(graph_functions(op)) if PRIMITIVE not in f.attributes]
        for function in functions:
            naming.arguments(function)
        for function in functions:
            naming.function(function)


class _Naming(Inference):
    """Refines functions, and names dims that stay unknown."""

    fresh: FreshSymbols

    def arguments(self, function: func.FuncOp) -> None:
        """Names dims of the arguments; of all functions first, since they may call each other."""
        make_symbols_unique(function)
        self.fresh = FreshSymbols(function)
        names = _names_by_casts(function)
        for index, argument in enumerate(function.arguments):
            _check_argument(function, index, argument)
            annotation = substitute_axes(
                annotation_of(argument), lambda axis, dim: dim or names.get((argument, axis))
            )
            argument.set_type(to_mlir(self._named(annotation, argument_name(function, index))))
        types = [argument.type for argument in function.arguments]
        type_ = ir.FunctionType.get(types, function.type.results)
        function.attributes[FUNCTION_TYPE] = ir.TypeAttr.get(type_)

    def function(self, function: func.FuncOp) -> None:
        """Names dims that stay unknown in the body."""
        self.fresh = FreshSymbols(function)
        super().function(function)

    def _named(self, annotation: Annotation, base: str) -> Annotation:
        """The annotation with a new symbol for each unknown dim."""
        return substitute_axes(annotation, lambda axis, dim: dim or self.fresh(f"{base}_{axis}"))

    def block(self, block: ir.Block, scope: Scope) -> None:
        """Names dims of the block arguments, then of the ops."""
        owner = block.owner.opview
        if not isinstance(owner, func.FuncOp):
            for argument in block.arguments:
                self._bind(owner, argument, ir.InsertionPoint.at_block_begin(block), scope)
        super().block(block, scope)

    def op(self, op: ir.OpView, scope: Scope) -> bool:
        """Refines an op, and binds dims of its results that stay unknown."""
        wanted: list[Annotation] = []
        if isinstance(op, CallOp) and op.callee_name in self.functions:
            wanted = self._pass_arguments(op, self.functions[op.callee_name], scope)
        if not super().op(op, scope):
            return False
        for index, result in enumerate(list(op.results)):
            point = ir.InsertionPoint.after(op)
            self._bind(op, result, point, scope, wanted[index] if wanted else None)
        return True

    def _pass_arguments(self, call: CallOp, callee: func.FuncOp, scope: Scope) -> list[Annotation]:
        """Casts arguments to the parameters' annotations; returns those declared of the results.

        The results keep the annotations of the signature; casts check the rest.
        """
        if PRIMITIVE in callee.attributes:
            return []
        parameters = parameter_types(callee)
        values = unify(parameters, [annotation_of(value) for value in call.ins]).values
        with ir.InsertionPoint(call), call.location:
            require_natural(values.values(), f"@{call.callee_name}")
            new = {name: self.fresh(name) for name in symbols_of(parameters) if name not in values}
            values.update(new)
            wanted = [substitute(p, lambda dim: dim and dim.substitute(values)) for p in parameters]
            names = {str(name) for name in new.values()}
            arguments = bind_together(call.ins, wanted, names, self.fresh, scope.enter)
            for index, (value, annotation) in enumerate(zip(arguments, wanted)):
                cast = passed(value, annotation)
                if cast != value:
                    scope.enter(cast.owner.opview)
                call.operation.operands[index] = cast
        told = Unification(values)
        declared = [annotation_of(result) for result in call.outs]
        for result, annotation in zip(call.outs, result_types(callee)):
            result.set_type(
                to_mlir(_from_signature(annotation_of(result), told.annotation(annotation)))
            )
        return declared

    def _bind(
        self,
        op: ir.OpView,
        value: ir.Value,
        point: ir.InsertionPoint,
        scope: Scope,
        wanted: Annotation | None = None,
    ) -> None:
        """Casts a value to known dims, unless they are known; `wanted` is declared of it."""
        annotation = annotation_of(value)
        if _is_unknown(annotation):
            raise PassFailure(op, f"has '{value.type}', which compiled code cannot hold")
        users = [use.owner.opview for use in value.uses]
        if None not in dims_of(annotation) or all(isinstance(u, MatchCastOp) for u in users):
            return
        if isinstance(op, GraphOp) and not isinstance(op, _TOLD_AT_RUN_TIME):
            raise PassFailure(op, f"has '{value.type}', whose dims nothing tells")
        base = op.callee_name if isinstance(op, CallOp) else op.operation.name.split(".")[-1]
        named = self._named(annotation if wanted is None else wanted, base)
        with point, op.location:
            cast = MatchCastOp.build(value, to_mlir(named))
        value.replace_all_uses_except(cast.result, [cast.operation])
        scope.enter(cast)


def _check_argument(function: func.FuncOp, index: int, argument: ir.Value) -> None:
    if _is_unknown(annotation_of(argument)):
        raise PassFailure(
            function,
            f"has argument {index} '{argument_name(function, index)}' of '{argument.type}', "
            "not a ranked tensor or a shape",
        )


def _names_by_casts(function: func.FuncOp) -> dict[tuple[ir.Value, int], Expr]:
    """The names of arguments' unknown dims in casts that always run."""
    names: dict[tuple[ir.Value, int], Expr] = {}
    bound = argument_symbols(function)
    for op, scope in scoped_ops(function):
        if not isinstance(op, MatchCastOp) or scope.block != function.entry_block:
            continue
        new = bound_by(op, scope.symbols)
        if op.input not in list(function.arguments):
            continue
        for axis, (source, target) in enumerate(
            zip(dims_of(annotation_of(op.input)), dims_of(annotation_of(op.result)))
        ):
            key = (op.input, axis)
            if source is None and target is not None and key not in names:
                if target.symbols & new and target.symbols <= bound | new:
                    names[key] = target
                    bound |= target.symbols
    return names


def _is_unknown(annotation: Annotation) -> bool:
    """Whether not even a rank, or the type of elements, is known."""
    if isinstance(annotation, TensorType):
        return annotation.dims is None or annotation.is_of_any_element
    return is_open(annotation)


def _from_signature(declared: Annotation, inferred: Annotation) -> Annotation:
    """The declared annotation, without dims that the signature leaves unknown."""
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return declared
    if declared.dims is None or inferred.dims is None or len(declared.dims) != len(inferred.dims):
        return inferred
    dims = tuple(None if b is None else a for a, b in zip(declared.dims, inferred.dims))
    return TensorType(dims, declared.element)
