"""Loop nests: the accesses of iterations as NumPy indices.

Arrays of values have one dim for each loop, of extent 1 if they do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from .dialects.affine import BINARY, evaluate

MAX_ITERATIONS = 1 << 22
"""Iterations that are computed at once."""


@dataclass(frozen=True)
class Box:
    """The iterations from `begin` to `end` of each loop."""

    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The iteration count of each loop."""
        return tuple(b - a for a, b in zip(self.begin, self.end, strict=True))

    @property
    def indices(self) -> list[np.ndarray]:
        """The index of each loop."""
        return list(np.ogrid[tuple(map(slice, self.begin, self.end))]) if self.begin else []

    def between(self, axis: int, begin: int, end: int) -> Box:
        """The box with another range of one loop."""
        return Box(
            (*self.begin[:axis], begin, *self.begin[axis + 1 :]),
            (*self.end[:axis], end, *self.end[axis + 1 :]),
        )

    def parts(self) -> list[Box]:
        """Parts of at most `MAX_ITERATIONS`, in order."""
        if math.prod(self.extents) <= MAX_ITERATIONS:
            return [self]
        axis = int(np.argmax(self.extents))
        middle = (self.begin[axis] + self.end[axis]) // 2
        first = self.between(axis, self.begin[axis], middle)
        second = self.between(axis, middle, self.end[axis])
        return [*first.parts(), *second.parts()]

    def read(self, x: Any, map_: ir.AffineMap) -> Any:
        """The element that each iteration reads; a scalar is the same for all."""
        if not isinstance(x, np.ndarray):
            return x
        dims = plain_dims(map_)
        if dims is None:
            elements = x[self._indices(map_)]
            return elements.reshape((1,) * (len(self.begin) - elements.ndim) + elements.shape)
        seen = x[tuple(slice(self.begin[dim], self.end[dim]) for dim in dims)]
        shape = [1] * len(self.begin)
        for dim, extent in zip(dims, seen.shape, strict=True):
            shape[dim] = extent
        return seen.transpose(np.argsort(dims)).reshape(shape)

    def write(self, x: np.ndarray, map_: ir.AffineMap, values: Any) -> None:
        """Stores an element for each iteration."""
        if not map_.results:
            x[()] = np.reshape(values, ())
            return
        indices = self._indices(map_)
        x[indices] = np.broadcast_to(values, np.broadcast_shapes(*(p.shape for p in indices)))

    def _indices(self, map_: ir.AffineMap) -> tuple[np.ndarray, ...]:
        loops, rank = tuple(self.indices), len(self.begin)
        results = (np.asarray(evaluate(expr, loops, ())) for expr in map_.results)
        return tuple(p if p.ndim == rank else p.reshape((1,) * rank) for p in results)


def plain_dims(map_: ir.AffineMap) -> list[int] | None:
    """The loops of a map that is a projection; None for any other map."""
    dims = [e.position for e in map_.results if isinstance(e, ir.AffineDimExpr)]
    return dims if len(dims) == len(map_.results) == len(set(dims)) else None


@dataclass(frozen=True)
class Nest:
    """The loops of an op: the maps of its operands, the last of which it writes to."""

    maps: tuple[ir.AffineMap, ...]
    num_outs: int
    box: Box

    @staticmethod
    def of(maps: Sequence[ir.AffineMap], operands: Sequence[Any], num_outs: int) -> Nest:
        """Derives the extents from the operands; raises ValueError for an access out of bounds."""
        extents: dict[int, int] = {}
        for map_, operand in zip(maps, operands, strict=True):
            for expr, extent in zip(map_.results, np.shape(operand), strict=True):
                if isinstance(expr, ir.AffineDimExpr):
                    extents.setdefault(expr.position, extent)
        end = tuple(extents[i] for i in range(maps[0].n_dims))
        nest = Nest(tuple(maps), num_outs, Box((0,) * len(end), end))
        if 0 not in end:
            for index, (map_, operand) in enumerate(zip(maps, operands, strict=True)):
                _check_inside(map_, np.shape(operand), end, index)
        return nest

    @property
    def in_maps(self) -> tuple[ir.AffineMap, ...]:
        """The maps of the operands that are only read."""
        return self.maps[: len(self.maps) - self.num_outs]

    @property
    def out_maps(self) -> tuple[ir.AffineMap, ...]:
        """The maps of the operands that are written to."""
        return self.maps[len(self.maps) - self.num_outs :]

    @property
    def reductions(self) -> list[int]:
        """The loops that no output has a dim for."""
        parallel = {
            expr.position
            for map_ in self.out_maps
            for expr in map_.results
            if isinstance(expr, ir.AffineDimExpr)
        }
        return [i for i in range(self.maps[0].n_dims) if i not in parallel]

    def over(self, box: Box) -> Nest:
        """The nest over a part of its iterations."""
        return replace(self, box=box)


def _check_inside(map_: ir.AffineMap, shape: Sequence[int], end: Sequence[int], index: int) -> None:
    for axis, (expr, extent) in enumerate(zip(map_.results, shape, strict=True)):
        low, high = _range(expr, end)
        if low < 0 or high >= extent:
            reached = low if low < 0 else high
            raise ValueError(
                f"reaches index {reached} of dim {axis} of operand {index}, which has {extent}"
            )


def _range(expr: ir.AffineExpr, end: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest value of an expression over all iterations."""
    if isinstance(expr, ir.AffineDimExpr):
        return 0, end[expr.position] - 1
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value, expr.value
    used = sorted(_used(expr))
    box = Box((0,) * len(used), tuple(end[i] for i in used))
    dims: list[Any] = [0] * len(end)
    for position, values in zip(used, box.indices, strict=True):
        dims[position] = values
    values = np.asarray(evaluate(expr, tuple(dims), ()))
    return int(values.min()), int(values.max())


def _used(expr: ir.AffineExpr) -> set[int]:
    """The loops that an expression depends on."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, BINARY):
        return _used(expr.lhs) | _used(expr.rhs)
    return set()
