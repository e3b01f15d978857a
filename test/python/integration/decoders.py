"""Decoders of packed weights as users write them, with a product, and what they compute."""

import numpy as np

from relax_mlir.testing import decoders
from relax_mlir.testing.decoders import WIDTHS

_UNSIGNED = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32}


class Decoder(decoders.Decoder):
    """What it computes, in NumPy, and a product with it."""

    def arrays(self, k: int, n: int, generator: np.random.Generator) -> list[np.ndarray]:
        """Random words and scales."""
        words, scales = self.packed(k, n)
        unsigned = _UNSIGNED[self.word]
        bits = generator.integers(0, np.iinfo(unsigned).max, words, unsigned, endpoint=True)
        signed = bits.view(f"int{WIDTHS[self.word]}")
        return [signed, generator.standard_normal(scales, dtype=np.float32)]

    def decoded(self, k: int, n: int, words: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The matrix [k, n] in float64."""
        length, slots = k if self.along_k else n, np.arange(self.per_word)
        shifts = self.bits * (slots[::-1] if self.highest_first else slots)
        bits = words.view(_UNSIGNED[self.word]).astype(np.int64)
        codes = (bits[:, :, None] >> shifts) & ((1 << self.bits) - 1)
        numbers = codes.reshape(len(words), -1)[:, :length] - (1 << self.bits - 1)
        matrix = numbers * np.repeat(scales.astype(np.float64), self.group, 1)[:, :length]
        return matrix.T if self.along_k else matrix

    def module(self, k: int, n: int, rows: str = "m", relu: bool = False) -> str:
        """x[rows, k] times the decoded matrix; "m" is a symbol."""
        words, scales = ("x".join(map(str, shape)) for shape in self.packed(k, n))
        w, s, matrix = f"tensor<{words}x{self.word}>", f"tensor<{scales}xf32>", f"{k}x{n}xf32"
        x, y = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, n))
        if rows != "m":
            x, y = (f"tensor<{rows}x{d}xf32>" for d in (k, n))
        last = f'\n  %2 = "graph.nn_relu"(%1) : ({y}) -> {y}' if relu else ""
        slots = ", ".join("11" + "0" * 30)
        return f"""
{self.program("decode", k, n)}
func.func @main(%x: {x}, %w: {w}, %s: {s}) -> {y} {{
  %0 = "graph.call_tir"(%w, %s) {{callee = @decode, operandSegmentSizes = array<i32: {slots}>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}}
      : ({w}, {s}) -> tensor<{matrix}>
  %1 = "graph.matmul"(%x, %0) : ({x}, tensor<{matrix}>) -> {y}{last}
  return %{2 if relu else 1} : {y}
}}"""


SHIFT = 3
SHIFTS = {
    "shrui": lambda x: (x.view(np.uint8) >> SHIFT).astype(np.uint8).view(np.int8),
    "shrsi": lambda x: x >> SHIFT,
    "shli": lambda x: (x.view(np.uint8) << SHIFT).astype(np.uint8).view(np.int8),
}
"""What `arith` shifts do to bytes."""


def of_symbolic_columns(shift: str, element: str) -> str:
    """x[m, 64] times [64, 2 p]: column 2 i is byte i, column 2 i + 1 the shifted byte."""
    matrix = f'tensor<64x?x{element}, #graph.shape<[64, "2*p"]>>'
    w, slots = 'tensor<64x?xi8, #graph.shape<[64, "p"]>>', ", ".join("1" + "0" * 31)
    x, y = (
        f'tensor<{shape}x{element}, #graph.shape<["m", {n}]>>'
        for shape, n in (("?x64", 64), ("?x?", '"2*p"'))
    )
    return f"""
func.func private @decode(%w: {w}, %out: {matrix}) -> {matrix}
    attributes {{tir.prim_func, tir.num_outs = 1 : i64}} {{
  %bytes = tensor.cast %w : {w} to tensor<64x?xi8>
  %empty = tensor.cast %out : {matrix} to tensor<64x?x{element}>
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} outs(%empty : tensor<64x?x{element}>) {{
  ^bb0(%old: {element}):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant {SHIFT} : index
    %at = arith.divui %j, %c2 : index
    %half = arith.remui %j, %c2 : index
    %byte = tensor.extract %bytes[%i, %at] : tensor<64x?xi8>
    %bits = arith.muli %half, %c3 : index
    %shift = arith.index_cast %bits : index to i8
    %code = arith.{shift} %byte, %shift : i8
    %value = arith.sitofp %code : i8 to {element}
    linalg.yield %value : {element}
  }} -> tensor<64x?x{element}>
  %1 = tensor.cast %0 : tensor<64x?x{element}> to {matrix}
  return %1 : {matrix}
}}
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %0 = "graph.call_tir"(%w) {{callee = @decode, operandSegmentSizes = array<i32: {slots}>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}}
      : ({w}) -> {matrix}
  %1 = "graph.matmul"(%x, %0) : ({x}, {matrix}) -> {y}
  return %1 : {y}
}}"""
