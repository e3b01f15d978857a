"""This compiler: one executable for all sizes of a kernel, or one for exactly the case's sizes."""

from functools import cache

import cases
import numpy as np
from worker import Prepared

import relax_mlir

from . import four_bits

_ROWS = {
    "softmax": ('"graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x', ()),
    "softmax_of_columns": ('"graph.nn_softmax"(%x) {axis = 0 : i64} : (!x) -> !x', ()),
    "rms_norm": (
        f'"graph.nn_rms_norm"(%x, %w) {{epsilon = {cases.EPSILON:.1e} : f64}} : (!x, !w) -> !x',
        ("w",),
    ),
    "layer_norm": (
        f'"graph.nn_layer_norm"(%x, %w, %b) {{epsilon = {cases.EPSILON:.1e} : f64}}'
        " : (!x, !w, !w) -> !x",
        ("w", "b"),
    ),
    "gelu": ('"graph.nn_gelu_tanh"(%x) : (!x) -> !x', ()),
    "sum_of_columns": ('"graph.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (!x) -> !n', ()),
    "sum_of_rows": ('"graph.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (!x) -> !m', ()),
    "argmax": ('"graph.argmax"(%x) {axis = 1 : i64, keepdims = false} : (!x) -> !i', ()),
    "transpose": ('"graph.permute_dims"(%x) {axes = array<i64: 1, 0>} : (!x) -> !t', ()),
}
_RESULTS = {"sum_of_columns": "!n", "sum_of_rows": "!m", "argmax": "!i", "transpose": "!t"}


class Kernels:
    """Every extent that is not a weight's is a symbol: one compilation for all of them.

    A case with `specialised` has static extents instead of symbols, and the arrays of the case
    before it.
    """

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._compile = cache(lambda text: relax_mlir.compile(text, opt_level=3))
        self._arrays: list[np.ndarray] = []
        self._out = np.empty(0)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        is_dynamic = not case.get("specialised")
        executable = self._compile((_matmul if "k" in case else _rows)(case, is_dynamic))
        executable.threads = self._threads
        main = executable["main"]
        if is_dynamic:
            self._arrays = _arguments(case)
            if "main_params" in executable.functions:
                packed = executable["main_params"](*self._arrays[1:])
                self._arrays[1:] = packed if isinstance(packed, tuple) else (packed,)
            self._out = cases.empty(_result_shape(case), _result_type(main.results[0].dtype))
        call = main.bind(*self._arrays, results=[self._out])
        if case["dtype"] != "bf16":
            return Prepared(lambda: [call.run()])
        return Prepared(lambda: [call.run()], finish=cases.from_bf16_bits)


def _tensor(dims: tuple[str | int, ...], element: str) -> str:
    """A tensor type; names are symbols."""
    shape = "x".join("?" if isinstance(dim, str) else str(dim) for dim in dims)
    names = ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims)
    known = all(isinstance(dim, int) for dim in dims)
    return f"tensor<{shape}x{element}{'' if known else f', #graph.shape<[{names}]>'}>"


def _rows(case: dict, is_dynamic: bool) -> str:
    kernel = case["kernel"]
    has_weights = kernel in ("rms_norm", "layer_norm")
    m = "m" if is_dynamic else case["m"]
    n = "n" if is_dynamic and not has_weights else case["n"]
    aliases = {
        "x": _tensor((m, n), "f32"), "t": _tensor((n, m), "f32"), "w": _tensor((n,), "f32"),
        "m": _tensor((m,), "f32"), "n": _tensor((n,), "f32"), "i": _tensor((m,), "i64"),
    }  # fmt: skip
    types = "".join(f"!{name} = {kind}\n" for name, kind in aliases.items())
    result = _RESULTS.get(kernel, "!x")
    if kernel == "eltwise":
        arguments = "%x: !x, %u: !x"
        body = """
  %h = arith.constant dense<0.5> : tensor<f32>
  %s = "graph.nn_silu"(%x) : (!x) -> !x
  %g = "graph.multiply"(%s, %u) : (!x, !x) -> !x
  %a = "graph.multiply"(%x, %h) : (!x, tensor<f32>) -> !x
  %y = "graph.add"(%g, %a) : (!x, !x) -> !x"""
    else:
        operation, weights = _ROWS[kernel]
        arguments = ", ".join(["%x: !x", *(f"%{name}: !w" for name in weights)])
        body = f"\n  %y = {operation}"
    return f"{types}func.func @main({arguments}) -> {result} {{{body}\n  return %y : {result}\n}}\n"


