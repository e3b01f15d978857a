"""Infers annotations forward, and refines declared annotations by inferred ones.

    %1 = "graph.matmul"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4x8xf32>)
                                  -> tensor<?x?xf32>
      ->
    ... -> tensor<?x8xf32, #graph.shape<["n", 8]>>

Each operator's rule is applied once, in program order. A call is inferred from the callee's
signature alone, by unifying its symbols with the arguments'; callees are processed first, so that
callers see their refined results. Results of scf ops are what all branches yield, in symbols that
are bound outside.

Fails if a rule refuses its operands, or contradicts a declared annotation.

Needs: nothing. Leaves: every annotation as precise as the rules can make it.
Source: paper §4.1; TVM `Normalize`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.analysis.functions import callees_first, graph_functions
from relax_mlir.analysis.scopes import Scope, argument_symbols
from relax_mlir.analysis.signatures import (
    functions_by_name,
    parameter_types,
    result_types,
    substitute,
    unify,
    update_results,
)
from relax_mlir.bindings import func, ir, scf, tensor
from relax_mlir.dialects.graph import (
    Annotation,
    CallLibraryInplaceOp,
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    LibraryCall,
    MatchCastOp,
    ShapeError,
    TensorType,
    annotation_of,
    coarser,
    compatible,
    join,
    to_mlir,
)
from relax_mlir.dialects.lib import RULES, FunctionOp
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.passing import coerce, coerce_carried, coerce_ends, give_kinds, handed, terminators
from relax_mlir.rewriting import replace
from relax_mlir.symbolic import Facts


@dataclass(frozen=True)
class InferShapes(Pass):
    """Infers annotations forward, and refines declared annotations by inferred ones."""

    def run(self, op: ir.Operation) -> None:
        """Refines every graph function of the module, callees first."""
        inference = Inference(op)
        for function in callees_first(graph_functions(op)):
            inference.function(function)


class Inference:
    """Refines graph functions of a module."""

    def __init__(self, module: ir.Operation) -> None:
        self.functions = functions_by_name(module)
        self.libraries = {
            op.sym_name.value: op
            for op in module.regions[0].blocks[0].operations
            if isinstance(op, FunctionOp)
        }

    def function(self, function: func.FuncOp) -> None:
        """Refines the body, then the results of the signature."""
        block = function.entry_block
        self.block(block, Scope(block, argument_symbols(function), Facts()))
        update_results(function)

    def block(self, block: ir.Block, scope: Scope) -> None:
        """Refines the ops of a block in order, nested ones included."""
        for op in list(block.operations):
            self.op(op, scope)

    def op(self, op: ir.OpView, scope: Scope) -> bool:
        """Refines an op and its regions, and advances the scope; returns whether the op stays."""
        if isinstance(op, MatchCastOp):
            _check(op)
            self._refine(op, [annotation_of(op.input)])
            if op.input.type == op.result.type:
                replace(op, op.input)
                return False
        elif isinstance(op, CallOp):
            self._call(op, op.ins)
        elif isinstance(op, CallTirOp | CallTirInplaceOp):
            self._call(op, _kernel_ins(op))
        elif isinstance(op, LibraryCall):
            self._library_call(op)
        elif isinstance(op, GraphOp):
            if op.has_rule():
                self._refine(op, _infer(op))
        elif isinstance(op, tensor.InsertOp):
            op.result.set_type(op.dest.type)
        else:
            self._structured(op, scope)
        scope.enter(op)
        return True

    def _refine(self, op: ir.OpView, deduced: Sequence[Annotation]) -> None:
        """Refines the results' annotations by inferred ones."""
        if len(deduced) != len(op.results):
            raise PassFailure(op, f"infers {len(deduced)} results, but has {len(op.results)}")
        for result, annotation in zip(op.results, deduced):
            written = annotation_of(result)
            if not compatible(written, annotation):
                raise PassFailure(
                    op, f"infers result type '{to_mlir(annotation)}', but has '{result.type}'"
                )
            finer = join(written, annotation)
            if finer != written:
                result.set_type(to_mlir(finer))

    def _call(self, op: ir.OpView, ins: Sequence[ir.Value]) -> None:
        """Infers a call from the signature; `relax-verify` reports errors of the call."""
        function = self.functions.get(op.callee_name)
        if function is None:
            return
        unification = unify(parameter_types(function), [annotation_of(value) for value in ins])
        deduced = [unification.annotation(type_) for type_ in result_types(function)]
        self._refine_if_right(op, lambda: deduced)

    def _refine_if_right(self, op: ir.OpView, rule: Callable[[], list[Annotation]]) -> None:
        try:
            deduced = rule()
        except ShapeError:
            return
        written = [annotation_of(result) for result in op.results]
        if len(written) == len(deduced) and all(map(compatible, written, deduced)):
            self._refine(op, deduced)

    def _library_call(self, op: LibraryCall) -> None:
        """Infers a call from its convention, if that has a rule."""
        library = self.libraries.get(op.callee_name)
        if isinstance(op, CallLibraryInplaceOp):
            self._refine_if_right(op, lambda: _updated_types(op))
            return
        rule = None if library is None else RULES.get(library.convention.value)
        if rule is not None:
            operands = [TensorType.of(value) for value in op.ins]
            self._refine_if_right(op, lambda: [rule(operands, op.symbol_arguments)])

    def _structured(self, op: ir.OpView, scope: Scope) -> None:
        """Refines regions, then the results from what they yield."""
        if isinstance(op, scf.ForOp | scf.WhileOp):
            coerce_carried(op)
        for region in op.operation.regions:
            for block in region.blocks:
                self.block(block, scope.inside(op, block))
                if isinstance(op, scf.WhileOp):
                    give_kinds(handed(block), list(op.regions[1].blocks[0].arguments))
                    give_kinds(handed(block), list(op.results))
        if isinstance(op, scf.ForOp | scf.WhileOp):
            coerce_ends(op)
        elif isinstance(op, scf.IfOp | scf.ExecuteRegionOp | scf.IndexSwitchOp):
            _join_branches(op, scope.symbols)


