"""A module as graphs of boxes: functions, internal nodes, leaves, operators, inputs, results."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.functions import argument_name
from relax_mlir.analysis.node_versions import targets_of
from relax_mlir.analysis.nodes import is_internal, is_leaf, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import collecting, compile_error
from relax_mlir.dialects.graph import Dim, NodeOp, TensorType, annotation_of
from relax_mlir.errors import UsageError
from relax_mlir.rewriting import captured_values, walk_ops

MAX_BOXES = 600
"""Limit on the boxes of a picture; internal nodes beyond half of it stay closed."""
_ROUNDED_UP = re.compile(r"\((?P<of>[^()]+) \+ (?P<more>\d+)\) floordiv (?P<by>\d+)")
VALUE = "value"
"""The kind of an edge to an operator or a result; others are those of nodes."""


@dataclass
class Box:
    """A vertex: what it is (`kind`), its name, lines of details, and what is inside."""

    kind: str
    name: str
    lines: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    is_replicated: bool = False
    inner: "Graph | None" = None


@dataclass(frozen=True)
class Edge:
    """From one box to another: positions in `Graph.boxes`, and in the target's operands."""

    source: int
    target: int
    operand: int
    kind: str
    is_stream: bool = False


@dataclass
class Graph:
    """Boxes in program order, inputs first and results last, and the edges between them."""

    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def operands(self, box: int) -> int:
        """How many edges end at a box."""
        return sum(edge.target == box for edge in self.edges)


def graphs_of(module: ir.Module) -> list[Box]:
    """A box for each function that runs nodes and is none itself.

    Raises CompileError if a rule of nodes is broken, UsageError if there are no nodes, or more ops
    than a picture can show.
    """
    with collecting(module.context, ("error",)) as broken:
        report_broken(module.operation)
    if broken:
        raise compile_error(broken)
    reader = _Reader(functions_by_name(module.operation))
    functions = [
        function
        for function in reader.functions.values()
        if not (is_leaf(function) or is_internal(function)) and walk_ops(function, NodeOp)
    ]
    if not functions:
        raise UsageError("no function runs a dataflow node, so that there is nothing to draw")
    return [reader.function(function) for function in functions]


def type_text(type_: ir.Type) -> str:
    """A type as the decorators write it: `f32[n, 4]`."""
    annotation = annotation_of(type_)
    if not isinstance(annotation, TensorType):
        return str(type_)
    if annotation.dims is None:
        return f"{annotation.element}[*]"
    return f"{annotation.element}[{_dims(annotation.dims, ', ')}]"


def _dims(dims: Iterable[Dim], separator: str) -> str:
    return separator.join("?" if dim is None else _short(str(dim)) for dim in dims)


def _short(dim: str) -> str:
    """A quotient that is rounded up as it is usually written: `(n + 3) floordiv 4` is `⌈n/4⌉`."""
    match = _ROUNDED_UP.fullmatch(dim)
    is_ceiling = match is not None and int(match["more"]) == int(match["by"]) - 1
    return f"⌈{match['of']}/{match['by']}⌉" if match and is_ceiling else dim


@dataclass
class _Reader:
    """Makes boxes of ops, up to a limit over all graphs of a module."""

    functions: Mapping[str, func.FuncOp]
    boxes: int = 0

    def function(self, function: func.FuncOp) -> Box:
        names = [argument_name(function, i) for i in range(len(function.arguments))]
        facts = ()
        if "graph.facts" in function.attributes:
            facts = tuple(fact.value for fact in ir.ArrayAttr(function.attributes["graph.facts"]))
        inner = self._graph(function.entry_block, names, ())
        return Box("function", function.name.value, facts, inner=inner)

    def _graph(self, block: ir.Block, names: Sequence[str], captured: Sequence[ir.Value]) -> Graph:
        """The graph of a block; `captured` are values from outside that it uses."""
        graph, sources = Graph(), dict[ir.Value, int]()
        for value, name in [*zip(block.arguments, names), *((value, "") for value in captured)]:
            sources[value] = self._add(graph, Box("input", name, (type_text(value.type),)))
        *body, terminator = list(block.operations)
        for op in body:
            box = self._add(graph, self._box(op.operation.opview))
            values = [*op.operation.operands, *_outside(op)]
            kinds, streams = [VALUE] * len(values), [False] * len(values)
            if isinstance(op, NodeOp):
                kinds, streams = list(op.edge_kinds), op.streams
            for operand, value in enumerate(values):
                edge = Edge(sources[value], box, operand, kinds[operand], streams[operand])
                graph.edges.append(edge)
            sources |= dict.fromkeys(op.operation.results, box)
        for index, value in enumerate(terminator.operands):
            box = self._add(graph, Box("result", "", (type_text(value.type),)))
            graph.edges.append(Edge(sources[value], box, 0, VALUE))
        return graph

    def _add(self, graph: Graph, box: Box) -> int:
        self.boxes += 1
        if self.boxes > MAX_BOXES:
            raise UsageError(f"a picture shows at most {MAX_BOXES} boxes, but the graph has more")
        graph.boxes.append(box)
        return len(graph.boxes) - 1

    def _box(self, op: ir.OpView) -> Box:
        results = ", ".join(type_text(value.type) for value in op.operation.results)
        if isinstance(op, NodeOp):
            return self._node(op, results)
        inner = None
        blocks = [block for region in op.operation.regions for block in region.blocks]
        if len(blocks) == 1 and walk_ops(op, NodeOp):
            names = [""] * len(blocks[0].arguments)
            inner = self._graph(blocks[0], names, _outside(op))
        return Box("operator", op.operation.name.removeprefix("graph."), (results,), inner=inner)

    def _node(self, op: NodeOp, results: str) -> Box:
        callee = self.functions[op.callee_name]
        grid, covered = (_dims(dims or (), " × ") for dims in (op.extents, op.covered))
        told = (grid and f"grid {grid}", covered and f"tiles of {covered}", results)
        lines = tuple(line for line in told if line)
        if is_leaf(callee):
            targets = targets_of(callee)
            return Box("leaf", op.callee_name, lines, targets, bool(op.extents))
        inner = None
        if self.boxes < MAX_BOXES // 2:
            names = [argument_name(callee, i) for i in range(len(callee.arguments))]
            inner = self._graph(callee.entry_block, names, ())
        return Box("internal", op.callee_name, lines, (), bool(op.extents), inner)


def _outside(op: ir.OpView) -> list[ir.Value]:
    """The values that only regions of an op use."""
    operands = set(op.operation.operands)
    return [value for value in captured_values(op) if value not in operands]
