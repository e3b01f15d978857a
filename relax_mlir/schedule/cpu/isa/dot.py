"""8-bit dot products as the machines have them: four products a lane, added to 32-bit sums.

    sums[i] += sum over j < 4 of weights[4 i + j] * values[4 i + j]

They are for numbers that are scaled in blocks; a plain product of matrices is `int8_groups`.

    avx512vnni, avxvnni    vpdpbusd                  weights are unsigned
    avx2                   vpmaddubsw, vpmaddwd      weights are below 128, or signed; see `Sum`
                           vpmaddwd                  of 16-bit numbers, see `even_and_odd`
    dotprod (aarch64)      sdot                      weights are signed, or below 128

Source: Intel intrinsics guide; Arm architecture reference manual; LLVM `Intrinsics*.td`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import splat_integer, vector_type
from relax_mlir.target import Cpu

_MOST_16, _MOST_VALUE = 32767, 127
"""The greatest sum in 16 bits, and the greatest magnitude of a value."""


@dataclass(frozen=True)
class Dot:
    """The instruction of a target, for `lanes` sums at once."""

    name: str
    lanes: int

    @staticmethod
    def of(cpu: Cpu) -> "Dot | None":
        """The widest one that the target has, or None."""
        if cpu.arch == "aarch64":
            return Dot("sdot", 4) if cpu.has("dotprod") else None
        if cpu.vector_bytes == 64 and cpu.has("avx512vnni"):
            return Dot("vpdpbusd", 16)
        if not cpu.has("avx2"):
            return None
        short = cpu.has("avx512vnni") and cpu.has("avx512vl")
        return Dot("vpdpbusd" if short or cpu.has("avxvnni") else "vpmaddubsw", 8)

    @property
    def is_unsigned(self) -> bool:
        """Whether signed weights have to be moved up by 128 first."""
        return self.name == "vpdpbusd"

    def __call__(
        self, sums: ir.Value, weights: ir.Value, values: ir.Value, signed: bool
    ) -> ir.Value:
        """The next sums; `signed` weights are for machines that do not want unsigned ones."""
        if self.name == "vpdpbusd":
            name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
            return _call(name, sums.type, sums, weights, values)
        if self.name == "sdot":
            return _call("llvm.aarch64.neon.sdot", sums.type, sums, weights, values)
        return self.widened(sums, self.pairs(weights, values, signed))

    def together(self, bits: int) -> int:
        """How many `pairs` of weights of so many bits, unsigned if fewer than 8, fit 16 bits."""
        if self.name != "vpmaddubsw" or bits == 8:
            return 1
        return _MOST_16 // (2 * _MOST_VALUE * (2**bits - 1))

    def widens(self, bits: int) -> bool:
        """Whether weights of so many bits that meet many rows are made 16-bit numbers first.

        Signed ones cost one instruction less then, and half as many multiply.
        """
        return self.name == "vpmaddubsw" and bits == 8

    def of_wide(self, sums: ir.Value, weights: ir.Value, values: ir.Value) -> ir.Value:
        """The next sums of 16-bit numbers, two of each side a lane."""
        return arith.addi(sums, _call("llvm.x86.avx2.pmadd.wd", sums.type, weights, values))

    def pairs(self, weights: ir.Value, values: ir.Value, signed: bool) -> ir.Value:
        """Sums of two products each, in 16 bits: the first half of `vpmaddubsw`'s step."""
        if signed:
            # |w| * (x with the sign of w): no two products leave 16 bits together.
            values = _call("llvm.x86.avx2.psign.b", values.type, values, weights)
            weights = _call("llvm.x86.avx2.psign.b", weights.type, weights, weights)
        wide = vector_type(2 * self.lanes, ir.IntegerType.get_signless(16))
        return _call("llvm.x86.avx2.pmadd.ub.sw", wide, weights, values)

    def widened(self, sums: ir.Value, pairs: ir.Value) -> ir.Value:
        """The sums with pairs added: the second half."""
        ones = splat_integer(1, 2 * self.lanes, ir.IntegerType.get_signless(16))
        return arith.addi(sums, _call("llvm.x86.avx2.pmadd.wd", sums.type, pairs, ones))


def even_and_odd(numbers: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Signed bytes as 16-bit numbers, those at even places and those at odd ones.

    The four of a lane of 32 bits stay in it, two in either vector.
    """
    count, i16 = ir.VectorType(numbers.type).shape[0] // 2, ir.IntegerType.get_signless(16)
    words = vector.bitcast(vector_type(count, i16), numbers)
    eight = splat_integer(8, count, i16)
    return arith.shrsi(arith.shli(words, eight), eight), arith.shrsi(words, eight)


class Sum:
    """Sums that steps are added to one by one, in 16 bits as long as they fit."""

    def __init__(self, dot: Dot, start: ir.Value, bits: int) -> None:
        """Weights have so many bits; they are unsigned, unless it is 8 and the machine's wish."""
        self._dot, self._total = dot, start
        self._signed = bits == 8 and not dot.is_unsigned
        self._together = dot.together(bits)
        self._pairs: list[ir.Value] = []

    def add(self, weights: ir.Value, values: ir.Value) -> None:
        """Emits a step."""
        if self._together == 1:
            self._total = self._dot(self._total, weights, values, self._signed)
            return
        pairs = self._dot.pairs(weights, values, self._signed)
        self._pairs.append(arith.addi(self._pairs[-1], pairs) if self._pairs else pairs)
        if len(self._pairs) == self._together:
            self.total()

    def total(self) -> ir.Value:
        """The sums of all steps so far."""
        if self._pairs:
            self._total = self._dot.widened(self._total, self._pairs[-1])
            self._pairs = []
        return self._total


class WeightSum:
    """Sums of weights that are added one vector after the other, four numbers a lane."""

    def __init__(self, dot: Dot, start: ir.Value, bits: int) -> None:
        """Weights are as those of `Sum`."""
        self._dot, self._total = dot, start
        self._in_pairs = dot.name == "vpmaddubsw" and bits == 8
        # Narrow numbers are added up in their bytes first, which more of a machine's units do.
        self._together = max(_MOST_VALUE // (2**bits - 1), 1)
        self._added: list[ir.Value] = []

    def add(self, weights: ir.Value) -> None:
        """Emits an addition."""
        if self._in_pairs:  # all of a block's are far from leaving 16 bits
            weights = self._dot.pairs(self._ones(weights.type), weights, False)
        self._added.append(arith.addi(self._added[-1], weights) if self._added else weights)
        if not self._in_pairs and len(self._added) == self._together:
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
