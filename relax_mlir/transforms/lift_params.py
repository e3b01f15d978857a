"""Moves computations on parameters alone to a function that runs once.

    func.func @main(%x, %w) attributes {graph.num_inputs = 1} {
      %p = "graph.call_tir"(%w) {callee = @pack_weights}
      %y = "graph.call_tir"(%p, %x) {callee = @matmul_packed}
      ->
    func.func @main_params(%w) -> packed { %p = pack_weights(%w) ... }
    func.func @main_params_0(%w) -> packed { %p = pack_weights(%w) ... }
    func.func @main(%x, %p {graph.made_by = "main_params_0", graph.made_from = array<i64: 0>})
        attributes {graph.num_inputs = 1} { %y = matmul_packed(%p, %x) ... }

The new function takes the old parameters and returns the new ones, in the order of `@main`; the
caller stores its results. It returns unchanged the parameters that `@main` uses directly, or needs
to bind a symbol. To compute parameters one at a time, without all old and new ones in memory, there
is also a function for each distinct computation (not for each parameter): attributes of the
arguments of `@main` name it and the old parameters that it takes. Facts on parameters alone are
facts of these functions too.

Computations on constants alone are lifted too, those on a parameter with `graph.no_lift` are not.
A function that updates a parameter in place is not changed: updated arguments are not parameters.
Used names get a numeric suffix.

Needs: calls of tensor programs. Leaves: no call in `@main` whose operands are all parameters.
Source: TVM `LiftTransformParams`.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    FACTS,
    MADE_BY,
    MADE_FROM,
    NAME,
    NUM_INPUTS,
    argument_name,
    facts_of,
    graph_functions,
)
from relax_mlir.analysis.liftable import liftable
from relax_mlir.analysis.rename import used_symbols
from relax_mlir.analysis.symbols import bindings, symbols_of
from relax_mlir.analysis.trees import give_arguments, keep_arguments
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects.graph import CallTirOp, RequireOp, annotation_of
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, is_unused, safe_erase

SUFFIX = "_params"


@dataclass(frozen=True)
class LiftParams(Pass):
    """Moves computations on parameters alone to a function that runs once."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Splits every public graph function with parameters that has something to lift."""
        names = SymbolNames(op.regions[0].blocks[0])
        for function in graph_functions(op):
            lifted = liftable(function)
            if lifted:
                _Split(function, lifted, names).run()


