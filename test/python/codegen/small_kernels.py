"""Builds MLIR text into a shared object and calls its functions with NumPy arrays."""

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.codegen import BuildStats, building
from relax_mlir.dialects import make_context
from relax_mlir.target import Target, lacking

NATIVE = Target.parse("native")
RUNNABLE = [
    name
    for name in ("native", "x86-64", "x86-64-v3", "x86-64-v4", "aarch64")
    if Target.parse(name).host.arch == NATIVE.host.arch
    and not lacking(Target.parse(name).host.needs)
]
"""Targets whose code this machine runs."""


def build(
    text: str,
    *exports: str,
    target: Target = NATIVE,
    opt_level: int = 3,
    stats: BuildStats | None = None,
) -> ctypes.CDLL:
    """The library of the module's functions, loaded."""
    with make_context(), ir.Location.unknown():
        with building(target, opt_level, stats) as made:
            data = b"".join(made.finish(ir.Module.parse(text), exports))
    return load(data)


def load(data: bytes) -> ctypes.CDLL:
    """The bytes of a shared object, loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "built.so")
        path.write_bytes(data)
        return ctypes.CDLL(str(path))


def call(function: object, *arguments: object) -> None:
    """Calls a function of memrefs, indices and f32 scalars, as MLIR passes them."""
    flat: list[object] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            pointer = ctypes.c_void_p(argument.ctypes.data)
            strides = [stride // argument.itemsize for stride in argument.strides]
            numbers = [0, *argument.shape, *strides]
            flat += [pointer, pointer, *map(ctypes.c_int64, numbers)]
        elif isinstance(argument, int):
            flat.append(ctypes.c_int64(argument))
        else:
            flat.append(ctypes.c_float(argument))
    function.restype = None
    function(*flat)