def _matmul(case: dict, is_dynamic: bool) -> str:
    m, n, k, dtype = "m" if is_dynamic else case["m"], case["n"], case["k"], case["dtype"]
    if dtype == "q8_0":
        return _quantised(m, n, k)
    if dtype.startswith("q4"):
        return four_bits.module(m, n, k, by_hand=dtype == "q4_by_hand")
    given = {"f32": "f32", "bf16": "bf16", "int8": "i8"}[dtype]
    compute = {"f32": "f32", "bf16": "f32", "int8": "i32"}[dtype]
    out = {"f32": "f32", "bf16": "bf16", "int8": "i32"}[dtype]
    widen = given != compute
    narrow = out != compute
    casts = (
        f"""
  %v = "graph.astype"(%x) {{dtype = {compute}}} : (!x) -> !v
  %u = "graph.astype"(%w) {{dtype = {compute}}} : (!w) -> !u"""
        if widen
        else ""
    )
    left, right = ("%v", "%u") if widen else ("%x", "%w")
    last = '\n  %y = "graph.astype"(%z) {dtype = bf16} : (!z) -> !y' if narrow else ""
    return f"""
!x = {_tensor((m, k), given)}
!v = {_tensor((m, k), compute)}
!w = {_tensor((n, k), given)}
!u = {_tensor((n, k), compute)}
!t = {_tensor((k, n), compute)}
!z = {_tensor((m, n), compute)}
!y = {_tensor((m, n), out)}
func.func @main(%x: !x, %w: !w) -> !y attributes {{graph.num_inputs = 1 : i64}} {{{casts}
  %t = "graph.permute_dims"({right}) {{axes = array<i64: 1, 0>}} : (!u) -> !t
  %{"z" if narrow else "y"} = "graph.matmul"({left}, %t) : (!v, !t) -> !z{last}
  return %y : !y
}}
"""


def _quantised(m: str | int, n: int, k: int) -> str:
    panels, blocks = n // 16, k // 32
    return f"""
!x = {_tensor((m, k), "f32")}
!q = {_tensor((m, k), "i8")}
!s = {_tensor((m, blocks), "f32")}
!d = tensor<{panels}x{blocks}x2x4x16x4xi8>
!f = tensor<{panels}x{blocks}x16xf16>
!w = tensor<{n}x{k}xf32>
!t = tensor<{k}x{n}xf32>
!y = {_tensor((m, n), "f32")}
func.func @main(%x: !x, %d: !d, %f: !f) -> !y attributes {{graph.num_inputs = 1 : i64}} {{
  %q, %s, %o = "graph.quantize_blocks"(%x) {{symmetric = false}} : (!x) -> (!q, !s, !s)
  %v = "graph.dequantize_blocks"(%q, %s, %o) {{
    operandSegmentSizes = array<i32: 1, 1, 1>}} : (!q, !s, !s) -> !x
  %w = "graph.dequantize"(%d, %f) {{
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, scheme = "q8_0"}} : (!d, !f) -> !w
  %t = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : (!w) -> !t
  %y = "graph.matmul"(%v, %t) : (!x, !t) -> !y
  return %y : !y
}}
"""


def _arguments(case: dict) -> list[np.ndarray]:
    arrays = cases.inputs(case)
    if case["dtype"] == "bf16":
        return [cases.bf16_bits(x) for x in arrays]
    if case["dtype"].startswith("q4"):
        return four_bits.arguments(arrays, by_hand=case["dtype"] == "q4_by_hand")
    if case["dtype"] != "q8_0":
        return arrays
    x, w, scales = arrays
    n, k = w.shape
    data = w.reshape(n // 16, 16, k // 32, 2, 4, 4).transpose(0, 2, 3, 4, 1, 5)
    by_panel = scales.reshape(n // 16, 16, k // 32).transpose(0, 2, 1)
    return [x, np.ascontiguousarray(data), np.ascontiguousarray(by_panel)]


def _result_shape(case: dict) -> tuple[int, ...]:
    m, n = case["m"], case["n"]
    shapes = {"sum_of_columns": (n,), "sum_of_rows": (m,), "argmax": (m,), "transpose": (n, m)}
    return shapes.get(case["kernel"], (m, n))


def _result_type(dtype: str) -> str:
    return {"bf16": "uint16", "f32": "float32", "i32": "int32", "i64": "int64"}[dtype]
