"""The metadata in a compiled module, as JSON."""

import json
from collections import Counter
from collections.abc import Sequence

from relax_mlir.analysis.devices import device_of_argument, host_results
from relax_mlir.analysis.functions import (
    MADE_BY,
    MADE_FROM,
    OPTIONAL,
    PRESENCE,
    argument_attribute,
    argument_name,
    facts_of,
    host_object_results,
    inout_arguments,
    is_host_object,
    is_public,
)
from relax_mlir.analysis.recursion import Recursion
from relax_mlir.analysis.trees import ARGUMENT_TREE, RESULT_TREE, trees_on
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    ShapeValueType,
    TensorType,
    shape_value_dims,
)
from relax_mlir.dialects.lib import HOST_OPERANDS, FunctionOp
from relax_mlir.rewriting import walk_ops
from relax_mlir.runtime.objects import KIND
from relax_mlir.target import Target
from relax_mlir.target.device import HOST, displayed_devices

from .library import slot_name
from .scalars import scalar_type
from .sites import Site, Sites


def metadata_text(
    block: ir.Block,
    functions: Sequence[func.FuncOp],
    kernels: Sequence[str],
    libraries: Sequence[FunctionOp],
    target: Target,
    recursion: Recursion,
) -> str:
    """Describes functions (arguments, results, facts, calls), kernels and libraries of a module."""
    public = [function for function in functions if is_public(function)]
    sites = Sites(block, recursion)
    return json.dumps(
        {
            "functions": {f.name.value: _function(f, sites.of(f)) for f in public},
            "kernels": list(kernels),
            "libraries": [_library(library) for library in libraries],
            "target": target.name,
            "devices": displayed_devices(target.devices),
            "needs": list(target.host.needs),
        }
    )


def _function(function: func.FuncOp, sites: Sequence[Site]) -> dict:
    inout = inout_arguments(function)
    aliased = set(inout.values())
    arguments = []
    for index, argument in enumerate(function.arguments):
        described = _value(argument.type, is_host_object(function, index))
        described |= {"name": argument_name(function, index), "inout": index in aliased}
        if described["kind"] == "tensor" and device_of_argument(function, index) == HOST:
            described["on_host"] = True
        for key, name in (("optional", OPTIONAL), ("presence", PRESENCE)):
            if argument_attribute(function, index, name) is not None:
                described[key] = True
        arguments.append(described | _origin(function, index))
    objects = host_object_results(function)
    results = [
        {**_value(type_, index in objects), "alias": inout.get(index)}
        for index, type_ in enumerate(function.type.results)
    ]
    for index in host_results(function):
        if results[index]["kind"] == "tensor":
            results[index]["on_host"] = True
    return {
        "arguments": arguments,
        "results": results,
        "argument_tree": trees_on(function, ARGUMENT_TREE),
        "result_tree": trees_on(function, RESULT_TREE),
        "facts": [str(fact) for fact in facts_of(function)],
        "calls": dict(Counter(site.kernel for site in sites)),
        "sites": [site.described() for site in sites],
        "arena_bytes": [str(op.bytes) for op in walk_ops(function, AllocStorageOp)],
    }


def _origin(function: func.FuncOp, index: int) -> dict:
    """The origin of a parameter: the function that makes it, and the original parameters."""
    sources = argument_attribute(function, index, MADE_FROM)
    if sources is None:
        return {}
    maker = argument_attribute(function, index, MADE_BY)
    by = None if maker is None else ir.StringAttr(maker).value
    return {"made": {"by": by, "from": list(ir.DenseI64ArrayAttr(sources))}}


def _value(type_: ir.Type, is_object: bool) -> dict:
    if isinstance(type_, ShapeValueType):
        return {"kind": "shape", "dtype": "i64", "dims": _dims(shape_value_dims(type_))}
    if scalar_type(type_) is not None:
        return {"kind": "scalar", "dtype": str(type_), "dims": []}
    tensor = TensorType.of(type_)
    kind = KIND if is_object else "tensor"
    return {"kind": kind, "dtype": str(tensor.element), "dims": _dims(tensor.dims)}


def _dims(dims) -> list | None:
    if dims is None:
        return None
    return [None if d is None else str(d) if d.value is None else d.value for d in dims]


def _library(library: FunctionOp) -> dict:
    return {
        "function": library.sym_name.value,
        "slot": slot_name(library.sym_name.value),
        "c_symbol": library.c_symbol.value,
        "has_objects": HOST_OPERANDS in library.attributes,
        "providers": [provider.value for provider in library.libraries],
    }
