"""Checks the rules of the dialects that declarations cannot express; changes nothing.

Checks each op's constraints (C1, C2, ... in the op's documentation), each call against the callee's
signature by unification of symbols, each function's facts and symbols, and each tensor program's
form. Reports all errors, each at its op.

Modules with tuples are checked as what `relax-flatten-tuples` makes of them.

Dims that cannot be compared are not an error: they are checked at run time if necessary.

Needs: nothing. Leaves: the module unchanged; later passes need no checks. It is run automatically
before the first pass of a pipeline that relies on it.
Source: paper §4.1; TVM `WellFormed`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import FACTS, INOUT, argument_attribute, facts_of
from relax_mlir.analysis.nodes import broken_rules, is_leaf
from relax_mlir.analysis.rename import own_symbols
from relax_mlir.analysis.scopes import (
    Scope,
    argument_symbols,
    bound_by,
    runs_once,
    scoped_ops,
)
from relax_mlir.analysis.signatures import (
    functions_by_name,
    kind_conflict,
    parameter_types,
    result_types,
    unify,
)
from relax_mlir.analysis.symbols import symbols_of
from relax_mlir.analysis.tensor_programs import unsupported
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    CallDpsOp,
    CallLibraryInplaceOp,
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    InplaceCall,
    LibraryCall,
    MakeClosureOp,
    MatchCastOp,
    NodeOp,
    ShapeError,
    TensorType,
    annotation_of,
    compatible,
    num_workspaces,
    shape_value_type,
    to_mlir,
    workspace_of,
    workspace_type,
)
from relax_mlir.dialects.lib import DLPACK, RULES, FunctionOp, workspaces
from relax_mlir.dialects.tir import NUM_OUTS, PrimFunc
from relax_mlir.dialects.tir.prim_func import SYMBOL
from relax_mlir.passes import Pass
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts, SymbolicError, parse

from .flatten_tuples import FlattenTuples, has_tuples
from .lower_host_objects import LowerHostObjects, may_have_objects
from .lower_optional_arguments import LowerOptionalArguments, unlowered
from .resolve_closures import check_maker

Report = Callable[[ir.OpView, str], None]


@dataclass(frozen=True)
class Verify(Pass):
    """Checks the rules of the dialects that declarations cannot express; changes nothing."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Emits an error for each violated rule of the module."""
        functions = functions_by_name(op).values()
        if has_tuples(op) or may_have_objects(op, functions) or any(map(unlowered, functions)):
            copy = op.clone()
            for prepares in (FlattenTuples(), LowerHostObjects(), LowerOptionalArguments()):
                prepares.run(copy)
            self._check(copy)
        else:
            self._check(op)

    def _check(self, op: ir.Operation) -> None:
        checker = _Checker(functions_by_name(op))
        for child in op.regions[0].blocks[0].operations:
            if isinstance(child, FunctionOp):
                checker.libraries[child.attributes["sym_name"].value] = child
        for function in checker.functions.values():
            if PrimFunc.is_prim_func(function):
                checker.prim_func(PrimFunc(function))
            elif not function.is_external and not is_leaf(function):
                checker.graph_function(function)
        for broken, message in broken_rules(op):
            report(broken, message)


def report(op: ir.Operation | ir.OpView, message: str) -> None:
    """Emits an error at an op, in the form of MLIR's own."""
    op.location.emit_error(f"'{op.operation.name}' op {message}")


