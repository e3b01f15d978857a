"""Dialects that are not MLIR's: they are known to a context as soon as a source has them."""

import re

from torch_mlir import ir

_IN_TEXT = re.compile(r"(?<![\w.#@%^$])!?torch\.[a-z]")
_IN_BYTECODE = re.compile(rb"\0torch\0")


def register_used(source: str | bytes) -> None:
    """Makes PyTorch's dialect known to the current context if text or bytecode may have it."""
    pattern = _IN_TEXT if isinstance(source, str) else _IN_BYTECODE
    if pattern.search(source):  # type: ignore[arg-type]  # a pattern of its kind
        from torch_mlir._mlir_libs import _torchMlir  # takes a while

        _torchMlir.register_dialect(ir.Context.current)
