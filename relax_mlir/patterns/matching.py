"""Finds what a pattern describes: all matches of a pattern with a value, by backtracking.

A match looks through no op that the pattern does not name: a `graph.match_cast` that is still
there checks something at run time, which a match would hide. `relax-canonicalize-bindings` removes
the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

from relax_mlir.analysis.signatures import unify
from relax_mlir.bindings import arith, arities, ir
from relax_mlir.dialects.graph import Dim, TensorType, annotation_of, known_dims
from relax_mlir.dialects.graph.op import attribute_to_python
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.errors import UsageError
from relax_mlir.symbolic import Expr, Facts, equal, product

from . import pattern as of
from .pattern import Pattern

MOST_STEPS = 1 << 14
"""The parts of a pattern that are compared with values before a match is given up."""


@dataclass(frozen=True)
class Match:
    """A value that a pattern describes: what its names stand for, and the ops between."""

    value: ir.Value
    captures: Mapping[str, ir.Value]
    ops: tuple[ir.Operation, ...]
    """The ops that the pattern names, each once, in no order."""
    constants: tuple[ir.Operation, ...]
    """The ops of `is_const`."""
    dims: Mapping[str, Expr]
    """The variables of shapes."""

    def __getitem__(self, name: str) -> ir.Value:
        return self.captures[name]


@dataclass
class _Budget:
    steps: int = MOST_STEPS


@dataclass(frozen=True)
class _State:
    """What a part of the pattern has matched so far."""

    budget: _Budget
    captures: Mapping[str, ir.Value] = field(default_factory=dict)
    ops: tuple[ir.Operation, ...] = ()
    constants: tuple[ir.Operation, ...] = ()
    shapes: tuple[tuple[of.HasType, TensorType], ...] = ()


def match(pattern: Pattern, value: ir.Value, facts: Facts | None = None) -> Match | None:
    """The first match of a pattern with a value, None if there is none; see `matches`."""
    return next(matches(pattern, value, facts), None)


def matches(pattern: Pattern, value: ir.Value, facts: Facts | None = None) -> Iterator[Match]:
    """The matches of a pattern with a value; dims may be proved equal by the facts.

    Raises UsageError if there are too many ways to match, or the pattern is nested too deeply.
    """
    try:
        for state in _match(pattern, value, _State(_Budget())):
            dims = _dims(state, facts or Facts())
            if dims is not None:
                ops = tuple(dict.fromkeys(state.ops))
                constants = tuple(dict.fromkeys(state.constants))
                yield Match(value, dict(state.captures), ops, constants, dims)
    except RecursionError:
        raise UsageError("the pattern is nested too deeply") from None


def _match(pattern: Pattern, value: ir.Value, state: _State) -> Iterator[_State]:
    """Every way to match a part of the pattern after what the state has."""
    state.budget.steps -= 1
    if state.budget.steps < 0:
        raise UsageError(f"the pattern has more than {MOST_STEPS} ways to match; name more of it")
    return _ways(pattern, value, state)


@singledispatch
def _ways(pattern: Pattern, value: ir.Value, state: _State) -> Iterator[_State]:
    raise TypeError(f"{type(pattern).__name__} cannot be matched")


@_ways.register
def _(pattern: of.Wildcard, value: ir.Value, state: _State) -> Iterator[_State]:
    yield state


@_ways.register
def _(pattern: of.Constant, value: ir.Value, state: _State) -> Iterator[_State]:
    op = _op_of(value)
    if op is not None and isinstance(op.opview, arith.ConstantOp):
        yield replace(state, constants=(*state.constants, op))


@_ways.register
def _(pattern: of.Argument, value: ir.Value, state: _State) -> Iterator[_State]:
    if isinstance(value, ir.BlockArgument) and value.owner.owner.operation.name == "func.func":
        yield state


@_ways.register
def _(pattern: of.Op, value: ir.Value, state: _State) -> Iterator[_State]:
    op = _op_of(value)
    if op is None or arities.plain_name(op) != pattern.name:
        return
    if pattern.index not in (None, list(op.results).index(value)):
        return
    state = replace(state, ops=(*state.ops, op))
    if pattern.operands is None:
        yield state
    elif len(pattern.operands) == len(op.operands):
        yield from _match_all(list(zip(pattern.operands, op.operands)), state)


def _match_all(pairs: list[tuple[Pattern, ir.Value]], state: _State) -> Iterator[_State]:
    if not pairs:
        yield state
        return
    (pattern, value), *rest = pairs
    for each in _match(pattern, value, state):
        yield from _match_all(rest, each)


@_ways.register
def _(pattern: of.Capture, value: ir.Value, state: _State) -> Iterator[_State]:
    for each in _match(pattern.pattern, value, state):
        if each.captures.get(pattern.name, value) == value:
            yield replace(each, captures={**each.captures, pattern.name: value})


@_ways.register
def _(pattern: of.HasAttributes, value: ir.Value, state: _State) -> Iterator[_State]:
    op = _op_of(value)
    if op is not None and all(_has(op, name, wanted) for name, wanted in pattern.attributes):
        yield from _match(pattern.pattern, value, state)


def _has(op: ir.Operation, name: str, wanted: Any) -> bool:
    """Whether an op has an attribute of a value; a float may be given as an integer."""
    if name not in op.attributes:
        return False
    value = attribute_to_python(op.attributes[name])
    if isinstance(wanted, list | tuple):
        if not isinstance(value, tuple):
            return False
        is_shape = any(each is None or isinstance(each, Expr) for each in value)
        return value == (as_dims(wanted) if is_shape else tuple(wanted))
    if isinstance(value, float) and isinstance(wanted, int):
        return value == wanted
    return type(value) is type(wanted) and value == wanted


@_ways.register
def _(pattern: of.HasType, value: ir.Value, state: _State) -> Iterator[_State]:
    annotation = annotation_of(value)
    if not isinstance(annotation, TensorType):
        return
    if pattern.element not in (None, str(annotation.element)):
        return
    if pattern.shape is not None:
        dims = _said(pattern, annotation.dims)
        if dims is None:
            return
        state = replace(state, shapes=(*state.shapes, (pattern, annotation.with_dims(dims))))
    yield from _match(pattern.pattern, value, state)


def _said(pattern: of.HasType, dims: Sequence[Dim] | None) -> list[Dim] | None:
    """The dims that a shape says something of, None if the rank is another one."""
    if dims is None or len(dims) < pattern.last:
        return None
    if len(dims) != pattern.last and not pattern.any_leading:
        return None
    leading = dims[: len(dims) - pattern.last]
    last = list(dims[len(dims) - pattern.last :])
    if len(pattern.dims) == pattern.last:
        return last
    known = known_dims(leading)
    return [None if known is None else product(known), *last]


@_ways.register
def _(pattern: of.Either, value: ir.Value, state: _State) -> Iterator[_State]:
    yield from _match(pattern.first, value, state)
    yield from _match(pattern.second, value, state)


@_ways.register
def _(pattern: of.Both, value: ir.Value, state: _State) -> Iterator[_State]:
    yield from _match_all([(pattern.first, value), (pattern.second, value)], state)


@_ways.register
def _(pattern: of.Not, value: ir.Value, state: _State) -> Iterator[_State]:
    if next(_match(pattern.pattern, value, state), None) is None:
        yield state


@_ways.register
def _(pattern: of.Used, value: ir.Value, state: _State) -> Iterator[_State]:
    op = _op_of(value)
    if op is None:
        return
    for each in _match(pattern.user, value, state):
        for operand in dict.fromkeys(op.operands):
            if not pattern.only or all(use.owner.operation == op for use in operand.uses):
                yield from _match(pattern.producer, operand, each)


@_ways.register
def _(pattern: of.Where, value: ir.Value, state: _State) -> Iterator[_State]:
    if pattern.check(value):
        yield from _match(pattern.pattern, value, state)


def _op_of(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None for an argument of a block."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _dims(state: _State, facts: Facts) -> dict[str, Expr] | None:
    """The variables of the shapes; None if a dim is not proved to be what a shape says."""
    wanted = [annotation.with_dims(shape.dims) for shape, annotation in state.shapes]
    got = [annotation for _, annotation in state.shapes]
    values = unify(wanted, got).values
    for theirs, ours in zip(wanted, got):
        for want, dim in zip(theirs.dims or (), ours.dims or ()):
            if want is None:
                continue
            if dim is None or not want.symbols <= values.keys():
                return None
            if not equal(want.substitute(values), dim, facts).proved:
                return None
    return values
