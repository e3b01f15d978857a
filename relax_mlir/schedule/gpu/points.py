"""Nests without inner loops: a thread for each iteration.

    %y[i, j] = f(%x[i, j], %b[j])      ->      thread t: %y[t] = f(%x[t], %b[t mod n])

Axes that every access has as consecutive dims are one: threads next to each other access elements
next to each other, without a division.
"""

from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane, Part
from relax_mlir.schedule.build.evaluate import Point
from relax_mlir.schedule.build.lanes import Uniform
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.nests.plan import collapsed

from .launch import for_threads, unraveled
from .nest import DeviceNest


class PointNest(DeviceNest):
    """Emits a nest whose clusters have no axes of their own."""

    def emit(self) -> None:
        """Emits the launch at the insertion point."""
        self.prepare()
        self.by_element()

    def by_element(self) -> None:
        """Emits a launch of a thread for each iteration, once prepared."""
        nest, plan = self.nest, self.plan
        joined: tuple[int, ...] = ()
        if nest.common:
            placement = self.kernel.placement
            joined = collapsed(nest, plan.clusters, nest.common[-1], placement)
        outer = [axis for axis in nest.common if axis not in joined]
        extents = tuple(self.extents[axis] for axis in joined)
        counts = [*(self.extents[axis] for axis in outer), loops.mul(1, *extents)]

        def one(iteration: Index) -> None:
            *own, flat = unraveled(iteration, counts)
            index: dict[int, IndexLane] = dict(zip(outer, map(Uniform, own), strict=True))
            index |= zip(joined, joined_indices(flat, extents), strict=True)
            self.clusters_at(Point(index=index), self.by_thread)

        for_threads(loops.mul(1, *counts), self.device, one)


def joined_indices(flat: Index, extents: tuple[Index, ...]) -> list[IndexLane]:
    """The indices of axes that are one, from the index along it."""
    if len(extents) == 1:
        return [Uniform(flat)]
    return [Part(Uniform(flat), extents, i) for i in range(len(extents))]