@dataclass
class _Checker:
    functions: dict[str, func.FuncOp]
    libraries: dict[str, FunctionOp] = field(default_factory=dict)

    def graph_function(self, function: func.FuncOp) -> None:
        """Checks the ops of a graph function, then its signature, symbols and control flow."""
        broken = _has_branches(function)
        for op in walk_ops(function, GraphOp):
            if isinstance(op, NodeOp):
                continue  # `broken_rules` has them
            try:
                op.check()
                self._call(op)
            except (ShapeError, SymbolicError) as error:
                report(op, str(error))
                broken = True
        if not broken:
            _check_signature(function)

    def _call(self, op: GraphOp) -> None:
        if isinstance(op, CallTirOp):
            self._check_kernel_call(op, op.ins, op.outs)
        elif isinstance(op, CallTirInplaceOp):
            _check_inplace(op)
            ins = [value for i, value in enumerate(op.ins) if i not in op.inplace]
            self._check_kernel_call(op, ins, op.outs)
        elif isinstance(op, CallOp):
            self._check_graph_call(op)
        elif isinstance(op, LibraryCall):
            self._check_library_call(op)
            if isinstance(op, CallLibraryInplaceOp):
                _check_inplace(op)
        elif isinstance(op, MakeClosureOp):
            check_maker(op, self.functions)
        elif isinstance(op, CallDpsOp):
            name = op.callee_name
            if name not in self.functions and name not in self.libraries:
                raise ShapeError(f"calls '{name}', which does not exist")

    def _check_kernel_call(
        self, op: GraphOp, ins: Sequence[ir.Value], outs: Sequence[ir.Value]
    ) -> None:
        function = self.functions.get(op.callee_name)
        if function is None or not PrimFunc.is_prim_func(function):  # C1
            raise ShapeError(f"calls '@{op.callee_name}', which is not a tensor program")
        kernel = PrimFunc(function)
        if kernel.is_scheduled or NUM_OUTS not in function.attributes or function.is_external:
            return
        counts = (len(ins), len(outs), len(op.symbol_arguments))
        expected = (len(kernel.ins), len(kernel.outs), len(kernel.sym_args))
        if counts != expected:  # C2
            words = "{} inputs, {} outputs and {} symbols"
            raise ShapeError(
                f"passes {words.format(*counts)} to '@{kernel.name}', "
                f"which takes {words.format(*expected)}"
            )
        parameters = [_stored(annotation_of(value)) for value in (*kernel.ins, *kernel.outs)]
        arguments = [_stored(annotation_of(value)) for value in (*ins, *outs)]
        names = [f"operand {i}" for i in range(len(ins))]
        names += [f"result {i}" for i in range(len(outs))]
        symbols = kernel.sym_names
        if len(symbols) == len(op.symbol_arguments):
            parameters.append(shape_value_type([parse(name) for name in symbols]))
            arguments.append(shape_value_type(op.symbol_arguments))
            names.append("the symbols")
        _check_arguments(parameters, arguments, names, kernel.name)  # C2

    def _check_library_call(self, op: LibraryCall) -> None:
        declared = self.libraries.get(op.callee_name)
        if declared is None:  # C1
            raise ShapeError(f"calls '{op.callee_name}', which no lib.function declares")
        convention = declared.attributes["convention"].value
        if isinstance(op, CallLibraryInplaceOp) and convention != DLPACK:  # C1
            raise ShapeError(
                f"calls '{op.callee_name}', whose convention '{convention}' updates no operands"
            )
        sizes, lifted = workspace_of(op), num_workspaces(op)  # C3, C4
        rule = RULES.get(convention)
        if rule is None:
            return
        types = [TensorType.of(value) for value in op.ins]
        deduced = rule(types, op.symbol_arguments)  # C2
        outs = op.outs[: len(op.outs) - lifted]
        if len(outs) != 1 or not compatible(deduced, annotation_of(outs[0])):
            results = ", ".join(str(out.type) for out in outs)
            raise ShapeError(
                f"has results ({results}), but '{op.callee_name}' returns '{to_mlir(deduced)}'"
            )
        needed = [
            workspace_type(size) for size in workspaces(convention, types, op.symbol_arguments)
        ]
        passed: list[Annotation] = [workspace_type(size) for size in sizes]
        passed += [annotation_of(out) for out in op.outs[len(outs) :]]
        if passed != needed:  # C3
            raise ShapeError(
                f"has workspaces ({', '.join(map(str, passed))}), but functions of the convention "
                f"'{convention}' take ({', '.join(map(str, needed))})"
            )

    def _check_graph_call(self, op: CallOp) -> None:
        function = self.functions.get(op.callee_name)
        if function is None or PrimFunc.is_prim_func(function):  # C1
            raise ShapeError(f"calls '@{op.callee_name}', which is not a graph function")
        parameters, results = parameter_types(function), result_types(function)
        arguments = [annotation_of(value) for value in op.ins]
        if (len(op.ins), len(op.outs)) != (len(parameters), len(results)):  # C2, C3
            raise ShapeError(
                f"has {len(op.ins)} operands and {len(op.outs)} results, but '@{op.callee_name}' "
                f"takes {len(parameters)} and returns {len(results)}"
            )
        names = [f"operand {i}" for i in range(len(arguments))]
        _check_arguments(parameters, arguments, names, op.callee_name)  # C2
        unification = unify(parameters, arguments)
        for index, (annotation, value) in enumerate(zip(results, op.outs)):
            deduced = unification.annotation(annotation)
            if not compatible(deduced, annotation_of(value)):  # C3
                raise ShapeError(
                    f"has result {index} of '{value.type}', "
                    f"but '@{op.callee_name}' returns '{to_mlir(deduced)}'"
                )

    def prim_func(self, kernel: PrimFunc) -> None:
        """Checks the form of a tensor program: inputs, outputs, indices; one result per output."""
        op = kernel.op
        if kernel.is_scheduled:
            return
        if op.is_external:
            report(op, "is a tensor program without a body")
            return
        if NUM_OUTS not in op.attributes:
            report(op, f"is a tensor program without '{NUM_OUTS}'")
            return
        kinds = [isinstance(a.type, ir.IndexType) for a in kernel.arguments]
        tensors = [isinstance(a.type, ir.RankedTensorType) for a in kernel.arguments]
        if kinds != sorted(kinds) or not all(a or b for a, b in zip(kinds, tensors)):
            report(op, "must take ranked tensors, then indices")
        elif len(kernel.sym_names) != len(kernel.sym_args):
            report(op, f"has {len(kernel.sym_args)} indices, but '{SYMBOL}' names other ones")
        elif kernel.num_outs > len(kernel.ins) + len(kernel.outs) or kernel.num_outs < 1:
            report(op, f"has {sum(tensors)} tensors, but '{NUM_OUTS}' is {kernel.num_outs}")
        elif list(op.type.results) != [out.type for out in kernel.outs]:
            results = ", ".join(map(str, op.type.results))
            outs = ", ".join(str(out.type) for out in kernel.outs)
            report(op, f"returns ({results}), but its outputs are ({outs})")
        for part, reason in unsupported(op):
            report(part.opview, reason)


