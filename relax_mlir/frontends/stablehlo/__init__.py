"""Imports modules of StableHLO, as JAX, TensorFlow and PyTorch/XLA write them.

    imported = from_stablehlo("model.stablehlo.mlir")
    model = relax_mlir.compile(imported)

Dims that run time says are symbols; shape arithmetic is evaluated on expressions.
"""

import os
from collections.abc import Mapping, Sequence

from relax_mlir.bindings import ir, stablehlo
from relax_mlir.dialects import make_context
from relax_mlir.source import Imported

from . import operators  # noqa: F401  # registers them
from .importer import Importer, Shapes
from .reading import read


def from_stablehlo(
    source: "str | bytes | os.PathLike",
    dims: Mapping[str, int | str] | None = None,
    facts: Sequence[str] = (),
    shapes: Shapes = (),
    trusted: bool = False,
) -> Imported:
    """Imports a module: text, bytecode, a portable artifact, or the path of a file of these.

    Dim 1 of argument 0 is the symbol `arg0_1`, if it is not a constant; `dims` gives such ones
    other names, or values: {"arg0_1": "n"}. `shapes` has dims for each argument, as expressions:
    [["b", 4], ["2*b"]]. `facts` are what may be assumed, such as "n <= 64", and is checked at each
    call. A complex tensor is one of floats with both parts along a last dim. Bytes that are
    `trusted` are read without a child process, which damaged ones would crash.

    Raises CompileError, located in the source, for what is wrong or not supported; UsageError for
    a file that cannot be read.
    """
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True  # which are refused by name
        stablehlo.load(context)
        module, file = read(source, trusted)
    importer = Importer(module, file, dims or {})
    with make_context(), ir.Location.unknown():
        return importer.run(shapes, facts)
