"""One nest of stages as a launch; its mappings to threads are in files of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field

from relax_mlir.program.nests import Cluster
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.evaluate import Point
from relax_mlir.schedule.build.lanes import Uniform
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.nests.cluster import ClusterEmitter
from relax_mlir.schedule.nests.vectorize import NestEmitter
from relax_mlir.target import Device

from .launch import for_threads, unraveled

MakeCluster = Callable[[Cluster, Point], ClusterEmitter]


@dataclass
class DeviceNest(NestEmitter):
    """Emits one nest whose lanes are threads: a thread computes single elements.

    What a cluster leaves in memory for the next lies in memory of the device, for all iterations:
    threads have none of their own.
    """

    device: Device = field(kw_only=True)

    def prepare(self) -> None:
        """Emits what all threads share: extents, views, and memory between the clusters."""
        for stage in self.nest.stages:
            for result in stage.results:
                if self._needs_row(stage, result):
                    self.kernel.scratch(result)
        self._prepare()

    def point_at(self, iteration: Index) -> Point:
        """One iteration of the common axes."""
        common = self.nest.common
        own = unraveled(iteration, [self.extents[axis] for axis in common])
        return Point(index=dict(zip(common, map(Uniform, own), strict=True)))

    @property
    def iterations(self) -> Index:
        """The count of iterations of the common axes."""
        return loops.mul(1, *(self.extents[axis] for axis in self.nest.common))

    def clusters_at(
        self, point: Point, make: MakeCluster, between: Callable[[], object] | None = None
    ) -> None:
        """Emits all clusters for one iteration of the common axes.

        `between` is emitted after those that threads wait for.
        """
        evaluator = self.evaluator
        evaluator.registers, evaluator.rows = {}, {}
        for index, cluster in enumerate(self.plan.clusters):
            before = self.plan.clusters[index - 1] if index else None
            if before is not None and between is not None and self._waits_after(before):
                between()
            make(cluster, point).emit()
        evaluator.registers, evaluator.rows = {}, {}

    def _waits_after(self, cluster: Cluster) -> bool:
        """Whether threads wait for each other after a cluster, as it leaves elements in memory."""
        results = (result for stage in cluster.stages for result in stage.results)
        return any(self.kernel.view(result) is not None for result in results)

    def by_thread(self, cluster: Cluster, point: Point) -> ClusterEmitter:
        """The emitter of a cluster that one thread computes."""
        return ClusterEmitter(
            self.evaluator, self.plan, self.extents, self.combiners, cluster, point
        )

    def emit(self) -> None:
        """Emits a launch of a thread for each iteration of the common axes."""
        self.prepare()

        def one(iteration: Index) -> None:
            self.clusters_at(self.point_at(iteration), self.by_thread)

        for_threads(self.iterations, self.device, one)
