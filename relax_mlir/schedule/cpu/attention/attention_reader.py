"""Loads the operands of attention as f32 vectors: plain, widened, or dequantised by blocks."""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.dialects.graph.quantized import BLOCK
from relax_mlir.program.attention import Operands, Source
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    floor_div,
    load,
    value,
    vector_type,
)
from relax_mlir.schedule.cpu.blocking import Prefetch
from relax_mlir.schedule.cpu.product.packing import LINE_BITS

Buffers = Mapping[int, ir.Value]


@dataclass(frozen=True)
class Reader:
    """Loads f32 vectors from a flat buffer of any float type, or of 8-bit elements and scales."""

    buffer: ir.Value
    scale: ir.Value | None

    @staticmethod
    def of(source: Source, buffers: Buffers) -> "Reader":
        """A reader of a source, given the flat buffers by argument position."""
        scale = None if source.scale is None else buffers[source.scale.position]
        return Reader(buffers[source.argument.position], scale)

    @property
    def is_f32(self) -> bool:
        """Whether loaded vectors need no conversion."""
        return ir.MemRefType(self.buffer.type).element_type == ir.F32Type.get()

    def load(self, offset: Index, lanes: int, keep: ir.Value | None = None) -> ir.Value:
        """The f32 vector at an offset; all lanes of a dequantised vector are in one block.

        Lanes outside of the mask `keep` are not read.
        """
        loaded = load(self.buffer, offset, lanes, keep)
        f32 = ir.F32Type.get()
        kind = vector_type(lanes, f32)
        if self.scale is not None:
            at = value(floor_div(offset, BLOCK))
            factor = broadcast(memref.load(self.scale, [at]), lanes)
            return arith.mulf(arith.sitofp(kind, loaded), factor)
        return loaded if self.is_f32 else arith.extf(kind, loaded)

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return ir.MemRefType(self.buffer.type).element_type.width

    def prefetch_rows(self, tuning: Prefetch, width: int) -> int:
        """The prefetch distance in rows of `width` elements."""
        return -(-tuning.bytes // (width * self.bits // 8))

    def prefetch(self, tuning: Prefetch, row: Index, width: int) -> None:
        """Prefetches the row of `width` elements at an offset."""
        for at in range(0, width, LINE_BITS // self.bits):
            memref.prefetch(self.buffer, [value(add(row, at))], False, tuning.locality, True)

    def broadcast_at(self, offset: Index, lanes: int) -> ir.Value:
        """The element at an offset, as f32 in every lane."""
        x = memref.load(self.buffer, [value(offset)])
        return broadcast(x if self.is_f32 else arith.extf(ir.F32Type.get(), x), lanes)


def readers_of(operands: Operands, buffers: Buffers) -> tuple[Reader, Reader, Reader]:
    """The readers of queries, keys and values, given the flat buffers."""
    query, keys, values = (
        Reader.of(source, buffers) for source in (operands.query, operands.keys, operands.values)
    )
    return query, keys, values
