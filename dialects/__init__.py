"""The dialects of the compiler, and the contexts that hold them.

`graph` is the computational graph, `tir` the loop-level tensor programs, `lib` the external
libraries; all three live in one module (paper §3).
"""

import threading

from relax_mlir.bindings import ext, ir

from .graph import Graph
from .lib import Lib
from .tir import Tir

ALL = (Graph, Tir, Lib)
"""Every dialect, in load order."""

_LOADING = threading.Lock()
_texts: dict[tuple[type[ext.Dialect], int], str] = {}
"""What dialects with that many ops were loaded from, as IRDL."""


def make_context() -> ir.Context:
    """Creates a context with every dialect loaded.

    Contexts are cheap (milliseconds) and keep each attribute alive until they die: use one per
    compilation. Multithreading stays off, since pool threads would wait for Python's lock.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    # The bindings read shared class attributes while loading, so two threads must not load at once.
    with _LOADING, context, ir.Location.unknown():
        for dialect in ALL:
            _load(dialect)
    return context


def _load(dialect: type[ext.Dialect]) -> None:
    """Loads a dialect into the current context.

    From the second time on that is from its text, which is sooner read than built op by op.
    """
    key = dialect, len(dialect.operations)
    if key in _texts:
        dialect._emit_module = lambda: ir.Module.parse(_texts[key])
    try:
        dialect.load()
        if key not in _texts:
            _texts[key] = str(dialect._mlir_module)
    finally:
        dialect._mlir_module = None  # would keep the context alive for ever
        if "_emit_module" in vars(dialect):
            del dialect._emit_module  # the inherited one shows again


def irdl_text(dialect: type[ext.Dialect]) -> str:
    """Returns the dialect's definition as IRDL, which a stock `mlir-opt --irdl-file` reads."""
    with _LOADING, ir.Context(), ir.Location.unknown():
        return str(dialect._emit_module())
