"""Steps of a matrix product: of single elements, and of pairs of bf16 elements.

    sums[i] += left * right[i]                                  a multiply-add
    sums[i] += left[0] * right[i][0] + left[1] * right[i][1]    pairs of bf16 elements

    avx512bf16 (64 bytes)    vdpbf16ps
    bf16 (aarch64)           bfdot

Two elements along k make a pair. A pair of the left side is stored as an i32, whose lower half is
the first element. Sums are f32. Both instructions flush subnormals to zero. `bfdot` rounds the sum
of two products, which are exact, and the sum with it to odd, unless a process sets `FPCR.EBF`:
each is off by less than an ulp, where rounding to nearest is by half of one.

Without such an instruction a pair is widened to two f32 elements, by a shift and a mask (`halves`).

Source: Intel intrinsics guide; Arm architecture reference manual, BFDOT; LLVM `Intrinsics*.td`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import Index, broadcast, splat_integer, value, vector_type
from relax_mlir.target import Cpu

from . import amx
from .step import Step

_X86, _ARM = "llvm.x86.avx512bf16.dpbf16ps.512", "llvm.aarch64.neon.bfdot"


def pair_product(cpu: Cpu) -> str:
    """The instruction for pairs of bf16 elements in the target's vectors, or an empty text."""
    if cpu.arch == "aarch64":
        return _ARM if cpu.has("bf16") and cpu.f32_lanes > 1 else ""
    return _X86 if cpu.vector_bytes == 64 and cpu.has("avx512bf16") else ""


@dataclass(frozen=True)
class MultiplyAdd(Step):
    """The step of elements of one type: f32 or f64, fused, or integers modulo their width."""

    kind: str = "f32"

    @property
    def group(self) -> int:
        """See `Step`."""
        return 1

    @property
    def total(self) -> ir.Type:
        """See `Step`."""
        floats = {"f32": ir.F32Type.get, "f64": ir.F64Type.get}
        if self.kind in floats:
            return floats[self.kind]()
        return ir.IntegerType.get_signless(int(self.kind[1:]))

    element = storage = total

    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """See `Step`."""
        if isinstance(self.total, ir.FloatType):
            return vector.fma(left, right, sums)
        return arith.addi(sums, arith.muli(left, right))


@dataclass(frozen=True)
class Bf16Pairs(Step):
    """The step of pairs of bf16 elements, by the instruction `product` (`pair_product`)."""

    product: str = _X86

    @property
    def group(self) -> int:
        """See `Step`."""
        return 2

    @property
    def element(self) -> ir.Type:
        """See `Step`."""
        return ir.BF16Type.get()

    @property
    def storage(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(32)

    @property
    def total(self) -> ir.Type:
        """See `Step`."""
        return ir.F32Type.get()

    @property
    def copied(self) -> int:
        """As many elements as `rounded` rounds at a time."""
        return self.lanes

    @property
    def reads_in_place(self) -> bool:
        """See `Step`."""
        return True

    @property
    def tile_product(self) -> str:
        """See `Step`."""
        return amx.PAIRS

    def pack(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return self.groups(x)

    def unpack(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return self.ungrouped(x)

    def left_at(self, buffer: ir.Value, at: Index) -> ir.Value:
        """See `Step`; the buffer is of `storage`, or of the elements of pairs themselves."""
        if isinstance(ir.MemRefType(buffer.type).element_type, ir.BF16Type):
            return load_pair(buffer, at, self.lanes)
        return super().left_at(buffer, at)

    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """See `Step`."""
        return llvm.call_intrinsic(sums.type, self.product, [sums, left, right], [], [])

    def rounded(self, x: ir.Value) -> ir.Value:
        """A vector of f32 elements, one a lane, rounded to nearest even."""
        kind = vector_type(self.lanes, ir.BF16Type.get())
        if self.product == _X86:
            return llvm.call_intrinsic(kind, "llvm.x86.avx512bf16.cvtneps2bf16.512", [x], [], [])
        return arith.truncf(kind, x)


def float_step(lanes: int, pairs: str) -> Step:
    """The step of f32 elements, or of pairs of bf16 elements by the instruction `pairs`."""
    return Bf16Pairs(lanes, pairs) if pairs else MultiplyAdd(lanes)


def load_pair(buffer: ir.Value, at: Index, lanes: int) -> ir.Value:
    """The pair of bf16 elements at an offset, in every lane."""
    pair = vector.load(vector_type(2, ir.BF16Type.get()), buffer, [value(at)])
    i32 = ir.IntegerType.get_signless(32)
    whole = vector.extract(vector.bitcast(vector_type(1, i32), pair), [], [0])
    return vector.bitcast(vector_type(2 * lanes, ir.BF16Type.get()), broadcast(whole, lanes))


def halves(pairs: ir.Value) -> list[ir.Value]:
    """The first elements of a vector of pairs of bf16 elements, and the second ones, as f32."""
    lanes, i32 = ir.VectorType(pairs.type).shape[0] // 2, ir.IntegerType.get_signless(32)
    words = vector.bitcast(vector_type(lanes, i32), pairs)
    first = arith.shli(words, splat_integer(16, lanes, i32))
    second = arith.andi(words, splat_integer(-65536, lanes, i32))
    return [vector.bitcast(vector_type(lanes, ir.F32Type.get()), x) for x in (first, second)]


def interleave(first: ir.Value, second: ir.Value) -> list[ir.Value]:
    """Two vectors as pairs (first[i], second[i]), in as many vectors as they are."""
    count = ir.VectorType(first.type).shape[0]
    order = [x for i in range(count) for x in (i, count + i)]
    return [vector.shuffle(first, second, order[half : half + count]) for half in (0, count)]
