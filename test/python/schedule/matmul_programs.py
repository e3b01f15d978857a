"""Tensor programs that multiply matrices, as text, and a way to schedule, build and call them."""

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.codegen import building
from relax_mlir.dialects import make_context
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.product import matmul
from relax_mlir.target import Target

NATIVE = Target.parse("native")
AVX2 = Target.parse("x86-64-v3")
MULTIPLY_ADD = """
    ^bb0(%a: f32, %b: f32, %s: f32):
      %ab = arith.mulf %a, %b : f32
      %sum = arith.addf %s, %ab : f32
      linalg.yield %sum : f32"""


def tensor(*dims: int | None, element: str = "f32") -> str:
    """The type of a tensor; None is a dynamic extent."""
    extents = "".join("?x" if extent is None else f"{extent}x" for extent in dims)
    return f"tensor<{extents}{element}>"


def generic(
    result: str,
    loops: str,
    operands: list[tuple[str, str, str]],
    out: tuple[str, str, str],
    body: str,
    reductions: str = "",
) -> str:
    """A `linalg.generic`; operands and `out` are (value, indices, type), loops are letters."""
    maps = [f"affine_map<({','.join(loops)}) -> ({at})>" for _, at, _ in [*operands, out]]
    kinds = ", ".join('"reduction"' if loop in reductions else '"parallel"' for loop in loops)
    ins = f"ins({', '.join(o[0] for o in operands)} : {', '.join(o[2] for o in operands)}) "
    return f"""
  {result} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{kinds}]}}
    {ins if operands else ""}outs({out[0]} : {out[2]}) {{{body}
  }} -> {out[2]}"""


def product(
    result: str, loops: str, a: tuple, b: tuple, out: tuple, body: str = MULTIPLY_ADD
) -> str:
    """The contraction over k of two operands; operands as for `generic`."""
    name, _, kind = out
    return f"""
  {result}_zero = arith.constant 0.0 : f32
  {result}_init = linalg.fill ins({result}_zero : f32) outs({name} : {kind}) -> {kind}""" + generic(
        result, loops, [a, b], (f"{result}_init", out[1], kind), body, "k"
    )


def function(arguments: list[tuple[str, str]], outs: int, body: str, returned: str) -> str:
    """The tensor program `k`; the last `outs` arguments are its outputs."""
    kinds = ", ".join(kind for _, kind in arguments[len(arguments) - outs :])
    signature = ", ".join(f"{name}: {kind}" for name, kind in arguments)
    return f"""func.func @k({signature}) -> ({kinds})
    attributes {{tir.prim_func, tir.num_outs = {outs} : i64}} {{{body}
  return {returned} : {kinds}
}}"""


def schedule(text: str, target: Target = NATIVE) -> str | None:
    """The text of the scheduled module, or None if the rule does not take it."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            if not matmul.schedule(PrimFunc(module.body.operations[0]), target.host, True):
                return None
        except Refusal:
            return None
        module.operation.verify()
        return str(module)


class Kernel:
    """A tensor program, scheduled by the rule and built."""

    def __init__(self, text: str, target: Target = NATIVE) -> None:
        scheduled = schedule(text, target)
        assert scheduled is not None, "the rule does not take this program"
        with make_context(), ir.Location.unknown():
            self.library = build(ir.Module.parse(scheduled), target)

    def __call__(self, *arrays: np.ndarray) -> None:
        """Calls the kernel with contiguous arrays, outputs last."""
        call(self.library, *arrays)


def build(module: ir.Module, target: Target = NATIVE) -> ctypes.CDLL:
    """The scheduled module, whose kernel is `k`, built and loaded."""
    with building(target) as made:
        data = b"".join(made.finish(module, ["k"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.so")
        path.write_bytes(data)
        library = ctypes.CDLL(str(path))
    library.k.restype = None
    return library


def call(library: ctypes.CDLL, *arrays: np.ndarray) -> None:
    """Calls `k` with contiguous arrays."""
    flat: list[object] = []
    for array in arrays:
        assert array.flags.c_contiguous
        strides = [stride // array.itemsize for stride in array.strides]
        pointer = ctypes.c_void_p(array.ctypes.data)
        flat += [pointer, pointer, *map(ctypes.c_int64, [0, *array.shape, *strides])]
    library.k(*flat)


def pack(weights: np.ndarray, columns: int) -> np.ndarray:
    """Weights [n, k] as panels [ceil(n / columns), k, columns], zero after the last row."""
    n, k = weights.shape
    panels = -(-n // columns)
    padded = np.zeros((panels * columns, k), weights.dtype)
    padded[:n] = weights
    return np.ascontiguousarray(padded.reshape(panels, columns, k).transpose(0, 2, 1))