def _stored(annotation: Annotation) -> Annotation:
    """The annotation of what a tensor program gets, which knows no signs of integers."""
    return annotation.storage if isinstance(annotation, TensorType) else annotation


def _check_arguments(
    parameters: Sequence[Annotation],
    arguments: Sequence[Annotation],
    names: Sequence[str],
    callee: str,
) -> None:
    for name, parameter, argument in zip(names, parameters, arguments):
        conflict = kind_conflict(parameter, argument)
        if conflict is not None:
            raise ShapeError(f"passes {name}, which {conflict}, to '@{callee}'")
    for conflict_ in unify(parameters, arguments).conflicts:
        raise ShapeError(
            f"passes {names[conflict_.index]}, whose dim {conflict_.axis} is {conflict_.got} "
            f"instead of {conflict_.want}, to '@{callee}'"
        )


def _check_inplace(op: InplaceCall) -> None:
    ins, outs, inplace = op.ins, op.outs, op.inplace
    used = [index for index in inplace if index >= 0]
    in_range = all(-1 <= index < len(ins) for index in inplace)
    if len(inplace) != len(outs) or not in_range or len(set(used)) != len(used):  # C3
        raise ShapeError(
            f"has 'inplace_indices' {list(inplace)} for {len(ins)} operands and {len(outs)} "
            f"results, but needs one distinct operand, or -1, per result"
        )
    for out, index in zip(outs, inplace):
        if index >= 0 and not compatible(annotation_of(ins[index]), annotation_of(out)):  # C4
            raise ShapeError(f"computes '{out.type}' into operand {index} of '{ins[index].type}'")
        if index >= 0 and not isinstance(out.type, ir.ShapedType):
            raise ShapeError(f"updates operand {index}, '{out.type}', which is not a tensor")


