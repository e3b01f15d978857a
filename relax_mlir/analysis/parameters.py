"""Values of arguments, by name, written on them: `relax-bind-params` makes them constants."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_mlir.bindings import func, ir
from relax_mlir.data import attribute_of, dtype_of
from relax_mlir.errors import UsageError
from relax_mlir.runtime.tensors import dtype_name

from .functions import VALUE, argument_name, graph_functions, is_public


def as_arrays(parameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The values as arrays: NumPy's, those of DLPack, numbers; raises UsageError for others."""
    return {name: _as_array(name, value) for name, value in parameters.items()}


def _as_array(name: str, value: Any) -> np.ndarray:
    try:
        has_dlpack = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
        array = np.from_dlpack(value) if has_dlpack else np.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise UsageError(f"parameter '{name}' is no array: {error}") from None
    if array.dtype.kind in "OSUMmc" or not array.dtype.isnative:
        raise UsageError(f"parameter '{name}' has dtype {array.dtype}, which no tensor has")
    return np.require(array, requirements="C")


def give_values(module: ir.Module, parameters: Mapping[str, np.ndarray]) -> None:
    """Writes the values on the arguments of those names, of each function that is called by users.

    Raises UsageError if no function has an argument of a name, or one of other elements.
    """
    if not parameters:
        return
    functions = [f for f in graph_functions(module.operation) if is_public(f)]
    used: set[str] = set()
    for function in functions:
        entries = _entries(function)
        for index, entry in enumerate(entries):
            name = argument_name(function, index)
            if name in parameters:
                used.add(name)
                entry[VALUE] = _value(function, index, name, parameters[name])
        if entries:
            function.arg_attrs = [ir.DictAttr.get(entry) for entry in entries]
    for name in parameters:
        if name not in used:
            known = dict.fromkeys(
                f"'{argument_name(f, i)}'" for f in functions for i in range(len(f.arguments))
            )
            raise UsageError(
                f"no argument is called '{name}'; there are {', '.join(known) or 'none'}"
            )


def _entries(function: func.FuncOp) -> list[dict[str, ir.Attribute]]:
    """The attributes of each argument."""
    if "arg_attrs" not in function.attributes:
        return [{} for _ in function.arguments]
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes["arg_attrs"])]
    return [{each.name: each.attr for each in entry} for entry in entries]


def _value(function: func.FuncOp, index: int, name: str, array: np.ndarray) -> ir.Attribute:
    type_ = function.arguments[index].type
    where = f"argument {index} '{name}' of '@{function.name.value}'"
    if not isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        raise UsageError(f"{where} is no tensor, so it has no value that is an array")
    element = ir.ShapedType(type_).element_type
    expected = dtype_name(str(element)) or dtype_of(element).name
    if array.dtype.name not in (expected, dtype_of(element).name):
        raise UsageError(f"{where} has elements of {expected}, but its value of {array.dtype}")
    return attribute_of(ir.RankedTensorType.get(array.shape, element), array)
