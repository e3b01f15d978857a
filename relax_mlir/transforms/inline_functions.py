"""Inlines graph functions into their callers.

    func.func private @scaled(%x, %w) { %0 = "graph.multiply"(%x, %w) ... }
    %1 = "graph.call"(%a, %b) {callee = @scaled}
      ->
    %1 = "graph.multiply"(%a, %b)

The callee's symbols are replaced by those of the arguments. Symbols that its own casts bind get
names that the caller does not use. A parameter that is more precise than its argument becomes a
match_cast, a fact of the callee a `graph.require`: both are checked at run time. Functions that run
as one kernel (`graph.primitive`), private ones with `graph.noinline`, and those that call
themselves are not inlined; the latter call private copies of exported functions. With `max-ops`,
larger functions that are called several times become such ones. Functions that return shapes, or
dims that their callers cannot compute, are inlined whatever their attributes. Unused private
functions are erased.

Needs: calls that agree with their signatures (`relax-verify`). Leaves: `graph.call` only of
    functions that are not inlined. Fails if a function becomes too large.
Source: TVM `InlinePrivateFunctions`.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.functions import (
    NOINLINE,
    PRIMITIVE,
    called_names,
    callees_first,
    facts_of,
    graph_functions,
    is_public,
    signature_symbols,
)
from relax_mlir.analysis.recursion import Recursion
from relax_mlir.analysis.rename import FreshSymbols, rename_symbols, used_symbols
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.analysis.signatures import parameter_types, result_types, unify
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    CallOp,
    MatchCastOp,
    ShapeValueType,
    TensorType,
    annotation_of,
    is_function,
    is_open,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.passing import bind_together, passed, require_natural, require_shape
from relax_mlir.rewriting import SymbolNames, safe_erase, walk_ops

MOST_OPS = 1 << 16
HINT = f"of more than {MOST_OPS} ops; mark functions with graph.noinline"


@dataclass(frozen=True)
class InlineFunctions(Pass):
    """Inlines graph functions into their callers."""

    needs_verified: ClassVar[bool] = True

    max_ops: int = 0
    """Functions of more ops that are called several times stay, if host code can call them."""

    def run(self, op: ir.Operation) -> None:
        """Inlines every call of a graph function with a body, innermost functions first."""
        recursive = _private_recursion(op)
        functions = callees_first(graph_functions(op))
        copied = {
            f.name.value: f for f in functions if not _stays(f) and f.name.value not in recursive
        }
        counts = Counter(call.callee_name for call in walk_ops(op, CallOp))
        sizes: dict[str, int] = {}
        for function in functions:
            name, fresh = function.name.value, FreshSymbols(function)
            sizes[name] = len(walk_ops(function)) - 2  # itself, and the return
            for call in walk_ops(function, CallOp):
                if call.callee_name in copied:
                    sizes[name] += sizes[call.callee_name]
                    if sizes[name] > MOST_OPS:
                        raise PassFailure(call, f"makes '@{name}' too large, {HINT}")
                    inline_call(call, copied[call.callee_name], fresh)
            is_large = self.max_ops and sizes[name] > self.max_ops and counts[name] > 1
            if name in copied and is_large and _can_stay(function):
                function.attributes[NOINLINE] = ir.UnitAttr.get()
                del copied[name]
        called = called_names(op)
        for name, function in copied.items():
            if not is_public(function) and name not in called:
                safe_erase(function)


def _private_recursion(module: ir.Operation) -> Collection[str]:
    """Has functions that call themselves call private copies of those that are exported.

    Returns the names of those that are called so. What is exported may then change its signature.
    """
    functions = graph_functions(module)
    names, copies = SymbolNames(module.regions[0].blocks[0]), dict[str, str]()
    for name in Recursion(functions).groups:
        function = next(f for f in functions if f.name.value == name)
        if is_public(function):
            copies[name] = names.fresh(name)
            with ir.InsertionPoint.after(function):
                copy = function.operation.clone().opview
            copy.attributes["sym_name"] = ir.StringAttr.get(copies[name])
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
    if copies:
        for call in walk_ops(module, CallOp):
            if call.callee_name in copies:
                callee = ir.FlatSymbolRefAttr.get(copies[call.callee_name])
                call.attributes["callee"] = callee
    return Recursion(graph_functions(module)).groups


def _can_stay(function: func.FuncOp) -> bool:
    """Whether a caller can know what host code has to: dims of arguments and results."""
    known = set(signature_symbols(function))
    annotations = [*parameter_types(function), *result_types(function)]
    dims = [dim for annotation in annotations for dim in dims_of(annotation)]
    return (
        not is_public(function)
        and all(dim is not None and dim.symbols <= known for dim in dims)
        and all(_is_passed(annotation) for annotation in annotations)
        and not any(isinstance(result, ShapeValueType) for result in result_types(function))
    )


def _is_passed(annotation: Annotation) -> bool:
    if isinstance(annotation, TensorType):
        return annotation.dims is not None and not annotation.is_of_any_element
    return not is_open(annotation)


def _stays(function: func.FuncOp) -> bool:
    attributes = function.attributes
    is_marked = NOINLINE in attributes or DEVICE in attributes
    return PRIMITIVE in attributes or (is_marked and _can_stay(function))


def inline_call(call: CallOp, callee: func.FuncOp, fresh: FreshSymbols) -> None:
    """Replaces one call by a copy of the callee's body."""
    arguments = call.ins
    parameters = parameter_types(callee)
    if len(parameters) != len(arguments):
        raise PassFailure(
            call, f"passes {len(arguments)} operands to '@{callee.name.value}' of {len(parameters)}"
        )
    values = unify(parameters, [annotation_of(value) for value in arguments]).values
    by = f"@{callee.name.value}"
    with ir.InsertionPoint(call), call.location:
        require_natural(values.values(), by)
        own = sorted(used_symbols(callee) - values.keys())
        own_values = {name: fresh(name) for name in own}
        values.update(own_values)
        copy = callee.operation.clone().opview
        _require_facts(copy)
        rename_symbols(copy, values)
        block = copy.entry_block
        annotations = [annotation_of(parameter) for parameter in block.arguments]
        new = set(map(str, own_values.values()))
        arguments = bind_together(arguments, annotations, new, fresh)
        for parameter, value in zip(block.arguments, arguments, strict=True):
            parameter.replace_all_uses_with(passed(value, annotation_of(parameter)))
            require_shape(value, annotation_of(parameter), by)
        *body, terminator = list(block.operations)
        results = list(terminator.operands)
        terminator.operation.erase()
        for op in body:
            op.operation.detach_from_parent()
            ir.InsertionPoint(call).insert(op)
        copy.operation.erase()
        for old, new in zip(call.outs, results, strict=True):
            same = new.type == old.type or is_function(old.type)
            new = new if same else MatchCastOp.build(new, old.type).result
            old.replace_all_uses_with(new)
    safe_erase(call)


def _require_facts(function: func.FuncOp) -> None:
    """Adds checks of the function's facts to its body, where their symbols are bound."""
    facts = facts_of(function)
    if not len(facts):
        return
    *_, (_, scope) = scoped_ops(function)
    for fact in facts:
        scope.require([fact], f"@{function.name.value}", function.location)
