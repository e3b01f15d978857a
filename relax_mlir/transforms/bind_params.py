"""Makes arguments that are known constants of the function.

    func.func @main(%x: tensor<?x?xf32, #graph.shape<["n", "k"]>>,
                    %w: tensor<?x4xf32, #graph.shape<["k", 4]>> {graph.value = dense<...>}) {
      %0 = "graph.matmul"(%x, %w)
      ->
    func.func @main(%x: tensor<?x8xf32, #graph.shape<["n", 8]>>) {
      %w = arith.constant dense<...> : tensor<8x4xf32>
      %0 = "graph.matmul"(%x, %w)

`relax_mlir.compile(module, parameters={"w": array})` writes `graph.value`. The symbols of such an
argument get the values that the constant has; results, facts and other arguments then have them
too. Where the argument's annotation leaves a dim open, a match_cast keeps it open for its readers,
until `relax-infer-shapes` and `relax-canonicalize-bindings` see through it. `graph.num_inputs` goes
down by the inputs that are bound.

Needs: nothing. Leaves: no `graph.value`. Fails if a value does not fit its annotation,
two values give a symbol different extents, or something else calls the function.
Source: TVM Relax `BindParams`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    FACTS,
    NUM_INPUTS,
    VALUE,
    argument_attribute,
    argument_name,
    called_names,
    facts_of,
    graph_functions,
    inout_arguments,
    is_public,
)
from relax_mlir.analysis.rename import FUNCTION_TYPE, rename_symbols
from relax_mlir.analysis.signatures import (
    Unification,
    kind_conflict,
    unify,
    update_results,
)
from relax_mlir.analysis.trees import keep_arguments
from relax_mlir.bindings import func, ir
from relax_mlir.data import NO_DATA, bytes_of, is_data
from relax_mlir.dialects.graph import MatchCastOp, annotation_of, constant
from relax_mlir.passes import Pass, PassFailure


@dataclass(frozen=True)
class BindParams(Pass):
    """Makes arguments that are known constants of the function."""

    keeps_verified: ClassVar[bool] = False  # dims that might have fitted may not fit now

    def run(self, op: ir.Operation) -> None:
        """Binds the arguments of every graph function."""
        called = called_names(op)
        for function in graph_functions(op):
            count = len(function.arguments)
            found = {i: argument_attribute(function, i, VALUE) for i in range(count)}
            values = {index: value for index, value in found.items() if value is not None}
            if values:
                if function.name.value in called or not is_public(function):
                    raise PassFailure(function, "has a known argument, but is not called by users")
                _bind(function, values)


def _bind(function: func.FuncOp, values: Mapping[int, ir.Attribute]) -> None:
    """Puts constants in place of arguments, by index."""
    for index, value in values.items():
        _check(function, index, value)
    arguments = [function.arguments[index] for index in values]
    types = [annotation_of(value.type) for value in values.values()]  # type: ignore[attr-defined]
    found = unify(list(map(annotation_of, arguments)), types)
    _check_dims(function, list(values), found)
    kept = [fact for fact in facts_of(function) if not fact.symbols <= found.values.keys()]
    if FACTS in function.attributes:
        texts = [ir.StringAttr.get(str(fact)) for fact in kept]
        function.attributes[FACTS] = ir.ArrayAttr.get(texts)
    rename_symbols(function, found.values)
    with ir.InsertionPoint.at_block_begin(function.entry_block), function.location:
        for argument, value in zip(arguments, values.values(), strict=True):
            made = constant(value)
            if made.type != argument.type:
                made = MatchCastOp.build(made, annotation_of(argument)).result
            argument.replace_all_uses_with(made)
    _erase(function, values.keys())
    update_results(function)


def _check(function: func.FuncOp, index: int, value: ir.Attribute) -> None:
    """Raises PassFailure if a value is none, or not one of the argument's kind."""
    name = f"argument {index} '{argument_name(function, index)}'"
    if not isinstance(value, ir.DenseElementsAttr) and not is_data(value):
        raise PassFailure(function, f"{name} has a '{VALUE}' that is no constant tensor")
    if bytes_of(value) is None:
        raise PassFailure(function, f"{name} {NO_DATA}")
    if index in inout_arguments(function).values():
        raise PassFailure(function, f"{name} is updated in place, so it cannot be a constant")
    given = annotation_of(value.type)  # type: ignore[attr-defined]
    why = kind_conflict(annotation_of(function.arguments[index]), given)
    if why is not None:
        raise PassFailure(function, f"the value of {name} {why}")


def _check_dims(function: func.FuncOp, indices: Sequence[int], found: Unification) -> None:
    """Raises PassFailure if dims of values do not fit, or break what the function requires."""
    for conflict in found.conflicts:
        name = f"argument {indices[conflict.index]} "
        name += f"'{argument_name(function, indices[conflict.index])}'"
        raise PassFailure(
            function,
            f"the value of {name} has {conflict.got} in dim {conflict.axis}, but {conflict.want} "
            "is expected",
        )
    for symbol, value in found.values.items():
        if value.value is None or value.value < 0:
            raise PassFailure(function, f"the values of arguments make '{symbol}' {value}")
    for fact in facts_of(function):
        if fact.symbols <= found.values.keys() and not fact.substitute(found.values).evaluate({}):
            known = ", ".join(f"{name} = {found.values[name]}" for name in sorted(fact.symbols))
            raise PassFailure(function, f"requires {fact}, but {known} from the given values")


def _erase(function: func.FuncOp, indices: Collection[int]) -> None:
    """Removes arguments that nothing reads any more."""
    count = len(function.arguments)
    kept = [index for index in range(count) if index not in indices]
    if NUM_INPUTS in function.attributes:
        old = function.attributes[NUM_INPUTS]
        inputs = sum(index < old.value for index in kept)
        function.attributes[NUM_INPUTS] = ir.IntegerAttr.get(old.type, inputs)
    attributes = list(function.attributes["arg_attrs"])
    for index in sorted(indices, reverse=True):
        function.entry_block.erase_argument(index)
    keep_arguments(function, kept)
    types = [argument.type for argument in function.arguments]
    type_ = ir.FunctionType.get(types, list(function.type.results))
    function.attributes[FUNCTION_TYPE] = ir.TypeAttr.get(type_)
    function.arg_attrs = [ir.DictAttr(attributes[index]) for index in kept]
