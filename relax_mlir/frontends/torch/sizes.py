"""Conditions on sizes, and fractions of them, as tensors."""

import math
import operator as python
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import torch

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, binary, emit, reshape, scalar, symbol, where
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Fact

from .symbols import Symbols

RELATIONS: dict[str, tuple[str, type[graph.InferredOp]]] = {
    "Equality": ("==", graph.EqualOp),
    "Unequality": ("!=", graph.NotEqualOp),
    "LessThan": ("<=", graph.LessEqualOp),
    "StrictLessThan": ("<", graph.LessOp),
    "GreaterThan": (">=", graph.GreaterEqualOp),
    "StrictGreaterThan": (">", graph.GreaterOp),
}
CONNECTIVES: dict[str, type[graph.InferredOp]] = {
    "And": graph.LogicalAndOp,
    "Or": graph.LogicalOrOp,
}

FRACTIONS: dict[Any, Callable[..., ir.Value]] = {
    python.add: lambda a, b: binary(graph.AddOp, a, b),
    python.sub: lambda a, b: binary(graph.SubtractOp, a, b),
    python.mul: lambda a, b: binary(graph.MultiplyOp, a, b),
    python.truediv: lambda a, b: binary(graph.DivideOp, a, b),
    python.pow: lambda a, b: binary(graph.PowerOp, a, b),
    python.neg: lambda a: emit(graph.NegativeOp, a),
    torch.sym_float: lambda a: a,
    torch.sym_max: lambda a, b: binary(graph.MaximumOp, a, b),
    torch.sym_min: lambda a, b: binary(graph.MinimumOp, a, b),
    math.sqrt: lambda a: emit(graph.SqrtOp, a),
    torch._sym_sqrt: lambda a: emit(graph.SqrtOp, a),
}
"""What makes fractions of sizes, in f64."""

INTEGERS: dict[Any, Callable[..., ir.Value]] = {
    **{f: FRACTIONS[f] for f in (python.add, python.sub, python.mul, python.neg)},
    **{f: FRACTIONS[f] for f in (torch.sym_max, torch.sym_min)},
    python.floordiv: lambda a, b: binary(graph.FloorDivideOp, a, b),
    python.mod: lambda a, b: binary(graph.RemainderOp, a, b),
    python.eq: lambda a, b: binary(graph.EqualOp, a, b),
    python.ne: lambda a, b: binary(graph.NotEqualOp, a, b),
    python.lt: lambda a, b: binary(graph.LessOp, a, b),
    python.le: lambda a, b: binary(graph.LessEqualOp, a, b),
    python.gt: lambda a, b: binary(graph.GreaterOp, a, b),
    python.ge: lambda a, b: binary(graph.GreaterEqualOp, a, b),
}
"""Arithmetic and relations of integers that may be negative, in i64."""


def truth(dims: Symbols, value: Any) -> ir.Value:
    """A condition on sizes as a tensor of i1; raises ModelError for one of other kinds."""
    i1 = ir.IntegerType.get_signless(1)
    if isinstance(value, bool):
        return scalar(value, i1)
    return _truth(dims, value.node.expr if isinstance(value, torch.SymBool) else value)


def _truth(dims: Symbols, expr: Any) -> ir.Value:
    i1 = ir.IntegerType.get_signless(1)
    kind = type(expr).__name__
    if kind in ("BooleanTrue", "BooleanFalse"):
        return scalar(kind == "BooleanTrue", i1)
    if kind == "Not":
        return emit(graph.LogicalNotOp, _truth(dims, expr.args[0]))
    if kind in CONNECTIVES:
        first, *rest = (_truth(dims, each) for each in expr.args)
        for each in rest:
            first = emit(CONNECTIVES[kind], first, each)
        return first
    if kind not in RELATIONS:
        raise ModelError(f"has the condition '{expr}', which is not supported")
    return emit(RELATIONS[kind][1], *_sides(dims, expr.args))


def _sides(dims: Symbols, exprs: Sequence[Any]) -> list[ir.Value]:
    """Sizes as tensors of i64, or of f64 if there are fractions."""
    i64 = ir.IntegerType.get_signless(64)
    try:
        return [reshape(symbol(dims.expr(each), i64), []) for each in exprs]
    except ModelError:
        return [computed(dims, each) for each in exprs]


