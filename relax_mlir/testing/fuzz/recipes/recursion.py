"""Recipes of functions that call themselves, a few times."""

from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, as_expr, sym

from ..builder import Builder, Value
from .control import MAX_DEPTH, passed_on
from .scalars import few, index
from .table import recipe


@recipe("control", "recursion")
def recursion(b: Builder, op: object) -> None:
    """A function that passes on to itself what some steps leave, with a count that decreases."""
    if b.depth >= MAX_DEPTH:
        return
    operands = [b.take() for _ in range(b.random.choice([1, 1, 2]))]
    rounds, bound = few(b), symbols_of(operands)
    names = {dim: sym(name) for name, dim in bound.items()}
    made, inner = b.function(f"{b.name}_recursive{b.used.count('recursion')}_{b.depth}")
    inner.symbols = list(names.values())
    inner.extents = [*inner.symbols, as_expr(1), as_expr(4)]
    left = inner.entry.add_argument(ir.IndexType.get(), ir.Location.unknown())
    with ir.InsertionPoint(inner.entry):
        models = [inner.parameter(v, names, not v.is_float) for v in operands]
        ends = arith.CmpIOp(arith.CmpIPredicate.sle, left, index(0)).result
        types = [model.ir.type for model in models]
        branch = scf.IfOp(ends, types, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([model.ir for model in models])
        with inner.nested(branch.else_block):
            left_over = passed_on(inner, models)
            fewer = arith.subi(left, index(1))
            others = list(inner.entry.arguments)[1 + len(models) :]
            passed = [fewer, *(value.ir for value in left_over), *others]
            called = graph.CallOp.build(made.name.value, passed, [m.annotation for m in models])
            scf.YieldOp(_combined(inner, list(called.outs), models))
        func.ReturnOp(list(branch.results))
    arguments = [argument.type for argument in inner.entry.arguments]
    made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    _call(b, made, inner, [rounds, *(value.ir for value in operands)], bound, operands)


def symbols_of(operands: list[Value]) -> dict[str, Expr]:
    """A symbol of a function's own for each dim of its operands that is no constant."""
    dims = dict.fromkeys(d for value in operands for d in value.dims if d.value is None)
    return {f"p{index}": dim for index, dim in enumerate(dims)}


def _combined(b: Builder, results: list[ir.Value], models: list[Value]) -> list[ir.Value]:
    """What the inner call returns, now and then with what this one was passed."""
    if not b.chance(0.5):
        return results
    return [
        graph.MaximumOp.build(result, model.ir).result if model.element != "i1" else result
        for result, model in zip(results, models, strict=True)
    ]


def _call(
    b: Builder,
    made: func.FuncOp,
    inner: Builder,
    passed: list[ir.Value],
    bound: dict[str, Expr],
    operands: list[Value],
) -> None:
    """Calls the function, with new arguments for those that its steps made."""
    for argument in list(inner.entry.arguments)[len(passed) :]:
        annotation = graph.TensorType.of(argument).substitute(bound)
        passed.append(b.argument(list(annotation.dims or ()), str(annotation.element)).ir)
    called = graph.CallOp.build(made.name.value, passed, [value.annotation for value in operands])
    b.used += [*inner.used, "recursion"]
    for result, operand in zip(called.outs, operands, strict=True):
        b.add(result, not operand.is_float, operand.bound)
