"""The step of a matrix product in registers: of f32 numbers, or of bf16 numbers two at a time.

    sums[i] += left * right[i]                                  f32: fused multiply-add
    sums[i] += left[0] * right[i][0] + left[1] * right[i][1]    bf16 pairs: vdpbf16ps

Two neighbours along k make a pair. One pair of the left side is kept as an i32, whose lower half is
the first number. Sums are f32; the instruction takes subnormal numbers as zero.

Without such an instruction a pair becomes two f32 numbers, by a shift and a mask: see `halves`.

Source: Intel intrinsics guide; LLVM `IntrinsicsX86.td`.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, memref, vector
from relax_mlir.schedule.build.loops import Index, broadcast, splat_integer, value, vector_type
from relax_mlir.target import Target

from .pointers import load_behind


def has_pairs(target: Target) -> bool:
    """Whether the target multiplies pairs of bf16 numbers, in its widest vectors."""
    return target.vector_bytes == 64 and target.has("avx512bf16")


@dataclass(frozen=True)
class MultiplyAdd:
    """The step for `lanes` sums at once."""

    lanes: int
    pairs: bool = False

    @property
    def per_lane(self) -> int:
        """Numbers along k that a lane takes in one step."""
        return 2 if self.pairs else 1

    @property
    def storage(self) -> ir.Type:
        """The type that one lane of the left side is kept in."""
        return ir.IntegerType.get_signless(32) if self.pairs else ir.F32Type.get()

    def pack(self, x: ir.Value) -> ir.Value:
        """A vector of numbers, f32 or bf16, with one lane for each f32 or pair."""
        if not self.pairs:
            return x
        count = ir.VectorType(x.type).shape[0]
        return vector.bitcast(vector_type(count // 2, self.storage), x)

    def unpack(self, x: ir.Value) -> ir.Value:
        """The numbers of a vector that has one lane for each f32 or pair."""
        return vector.bitcast(self._pairs_type(), x) if self.pairs else x

    def left_at(self, buffer: ir.Value, at: Index) -> ir.Value:
        """The number or pair of the left side at an offset, in every lane.

        The buffer is of `storage`, or of the bf16 numbers of pairs themselves.
        """
        if self.pairs and isinstance(ir.MemRefType(buffer.type).element_type, ir.BF16Type):
            return load_pair(buffer, at, self.lanes)
        x = broadcast(memref.load(buffer, [value(at)]), self.lanes)
        return self.unpack(x)

    def left_behind(self, address: ir.Value, offset: int) -> ir.Value:
        """The same, so many bytes behind an address of `own_register`."""
        return self.unpack(broadcast(load_behind(address, offset, self.storage), self.lanes))

    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """The next sums."""
        if not self.pairs:
            return vector.fma(left, right, sums)
        name = "llvm.x86.avx512bf16.dpbf16ps.512"
        return llvm.call_intrinsic(sums.type, name, [sums, left, right], [], [])

    def _pairs_type(self) -> ir.VectorType:
        return vector_type(2 * self.lanes, ir.BF16Type.get())


def load_pair(buffer: ir.Value, at: Index, lanes: int) -> ir.Value:
    """The pair of bf16 numbers at an offset, in every lane."""
    pair = vector.load(vector_type(2, ir.BF16Type.get()), buffer, [value(at)])
    i32 = ir.IntegerType.get_signless(32)
    whole = vector.extract(vector.bitcast(vector_type(1, i32), pair), [], [0])
    return vector.bitcast(vector_type(2 * lanes, ir.BF16Type.get()), broadcast(whole, lanes))


def halves(pairs: ir.Value) -> list[ir.Value]:
    """The first numbers of a vector of pairs of bf16 numbers, and the second ones, as f32."""
    lanes, i32 = ir.VectorType(pairs.type).shape[0] // 2, ir.IntegerType.get_signless(32)
    both = vector.bitcast(vector_type(lanes, i32), pairs)
    first = arith.shli(both, splat_integer(16, lanes, i32))
    second = arith.andi(both, splat_integer(-65536, lanes, i32))
    return [vector.bitcast(vector_type(lanes, ir.F32Type.get()), x) for x in (first, second)]


def interleave(first: ir.Value, second: ir.Value) -> list[ir.Value]:
    """Two vectors as pairs (first[i], second[i]), in as many vectors as they are."""
    count = ir.VectorType(first.type).shape[0]
    order = [x for i in range(count) for x in (i, count + i)]
    return [vector.shuffle(first, second, order[half : half + count]) for half in (0, count)]


def round_to_bf16(x: ir.Value) -> ir.Value:
    """A vector of 16 f32 numbers rounded to nearest even; for targets with pairs."""
    kind = vector_type(ir.VectorType(x.type).shape[0], ir.BF16Type.get())
    return llvm.call_intrinsic(kind, "llvm.x86.avx512bf16.cvtneps2bf16.512", [x], [], [])
