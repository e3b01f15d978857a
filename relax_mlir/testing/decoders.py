"""Tensor programs that decode packed matrices, as users write them."""

from dataclasses import dataclass

WIDTHS = {"i8": 8, "i16": 16, "i32": 32}
"""The bits of words."""


@dataclass(frozen=True)
class Decoder:
    """Codes of `bits` bits in words along an axis of a matrix [k, n], scaled in groups along it.

    Words run along n, or, `along_k`, along k of the transpose [n, k]. The first code of a word is
    in its lowest bits, or its highest.
    """

    bits: int
    word: str
    group: int
    along_k: bool = False
    highest_first: bool = False

    @property
    def per_word(self) -> int:
        """How many codes are in a word."""
        return WIDTHS[self.word] // self.bits

    def packed(self, k: int, n: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The shapes of words and scales."""
        rows, length = (n, k) if self.along_k else (k, n)
        return (rows, -(-length // self.per_word)), (rows, -(-length // self.group))

    def program(self, name: str, k: int, n: int) -> str:
        """The text of the program, of words and scales."""
        words, scales = ("x".join(map(str, shape)) for shape in self.packed(k, n))
        w, s, matrix = f"tensor<{words}x{self.word}>", f"tensor<{scales}xf32>", f"{k}x{n}xf32"
        row, position = ("%j", "%i") if self.along_k else ("%i", "%j")
        slot = f"%slot = arith.remui {position}, %per : index"
        if self.highest_first:
            slot = f"""%rest = arith.remui {position}, %per : index
    %end = arith.constant {self.per_word - 1} : index
    %slot = arith.subi %end, %rest : index"""
        return f"""
func.func private @{name}(%w: {w}, %s: {s}, %out: tensor<{matrix}>) -> tensor<{matrix}>
    attributes {{tir.prim_func, tir.num_outs = 1 : i64}} {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} outs(%out : tensor<{matrix}>) {{
  ^bb0(%old: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %per = arith.constant {self.per_word} : index
    %size = arith.constant {self.group} : index
    %bits = arith.constant {self.bits} : index
    %at = arith.divui {position}, %per : index
    {slot}
    %group = arith.divui {position}, %size : index
    %word = tensor.extract %w[{row}, %at] : {w}
    %scale = tensor.extract %s[{row}, %group] : {s}
    %bit = arith.muli %slot, %bits : index
    %shift = arith.index_cast %bit : index to {self.word}
    %x = arith.shrui %word, %shift : {self.word}
    %mask = arith.constant {(1 << self.bits) - 1} : {self.word}
    %code = arith.andi %x, %mask : {self.word}
    %float = arith.uitofp %code : {self.word} to f32
    %zero = arith.constant {1 << self.bits - 1}.0 : f32
    %shifted = arith.subf %float, %zero : f32
    %value = arith.mulf %shifted, %scale : f32
    linalg.yield %value : f32
  }} -> tensor<{matrix}>
  return %0 : tensor<{matrix}>
}}"""
