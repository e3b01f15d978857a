"""Writes what sees in a model as the text of a module with the one function `@main`."""

from collections.abc import Callable, Mapping, Sequence

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.llm.modules.nn import Module, Parameter, Scope

Inputs = Callable[[], Mapping[str, ir.Type]]
"""Types of the arguments by name; they are made within a context."""


def export_main(
    inputs: Inputs,
    body: Callable[..., ir.Value],
    model: Module | None = None,
    facts: Sequence[str] = (),
) -> str:
    """A function of `inputs`, then the parameters of `model`, whose result is that of `body`."""
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        given, parameters = inputs(), list[Parameter](model.parameters() if model else ())
        kinds = [TensorType.make(p.dims, p.element).to_mlir() for p in parameters]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([*given.values(), *kinds], []))
        names = [*given, *(p.name for p in parameters)]
        main.arg_attrs = [ir.DictAttr.get({"graph.name": ir.StringAttr.get(n)}) for n in names]
        if parameters:
            count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(given))
            main.attributes["graph.num_inputs"] = count
        main.attributes["graph.facts"] = ir.ArrayAttr.get([ir.StringAttr.get(f) for f in facts])
        arguments = list(main.add_entry_block().arguments)
        values = dict(zip(parameters, arguments[len(given) :]))
        with ir.InsertionPoint(main.entry_block), Scope(values):
            result = body(*arguments[: len(given)])
            func.ReturnOp([result])
        kind = ir.FunctionType.get([a.type for a in arguments], [result.type])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        return str(module)
