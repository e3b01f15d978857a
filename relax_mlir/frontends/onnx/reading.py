"""Reads models, and refuses what cannot be imported, all of it at once."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from relax_mlir.errors import ModelError

from .node import label_of, nodes_of
from .registry import find
from .weights import light_message

OLDEST, NEWEST = 1, 28
"""Versions of the opset that are supported."""

MOST = 10
"""Operators that an error lists."""


def read(model: "onnx.ModelProto | bytes | str | os.PathLike") -> "onnx.ModelProto":
    """A model of any of these; raises ModelError if it cannot be read.

    That of a file lacks large elements, which `Files` maps.
    """
    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        return onnx.load_model_from_string(light_message(Path(model)))
    except FileNotFoundError as error:
        raise ModelError(f"cannot read '{error.filename or model!s}': no such file") from None
    except Exception as error:  # protobuf's and onnx's errors have no common base
        raise ModelError(f"cannot read the model: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def check(model: "onnx.ModelProto") -> None:
    """Raises ModelError for what is not supported: all operators at once."""
    if not model.HasField("graph"):
        raise ModelError("has no graph: this is no ONNX model")
    _check_text(model)
    versions = {each.domain: each.version for each in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", OLDEST))
    if not OLDEST <= version <= NEWEST:
        raise ModelError(
            f"is of opset {version}, but versions {OLDEST} to {NEWEST} are supported; "
            "onnx.version_converter converts models"
        )
    functions = {(each.domain, each.name): each for each in model.functions}
    unknown: dict[str, None] = {}
    nodes = list(nodes_of(model.graph.node))
    for function in model.functions:
        own = {**versions, **{each.domain: each.version for each in function.opset_import}}
        _collect(list(nodes_of(function.node)), own, functions, unknown)
    _collect(nodes, versions, functions, unknown)
    if unknown:
        more = f", and {len(unknown) - MOST} more" if len(unknown) > MOST else ""
        raise ModelError(
            f"has operators that are not supported: {', '.join(list(unknown)[:MOST])}{more}"
        )


def _check_text(message: Any) -> None:
    """Raises ModelError for names that are not UTF-8 text, which protobuf gives as bytes."""
    for descriptor, value in message.ListFields():
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if descriptor.message_type is not None:
            for each in values:
                _check_text(each)
        elif descriptor.type == descriptor.TYPE_STRING and isinstance(value, bytes | Sequence):
            if isinstance(value, bytes) or not all(isinstance(each, str) for each in value):
                raise ModelError(f"has a {descriptor.name} that is not UTF-8 text")


def _collect(
    nodes: "list[tuple[int, onnx.NodeProto]]",
    versions: Mapping[str, int],
    functions: Mapping[tuple[str, str], "onnx.FunctionProto"],
    unknown: dict[str, None],
) -> None:
    for index, node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = versions.get(domain, versions.get("ai.onnx", 1) if not domain else 1)
        if (node.domain, node.op_type) in functions or find(domain, node.op_type, version):
            continue
        if _is_defined(domain, node.op_type, version):
            continue
        where = f"{domain}." if domain else ""
        unknown[f"{where}{node.op_type} ({label_of(node, index)})"] = None


def _is_defined(domain: str, name: str, version: int) -> bool:
    """Whether the standard defines an operator by others."""
    try:
        schema = onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function
