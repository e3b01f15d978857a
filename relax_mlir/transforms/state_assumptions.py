"""States the assumptions of operators on dims as facts and requirements.

    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>,
                    %y: tensor<?xf32, #graph.shape<["m"]>>) { %0 = "graph.add"(%x, %y) ... }
      ->
    func.func @main(...) attributes {graph.facts = ["n == m"]} { ... }

A rule refuses dims that can never agree. Dims that may or may not agree pass, and kernels rely on
their agreement: they would otherwise read out of bounds. Such a relation becomes a fact of the
function, which is checked at each call, if the op always runs and the arguments bind the symbols.
Otherwise it becomes a `graph.require` in the op's block, as soon as its symbols are bound there; so
do dims that broadcast at run time, of which one of several relations must hold, facts of called
functions, and all relations of functions that call themselves. Relations that follow from earlier
facts are not stated.

Needs: a verified module. Leaves: facts and requirements that imply all assumptions of operators and
    of calls. Fails if one contradicts the facts. Source: paper §4.1 (checks at run time where
    nothing is proved).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import (
    FACTS,
    PRIMITIVE,
    callees_first,
    facts_of,
    graph_functions,
)
from relax_mlir.analysis.recursion import Recursion
from relax_mlir.analysis.scopes import Scope, argument_symbols, natural_dims, scoped_ops
from relax_mlir.analysis.signatures import (
    functions_by_name,
    parameter_types,
    result_types,
    unify,
)
from relax_mlir.analysis.symbols import symbols_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Broadcast,
    CallLibraryInplaceOp,
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    LibraryCall,
    MatchCastOp,
    RequireOp,
    ShapeError,
    TensorType,
    annotation_of,
    assumptions,
    compatible,
)
from relax_mlir.dialects.graph.types import dims_differ
from relax_mlir.dialects.lib import RULES
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase
from relax_mlir.symbolic import Fact, Facts, as_expr, holds

OPPOSITE = {"==": "!=", "!=": "==", "<=": ">", ">": "<=", "<": ">=", ">=": "<"}
AnyOf = tuple[Fact, ...]


@dataclass(frozen=True)
class StateAssumptions(Pass):
    """States the assumptions of operators on dims as facts and requirements."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Adds facts and requirements to every graph function, callees first."""
        functions, graphs = functions_by_name(op), graph_functions(op)
        recursive = Recursion(graphs).groups
        for function in callees_first(graphs):
            if PRIMITIVE not in function.attributes:
                _Assumptions(function, function.name.value in recursive).state(functions)


@dataclass
class _Assumptions:
    """The assumptions of one function; `known` has those that are checked already in a block."""

    function: func.FuncOp
    is_recursive: bool
    stated: list[Fact] = field(default_factory=list)
    known: set[tuple[ir.Block, AnyOf]] = field(default_factory=set)

    def state(self, functions: dict[str, func.FuncOp]) -> None:
        """States them in the function's facts, and in its body."""
        entry = self.function.entry_block
        # What a function states must be known at its calls, among which are some of its own.
        self.bound = frozenset() if self.is_recursive else argument_symbols(self.function)
        if not self.is_recursive:
            natural = natural_dims(map(annotation_of, self.function.arguments))
            self.stated += [fact for fact in natural if fact not in facts_of(self.function).items]
        proved: list[RequireOp] = []
        for op, scope in scoped_ops(self.function):
            if isinstance(op, RequireOp):
                if _open(op, op.facts, scope.facts) is None:
                    proved.append(op)
            elif isinstance(op, GraphOp) and not isinstance(op, MatchCastOp):
                for any_of in assumed_by(op, functions):
                    self._require(op, any_of, scope, scope.block == entry)
        for op in proved:
            safe_erase(op)
        if self.stated:
            facts = (*facts_of(self.function), *self.stated)
            texts = [ir.StringAttr.get(str(fact)) for fact in facts]
            self.function.attributes[FACTS] = ir.ArrayAttr.get(texts)

    def _require(self, op: GraphOp, any_of: AnyOf, scope: Scope, always: bool) -> None:
        if (scope.block, any_of) in self.known:
            return
        self.known.add((scope.block, any_of))
        left = _open(op, any_of, scope.facts)
        if left is None:
            return
        symbols = frozenset().union(*(fact.symbols for fact in left))
        if always and len(left) == 1 and symbols <= self.bound and not isinstance(op, CallOp):
            self.stated += left
            scope.facts += Facts(left)
        else:
            called = isinstance(op, CallOp | CallTirOp | CallTirInplaceOp)
            by = f"@{op.callee_name}" if called else op.operation.name
            scope.require(left, by, op.location)


