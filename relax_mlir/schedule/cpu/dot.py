"""8-bit dot products as the machines have them: four products a lane, added to 32-bit sums.

    sums[i] += sum over j < 4 of weights[4 i + j] * values[4 i + j]

    avx512vnni, avxvnni    vpdpbusd                  weights are unsigned
    avx2                   vpmaddubsw, vpmaddwd      weights are below 128, or signed
    dotprod (aarch64)      sdot                      weights are signed, or below 128

Source: Intel intrinsics guide; Arm architecture reference manual; LLVM `Intrinsics*.td`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.target import Target

from .loops import vector_type


@dataclass(frozen=True)
class Dot:
    """The instruction of a target, for `lanes` sums at once."""

    name: str
    lanes: int

    @staticmethod
    def of(target: Target) -> "Dot | None":
        """The widest one that the target has, or None."""
        if target.arch == "aarch64":
            return Dot("sdot", 4) if target.has("dotprod") else None
        if target.vector_bytes == 64 and target.has("avx512vnni"):
            return Dot("vpdpbusd", 16)
        if not target.has("avx2"):
            return None
        short = target.has("avx512vnni") and target.has("avx512vl")
        return Dot("vpdpbusd" if short or target.has("avxvnni") else "vpmaddubsw", 8)

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
        if signed:
            # |w| * (x with the sign of w): no two products leave 16 bits together.
            values = _call("llvm.x86.avx2.psign.b", values.type, values, weights)
            weights = _call("llvm.x86.avx2.psign.b", weights.type, weights, weights)
        i16 = ir.IntegerType.get_signless(16)
        wide = vector_type(2 * self.lanes, i16)
        pairs = _call("llvm.x86.avx2.pmadd.ub.sw", wide, weights, values)
        ones = ir.DenseElementsAttr.get_splat(wide, ir.IntegerAttr.get(i16, 1))
        products = _call("llvm.x86.avx2.pmadd.wd", sums.type, pairs, arith.constant(wide, ones))
        return arith.addi(sums, products)


def _call(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """A call of an LLVM intrinsic."""
    return llvm.call_intrinsic(result, name, list(operands), [], [])
