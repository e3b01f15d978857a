"""Recipes of functions as values: yielded by branches, in tuples, passed on, and returned."""

from collections.abc import Sequence

from relax_mlir.analysis.symbols import bound_symbols
from relax_mlir.analysis.symbols import symbols_of as used_symbols
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects import graph
from relax_mlir.symbolic import as_expr, sym

from ..builder import Builder, Value
from .control import MAX_DEPTH, passed_on
from .recursion import symbols_of
from .scalars import condition, few, index
from .table import recipe


@recipe("closure", graph.MakeClosureOp, graph.InvokeClosureOp)
def closure(b: Builder, op: object) -> None:
    """A function value, what carries it, and calls of it."""
    if b.depth >= MAX_DEPTH:
        return
    model = b.take()
    captured = [b.take() for _ in range(b.random.choice([0, 1, 1, 2]))]
    way = b.random.choice([_unchanged, _yielded, _in_a_tuple, _returned, _carried])
    call = b.random.choice([_invoked, _invoked, _in_a_loop, _passed_on])
    made = way(b, captured, model)
    b.used += ["make_closure", "invoke_closure"]
    result = call(b, made, model)
    b.add(result, not model.is_float, model.bound)


def _callee(b: Builder, captured: Sequence[Value], model: Value) -> tuple[str, list[ir.Value]]:
    """A function of captured values and one like the model; its name, and what is captured.

    It takes that one last, and calls another one, which takes arguments that its steps make.
    """
    operands = [model, *captured]
    names = {dim: sym(name) for name, dim in symbols_of(operands).items()}
    count = sum(used == "make_closure" for used in b.used) + len(b.module.body.operations)
    made, inner = b.function(f"{b.name}_steps{count}_{b.depth}")
    inner.symbols = list(names.values())
    inner.extents = [*inner.symbols, as_expr(1), as_expr(4)]
    with ir.InsertionPoint(inner.entry):
        own = inner.parameter(model, names, not model.is_float)  # what it returned, too
        for value in captured:
            inner.parameter(value, names, value.exact)
        (result,) = passed_on(inner, [own])
        func.ReturnOp([result.ir])
    types = [argument.type for argument in inner.entry.arguments]
    _typed(made, types, [own.ir.type])
    b.used += inner.used
    bound = symbols_of(operands)
    more = [graph.TensorType.of(argument).substitute(bound) for argument in types[len(operands) :]]
    passed = [b.argument(list(each.dims or ()), str(each.element)) for each in more]
    name = _with_last(b, made.name.value, types)
    return name, [*(value.ir for value in captured), *(value.ir for value in passed)]


def _with_last(b: Builder, callee: str, types: Sequence[ir.Type]) -> str:
    """A function that takes the first argument of another one last."""
    made, inner = b.function(f"{callee}_last")
    for type_ in (*types[1:], types[0]):
        inner.entry.add_argument(type_, ir.Location.unknown())
    with ir.InsertionPoint(inner.entry):
        *others, last = inner.entry.arguments
        called = graph.CallOp.build(callee, [last, *others], [graph.TensorType.of(types[0])])
        func.ReturnOp(list(called.outs))
    _typed(made, [*types[1:], types[0]], [types[0]])
    if b.chance(0.3):
        made.attributes["graph.noinline"] = ir.UnitAttr.get()
    return made.name.value


def _typed(made: func.FuncOp, inputs: Sequence[ir.Type], results: Sequence[ir.Type]) -> None:
    type_ = ir.FunctionType.get(list(inputs), list(results))
    made.attributes["function_type"] = ir.TypeAttr.get(type_)


def _type(model: Value) -> ir.FunctionType:
    return ir.FunctionType.get([model.ir.type], [model.ir.type])


def _unchanged(b: Builder, captured: Sequence[Value], model: Value) -> ir.Value:
    callee, values = _callee(b, captured, model)
    return graph.MakeClosureOp.build(callee, values, _type(model)).result


def _yielded(b: Builder, captured: Sequence[Value], model: Value) -> ir.Value:
    """One of two, of which a branch decides."""
    first, second = (_unchanged(b, captured, model) for _ in range(2))
    branch = scf.IfOp(condition(b), [first.type], has_else=True)
    for block, value in ((branch.then_block, first), (branch.else_block, second)):
        with ir.InsertionPoint(block):
            scf.YieldOp([value])
    return branch.results[0]


def _carried(b: Builder, captured: Sequence[Value], model: Value) -> ir.Value:
    """One of three, which rounds of a loop exchange."""
    three = [_unchanged(b, captured, model) for _ in range(3)]
    loop = scf.ForOp(index(0), few(b), index(1), three)
    with ir.InsertionPoint(loop.body):
        first, *others = loop.inner_iter_args
        scf.YieldOp([*others, first])
    return loop.results[0]


def _in_a_tuple(b: Builder, captured: Sequence[Value], model: Value) -> ir.Value:
    made = graph.TupleOp.build(model.ir, _yielded(b, captured, model)).outs[0]
    return graph.TupleGetOp.build(made, 1).result


def _returned(b: Builder, captured: Sequence[Value], model: Value) -> ir.Value:
    """A function that makes it of what it is given, where that binds all symbols."""
    callee, values = _callee(b, captured, model)
    annotations = [graph.TensorType.of(value) for value in values]
    if not set(used_symbols(annotations)) <= bound_symbols(annotations):
        return graph.MakeClosureOp.build(callee, values, _type(model)).result
    made, inner = b.function(f"{callee}_made")
    own = [inner.entry.add_argument(v.type, ir.Location.unknown()) for v in values]
    with ir.InsertionPoint(inner.entry):
        func.ReturnOp([graph.MakeClosureOp.build(callee, own, _type(model)).result])
    _typed(made, [v.type for v in values], [_type(model)])
    return graph.CallOp.build(made.name.value, values, [_type(model)]).outs[0]


def _invoked(b: Builder, made: ir.Value, model: Value) -> ir.Value:
    return graph.InvokeClosureOp.build(made, [model.ir], [model.annotation]).outs[0]


def _in_a_loop(b: Builder, made: ir.Value, model: Value) -> ir.Value:
    """Some calls, each of what the one before it returned."""
    loop = scf.ForOp(index(0), few(b), index(1), [model.ir])
    with ir.InsertionPoint(loop.body):
        called = graph.InvokeClosureOp.build(made, [loop.inner_iter_args[0]], [model.annotation])
        scf.YieldOp([called.outs[0]])
    return loop.results[0]


def _passed_on(b: Builder, made: ir.Value, model: Value) -> ir.Value:
    """A function that calls what it is passed twice."""
    bound = symbols_of([model])
    names = {dim: sym(name) for name, dim in bound.items()}
    own = model.annotation.with_dims([names.get(dim, dim) for dim in model.dims])
    type_ = own.to_mlir()
    callee, inner = b.function(f"{b.name}_twice{len(b.module.body.operations)}")
    taken = ir.FunctionType.get([type_], [type_])
    function = inner.entry.add_argument(taken, ir.Location.unknown())
    value: ir.Value = inner.entry.add_argument(type_, ir.Location.unknown())
    with ir.InsertionPoint(inner.entry):
        for _ in range(2):
            value = graph.InvokeClosureOp.build(function, [value], [own]).outs[0]
        func.ReturnOp([value])
    _typed(callee, [taken, type_], [type_])
    if b.chance(0.5):
        callee.attributes["graph.noinline"] = ir.UnitAttr.get()
    return graph.CallOp.build(callee.name.value, [made, model.ir], [model.annotation]).outs[0]
