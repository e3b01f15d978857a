"""8-bit dot products of a target: four products a lane, accumulated in 32 bits.

    sums[i] += sum over j < 4 of weights[4 i + j] * values[4 i + j]

They are for operands with scales of their own for each block; for plain ones see `int8_groups`.

    avx512vnni, avxvnni    vpdpbusd                  weights are unsigned
    avx2                   vpmaddubsw, vpmaddwd      weights are below 128, or signed; see `Sum`
                           vpmaddwd                  of 16-bit elements, see `even_and_odd`
    dotprod (aarch64)      sdot                      weights are signed, or below 128
    wasm32                 i32x4.dot_i16x8_s         the same, of 16-bit elements

Source: Intel intrinsics guide; Arm architecture reference manual; LLVM `Intrinsics*.td`.
"""

from dataclasses import dataclass
from functools import reduce

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import splat_integer, vector_type
from relax_mlir.target import WASM, Cpu

_MAX_INT16, _MAX_VALUE = 32767, 127
"""The largest sum in 16 bits, and the largest magnitude of a value."""


@dataclass(frozen=True)
class Dot:
    """The instruction of a target, for `lanes` sums at once."""

    name: str
    lanes: int

    @staticmethod
    def of(cpu: Cpu) -> "Dot | None":
        """The widest one that the target has, or None."""
        if cpu.arch == "aarch64":
            takes = cpu.has("dotprod") and cpu.f32_lanes > 1
            return Dot("sdot", cpu.f32_lanes) if takes else None
        if cpu.arch == WASM:
            return Dot("dot_i16x8", 4)
        if cpu.vector_bytes == 64 and cpu.has("avx512vnni"):
            return Dot("vpdpbusd", 16)
        if not cpu.has("avx2"):
            return None
        short = cpu.has("avx512vnni") and cpu.has("avx512vl")
        return Dot("vpdpbusd" if short or cpu.has("avxvnni") else "vpmaddubsw", 8)

    @property
    def is_unsigned(self) -> bool:
        """Whether signed weights have to be biased by 128."""
        return self.name == "vpdpbusd"

    def __call__(
        self, sums: ir.Value, weights: ir.Value, values: ir.Value, signed: bool
    ) -> ir.Value:
        """The next sums; `signed` weights are for instructions that do not need unsigned ones."""
        if self.name == "vpdpbusd":
            name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
            return _call(name, sums.type, sums, weights, values)
        if self.name == "sdot":
            return _call("llvm.aarch64.neon.sdot", sums.type, sums, weights, values)
        if self.name == "dot_i16x8":
            words = zip(even_and_odd(weights), even_and_odd(values), strict=True)
            return reduce(lambda total, pair: self.of_words(total, *pair), words, sums)
        return self.widened(sums, self.pairs(weights, values, signed))

    def max_terms(self, bits: int) -> int:
        """How many `pairs` of weights of `bits` bits, unsigned if fewer than 8, fit in 16 bits."""
        if self.name != "vpmaddubsw" or bits == 8:
            return 1
        return _MAX_INT16 // (2 * _MAX_VALUE * (2**bits - 1))

    def widens(self, bits: int) -> bool:
        """Whether weights of `bits` bits that meet many rows are widened to 16 bits first.

        For signed weights that saves one instruction a product, and half of the multiplications.
        """
        return self.name == "vpmaddubsw" and bits == 8

    def of_words(self, sums: ir.Value, weights: ir.Value, values: ir.Value) -> ir.Value:
        """The next sums, of products of 16-bit elements, two a lane."""
        name = "llvm.wasm.dot" if self.name == "dot_i16x8" else "llvm.x86.avx2.pmadd.wd"
        return arith.addi(sums, _call(name, sums.type, weights, values))

    def pairs(self, weights: ir.Value, values: ir.Value, signed: bool) -> ir.Value:
        """Sums of two products each, in 16 bits: the first half of `vpmaddubsw`'s step."""
        if signed:
            # |w| * (x with the sign of w): the sum of two such products fits in 16 bits.
            values = _call("llvm.x86.avx2.psign.b", values.type, values, weights)
            weights = _call("llvm.x86.avx2.psign.b", weights.type, weights, weights)
        words = vector_type(2 * self.lanes, ir.IntegerType.get_signless(16))
        return _call("llvm.x86.avx2.pmadd.ub.sw", words, weights, values)

    def widened(self, sums: ir.Value, pairs: ir.Value) -> ir.Value:
        """The sums after adding `pairs`: the second half of the step."""
        ones = splat_integer(1, 2 * self.lanes, ir.IntegerType.get_signless(16))
        return arith.addi(sums, _call("llvm.x86.avx2.pmadd.wd", sums.type, pairs, ones))