def _open(op: GraphOp, any_of: AnyOf, facts: Facts) -> AnyOf | None:
    """The relations that may hold; None if one follows from the facts.

    Raises PassFailure if none of them can hold.
    """
    if any(holds(fact, facts).proved for fact in any_of):
        return None
    opposites = [Fact(fact.lhs, OPPOSITE[fact.op], fact.rhs) for fact in any_of]
    left = [f for f, no in zip(any_of, opposites) if not holds(no, facts).proved]
    if not left:
        given = f" given {' and '.join(map(str, facts))}" if len(facts) else ""
        needs = " or ".join(map(str, any_of))
        raise PassFailure(op, f"needs {needs}, which cannot be{given}")
    return tuple(dict.fromkeys(left))


def assumed_by(op: GraphOp, functions: dict[str, func.FuncOp]) -> Iterator[AnyOf]:
    """The relations that must hold when the op runs, so that its kernel stays within its operands.

    Of each tuple, one fact must hold.
    """
    with assumptions() as assumed:
        _check(op)
        if isinstance(op, CallTirOp | CallTirInplaceOp):
            _check_call(op, functions[op.callee_name])
        elif isinstance(op, CallOp):
            assumed += list(_called(op, functions[op.callee_name]))
        elif isinstance(op, LibraryCall):
            _check_library_call(op)
    for item in assumed:
        yield from item.requirements if isinstance(item, Broadcast) else [(item,)]
    for result in op.results:
        annotation = annotation_of(result)
        if isinstance(annotation, TensorType):
            for dim in annotation.dims or ():
                if dim is not None and dim.value is None:
                    yield (Fact(as_expr(0), "<=", dim),)


def _check(op: GraphOp) -> None:
    try:
        op.check()
    except ShapeError as error:
        raise PassFailure(op, str(error)) from None


def _called(op: CallOp, callee: func.FuncOp) -> Iterator[Fact]:
    """Facts of a graph function as the caller sees them; checks the call against its signature."""
    if PRIMITIVE in callee.attributes:
        return
    unification = unify(parameter_types(callee), [annotation_of(value) for value in op.ins])
    for annotation, value in zip(result_types(callee), op.outs):
        compatible(unification.annotation(annotation), annotation_of(value))
    for fact in facts_of(callee):
        missing = sorted(fact.symbols - unification.values.keys())
        if not missing:
            yield fact.substitute(unification.values)
        elif fact.symbols <= set(symbols_of(parameter_types(callee))):
            raise PassFailure(
                op, f"passes nothing that binds '{missing[0]}' of '@{op.callee_name}', for '{fact}'"
            )


def _check_library_call(op: LibraryCall) -> None:
    """Checks the call against the rule of its convention, or results against what they update."""
    if isinstance(op, CallLibraryInplaceOp):
        for out, index in zip(op.outs, op.inplace, strict=True):
            if index >= 0:
                compatible(annotation_of(op.ins[index]), annotation_of(out))
        return
    declared = ir.SymbolTable(_module_of(op))[op.callee_name]
    rule = RULES.get(declared.attributes["convention"].value)
    if rule is None:
        return
    deduced = rule([TensorType.of(value) for value in op.ins], op.symbol_arguments)
    for ours, stated in zip(deduced.dims or (), TensorType.of(op.outs[0]).dims or ()):
        dims_differ(ours, stated)


def _module_of(op: ir.OpView) -> ir.Operation:
    parent = op.operation
    while parent.parent is not None:
        parent = parent.parent
    return parent


def _check_call(op: CallTirOp | CallTirInplaceOp, callee: func.FuncOp) -> None:
    """Checks the call against the tensor program's signature, and adds its assumptions."""
    kernel = PrimFunc(callee)
    inplace: Sequence[int] = op.inplace if isinstance(op, CallTirInplaceOp) else ()
    ins = [value for index, value in enumerate(op.ins) if index not in inplace]
    if not kernel.is_scheduled:
        parameters = [annotation_of(value) for value in (*kernel.ins, *kernel.outs)]
        unify(parameters, [annotation_of(value) for value in (*ins, *op.outs)])