class _Split:
    """The split of one function: another one computes its new parameters."""

    def __init__(
        self, function: func.FuncOp, lifted: Sequence[CallTirOp], names: SymbolNames
    ) -> None:
        self.function, self.lifted, self.names = function, lifted, names
        self.first = function.attributes[NUM_INPUTS].value
        self.parameters = list(function.arguments)[self.first :]
        self.ways: dict[object, str] = {}

    def run(self) -> None:
        """Adds the functions that compute parameters, and makes this one take their results."""
        values = self._new_parameters()
        name = self.function.name.value + SUFFIX
        maker = self._write_function(self.names.fresh(name), self.parameters, self.lifted, values)
        give_arguments(maker, self.function, self.first)
        described = [self._describe(value) for value in values]
        self._replace_parameters(values, described)

    def _new_parameters(self) -> list[ir.Value]:
        """The new parameters: the values that the function uses, or needs to bind its symbols."""
        lifted = {call.operation for call in self.lifted}
        made = [result for call in self.lifted for result in call.outs]
        values = [
            value
            for value in (*self.parameters, *made)
            if any(use.owner.operation not in lifted for use in value.uses)
        ]
        inputs = list(self.function.arguments)[: self.first]
        shown = bindings([annotation_of(value) for value in (*inputs, *values)])
        hidden = self._symbols() - shown.keys()
        for parameter in self.parameters if hidden else ():
            if parameter not in values and hidden & set(symbols_of([annotation_of(parameter)])):
                values.append(parameter)
        order = {value: index for index, value in enumerate((*self.parameters, *made))}
        return sorted(values, key=lambda value: order[value])

    def _symbols(self) -> set[str]:
        """The symbols of the arguments that the remaining ops use."""
        lifted = {call.operation for call in self.lifted}
        stays = [op for op in self.function.entry_block.operations if op.operation not in lifted]
        used = set(facts_of(self.function).symbols).union(*map(used_symbols, stays))
        return used & set(bindings([annotation_of(a) for a in self.function.arguments]))

    def _describe(self, value: ir.Value) -> ir.DictAttr:
        """The attributes of a new parameter; adds the function that computes it if necessary."""
        calls = _calls_of(value, self.lifted)
        used = [p for p in self.parameters if p == value or any(p in call.ins for call in calls)]
        indices = [self.parameters.index(p) for p in used]
        entry: dict[str, ir.Attribute] = {
            NAME: ir.StringAttr.get(self._name(value)),
            MADE_FROM: ir.DenseI64ArrayAttr.get(indices),
        }
        if calls:
            way = _computation(used, calls, value)
            if way not in self.ways:
                name = f"{self.function.name.value}{SUFFIX}_{len(self.ways)}"
                self.ways[way] = self.names.fresh(name)
                self._write_function(self.ways[way], used, calls, [value])
            entry[MADE_BY] = ir.StringAttr.get(self.ways[way])
        return ir.DictAttr.get(entry)

    def _name(self, value: ir.Value) -> str:
        """The name of a new parameter: that of the old one that it is, or is computed from."""
        arguments = list(self.function.arguments)
        if value in arguments:
            return argument_name(self.function, arguments.index(value))
        if isinstance(value.owner.opview, arith.ConstantOp):
            return "constant"
        call = value.owner.opview
        return f"{self._name(call.ins[0])}.{call.callee_name}"

    def _write_function(
        self,
        name: str,
        parameters: Sequence[ir.Value],
        lifted: Sequence[CallTirOp],
        results: Sequence[ir.Value],
    ) -> func.FuncOp:
        """Adds a function of that name, which computes new parameters from old ones."""
        function = self.function
        types = ([value.type for value in parameters], [value.type for value in results])
        with ir.InsertionPoint(function), function.location:
            new = func.FuncOp(name, types)
        arguments = list(function.arguments)
        new.arg_attrs = [
            ir.DictAttr.get(
                {NAME: ir.StringAttr.get(argument_name(function, arguments.index(value)))}
            )
            for value in parameters
        ]
        known = dict(zip(parameters, new.add_entry_block().arguments))
        bound = bindings([annotation_of(value) for value in parameters]).keys()
        facts = [fact for fact in facts_of(function) if fact.symbols <= bound]
        if facts:
            texts = [ir.StringAttr.get(str(fact)) for fact in facts]
            new.attributes[FACTS] = ir.ArrayAttr.get(texts)
        point = ir.InsertionPoint(new.entry_block)
        with point, function.location:
            for check in _requirements(function, bound):
                check.operation.clone(point)
            for call in lifted:
                for value in call.ins:
                    if value not in known:
                        known[value] = value.owner.clone(point).results[0]
                ins = [known[value] for value in call.ins]
                copy = CallTirOp.build(call.callee_name, ins, [annotation_of(v) for v in call.outs])
                known.update(zip(call.outs, copy.outs))
            func.ReturnOp([known[value] for value in results])
        return new

    def _replace_parameters(
        self, values: Sequence[ir.Value], described: Sequence[ir.DictAttr]
    ) -> None:
        """Makes the function take the new parameters instead of the old ones."""
        function, first = self.function, self.first
        block = function.entry_block
        old = list(function.arg_attrs)[:first] if function.arg_attrs else []
        entries = [ir.DictAttr(entry) for entry in old] or [ir.DictAttr.get({})] * first
        for value in values:
            argument = block.add_argument(value.type, function.location)
            value.replace_all_uses_except(argument, [call.operation for call in self.lifted])
        constants = [v.owner for call in self.lifted for v in call.ins if _is_constant(v)]
        for call in reversed(self.lifted):
            safe_erase(call)
        for constant in dict.fromkeys(constants):
            if is_unused(constant):
                safe_erase(constant)
        for _ in self.parameters:
            block.erase_argument(first)
        inputs = [argument.type for argument in block.arguments]
        type_ = ir.FunctionType.get(inputs, list(function.type.results))
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        function.arg_attrs = [*entries, *described]
        keep_arguments(function, range(first))


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and isinstance(
        value.owner.opview, arith.ConstantOp
    )


def _requirements(function: func.FuncOp, bound: Set[str]) -> Iterator[RequireOp]:
    """The requirements in the function's entry block on bound symbols."""
    for op in function.entry_block.operations:
        if isinstance(op, RequireOp) and all(fact.symbols <= bound for fact in op.facts):
            yield op


def _calls_of(value: ir.Value, lifted: Sequence[CallTirOp]) -> list[CallTirOp]:
    """The calls that compute a value, in program order."""
    needed, calls = {value}, []
    for call in reversed(lifted):
        if needed.intersection(call.outs):
            calls.append(call)
            needed.update(call.ins)
    return calls[::-1]


def _computation(used: Sequence[ir.Value], calls: Sequence[CallTirOp], value: ir.Value) -> object:
    """A key that is equal for parameters that the same function can compute."""
    ids: dict[ir.Value, object] = {each: index for index, each in enumerate(used)}
    steps = []
    for call in calls:
        for each in call.ins:
            if _is_constant(each):
                ids[each] = each.owner.attributes["value"]
        steps.append((call.callee_name, tuple(ids[operand] for operand in call.ins)))
        ids.update({out: (len(steps), index) for index, out in enumerate(call.outs)})
    return tuple(each.type for each in used), tuple(steps), ids[value]
