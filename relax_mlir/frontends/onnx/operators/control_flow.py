"""Branches and loops, whose graphs are imported into regions."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import emit
from relax_mlir.decompositions.loops import truth_of
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, Fact, const

from ...known import Known, known
from ...regions import Carried, branch, loop
from .. import folding
from ..node import Node, normalized
from ..registry import Value, operator

TRUE = Known(np.array(True), "i1")
Form: TypeAlias = "str | tuple[Form, ...]"
"""Whether a value is a tensor or nothing, or those of a sequence."""

UNROLLED = 64
"""Rounds of a loop that carries sequences, which are imported one by one."""


def check_body(body: Any, inputs: int, outputs: int) -> None:
    """Raises ModelError for a graph of a node that takes others, or leaves fewer values."""
    if len(body.input) != inputs:
        raise ModelError(f"has a graph of {len(body.input)} inputs, where {inputs} are expected")
    if len(body.output) < outputs:
        raise ModelError(f"has a graph of {len(body.output)} outputs, where {outputs} are expected")


@operator("If")
def if_(node: Node) -> tuple[Value, ...]:
    """One of two graphs; the one of a known condition alone."""
    graphs = node.required("then_branch"), node.required("else_branch")
    condition = node.known(0)
    if condition is not None:
        try:
            is_true = folding.truth(condition.array.reshape(-1)[0])
        except folding.Undecided:
            pass
        else:
            return tuple(node.scope.inner().run(graphs[0 if is_true else 1]))
    forms: list[list[Form]] = []

    def run(body: Any) -> list[Value]:
        results = node.scope.inner().run(body)
        forms.append([_form(each) for each in results])
        if forms[-1] != forms[0]:
            raise ModelError("has branches with sequences of other lengths, or with nothing in one")
        return [part for each in results for part in _parts(each)]

    bodies = [lambda each=each: run(each) for each in graphs]
    parts = iter(branch(node.importer, truth_of(node.tensor(0)), bodies))
    return tuple(_assembled(form, parts) for form in forms[0])


def _form(value: Value) -> Form:
    if isinstance(value, list):
        return tuple(map(_form, value))
    return "nothing" if value is None else "tensor"


def _parts(value: Value) -> Iterator[Value]:
    """The tensors of a value, those of a sequence one by one."""
    if isinstance(value, list):
        for each in value:
            yield from _parts(each)
    elif value is not None:
        yield value


def _assembled(form: Form, parts: Iterator[Value]) -> Value:
    """A value of a form, of the next tensors."""
    if isinstance(form, tuple):
        return [_assembled(each, parts) for each in form]
    return None if form == "nothing" else next(parts)


@operator("Loop")
def loop_(node: Node) -> tuple[Value, ...]:
    """Rounds of a graph, as many as a value says, while a condition holds."""
    body = node.required("body")
    count = None if node.value(0) is None else node.exprs(0, "a count")[0]
    carried = node.inputs[2:]
    condition = node.value(1)
    check_body(body, 2 + len(carried), 1 + len(carried))
    if _is_false(condition):
        count = const(0)
    if _is_unrolled(count, carried):
        return _unrolled(node, body, count, carried)
    rows = len(body.output) - 1 - len(carried)

    def run(at: ir.Value, values: list[Value]) -> tuple[Value, list[Value], list[Value]]:
        scope = node.scope.inner()
        names = [each.name for each in body.input]
        inputs: list[Value] = [at, TRUE if condition is None else condition, *values]
        scope.values.update(zip(names, inputs))
        goes_on, *results = scope.run(body)
        if isinstance(goes_on, Known) and not _is_false(goes_on):
            goes_on = None
        return goes_on, results[: len(values)], results[len(values) :]

    first = None if condition is None or isinstance(condition, Known) else truth_of(node.tensor(1))
    values = [node.importer.tensor(each) for each in carried]
    return tuple(loop(node.importer, Carried(count, first, values, rows), run))


def _is_false(value: Value) -> bool:
    if not isinstance(value, Known):
        return False
    try:
        return not folding.truth(value.array.reshape(-1)[0])
    except folding.Undecided:
        return False


def _is_unrolled(count: Expr | None, carried: list[Value]) -> bool:
    has_lists = any(isinstance(each, list) or each is None for each in carried)
    if not has_lists:
        return False
    if count is None or count.value is None or count.value > UNROLLED:
        raise ModelError("carries a sequence through rounds whose count is not known")
    return True


def _unrolled(node: Node, body: Any, count: Expr | None, carried: list[Value]) -> tuple[Value, ...]:
    assert count is not None
    assert count.value is not None
    rows: list[list[Value]] = []
    values = list(carried)
    for i in range(count.value):
        scope = node.scope.inner()
        inputs = [known(i), TRUE, *values]
        scope.values.update(zip([each.name for each in body.input], inputs))
        goes_on, *results = scope.run(body)
        if not isinstance(goes_on, Known):
            raise ModelError("carries a sequence while a computed condition holds")
        values, last = results[: len(values)], results[len(values) :]
        rows.append(last)
        if _is_false(goes_on):
            break
    stacks: list[Value] = []
    for column in zip(*rows):
        tensors = [node.importer.tensor(each) for each in column]
        stacks.append(graph.StackOp.build(*tensors, axis=0).operation.results[0])
    return (*values, *stacks)


@operator("Scan", since=9)
def scan(node: Node) -> tuple[Value, ...]:
    """Rounds of a graph over the slices of tensors."""
    body, count = node.required("body"), node.required("num_scan_inputs")
    states = len(node.inputs) - count
    if not (0 < count <= len(node.inputs) and states <= len(body.output)):
        raise ModelError(f"scans {count} of {len(node.inputs)} inputs to {len(body.output)}")
    check_body(body, len(node.inputs), states)
    axes = node.attribute("scan_input_axes") or [0] * count
    back = node.attribute("scan_input_directions") or [0] * count
    rows = len(body.output) - states
    out_axes = node.attribute("scan_output_axes") or [0] * rows
    out_back = node.attribute("scan_output_directions") or [0] * rows
    axes = [normalized(axis, node.rank(states + i)) for i, axis in enumerate(axes)]
    length = node.dims(states)[axes[0]]
    for i in range(1, count):
        other = node.dims(states + i)[axes[i]]
        if graph.dims_differ(length, other):
            raise ModelError(f"scans tensors of {length} and {other} slices")
        if not graph.dims_equal(length, other):
            graph.RequireOp.build([Fact(length, "==", other)], "scan")
    taken = [
        emit(graph.FlipOp, node.tensor(states + i), axes=[axes[i]])
        if back[i]
        else node.tensor(states + i)
        for i in range(count)
    ]

    def run(at: ir.Value, values: list[Value]) -> tuple[Value, list[Value], list[Value]]:
        scope = node.scope.inner()
        slices = [emit(graph.TakeOp, x, at, axis=axis) for x, axis in zip(taken, axes)]
        scope.values.update(zip([each.name for each in body.input], [*values, *slices]))
        results = scope.run(body)
        return None, results[:states], results[states:]

    values = [node.tensor(i) for i in range(states)]
    done = loop(node.importer, Carried(length, None, values, rows), run)
    outputs = []
    for i, each in enumerate(done[states:]):
        if out_back[i]:
            each = emit(graph.FlipOp, each, axes=[0])
        rank = len(graph.TensorType.of(each).dims or ())
        axis = normalized(out_axes[i], rank)
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            each = emit(graph.PermuteDimsOp, each, axes=order)
        outputs.append(each)
    return (*done[:states], *outputs)
