"""Adds the stages of a stream: functions of the nodes between edges that are streams.

    @f(%x):  %y = "graph.node"(%x) {callee = @a, ...}
             %z = "graph.node"(%y) {callee = @b, graph.streams = array<i1: true>, ...}
             return %z
      ->
    @f_stage_0(%x):  %y = "graph.node"(%x) {callee = @a, ...}  return %y
    @f_stage_1(%y):  %z = "graph.node"(%y) {callee = @b, ...}  return %z

An op is in the last stage of its operands, or in the next one if an edge of these is a stream. A
stage takes what the one before returns: all that it or a later one uses. `@f` stays as it is: what
the stages compute together, one after the other.

Needs: nothing; it checks the rules of nodes. Leaves: no streams.
Source: HPVM, arXiv 1611.00860, section 3.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    FACTS,
    INOUT,
    NAME,
    argument_name,
    facts_of,
    inout_arguments,
    is_public,
)
from relax_mlir.analysis.nodes import has_nodes, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import STREAMS, NodeOp, TensorType, annotation_of, stage_name
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import captured_values, copy_op, walk_ops


@dataclass(frozen=True)
class SplitStreams(Pass):
    """Adds the stages of a stream: functions of the nodes between edges that are streams."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Adds the stages of every public function with streams, and drops the marks."""
        if not has_nodes(op) or report_broken(op):
            return
        functions = functions_by_name(op)
        for name, function in list(functions.items()):
            nodes = [node for node in walk_ops(function, NodeOp) if STREAMS in node.attributes]
            if nodes and is_public(function):
                if inout_arguments(function):
                    raise PassFailure(function, f"has '{INOUT}', which no stage could update")
                _Stages(function).write(functions)
            for node in nodes:
                del node.attributes[STREAMS]


class _Stages:
    """The stages of a function: of each op, and of each value; arguments are in the first."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        *self.ops, self.end = list(function.entry_block.operations)
        self.values: dict[ir.Value, int] = dict.fromkeys(function.arguments, 0)
        self.of_ops: list[int] = []
        for op in self.ops:
            at = max(map(self.values.__getitem__, captured_values(op)), default=0)
            operands = list(op.operation.operands)
            streams = op.streams if isinstance(op, NodeOp) else [False] * len(operands)
            for value, is_stream in zip(operands, streams, strict=True):
                at = max(at, self.values[value] + is_stream)
            self.of_ops.append(at)
            self.values |= dict.fromkeys(op.operation.results, at)

    def write(self, functions: Mapping[str, func.FuncOp]) -> None:
        """Writes all stages; raises PassFailure if one of `functions` has such a name."""
        last = max(self.of_ops)
        for index in range(last + 1):
            name = stage_name(self.function.name.value, index)
            if name in functions:
                raise PassFailure(self.function, f"has stages, but '@{name}' is there already")
            outs = list(self.end.operands) if index == last else self._crossing(index + 1)
            self._write(name, index, outs)

    def _write(self, name: str, index: int, outs: Sequence[ir.Value]) -> None:
        function, ins = self.function, self._crossing(index)
        types = [value.type for value in ins], [value.type for value in outs]
        with ir.InsertionPoint(function), function.location:
            stage = func.FuncOp(name, types)
            if FACTS in function.attributes:
                facts = [str(fact) for fact in facts_of(function) if fact.symbols <= _symbols(ins)]
                stage.attributes[FACTS] = ir.ArrayAttr.get([ir.StringAttr.get(x) for x in facts])
            if index == 0:
                names = (argument_name(function, i) for i in range(len(ins)))
                stage.arg_attrs = ir.ArrayAttr.get(
                    [ir.DictAttr.get({NAME: ir.StringAttr.get(name)}) for name in names]
                )
            values = dict(zip(ins, stage.add_entry_block().arguments, strict=True))
            with ir.InsertionPoint(stage.entry_block):
                for op, at in zip(self.ops, self.of_ops, strict=True):
                    if at == index:
                        copy_op(op, values)
                func.ReturnOp([values[value] for value in outs])

    def _crossing(self, index: int) -> list[ir.Value]:
        """What a stage takes: values of earlier ones that it or a later one uses."""
        if index == 0:
            return list(self.function.arguments)
        used = set(self.end.operands)
        for op, at in zip(self.ops, self.of_ops, strict=True):
            if at >= index:
                used |= {*op.operation.operands, *captured_values(op)}
        return [value for value, at in self.values.items() if at < index and value in used]


def _symbols(values: Sequence[ir.Value]) -> frozenset[str]:
    """The symbols of the dims of tensors."""
    symbols: frozenset[str] = frozenset()
    for value in values:
        annotation = annotation_of(value)
        if isinstance(annotation, TensorType):
            symbols |= annotation.symbols
    return symbols
