"""Products with weights of 4 bits: the built-in format, and a decoder that is written by hand.

Both read the same codes and scales. The decoder has two codes in a byte, along k of [n, k].
"""

from collections.abc import Sequence

import numpy as np


def module(m: str | int, n: int, k: int, by_hand: bool) -> str:
    """x[m, k] times the transpose of the decoded weights; "m" is a symbol."""
    dim, name = ("?", '"m"') if isinstance(m, str) else (m, m)
    x, y = (f"tensor<{dim}x{d}xf32, #graph.shape<[{name}, {d}]>>" for d in (k, n))
    w, s = f"tensor<{n}x{k // 2}xi8>", f"tensor<{n}x{k // 32}xf32>"
    if not by_hand:
        panels, blocks = n // 16, k // 32
        w, s = f"tensor<{panels}x{blocks}x4x16x4xi8>", f"tensor<{panels}x{blocks}x16xf16>"
    decoded = _BY_HAND if by_hand else _BUILT_IN
    types = f"!x = {x}\n!y = {y}\n!w = {w}\n!s = {s}\n!t = tensor<{k}x{n}xf32>\n"
    types += f"!d = tensor<{n}x{k}xf32>\n"
    return (
        types
        + (_DECODER if by_hand else "")
        + f"""
func.func @main(%x: !x, %w: !w, %s: !s) -> !y attributes {{graph.num_inputs = 1 : i64}} {{
  {decoded}
  %y = "graph.matmul"(%x, %t) : (!x, !t) -> !y
  return %y : !y
}}
"""
    )


def arguments(arrays: Sequence[np.ndarray], by_hand: bool) -> list[np.ndarray]:
    """The arguments for x, codes [n, k] and scales [n, k / 32]."""
    x, codes, scales = arrays
    n, k = codes.shape
    bits = codes.view(np.uint8)
    if by_hand:
        return [x, (bits[:, ::2] | bits[:, 1::2] << 4).view(np.int8), scales.astype(np.float32)]
    halves = bits.reshape(n // 16, 16, k // 32, 2, 4, 4).transpose(3, 0, 2, 4, 1, 5)
    by_panel = scales.reshape(n // 16, 16, k // 32).transpose(0, 2, 1)
    return [x, (halves[0] | halves[1] << 4).view(np.int8), np.ascontiguousarray(by_panel)]


_BUILT_IN = """%d = "graph.dequantize"(%w, %s) {
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, scheme = "q4_0"} : (!w, !s) -> !d
  %t = "graph.permute_dims"(%d) {axes = array<i64: 1, 0>} : (!d) -> !t"""
_BY_HAND = f"""%t = "graph.call_tir"(%w, %s) {{callee = @decode, sym_args = #graph.shape<[]>,
    operandSegmentSizes = array<i32: {", ".join("11" + "0" * 30)}>,
    resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}} : (!w, !s) -> !t"""
_DECODER = """
func.func private @decode(%w: !w, %s: !s, %out: !t) -> !t
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(k, j) -> (k, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%out : !t) {
  ^bb0(%old: f32):
    %k = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %at = arith.divui %k, %c2 : index
    %half = arith.remui %k, %c2 : index
    %block = arith.divui %k, %c32 : index
    %byte = tensor.extract %w[%j, %at] : !w
    %scale = tensor.extract %s[%j, %block] : !s
    %bits = arith.muli %half, %c4 : index
    %shift = arith.index_cast %bits : index to i8
    %both = arith.shrui %byte, %shift : i8
    %mask = arith.constant 15 : i8
    %code = arith.andi %both, %mask : i8
    %zero = arith.constant 8 : i8
    %difference = arith.subi %code, %zero : i8
    %float = arith.sitofp %difference : i8 to f32
    %value = arith.mulf %float, %scale : f32
    linalg.yield %value : f32
  } -> !t
  return %0 : !t
}
"""
