"""Makes handles of objects of the host program: integers, which the rest of the compiler knows.

    func.func @f(%x: !graph.host_object) -> !graph.host_object {
      %0 = "graph.call_library"(%x) {callee = @next} : (!graph.host_object) -> !graph.host_object
      ->
    func.func @f(%x: tensor<i64> {graph.host_object}) -> tensor<i64>
        attributes {graph.host_results = array<i64: 0>} {
      %0 = "graph.call_library"(%x) {callee = @next} : (tensor<i64>) -> tensor<i64>

A copy of the declaration of a library function says which operands and results are handles. Handles
come from callers and Python functions alone: nothing computes with an object or casts it, and calls
pass it where an object is expected.

Needs: no tuples; it is run automatically after they are taken apart. Leaves: no such type.
Fails at other ops that take or make objects, at exported functions that update them in place or
    have them as parameters to prepare, and at functions of libraries other than Python's.
Source: TVM `R.Any` and `relax.call_packed`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from relax_mlir.analysis.functions import (
    HOST_OBJECT,
    HOST_OBJECT_RESULTS,
    INOUT,
    NUM_INPUTS,
    is_public,
)
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    CallLibraryOp,
    CallOp,
    HostObjectType,
    InvokeClosureOp,
    MakeClosureOp,
    MatchCastOp,
)
from relax_mlir.dialects.lib import DLPACK, HOST_OPERANDS, HOST_RESULTS, FunctionOp
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, safe_erase, walk_ops
from relax_mlir.runtime.callees import PYTHON

_PASSES_ON = (
    CallOp
    | MakeClosureOp
    | InvokeClosureOp
    | func.FuncOp
    | func.ReturnOp
    | scf.IfOp
    | scf.IndexSwitchOp
    | scf.ExecuteRegionOp
    | scf.ForOp
    | scf.WhileOp
    | scf.YieldOp
    | scf.ConditionOp
)

Shape: TypeAlias = "bool | tuple[Shape, ...]"
"""Where a type has objects: whether it is one; what a function takes, then returns."""


@dataclass(frozen=True)
class LowerHostObjects(Pass):
    """Makes handles of objects of the host program."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the functions and the declarations of the module, if there is an object."""
        functions = functions_by_name(op)
        if not may_have_objects(op, functions.values()):
            return
        declared: dict[str, FunctionOp] = {
            ir.StringAttr(each.attributes["sym_name"]).value: each
            for each in op.regions[0].blocks[0].operations
            if isinstance(each, FunctionOp)
        }
        ops: list[ir.OpView] = [each for each in walk_ops(op) if _has_object(each)]
        for each in ops:
            _check(each, functions, declared)
        _declare([each for each in ops if isinstance(each, CallLibraryOp)], declared)
        for function in functions.values():
            if is_public(function):
                _note_objects(function)
        for each in ops:
            _lower(each)


def may_have_objects(module: ir.Operation, functions: Iterable[func.FuncOp]) -> bool:
    """Whether a caller passes objects, or a function outside may return one."""
    return any(isinstance(op, FunctionOp) for op in module.regions[0].blocks[0].operations) or any(
        map(_shape, (type_ for f in functions for type_ in (*f.type.inputs, *f.type.results)))
    )


def _shape(type_: ir.Type) -> Shape:
    if isinstance(type_, ir.FunctionType):
        inner = tuple(_shape(each) for each in (*type_.inputs, *type_.results))
        return inner if any(inner) else False
    return isinstance(type_, HostObjectType)


def _types(op: ir.OpView) -> Iterator[ir.Type]:
    yield from (value.type for value in (*op.operands, *op.operation.results))
    for region in op.operation.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.arguments)
    if isinstance(op, func.FuncOp):
        yield from (*op.type.inputs, *op.type.results)


def _has_object(op: ir.OpView) -> bool:
    return any(map(_shape, _types(op)))


# Checks.


def _check(
    op: ir.OpView, functions: dict[str, func.FuncOp], declared: dict[str, FunctionOp]
) -> None:
    """Raises PassFailure unless objects stay objects."""
    if isinstance(op, CallLibraryOp):
        library = declared.get(op.callee_name)
        providers = [] if library is None else [each.value for each in library.libraries]
        if library is not None and (library.convention.value, providers) != (DLPACK, [PYTHON]):
            raise PassFailure(
                op, f"hands an object to '{op.callee_name}', which is no function of Python"
            )
    elif isinstance(op, MatchCastOp):
        if op.input.type != op.result.type:
            raise PassFailure(
                op, f"asserts '{op.result.type}', which '{op.input.type}' can never be"
            )
    elif not isinstance(op, _PASSES_ON):
        raise PassFailure(
            op,
            "takes or makes an object of the host program, which only graph.call_library, "
            "graph.call, closures and control flow do",
        )
    elif isinstance(op, CallOp | MakeClosureOp) and op.callee_name in functions:
        type_ = functions[op.callee_name].type
        _check_passed(op, _own(op), [*type_.inputs, *type_.results], f"'@{op.callee_name}'")
    elif isinstance(op, InvokeClosureOp) and isinstance(op.ins[0].type, ir.FunctionType):
        type_ = ir.FunctionType(op.ins[0].type)
        _check_passed(op, _own(op), [*type_.inputs, *type_.results], "the function")


