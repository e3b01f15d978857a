"""Prints what decompositions become: one function for each line `// DECOMPOSE:` of a test.

// DECOMPOSE: @pair(x: f32[n, 4], y: f32[4]) = einsum("ij,j->i", x, y)
"""

import re
import sys
from pathlib import Path

from relax_mlir import decompositions
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context

LINE = re.compile(r"// DECOMPOSE: @(\w+)\((.*?)\) = (.*)")
ARGUMENT = re.compile(r"(\w+): (\w+)\[(.*?)\]")


def add_function(module: ir.Module, name: str, arguments: str, expression: str) -> None:
    """Adds a function that returns what an expression over its arguments builds."""
    names, types = [], []
    for argument, element, dims in ARGUMENT.findall(arguments):
        extents = [int(dim) if dim.isdigit() else dim for dim in dims.split(", ") if dim]
        names.append(argument)
        types.append(graph.TensorType.make(extents, ir.Type.parse(element)).to_mlir())
    with ir.InsertionPoint(module.body):
        function = func.FuncOp(name, (types, []))
        block = function.add_entry_block()
    with ir.InsertionPoint(block):
        values = dict(zip(names, block.arguments))
        built = eval(expression, vars(decompositions) | {"ir": ir} | values)
        results = [built] if isinstance(built, ir.Value) else list(built)
        func.ReturnOp(results)
    outs = [value.type for value in results]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, outs))


with make_context(), ir.Location.unknown():
    module = ir.Module.create()
    for found in LINE.findall(Path(sys.argv[1]).read_text(encoding="utf-8")):
        add_function(module, *found)
    print(module)
