"""Calls and control flow: state has the dims that it begins with, if each round keeps them."""

from collections.abc import Sequence

from relax_mlir.analysis.signatures import parameter_types, result_types, unify
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    CallOp,
    Dim,
    MatchCastOp,
    ShapeError,
    TensorType,
    annotation_of,
    dims_equal,
    to_mlir,
)
from relax_mlir.rewriting import retyped, walk_ops

from ..function import Conversion
from ..registry import converts


@converts("func.return", "scf.condition")
def terminator(conversion: Conversion, op: ir.Operation) -> None:
    """The values that leave a function, or a round."""
    operands = [conversion.value(value) for value in op.operands]
    ir.Operation.create(op.name, operands=operands)


@converts("scf.yield")
def yielded(conversion: Conversion, op: ir.Operation) -> None:
    """The values that leave a region; `retype` gives them their types."""
    ir.Operation.create(op.name, operands=[conversion.value(value) for value in op.operands])


@converts("func.call")
def call(conversion: Conversion, op: ir.Operation) -> None:
    """A call of a function of the module."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    callee = conversion.callees.get(name)
    if callee is None:
        raise ShapeError(f"calls '@{name}', which is no function with a body")
    operands = [conversion.value(value) for value in op.operands]
    unification = unify(parameter_types(callee), [annotation_of(value) for value in operands])
    results = [unification.annotation(each) for each in result_types(callee)]
    conversion.define(op, *CallOp.build(name, operands, results).outs)


@converts("scf.execute_region")
def execute_region(conversion: Conversion, op: ir.Operation) -> None:
    """A region that runs once."""
    new = _build(conversion, op, [], [[]])
    new = _with_results(new, _yielded(new.regions[0]))
    conversion.define(op, *new.results)


@converts("scf.if", "scf.index_switch")
def branch(conversion: Conversion, op: ir.Operation) -> None:
    """Regions of which one runs: dims in which their results differ are not known."""
    operands = [conversion.value(value) for value in op.operands]
    new = _build(conversion, op, operands, [[] for _ in op.regions])
    filled = [region for region in new.regions if len(region.blocks)]
    types = _yielded(filled[0])
    for region in filled[1:]:
        types = [_common(a, b) for a, b in zip(types, _yielded(region), strict=True)]
    outside = [_without(each, _hidden(conversion, new)) for each in types]
    for region in filled:
        _retype(region, outside)
    conversion.define(op, *_with_results(new, outside).results)


@converts("scf.for")
def counted(conversion: Conversion, op: ir.Operation) -> None:
    """A loop over a range."""
    bounds, state = list(op.operands)[:3], list(op.operands)[3:]
    outer = [conversion.value(value) for value in bounds]
    _loop(conversion, op, outer, [conversion.value(value) for value in state], 1)


@converts("scf.while")
def repeated(conversion: Conversion, op: ir.Operation) -> None:
    """A loop as long as a condition holds."""
    _loop(conversion, op, [], [conversion.value(value) for value in op.operands], 0)


def _loop(
    conversion: Conversion,
    op: ir.Operation,
    outer: Sequence[ir.Value],
    state: Sequence[ir.Value],
    counters: int,
) -> None:
    """A loop: dims of its state that a round changes are not known, and named in each round."""
    types: list[ir.Type] = [value.type for value in state]
    passed: list[ir.Type] | None = None
    while True:
        counted = [value.type for value in outer[:counters]]
        carried = [counted + types] if passed is None or len(op.regions) == 1 else [types, passed]
        if len(op.regions) == 2 and passed is None:
            passed = _passed(conversion, op, types, state)
            continue
        begun = [retyped(value, type_) for value, type_ in zip(state, types, strict=True)]
        new = _build(conversion, op, [*outer, *begun], carried)
        hidden = _hidden(conversion, new)
        back = [_without(each, hidden) for each in _yielded(new.regions[len(op.regions) - 1])]
        joined = [_common(a, b) for a, b in zip(types, back, strict=True)]
        if passed is not None:
            out = [_without(each, hidden) for each in _yielded(new.regions[0], skip=1)]
            left = [_common(a, b) for a, b in zip(passed, out, strict=True)]
        else:
            left = None
        if joined == types and left == passed:
            break
        new.erase()
        types, passed = joined, left
    _retype(new.regions[len(op.regions) - 1], types)
    if passed is not None:
        _retype(new.regions[0], passed, skip=1)
    conversion.define(op, *_with_results(new, types if passed is None else passed).results)


def _passed(
    conversion: Conversion, op: ir.Operation, types: Sequence[ir.Type], state: Sequence[ir.Value]
) -> list[ir.Type]:
    """The types of what the first region of a loop passes to the second one."""
    trial = ir.Operation.create("scf.execute_region", results=[], operands=[], regions=1)
    block = trial.regions[0].blocks.append(*types)
    old = op.regions[0].blocks[0]
    conversion.enter(old, block)
    _, *passed = [value.type for value in block.operations[len(block.operations) - 1].operands]
    hidden = _hidden(conversion, trial)
    trial.erase()
    return [_without(each, hidden) for each in passed]


def _build(
    conversion: Conversion,
    op: ir.Operation,
    operands: Sequence[ir.Value],
    arguments: Sequence[Sequence[ir.Type]],
) -> ir.Operation:
    """An op with converted regions, still of the old types of results."""
    new = ir.Operation.create(
        op.name,
        results=[result.type for result in op.results],
        operands=list(operands),
        attributes={name: op.attributes[name] for name in op.attributes},
        regions=len(op.regions),
    )
    for region, fresh, types in zip(op.regions, new.regions, arguments, strict=True):
        if len(region.blocks) > 1:
            raise ShapeError("has a region of several blocks; expects structured control flow")
        for block in region.blocks:
            conversion.enter(block, fresh.blocks.append(*types))
    return new


def _with_results(op: ir.Operation, types: Sequence[ir.Type]) -> ir.Operation:
    """The op with other types of results."""
    for result, type_ in zip(op.results, types, strict=True):
        result.set_type(type_)
    return op


def _last(region: ir.Region) -> ir.OpView:
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1]


def _yielded(region: ir.Region, skip: int = 0) -> list[ir.Type]:
    """The types of what a region yields."""
    return [value.type for value in list(_last(region).operation.operands)[skip:]]


def _retype(region: ir.Region, types: Sequence[ir.Type], skip: int = 0) -> None:
    """Casts what a region yields to types that say less."""
    last = _last(region).operation
    for index, type_ in enumerate(types, skip):
        with ir.InsertionPoint(last), last.location:
            last.operands[index] = retyped(last.operands[index], type_)


def _common(a: ir.Type, b: ir.Type) -> ir.Type:
    """What two types say of a value that has either; raises ShapeError if they have no such."""
    first, second = annotation_of(a), annotation_of(b)
    if not isinstance(first, TensorType) or not isinstance(second, TensorType):
        if a != b:
            raise ShapeError(f"has '{a}' on one path and '{b}' on another")
        return a
    if first.dims is None or second.dims is None or len(first.dims) != len(second.dims):
        raise ShapeError(f"has '{a}' on one path and '{b}' on another; expects one rank")
    dims: list[Dim] = [x if dims_equal(x, y) else None for x, y in zip(first.dims, second.dims)]
    return to_mlir(TensorType(tuple(dims), first.element))


def _hidden(conversion: Conversion, op: ir.Operation) -> set[str]:
    """The symbols that only casts within regions of an op bind."""
    inside = [cast for region in op.regions for block in region.blocks for each in block.operations
              for cast in walk_ops(each, MatchCastOp)]  # fmt: skip
    known = {cast.operation for cast in inside}
    outside = [
        cast for cast in walk_ops(conversion.new, MatchCastOp) if cast.operation not in known
    ]
    return _bound(inside) - _bound(outside) - conversion.bound


def _bound(casts: Sequence[MatchCastOp]) -> set[str]:
    dims = [dim for cast in casts for dim in dims_of(annotation_of(cast.result))]
    return {name for dim in dims if dim is not None for name in dim.symbols}


def _without(type_: ir.Type, symbols: set[str]) -> ir.Type:
    """A type without the dims over symbols."""
    annotation = annotation_of(type_)
    if not isinstance(annotation, TensorType) or annotation.dims is None:
        return type_
    dims = tuple(
        None if dim is not None and dim.symbols & symbols else dim for dim in annotation.dims
    )
    return to_mlir(TensorType(dims, annotation.element))