def _own(op: CallOp | MakeClosureOp | InvokeClosureOp) -> list[ir.Type]:
    """The types that a call, or a closure, has for what its callee takes and returns."""
    ins = [value.type for value in (op.passed if isinstance(op, InvokeClosureOp) else op.ins)]
    outs = [value.type for value in op.outs]
    if isinstance(op, MakeClosureOp) and len(outs) == 1 and isinstance(outs[0], ir.FunctionType):
        outs = [*outs[0].inputs, *outs[0].results]
    return [*ins, *outs]


def _check_passed(
    op: ir.OpView, own: Sequence[ir.Type], wanted: Sequence[ir.Type], callee: str
) -> None:
    if len(own) != len(wanted):
        raise PassFailure(op, f"has {len(own)} operands and results for {len(wanted)} of {callee}")
    for have, want in zip(own, wanted, strict=True):
        if _shape(have) != _shape(want):
            raise PassFailure(op, f"has '{have}' where {callee} has '{want}'")


# Declarations.


def _declare(calls: Sequence[CallLibraryOp], declared: dict[str, FunctionOp]) -> None:
    """Writes on declarations which operands and results of their calls are handles."""
    if not calls:
        return
    block = next(iter(declared.values())).operation.block if declared else None
    known: dict[tuple, str] = {}
    for call in calls:
        library = declared.get(call.callee_name)
        if library is None or block is None:
            continue  # the verifier tells
        handles = [
            tuple(index for index, value in enumerate(values) if _shape(value.type))
            for values in (call.ins, call.outs)
        ]
        key = (call.callee_name, *handles)
        if key not in known:
            known[key] = SymbolNames(block).fresh(f"{call.callee_name}_of_objects")
            with ir.InsertionPoint.after(library):
                copy = library.operation.clone()
            copy.attributes["sym_name"] = ir.StringAttr.get(known[key])
            for name, indices in zip((HOST_OPERANDS, HOST_RESULTS), handles, strict=True):
                copy.attributes[name] = ir.DenseI64ArrayAttr.get(list(indices))
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(known[key])


# Types.


def _note_objects(function: func.FuncOp) -> None:
    """Writes on an exported function what users pass and get as objects."""
    passed = [i for i, type_ in enumerate(function.type.inputs) if _shape(type_)]
    returned = [i for i, type_ in enumerate(function.type.results) if _shape(type_)]
    attributes = function.attributes
    if returned:
        attributes[HOST_OBJECT_RESULTS] = ir.DenseI64ArrayAttr.get(returned)
    if not passed:
        return
    has_entries = "arg_attrs" in attributes
    entries = list(ir.ArrayAttr(attributes["arg_attrs"])) if has_entries else []
    entries = entries or [ir.DictAttr.get({})] * len(function.type.inputs)
    for index in passed:
        own = {named.name: named.attr for named in ir.DictAttr(entries[index])}
        if INOUT in own:
            raise PassFailure(function, f"has argument {index}, an object, updated in place")
        if NUM_INPUTS in attributes and index >= ir.IntegerAttr(attributes[NUM_INPUTS]).value:
            raise PassFailure(
                function, f"has argument {index}, an object, among its parameters ('{NUM_INPUTS}')"
            )
        entries[index] = ir.DictAttr.get({**own, HOST_OBJECT: ir.UnitAttr.get()})
    attributes["arg_attrs"] = ir.ArrayAttr.get(entries)


def _lower(op: ir.OpView) -> None:
    for result in op.operation.results:
        result.set_type(_lowered(result.type))
    for region in op.operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(_lowered(argument.type))
    if isinstance(op, func.FuncOp):
        op.attributes["function_type"] = ir.TypeAttr.get(_lowered(op.type))
    elif isinstance(op, MatchCastOp):
        op.result.replace_all_uses_with(op.input)
        safe_erase(op)


def _lowered(type_: ir.Type) -> ir.Type:
    if isinstance(type_, ir.FunctionType):
        return ir.FunctionType.get(
            [_lowered(each) for each in type_.inputs], [_lowered(each) for each in type_.results]
        )
    if isinstance(type_, HostObjectType):
        return ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    return type_
