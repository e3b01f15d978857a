"""Decorators that make leaves, internal nodes and graphs of Python functions, and their module."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from relax_mlir.analysis.nodes import bind, seen_by_instances
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import (
    ALL_TO_ALL,
    INTERNAL,
    ONE_TO_ONE,
    NodeOp,
    ShapeError,
    TensorType,
    to_mlir,
)
from relax_mlir.dialects.tir import ACCESS, INOUT, LEAF, SHARED, TARGETS, VERSIONS
from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.symbolic import Expr, Facts, as_expr

from .scalars import Instance, Scalar, Tensor, values_of

_TYPE = re.compile(r"(\w+)(?:\[(.*)\])?\Z")
Results: TypeAlias = "Port | tuple[Port, ...]"


@dataclass(frozen=True)
class Port:
    """A tensor that flows along edges; `kind` says how the node it is passed to gets it."""

    value: ir.Value
    build: _Build
    kind: str = ""
    is_stream: bool = False


def each(port: Port) -> Port:
    """An edge one-to-one: an instance gets the part at its own index."""
    return replace(port, kind=ONE_TO_ONE)


def whole(port: Port) -> Port:
    """An edge all-to-all: each instance gets the whole tensor."""
    return replace(port, kind=ALL_TO_ALL)


def streamed(port: Port) -> Port:
    """An edge that is a stream too: `streamed(each(x))` begins another stage (`stages_of`)."""
    return replace(port, is_stream=True)


@dataclass(frozen=True)
class _Function:
    """A Python function with the types of its parameters.

    These are written `f32[n, 4]`, or `inout f32[4]` and `shared i32[k]` of leaves that update them.
    """

    function: Callable[..., Any]
    types: dict[str, str]

    @property
    def name(self) -> str:
        """The symbol name."""
        return self.function.__name__


class _Node(_Function):
    """A leaf or an internal node."""

    def over(self, *grid: Expr | int | str) -> Callable[..., Any]:
        """The node over a grid of up to three extents: a function of `each(x)` and `whole(x)`.

        It returns a port, or a tuple of them if instances return several values.
        """

        def run(*ports: Port) -> Results:
            if not ports:
                raise UsageError(f"'{self.name}' needs an operand")
            return ports[0].build.node(self, [as_expr(extent) for extent in grid], ports)

        return run


@dataclass(frozen=True)
class Leaf(_Node):
    """The program of an instance: a function of an `Instance`, scalars and tensors."""

    targets: tuple[str, ...] = ()
    versions: list[Leaf] = field(default_factory=list, compare=False)

    def version(self, *targets: str) -> Callable[[Callable[..., Any]], Leaf]:
        """Makes another leaf of the same types that computes the same, for other targets."""

        def add(function: Callable[..., Any]) -> Leaf:
            self.versions.append(Leaf(function, self.types, targets))
            return self.versions[-1]

        return add


class Internal(_Node):
    """A graph of nodes for each instance: a function of ports."""


class GraphFunction(_Function):
    """A function that a module exports: a function of ports."""


def leaf(*targets: str, **types: str) -> Callable[[Callable[..., Any]], Leaf]:
    """Makes a leaf; types are those that an instance gets: `leaf(x="f32", w="f32[k]")`.

    `targets` are what it is written for, the best first: "cpu", "device", which is that of the
    target, or a kind of device as "vulkan"; without, it is for all.
    """
    return lambda function: Leaf(function, types, targets)


def internal(**types: str) -> Callable[[Callable[..., Any]], Internal]:
    """Makes an internal node; types are those that an instance gets."""
    return lambda function: Internal(function, types)


def graph(**types: str) -> Callable[[Callable[..., Any]], GraphFunction]:
    """Makes a function of a module: `graph(x="f32[n, m]")`."""
    return lambda function: GraphFunction(function, types)


def module(*functions: GraphFunction, facts: Sequence[str] = (), passes: str = "") -> ir.Module:
    """The module of graphs and the nodes that they run; `relax_mlir.compile` takes it.

    `facts` are relations on symbols, which calls check; `passes` run on the graph, as the text
    "relax-dataflow-fuse". Raises UsageError if a node is passed what it cannot get; what rules
    refuse beyond that is an error of the compiler.
    """
    with make_context(), ir.Location.unknown():
        made = ir.Module.create()
        build = _Build(made, Facts.parse(facts))
        for function in functions:
            build.define(function)
        if passes:
            Pipeline.parse(f"builtin.module({passes})").run(made)
        return made


@dataclass
class _Build:
    """A module under construction; equal names are equal functions."""

    module: ir.Module
    facts: Facts
    made: dict[str, tuple[_Function, func.FuncOp]] = field(default_factory=dict)

    def define(self, function: _Function) -> func.FuncOp:
        """The function of the module, written when it is first used."""
        if function.name in self.made:
            known, op = self.made[function.name]
            if known is not function:
                raise UsageError(f"two nodes have the name '{function.name}'")
            return op
        code = function.function.__code__
        at = ir.Location.file(code.co_filename, code.co_firstlineno, 0)
        with at, ir.InsertionPoint(self.module.body):
            types = [
                _parameter(text, isinstance(function, Leaf)) for text in function.types.values()
            ]
            op = func.FuncOp(function.name, (types, []))
            block = op.add_entry_block()
            with ir.InsertionPoint(block):
                results = self._body(function, list(block.arguments))
                func.ReturnOp(results)
            kind = ir.FunctionType.get(types, [value.type for value in results])
            op.attributes["function_type"] = ir.TypeAttr.get(kind)
        self._mark(function, op)
        self.made[function.name] = function, op
        return op

    def _body(self, function: _Function, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        if isinstance(function, Leaf):
            parts = [
                Tensor(x) if isinstance(x.type, ir.RankedTensorType) else Scalar(x)
                for x in arguments
            ]
            return values_of(function.function(Instance(), *parts))
        made = function.function(*(Port(x, self) for x in arguments))
        ports = made if isinstance(made, tuple) else (made,)
        if not all(isinstance(port, Port) for port in ports):
            raise UsageError(f"'{function.name}' returns {made!r}; expects results of nodes")
        return [port.value for port in ports]

    def _mark(self, function: _Function, op: func.FuncOp) -> None:
        if not isinstance(function, Leaf):
            names = [ir.DictAttr.get({"graph.name": ir.StringAttr.get(x)}) for x in function.types]
            op.arg_attrs = ir.ArrayAttr.get(names)
        if not isinstance(function, GraphFunction):
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            op.attributes[LEAF if isinstance(function, Leaf) else INTERNAL] = ir.UnitAttr.get()
            access = [_access(text) for text in function.types.values()]
            if isinstance(function, Leaf) and any(access):
                marks = ({ACCESS: ir.StringAttr.get(x)} if x else {} for x in access)
                op.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])
            if isinstance(function, Leaf) and function.targets:
                hints = [ir.StringAttr.get(name) for name in function.targets]
                op.attributes[TARGETS] = ir.ArrayAttr.get(hints)
            if isinstance(function, Leaf) and function.versions:
                made = [self.define(each).name.value for each in function.versions]
                others = [ir.FlatSymbolRefAttr.get(name) for name in made]
                op.attributes[VERSIONS] = ir.ArrayAttr.get(others)
            return
        if len(self.facts):
            facts = [ir.StringAttr.get(str(fact)) for fact in self.facts]
            op.attributes["graph.facts"] = ir.ArrayAttr.get(facts)

    def node(self, node: _Node, grid: Sequence[Expr], ports: Sequence[Port]) -> Results:
        """Writes a node; its results as ports."""
        if not all(port.kind for port in ports):
            raise UsageError(f"'{node.name}' takes each(x) or whole(x)")
        callee, kinds = self.define(node), [port.kind for port in ports]
        operands = [TensorType.of(port.value).storage for port in ports]
        if len(operands) != len(callee.type.inputs):
            raise UsageError(
                f"'{node.name}' has {len(callee.type.inputs)} parameters, not {len(operands)}"
            )
        try:
            seen = seen_by_instances(grid, kinds, operands, self.facts)
            outs = bind(callee, seen).results(grid)
            op = NodeOp.build(node.name, [port.value for port in ports], kinds, grid, outs)
            op.mark_streams([port.is_stream for port in ports])
        except ShapeError as error:
            raise UsageError(f"'{node.name}' {error}") from None
        made = tuple(Port(value, self) for value in op.outs)
        return made[0] if len(made) == 1 else made


def _access(text: str) -> str:
    """How a leaf updates a parameter, "" if nothing."""
    first = text.partition(" ")[0]
    return first if first in (INOUT, SHARED) else ""


def _parameter(text: str, may_be_scalar: bool) -> ir.Type:
    """The type of a parameter; raises UsageError if the text is none."""
    match = _TYPE.match(text.removeprefix(_access(text)).strip())
    if match is None:
        raise UsageError(f"'{text}' is no type; expects f32 or f32[n, 4]")
    element, dims = ir.Type.parse(match[1]), match[2]
    if dims is None and may_be_scalar:
        return element
    listed = [as_expr(dim.strip()) for dim in dims.split(",")] if dims and dims.strip() else []
    return to_mlir(TensorType(tuple(listed), element))
