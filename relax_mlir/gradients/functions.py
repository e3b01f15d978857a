"""Gradients of functions: copies that go on with the ops in reverse.

func.func @f(%x, %y) -> (%z, ...)
  ->
func.func @f_adjoint(%x, %y) -> (%z, ..., gradient of %x, gradient of %y)   of a scalar %z
func.func private @f_pullback(%x, %y, gradient of %z) -> (gradient of %x, ...)  of what calls it
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.functions import INOUT
from relax_mlir.analysis.rename import FreshSymbols
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.analysis.unique_symbols import make_symbols_unique
from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import element_of, scalar
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import SymbolNames, safe_erase

from .reverse import Context, Reverse, vary
from .shapes import zeros_like

GRADIENT = "graph.gradient"
"""On a function: the one that computes its gradients, by `operators/calls.py`."""


@dataclass
class Functions:
    """The functions of a module, to which those that compute gradients are added."""

    module: ir.Operation
    _pullbacks: dict[tuple[str, tuple[int, ...], tuple[int, ...]], str] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._names = SymbolNames(self.module.regions[0].blocks[0])

    def add_adjoint(
        self, function: func.FuncOp, wrt: Sequence[int], suffix: str = "adjoint"
    ) -> func.FuncOp:
        """Adds `<name>_adjoint`, which also returns the gradients of result 0 by arguments."""
        copy = self._copy(function, self._names.fresh(f"{function.name.value}_{suffix}"))
        block = copy.entry_block
        end = block.operations[len(block.operations) - 1]
        with ir.InsertionPoint(end), end.location:
            seed = scalar(1, element_of(end.operands[0]))
            gradients = self._gradients(copy, {0: seed}, wrt)
            _finish(copy, [*end.operands, *gradients])
        return copy

    def pullback(self, name: str, wrt: Sequence[int], seeded: Sequence[int]) -> str:
        """The function that computes a called one again, and then gradients of its arguments.

        It takes the arguments and the gradients of the results that are `seeded`.
        """
        key = name, tuple(wrt), tuple(seeded)
        if key in self._pullbacks:
            return self._pullbacks[key]
        function = functions_by_name(self.module)[name]
        self._pullbacks[key] = self._names.fresh(f"{name}_pullback")
        copy = self._copy(function, self._pullbacks[key])
        copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _drop_updates(copy)
        block = copy.entry_block
        end = block.operations[len(block.operations) - 1]
        seeds = {i: block.add_argument(end.operands[i].type, end.location) for i in seeded}
        with ir.InsertionPoint(end), end.location:
            _finish(copy, self._gradients(copy, seeds, wrt))
        return self._pullbacks[key]

    def given(self, op: ir.OpView, name: str) -> str | None:
        """The function that the attribute `graph.gradient` of a called one names."""
        functions = functions_by_name(self.module)
        if name not in functions or GRADIENT not in functions[name].attributes:
            return None
        attribute = functions[name].attributes[GRADIENT]
        given = attribute.value if isinstance(attribute, ir.FlatSymbolRefAttr) else str(attribute)
        if given not in functions:
            raise PassFailure(
                op, f"calls '@{name}' with the gradient '{given}', which is not there"
            )
        return given

    def _copy(self, function: func.FuncOp, name: str) -> func.FuncOp:
        if len(function.body.blocks) != 1:
            raise PassFailure(
                function, "has several blocks; gradients are of structured control flow"
            )
        with ir.InsertionPoint.after(function):
            copy = function.operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        return copy

    def _gradients(
        self, function: func.FuncOp, seeds: dict[int, ir.Value], wrt: Sequence[int]
    ) -> list[ir.Value]:
        """Emits the reverse of a function's body in front of its end."""
        block = function.entry_block
        *ops, end = block.operations
        arguments = [block.arguments[i] for i in wrt]
        varied = set(arguments)
        vary(ops, varied)
        context = Context(self.pullback, self.given, FreshSymbols(function))
        reverse = Reverse(varied, context)
        for index, seed in seeds.items():
            reverse.add(end.operands[index], seed)
        reverse.run(ops)
        for op in reversed(context.replaced):
            safe_erase(op)
        return [_gradient(reverse, argument) for argument in arguments]


def _gradient(reverse: Reverse, argument: ir.Value) -> ir.Value:
    known = reverse.of(argument)
    if known is not None:
        return known
    try:
        return zeros_like(argument)
    except ShapeError as error:
        raise PassFailure(argument, f"has no gradient: {error}") from None


def _finish(function: func.FuncOp, results: Sequence[ir.Value]) -> None:
    """Returns values, and changes the function's type to theirs."""
    block = function.entry_block
    end = block.operations[len(block.operations) - 1]
    func.ReturnOp(list(results))
    end.operation.erase()
    types = [argument.type for argument in block.arguments], [value.type for value in results]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    _pad_attributes(function, "arg_attrs", len(types[0]))
    _pad_attributes(function, "res_attrs", len(types[1]))
    make_symbols_unique(function)


def _drop_updates(function: func.FuncOp) -> None:
    """Takes it that no argument is updated: what it was updated to is no result any more."""
    if "arg_attrs" in function.attributes:
        entries = map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"]))
        left = [{n.name: n.attr for n in entry if n.name != INOUT} for entry in entries]
        function.arg_attrs = [ir.DictAttr.get(entry) for entry in left]


def _pad_attributes(function: func.FuncOp, name: str, count: int) -> None:
    """Attributes of arguments or results, for as many as there are now."""
    if name in function.attributes:
        entries = list(ir.ArrayAttr(function.attributes[name]))[:count]
        entries += [ir.DictAttr.get({})] * (count - len(entries))
        function.attributes[name] = ir.ArrayAttr.get(entries)
