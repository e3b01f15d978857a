"""Sums of values that a warp computes by products of matrices.

powers [16 rows, keys] * values [keys, width]      all keys of a block at once
for each key:                                      where a NaN of some is hidden from some rows:
  powers * values of that key, for the rows that see it
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from ..products.matrix_units.matrices import (
    COLUMNS,
    ROWS,
    elements,
    half,
    load,
    multiply,
    row_of_lane,
)
from ..shuffles import WARP, shuffled
from .tile import constant

_UNIT = 8
"""Elements of 16 bytes, which are between rows of memory."""


@dataclass(frozen=True)
class Values:
    """A block of values in a slot of memory of the group, as a thread reads it."""

    memory: ir.Value
    thread: ir.Value
    keys: int
    width: int
    slot: Index

    def add(self, powers: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums after all keys; powers are left sides of 16 keys each."""
        result = list(sums)
        for at, power in enumerate(powers):
            for column in range(0, self.width, ROWS):
                pair = self._load(ROWS * at, column)
                for i in range(2):
                    own = column // COLUMNS + i
                    result[own] = multiply(power, half(pair, i), result[own])
        return result

    def add_by_key(
        self, powers: Sequence[ir.Value], sums: Sequence[ir.Value], bounds: Sequence[Index]
    ) -> list[ir.Value]:
        """The sums after all keys; of its two rows, a thread adds the keys below their bounds."""
        result = list(sums)
        for at, power in enumerate(powers):
            own = [loops.sub(loops.maximum(bound, ROWS * at), ROWS * at) for bound in bounds]
            one = partial(self._add_key, ROWS * at, power, own)
            result = loops.for_range(0, ROWS, 1, one, result)
        return result

    def _add_key(
        self, first: int, power: ir.Value, bounds: Sequence[Index], key: ir.Value, *sums: ir.Value
    ) -> list[ir.Value]:
        """The sums after one of 16 keys."""
        result = []
        is_seen = [loops.less(key, bound) for bound in bounds]
        for column in range(0, self.width, ROWS):
            pair = self._load(first, column)
            for i in range(2):
                old = sums[column // COLUMNS + i]
                new = multiply(power, self._only(half(pair, i), key), old)
                both = zip(elements(new), elements(old), strict=True)
                chosen = [loops.select(is_seen[at // 2], x, y) for at, (x, y) in enumerate(both)]
                result.append(vector.from_elements(old.type, chosen))
        return result

    def _only(self, right: ir.Value, key: ir.Value) -> ir.Value:
        """A right side whose other keys are zero: a lane has keys 2 (l % 4) and on, and 8 more."""
        kind = ir.VectorType(right.type)
        zero = arith.constant(kind.element_type, loops.zero_attr(kind.element_type))
        first = loops.mul(loops.mod(self.thread, 4), 2)
        chosen = []
        for at, x in enumerate(elements(right)):
            own = loops.value(loops.add(first, at // 2 * 8 + at % 2))
            chosen.append(arith.select(arith.cmpi(arith.CmpIPredicate.eq, own, key), x, zero))
        return vector.from_elements(kind, chosen)

    def poison(self) -> ir.Value:
        """NaN if any element of the block is one, or an infinity; else zero."""
        lane, pitch = loops.mod(self.thread, WARP), self.width + _UNIT
        begin = loops.mul(self.slot, self.keys * pitch)
        f32 = ir.F32Type.get()

        def one(flat: ir.Value, total: ir.Value) -> list[ir.Value]:
            row, column = loops.floor_div(flat, self.width), loops.mod(flat, self.width)
            at = loops.add(begin, loops.mul(row, pitch), column)
            x = arith.extf(f32, memref.load(self.memory, [loops.value(at)]))
            return [arith.addf(total, arith.mulf(x, constant(0.0)))]

        (total,) = loops.for_range(lane, self.keys * self.width, WARP, one, [constant(0.0)])
        offset = 1
        while offset < WARP:
            total = arith.addf(total, shuffled(total, offset))
            offset *= 2
        return total

    def _load(self, key: int, column: int) -> ir.Value:
        """Four matrices of 16 keys and columns."""
        pitch = self.width + _UNIT
        row = row_of_lane(self.thread, False, False, pitch, _UNIT)
        first = loops.add(loops.mul(self.slot, self.keys * pitch), row)
        return load(self.memory, loops.add(first, key * pitch + column), True, _UNIT)