def _has_branches(function: func.FuncOp) -> bool:
    """Reports ops whose regions are more than one block: control flow is structured."""
    ops: list[ir.OpView] = walk_ops(function)
    branching = [op for op in ops if any(len(region.blocks) > 1 for region in op.operation.regions)]
    for op in branching:
        report(op, "has a region of several blocks; control flow of graph functions is scf")
    return bool(branching)


def _check_signature(function: func.FuncOp) -> None:
    """Checks facts, in-place arguments, and that symbols are bound where they are used."""
    try:
        facts = facts_of(function)
    except SymbolicError as error:
        report(function, f"has a malformed '{FACTS}': {error}")
        return
    unbound = set(symbols_of(map(annotation_of, function.arguments))) - argument_symbols(function)
    for name in sorted(unbound):
        report(function, f"has the symbol '{name}', which no argument binds")
    always = _check_symbols(function, unbound)
    for fact in facts.items:
        for name in sorted(fact.symbols - always - unbound):
            report(function, f"states '{fact}', but nothing binds the symbol '{name}'")
    _check_inout(function)


def _check_symbols(function: func.FuncOp, reported: set[str]) -> frozenset[str]:
    """Reports each symbol that is used where nothing binds it; returns those of the whole body."""
    outer = Scope(function.entry_block, frozenset(), Facts())
    types: dict[ir.Type, frozenset[str]] = {}
    unbound: list[tuple[ir.OpView, str]] = []
    casts: dict[str, ir.Block] = {}
    seen = set(reported)
    for op, scope in scoped_ops(function):
        outer = scope if scope.block == function.entry_block else outer
        bound = scope.symbols
        if isinstance(op, MatchCastOp):
            new = bound_by(op, bound)
            casts.update(dict.fromkeys(new, scope.block))
            bound |= new
        if runs_once(op):
            continue  # its results are values of its block
        for name in sorted(own_symbols(op, types) - bound - seen):
            unbound.append((op, name))
            seen.add(name)
    for op, name in unbound:
        report(op, f"uses the symbol '{name}'{_why_unbound(op, casts.get(name))}")
    return outer.symbols


def _why_unbound(op: ir.OpView, binds: ir.Block | None) -> str:
    """The reason why a symbol that a cast of that block binds is not bound at the op."""
    if binds is None:
        return ", which nothing binds"
    block = op.operation.block
    while block != binds and not isinstance(block.owner.opview, func.FuncOp):
        block = block.owner.operation.block
    if block == binds:
        return " before the match_cast that binds it"
    return " outside of the region that binds it"


def _check_inout(function: func.FuncOp) -> None:
    results = list(function.type.results)
    seen: set[int] = set()
    for index, argument in enumerate(function.arguments):
        attribute = argument_attribute(function, index, INOUT)
        if attribute is None:
            continue
        result_index = ir.IntegerAttr(attribute).value
        if not 0 <= result_index < len(results) or result_index in seen:
            report(
                function,
                f"has argument {index} updated as result {result_index}, of {len(results)}",
            )
        elif not compatible(annotation_of(results[result_index]), annotation_of(argument)):
            report(
                function,
                f"has argument {index} of '{argument.type}' updated as result {result_index} "
                f"of '{results[result_index]}'",
            )
        seen.add(result_index)
