"""Modules as the entry points accept them: a module, its text, or the path of a file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.data import Blob, with_data, without_data
from relax_mlir.diagnostics import Diagnostic, compile_error, parse_module
from relax_mlir.errors import UsageError

MODELS = {
    ".onnx": "an ONNX model; relax_mlir.frontends.onnx.from_onnx takes it",
    ".stablehlo": "StableHLO; relax_mlir.frontends.stablehlo.from_stablehlo takes it",
    ".pb": "a TensorFlow model",
    ".tflite": "a TensorFlow Lite model",
    ".pt": "a PyTorch model",
    ".pth": "a PyTorch model",
    ".pt2": "a PyTorch program",
    ".gguf": "a language model; relax_mlir.llm.load takes it",
    ".safetensors": "a file of weights",
}
"""Files that are not modules, by suffix."""


@dataclass(frozen=True)
class Source:
    """The text of a module and its name in diagnostics.

    `blobs` are the large constants, which the text omits.
    """

    text: str
    name: str
    blobs: tuple[Blob, ...] = ()

    @property
    def key(self) -> str:
        """The part of the cache key that depends on the source: text and large constants."""
        return "\0".join([self.text, *(blob.name for blob in self.blobs)])

    def parse(self) -> ir.Module:
        """The module, in the current context.

        Raises CompileError, with located diagnostics, if the text does not parse or verify.
        """
        module = parse_module(self.text)
        with_data(module, self.blobs)
        return module


@dataclass(frozen=True)
class Imported:
    """A model of another framework, as an importer returns it; `relax_mlir.compile` takes it.

    `parameters` are values for arguments of `@main`, by their names, which compilation makes
    constants; they are never printed. `inputs` and `outputs` name the other arguments, and the
    results, in order. `state` are the values with which inputs begin that the model updates.
    """

    module: ir.Module
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)


def read_source(source: "Source | Imported | ir.Module | str | os.PathLike") -> Source:
    """Returns the text of a module in any of the accepted forms.

    A string is a path if it has one line and ends in `.mlir` or as a file of another kind, text
    otherwise. Large constants of a module are not printed to the text; the text of a model that was
    imported has the names of its nodes. Raises UsageError if the
    file cannot be read or is of another kind, CompileError if constants have no data.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, Imported | ir.Module):
        module = source.module if isinstance(source, Imported) else source
        try:
            text, blobs = without_data(module, locations=isinstance(source, Imported))
        except ValueError as error:
            raise compile_error([Diagnostic("error", f"a constant {error}")]) from None
        return Source(text, "module", blobs)
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"cannot compile an object of type {type(source).__name__}; expects an ir.Module, MLIR "
            "text, or the path of a file of it"
        )
    suffix = Path(str(source).strip()).suffix.lower() if _is_path(source) else ""
    if suffix in MODELS:
        raise UsageError(f"cannot read '{source}': it is {MODELS[suffix]}, not MLIR")
    if isinstance(source, str) and suffix != ".mlir":
        return Source(source, "text")
    try:
        return Source(Path(source).read_text(), str(source))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"cannot read '{source}': {reason}") from None


def _is_path(source: "str | os.PathLike") -> bool:
    """Whether the source may be a path: MLIR text has several lines or other characters."""
    return not isinstance(source, str) or ("\n" not in source.strip() and len(source) < 4096)