def require(dims: Symbols, value: torch.SymBool, message: str) -> None:
    """Ends the call unless a condition on sizes holds; proofs may use it from there on.

    Offsets in PyTorch's memory, which ours has not, are as they have to be.
    """
    for each in _conjuncts(value.node.expr):
        if any(str(symbol) in dims.offsets for symbol in each.free_symbols):
            continue
        fact = _fact(dims, each)
        if fact is not None:
            graph.RequireOp.build([fact], message)
        else:
            _require_truth(dims, each, message)


def guard(dims: Symbols, expr: Any) -> list[str]:
    """Facts of a condition that PyTorch exported a program under; others are checked here.

    Conditions on what is not known yet are in the program itself.
    """
    facts = []
    for each in _conjuncts(expr):
        fact = _fact(dims, each)
        if fact is not None:
            facts.append(str(fact))
        elif all(str(symbol) in dims.known for symbol in each.free_symbols):
            _require_truth(dims, each, f"the program was exported for {each}")
    return facts


def _conjuncts(expr: Any) -> Iterator[Any]:
    """The conditions that all have to hold, but for those that sizes of 64 bits fulfil."""
    if type(expr).__name__ == "And":
        for each in expr.args:
            yield from _conjuncts(each)
    elif not _is_beyond(expr):
        yield expr


def _is_beyond(expr: Any) -> bool:
    """Whether a condition says of sizes that 64 bits have their sum."""
    relation = RELATIONS.get(type(expr).__name__, ("", None))[0]
    if relation not in ("<", "<=", ">", ">="):
        return False
    low, high = expr.args if relation.startswith("<") else reversed(expr.args)
    return bool((high - low).as_coeff_Add()[0] >= sys.maxsize)


def _fact(dims: Symbols, expr: Any) -> Fact | None:
    """A relation of sizes; None for another condition."""
    kind = type(expr).__name__
    if kind not in RELATIONS:
        return None
    left, right = (dims.exactly(each) for each in expr.args)
    return None if left is None or right is None else Fact(left, RELATIONS[kind][0], right)


def _require_truth(dims: Symbols, expr: Any, message: str) -> None:
    graph.AssertOp.build(_truth(dims, expr), message.replace("{", "{{").replace("}", "}}"))


def fraction(node: torch.fx.Node, operands: Sequence[ir.Value]) -> Any:
    """A fraction as a tensor of f64; where it is of another kind, what no operator takes."""
    if node.target not in FRACTIONS:
        return node.meta["val"]
    f64 = ir.F64Type.get()
    return FRACTIONS[node.target](*(reshape(astype(each, f64), []) for each in operands))


ROUNDED: dict[str, type[graph.InferredOp]] = {
    "TruncToInt": graph.TruncOp,
    "FloorToInt": graph.FloorOp,
    "CeilToInt": graph.CeilOp,
    "RoundToInt": graph.RoundOp,
}
TERMS: dict[str, Callable[..., ir.Value]] = {
    "Add": FRACTIONS[python.add],
    "Mul": FRACTIONS[python.mul],
    "Pow": FRACTIONS[python.pow],
    "FloatPow": FRACTIONS[python.pow],
    "IntTrueDiv": FRACTIONS[python.truediv],
    "FloatTrueDiv": FRACTIONS[python.truediv],
    "Max": FRACTIONS[torch.sym_max],
    "Min": FRACTIONS[torch.sym_min],
}


def computed(dims: Symbols, expr: Any) -> ir.Value:
    """A size of fractions, as run time computes it in f64; raises ModelError for other kinds."""
    f64, kind = ir.F64Type.get(), type(expr).__name__
    if expr.is_Float or expr.is_Rational:
        return scalar(float(expr), f64)
    if expr.is_Symbol:
        return reshape(symbol(dims.expr(expr), f64), [])
    if kind == "ToFloat":
        return computed(dims, expr.args[0])
    if kind == "Piecewise":
        *others, (last, _) = expr.args
        result = computed(dims, last)
        for value, condition in reversed(others):
            result = where(_truth(dims, condition), computed(dims, value), result)
        return result
    if kind in ROUNDED:
        return emit(ROUNDED[kind], computed(dims, expr.args[0]))
    if kind not in TERMS:
        raise ModelError(f"has a size of '{expr}', which is not supported")
    return reduce(TERMS[kind], [computed(dims, each) for each in expr.args])