def even_and_odd(vectors: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Signed bytes as 16-bit elements: those at even indices and those at odd ones.

    The four bytes of a 32-bit lane stay in that lane, two in each vector.
    """
    count, i16 = ir.VectorType(vectors.type).shape[0] // 2, ir.IntegerType.get_signless(16)
    words = vector.bitcast(vector_type(count, i16), vectors)
    eight = splat_integer(8, count, i16)
    return arith.shrsi(arith.shli(words, eight), eight), arith.shrsi(words, eight)


class Sum:
    """An accumulator for steps, in 16 bits as long as sums fit."""

    def __init__(self, dot: Dot, start: ir.Value, bits: int) -> None:
        """Weights have `bits` bits; only 8-bit ones may be signed, if the target wants that."""
        self._dot, self._total = dot, start
        self._signed = bits == 8 and not dot.is_unsigned
        self._max_terms = dot.max_terms(bits)
        self._pairs: list[ir.Value] = []

    def add(self, weights: ir.Value, values: ir.Value) -> None:
        """Emits a step."""
        if self._max_terms == 1:
            self._total = self._dot(self._total, weights, values, self._signed)
            return
        pairs = self._dot.pairs(weights, values, self._signed)
        self._pairs.append(arith.addi(self._pairs[-1], pairs) if self._pairs else pairs)
        if len(self._pairs) == self._max_terms:
            self.total()

    def total(self) -> ir.Value:
        """The sums of all steps so far."""
        if self._pairs:
            self._total = self._dot.widened(self._total, self._pairs[-1])
            self._pairs = []
        return self._total


class WeightSum:
    """An accumulator for weights themselves, four elements a lane."""

    def __init__(self, dot: Dot, start: ir.Value, bits: int) -> None:
        """Weights are those of `Sum`."""
        self._dot, self._total = dot, start
        self._in_pairs = dot.name == "vpmaddubsw" and bits == 8
        # Narrow elements are added as bytes first, which more execution units can do.
        self._max_terms = max(_MAX_VALUE // (2**bits - 1), 1)
        self._added: list[ir.Value] = []

    def add(self, weights: ir.Value) -> None:
        """Emits an addition."""
        if self._in_pairs:  # the sums of a block are far below 16 bits
            weights = self._dot.pairs(self._ones(weights.type), weights, False)
        self._added.append(arith.addi(self._added[-1], weights) if self._added else weights)
        if not self._in_pairs and len(self._added) == self._max_terms:
            self.total()

    def total(self) -> ir.Value:
        """The sums of all vectors so far."""
        if self._added and self._in_pairs:
            self._total = self._dot.widened(self._total, self._added[-1])
        elif self._added:
            ones = self._ones(self._added[-1].type)
            self._total = self._dot(self._total, self._added[-1], ones, False)
        self._added = []
        return self._total

    @staticmethod
    def _ones(kind: ir.Type) -> ir.Value:
        vectors = ir.VectorType(kind)
        return splat_integer(1, vectors.shape[0], vectors.element_type)


def _call(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """A call of an LLVM intrinsic."""
    return llvm.call_intrinsic(result, name, list(operands), [], [])
