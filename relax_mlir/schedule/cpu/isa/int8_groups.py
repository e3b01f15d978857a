"""The step of a product of 8-bit matrices: groups of elements along k, exact modulo 2^32.

    avx512vnni (64 bytes)  vpdpbusd    four products a lane; one side is signed, one unsigned
    other x86              vpmaddwd    two products a lane, of elements widened to 16 bits
    dotprod (aarch64)      sdot, udot  four products a lane, both sides signed, or both unsigned
    i8mm (aarch64)         usdot       the same; one side is signed, one unsigned
    wasm32                 dot         as vpmaddwd

`vpmaddubsw`, which `Dot` uses for operands with scales, saturates.

Source: Intel intrinsics guide; Arm architecture reference manual; LLVM `Intrinsics*.td`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import splat_integer, vector_type
from relax_mlir.target import Cpu

from . import amx
from .dot import Dot
from .step import Step

_PAIRS = {
    ("x86_64", 4): "llvm.x86.sse2.pmadd.wd",
    ("x86_64", 8): "llvm.x86.avx2.pmadd.wd",
    ("x86_64", 16): "llvm.x86.avx512.pmaddw.d.512",
    ("wasm32", 4): "llvm.wasm.dot",
}
"""By architecture and lanes."""


@dataclass(frozen=True)
class Int8Groups(Step):
    """The step by one instruction, for groups of `size` elements.

    `name` is the instruction's, or of those on pairs LLVM's intrinsic.

    `left` and `right` say whether a side is signed when it is multiplied: stored elements may have
    to be biased by 128, see `biases_right`.
    """

    name: str
    size: int
    left: bool
    right: bool

    @staticmethod
    def of(cpu: Cpu, left: bool, right: bool) -> "Int8Groups | None":
        """The step of a target for sides that are stored as signed or as unsigned elements."""
        dot, lanes = Dot.of(cpu), cpu.f32_lanes
        if dot is not None and dot.lanes == lanes and dot.name == "vpdpbusd":
            return Int8Groups(lanes, dot.name, 4, left, not left)
        if cpu.arch == "aarch64" and dot is not None:
            if left != right and cpu.has("i8mm"):
                return Int8Groups(lanes, "usdot", 4, left, right)
            return Int8Groups(lanes, "sdot" if left else "udot", 4, left, left)
        pairs = _PAIRS.get((cpu.arch, lanes))
        return None if pairs is None else Int8Groups(lanes, pairs, 2, left, right)

    def biases_right(self, signed: bool) -> int:
        """The bias of a right side that is stored `signed` or not: 128, -128 or 0."""
        return 128 * (signed - self.right)

    @property
    def group(self) -> int:
        """See `Step`."""
        return self.size

    @property
    def element(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(8)

    @property
    def total(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(32)

    storage = total

    def pack(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return vector.bitcast(vector_type(self.lanes, self.storage), self._widened(x, self.left))

    def unpack(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return vector.bitcast(vector_type(self.width, self._factor), x)

    def right_of(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return self._widened(x, self.right)

    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """See `Step`."""
        if self.size == 2:
            products = llvm.call_intrinsic(sums.type, self.name, [left, right], [], [])
            return arith.addi(sums, products)
        unsigned_first = self.left != self.right
        operands = [right, left] if unsigned_first and self.left else [left, right]
        name = f"llvm.aarch64.neon.{self.name}"
        if self.name == "vpdpbusd":
            name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
        return llvm.call_intrinsic(sums.type, name, [sums, *operands], [], [])

    @property
    def ones(self) -> ir.Value:
        """See `Step`."""
        return splat_integer(1, self.width, self._factor)

    @property
    def tile_product(self) -> str:
        """See `Step`."""
        return amx.product_name(self.left, self.right) if self.size == amx.LANE_BYTES else ""

    @property
    def _factor(self) -> ir.Type:
        """The type of a factor: 8 or 16 bits."""
        return ir.IntegerType.get_signless(32 // self.size)

    def _widened(self, x: ir.Value, signed: bool) -> ir.Value:
        if self.size != 2:
            return x
        return (arith.extsi if signed else arith.extui)(vector_type(self.width, self._factor), x)
