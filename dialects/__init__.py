"""The dialects of the compiler, and the contexts that hold them.

`graph` is the computational graph, `tir` the loop-level tensor programs, `lib` the external
libraries; all three live in one module (paper §3).
"""

import threading
from collections.abc import Sequence

from relax_mlir.bindings import ext, ir, irdl
from relax_mlir.errors import UsageError
from relax_mlir.extensions import is_part, load

from .graph import Graph
from .lib import Lib
from .tir import Tir

ALL = (Graph, Tir, Lib)
"""Every dialect, in load order."""

UPSTREAM = (
    "affine", "arith", "bufferization", "cf", "func", "index", "irdl", "linalg", "llvm", "math",
    "memref", "scf", "tensor", "ub", "vector",
)  # fmt: skip
"""The dialects of MLIR that the compiler makes ops and attributes of."""

_LOADING = threading.Lock()
_texts: dict[tuple[type[ext.Dialect], int], str] = {}
"""What dialects with that many ops were loaded from, as IRDL."""


def make_context(upstream: Sequence[str] | None = UPSTREAM) -> ir.Context:
    """Creates a context with every dialect loaded, and those of MLIR that are named; None: all.

    Others are loaded as soon as text with ops of them is parsed, or a pass of MLIR makes some; to
    make them in Python, ask for them first: `context.dialects["gpu"]`.

    Contexts are cheap (milliseconds, twice as many with all of MLIR) and keep each attribute
    alive until they die: use one per compilation. Multithreading stays off, since pool threads
    would wait for Python's lock.
    """
    context = ir.Context(load_on_create_dialects=upstream)
    context.enable_multithreading(False)
    # The bindings read shared class attributes while loading, so two threads must not load at once.
    with _LOADING, context, ir.Location.unknown():
        for dialect in ALL:
            _load(dialect)
    return context


def _load(dialect: type[ext.Dialect]) -> None:
    """Loads a dialect into the current context."""
    key = dialect, len(dialect.operations)
    if key in _texts:
        _load_text(dialect, _texts[key])
        return
    try:
        dialect.load()
        _texts[key] = str(dialect._mlir_module)
    finally:
        dialect._mlir_module = None  # would keep the context alive for ever


def _load_text(dialect: type[ext.Dialect], text: str) -> None:
    """Loads a dialect that another context has had: what is the same in all contexts is done."""
    irdl.load_dialects(ir.Module.parse(text))
    for op in dialect.operations:
        op._attach_traits()
    casters = [(ir.DynamicType.lookup_typeid(kind.type_name), kind) for kind in dialect.types]
    casters += [(ir.DynamicAttr.lookup_typeid(kind.attr_name), kind) for kind in dialect.attributes]
    for type_id, kind in casters:
        ext._cext.register_type_caster(type_id, replace=True)(kind)


def load_operators(source: str) -> list[str]:
    """Makes the operators of a Python file, or of a module or package by its name, known.

    Returns their names. Raises UsageError if there is no such file or module, or no op in it.
    """
    loaded = load(source)
    ops = [op for dialect in ALL for op in dialect.operations if is_part(op.__module__, of=loaded)]
    if not ops:
        raise UsageError(f"cannot load operators from '{source}': it declares none")
    return [op.OPERATION_NAME for op in ops]


def operator_modules() -> set[str]:
    """The names of the Python modules that declare ops of these dialects."""
    return {op.__module__ for dialect in ALL for op in dialect.operations}


def irdl_text(dialect: type[ext.Dialect]) -> str:
    """Returns the dialect's definition as IRDL, which a stock `mlir-opt --irdl-file` reads."""
    with _LOADING, ir.Context(), ir.Location.unknown():
        return str(dialect._emit_module())
