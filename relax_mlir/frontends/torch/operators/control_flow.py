"""Branches and loops, whose graphs are imported into regions, and checks."""

from collections.abc import Sequence
from typing import Any

import torch

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import concat, dims_of, emit, reshape
from relax_mlir.decompositions.loops import truth_of
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, Fact, as_expr

from ...complex import Pair
from ...regions import Carried, branch, loop
from ..adapters import unchanged, with_joined
from ..call import Call
from ..registry import operator
from ..sizes import require
from ..types import is_complex
from .shaping import sliced

MOST = (1 << 62) - 1
"""A bound of sizes that says nothing."""


def _named(call: Call, values: Sequence[Any]) -> list[Any]:
    """Results, of which sizes are symbols that run time binds."""
    return [
        call.importer.integer(value, own) if isinstance(own, torch.SymInt) else value
        for value, own in zip(values, call.value, strict=True)
    ]


@operator("higher_order::cond", pairs=with_joined)
def cond(
    call: Call, condition: Any, yes: Any, no: Any, operands: Sequence[Any] = ()
) -> Sequence[Any]:
    """What one of two graphs makes of operands."""
    importer = call.importer
    if isinstance(condition, bool):
        return importer.graph(yes if condition else no, operands)
    bodies = [lambda each=each: importer.graph(each, operands) for each in (yes, no)]
    return _named(call, branch(importer, truth_of(_tensor(call, condition)), bodies))


def _tensor(call: Call, value: Any) -> ir.Value:
    return call.importer.tensor(value)


@operator("higher_order::while_loop", pairs=with_joined)
def while_loop(
    call: Call, more: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()
) -> Sequence[Any]:
    """What rounds of a graph leave, while another one says so."""
    importer = call.importer

    def goes_on(values: Sequence[Any]) -> Any:
        return _tensor(call, importer.graph(more, [*values, *others])[0])

    def run(at: ir.Value, values: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        left = [_tensor(call, each) for each in importer.graph(body, [*values, *others])]
        return goes_on(left), left, []

    start = [_tensor(call, each) for each in carried]
    first = truth_of(goes_on(start))
    return _named(call, loop(importer, Carried(None, first, start, 0), run))


@operator("higher_order::scan", pairs=with_joined)
def scan(
    call: Call, combine: Any, start: Sequence[Any], rows: Sequence[ir.Value], others: Any = ()
) -> Sequence[Any]:
    """What rounds over the slices of tensors carry and leave."""
    count = dims_of(rows[0])[0]

    def run(at: ir.Value, values: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        taken = [emit(graph.TakeOp, x, at, axis=0) for x in rows]
        results = call.importer.graph(combine, [*values, *taken, *others])
        return None, results[: len(values)], results[len(values) :]

    values = [_tensor(call, each) for each in start]
    stacks = len(call.value) - len(values)
    return _named(call, loop(call.importer, Carried(count, None, values, stacks), run))


@operator("higher_order::map_impl", pairs=with_joined)
def map_(call: Call, body: Any, rows: Sequence[ir.Value], others: Sequence[Any]) -> Sequence[Any]:
    """What a graph makes of each slice of tensors."""
    return scan(call, body, (), rows, others)


@operator("higher_order::associative_scan", pairs=with_joined)
def associative_scan(
    call: Call, combine: Any, rows: Sequence[ir.Value], others: Sequence[Any] = ()
) -> Sequence[Any]:
    """Slices, each combined with all before it."""
    count = dims_of(rows[0])[0]
    first = [sliced(x, 0, as_expr(0), as_expr(1)) for x in rows]
    rest = [sliced(x, 0, as_expr(1), count) for x in rows]

    def run(at: ir.Value, values: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        taken = [emit(graph.TakeOp, x, at, axis=0) for x in rest]
        results = call.importer.graph(combine, [*values, *taken, *others])
        return None, results, results

    start = [reshape(x, dims_of(x)[1:]) for x in first]
    done = loop(call.importer, Carried(count - 1, None, start, len(rows)), run)
    return [concat([a, b], 0) for a, b in zip(first, done[len(rows) :], strict=True)]


@operator(
    *("higher_order::wrap_with_set_grad_enabled", "higher_order::wrap_with_autocast"),
    pairs=unchanged,
)
def wrap(call: Call, *operands: Any, **options: Any) -> Sequence[Any]:
    """A graph as it is: gradients and types of operators are decided before."""
    index = next(i for i, x in enumerate(operands) if isinstance(x, torch.fx.GraphModule))
    return call.importer.graph(operands[index], operands[index + 1 :])


@operator("higher_order::with_effects", pairs=unchanged)
def with_effects(call: Call, token: Any, op: Any, *operands: Any, **options: Any) -> Sequence[Any]:
    """An operator in its order with others, which all are here."""
    values = call.value[1:]
    are_complex = is_complex(values) or any(isinstance(each, Pair) for each in operands)
    build = call.importer.find(op.name().removesuffix(".default"), are_complex)
    if build is None:
        raise ModelError(f"has the operator {op.name()}, which is not supported")
    result = build(Call(call.importer, values[0] if len(values) == 1 else values), *operands)
    return [token, *(result if isinstance(result, tuple | list) else [result])]


@operator("_linalg_check_errors")
def check_errors(call: Call, *operands: Any, **options: Any) -> None:
    """What says that a matrix is singular, which nothing here finds out: results are not finite."""


@operator("_assert_scalar")
def assert_scalar(call: Call, condition: Any, message: str) -> None:
    """Ends the call unless a condition holds."""
    if isinstance(condition, torch.SymBool):
        require(call.importer.dims, condition, message)
    elif isinstance(condition, ir.Value):
        assert_async(call, condition, message)
    elif not condition:
        raise ModelError(f"asserts what never holds: {message}")


@operator("_assert_async", "_assert_async.msg")
def assert_async(call: Call, condition: ir.Value, message: str = "an assertion") -> None:
    """Ends the call unless an element is true."""
    truth = reshape(call.tensor(condition, ir.IntegerType.get_signless(1)), [])
    graph.AssertOp.build(truth, message.replace("{", "{{").replace("}", "}}"))


@operator("sym_constrain_range", "sym_constrain_range_for_size")
def constrain(call: Call, size: Any, min: int | None = None, max: int | None = None) -> None:
    """Ends the call unless a size is in a range."""
    if not isinstance(size, Expr):
        return
    for relation, bound in ((">=", min), ("<=", max)):
        if bound is not None and abs(bound) < MOST:
            graph.RequireOp.build([Fact(size, relation, as_expr(bound))], "a range of sizes")


@operator("_assert_tensor_metadata", pairs=unchanged)
def assert_metadata(call: Call, *operands: Any, **options: Any) -> None:
    """Types of tensors, which the import knows."""