def _updated_types(op: CallLibraryInplaceOp) -> list[Annotation]:
    """The annotations of operands that are updated, else what is written."""
    inplace, ins = op.inplace, op.ins
    if len(inplace) != len(op.outs) or not all(index < len(ins) for index in inplace):
        raise ShapeError("has other indices")
    return [
        annotation_of(out if index < 0 else ins[index])
        for out, index in zip(op.outs, inplace, strict=True)
    ]


def _check(cast: MatchCastOp) -> None:
    try:
        cast.check()
    except ShapeError as error:
        raise PassFailure(cast, str(error)) from None


def _infer(op: GraphOp) -> list[Annotation]:
    try:
        return op.infer()
    except ShapeError as error:
        raise PassFailure(op, str(error)) from None


def _kernel_ins(op: CallTirOp | CallTirInplaceOp) -> list[ir.Value]:
    """The operands in the order of the tensor program's parameters."""
    if isinstance(op, CallTirOp):
        return op.ins
    ins, inplace = op.ins, op.inplace
    plain = [value for index, value in enumerate(ins) if index not in inplace]
    if any(index < 0 for index in inplace):
        return plain
    return plain + [ins[index] for index in inplace if index < len(ins)]


def _join_branches(op: ir.OpView, bound: frozenset[str]) -> None:
    """Gives each result the annotation that all branches agree on, and casts yielded values to it.

    Dims of symbols that are not `bound` outside the branches become unknown.
    """
    ends = terminators(op)
    for index, result in enumerate(op.results):
        yielded = [annotation_of(end.operands[index]) for end in ends]
        common = yielded[0]
        for other in yielded[1:]:
            common = coarser(common, other)
        common = substitute(
            common, lambda dim: dim if dim is not None and dim.symbols <= bound else None
        )
        result.set_type(to_mlir(join(annotation_of(result), common)))
    for end in ends:
        coerce(end, [result.type for result in op.results])
