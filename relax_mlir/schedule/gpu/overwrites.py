"""Whether threads that share rows store to elements that others of them read.

    s = sum of out[r, j, i]      thread t has the elements t, t + T, .. of (i, j)
    out[r, i, j] -= s            thread t stores to others than it has read

Where a tensor is updated in place so, threads have to wait for each other in between.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_mlir.program.access import Use, uses_of
from relax_mlir.program.nests import Cluster, Nest
from relax_mlir.program.placement import Placement, Spot
from relax_mlir.program.program import Stage
from relax_mlir.schedule.nests.plan import Plan


def overwrites(plan: Plan, placement: Placement) -> bool:
    """Whether a thread stores to what another one reads in the same cluster, or in one before."""
    nest, clusters = plan.nest, plan.clusters
    return any(
        read.spot.owner is written.spot.owner and not read.has_thread_of(written)
        for at, cluster in enumerate(clusters)
        for written in _written(nest, placement, cluster)
        for before in clusters[: at + 1]
        for read in _read(nest, placement, before)
    )


@dataclass(frozen=True)
class _Elements:
    """Elements by the axes of their indices, None if unknown; threads share the axes `shared`."""

    spot: Spot
    axes: tuple[int | None, ...] | None
    shared: tuple[int, ...]

    def has_thread_of(self, other: "_Elements") -> bool:
        """Whether a thread that touches one of these is the one that touches it there."""
        if self.axes is None or not self.shared:
            return False
        return self == other and set(self.shared) <= set(self.axes)


def _written(nest: Nest, placement: Placement, cluster: Cluster) -> Iterator[_Elements]:
    for stage in cluster.stages:
        for result, init in zip(stage.results, stage.inits, strict=True):
            spot = placement.spots.get(result)
            if spot is not None:
                axes = _axes(nest, stage, uses_of(init.indices))
                yield _Elements(spot, axes, _shared(nest, cluster))


def _read(nest: Nest, placement: Placement, cluster: Cluster) -> Iterator[_Elements]:
    for stage in cluster.stages:
        for access in placement.inlining.reads(stage):
            spot = placement.spot(access.tensor)
            if spot is not None:
                uses = None if access.sliced else access.uses
                axes = None if uses is None else _axes(nest, stage, uses)
                yield _Elements(spot, axes, _shared(nest, cluster))


def _axes(nest: Nest, stage: Stage, uses: Sequence[Use]) -> tuple[int | None, ...]:
    """The axis of each index, None where it is a constant or an expression."""
    return tuple(next(iter(nest.use_axes(stage, use)), None) if use.plain else None for use in uses)


def _shared(nest: Nest, cluster: Cluster) -> tuple[int, ...]:
    """The axes whose iterations threads share: the outer ones, where only some are reduced."""
    reduced = {
        axis
        for stage in cluster.stages
        for axis, is_reduced in zip(nest.axes[stage], stage.reduces, strict=True)
        if is_reduced
    }
    return tuple(axis for axis in cluster.axes if axis not in reduced) or tuple(cluster.axes)
