"""Groups stages into nests that share their outer loops, and finds the loop to vectorise.

    max, exp(x - max), sum, divide over [n, d]   ->   one nest over n; four loops over d inside

Loops of different stages are one `axis` where a tensor between them is written and read at it.
The axes that all stages of a nest share and no stage reduces are its `common` axes: one iteration
of them computes and uses its part of every tensor in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from .access import Access, Inlining, Use, uses_of
from .placement import Placement
from .program import Computed, Stage

UNKNOWN_EXTENT = 128
SERIAL_LIMIT = 1 << 18


def estimate(extent: int | None) -> int:
    """An extent for cost models, estimated if it is dynamic."""
    return UNKNOWN_EXTENT if extent is None else extent


@dataclass(eq=False)
class Nest:
    """Stages in order; `axes[stage][i]` is the axis of its loop i, `common` the shared ones."""

    stages: list[Stage] = field(default_factory=list)
    axes: dict[Stage, list[int]] = field(default_factory=dict)
    origin: list[tuple[Stage, int]] = field(default_factory=list)
    common: list[int] = field(default_factory=list)

    def extent(self, axis: int) -> int | None:
        """Static extent of an axis, or None."""
        stage, loop = self.origin[axis]
        return stage.extents[loop]

    def inner(self, stage: Stage) -> list[int]:
        """The axes that the stage loops over inside of the common ones, in order."""
        return [a for a in self.axes[stage] if a not in self.common and self.extent(a) != 1]

    def use_axes(self, stage: Stage, use: Use) -> set[int]:
        """The axes of one index of an access, without unit axes."""
        axes = {self.axes[stage][dim] for dim in use.dims}
        return {axis for axis in axes if self.extent(axis) != 1}

    def add(self, stage: Stage, bound: dict[int, int], common: Iterable[int]) -> None:
        """Appends a stage whose loop i is the axis `bound[i]`, or an axis of its own."""
        axes = []
        for loop in range(len(stage.extents)):
            if loop not in bound:
                self.origin.append((stage, loop))
            axes.append(bound.get(loop, len(self.origin) - 1))
        self.stages.append(stage)
        self.axes[stage] = axes
        remaining = set(common)
        self.common = [axis for axis in self.common if axis in remaining]

    @staticmethod
    def of(stage: Stage) -> "Nest":
        """A nest of one stage."""
        nest = Nest()
        nest.add(stage, {}, ())
        parallel = [
            a for a, reduces in zip(nest.axes[stage], stage.reduces, strict=True) if not reduces
        ]
        nest.common = [axis for axis in parallel if nest.extent(axis) != 1]
        return nest

    def work(self) -> int:
        """Rough count of scalar iterations."""
        return sum(prod(map(estimate, stage.extents)) for stage in self.stages)


def join(nest: Nest, stage: Stage, placement: Placement) -> bool:
    """Adds the stage to the nest if its loops match and that saves memory traffic."""
    binding = _bind(nest, stage, placement)
    if binding is None:
        return False
    bound, common = binding
    if _overlaps(nest, stage, bound, common, placement):
        return False
    serial = not common and nest.work() + prod(map(estimate, stage.extents)) <= SERIAL_LIMIT
    if not common and not (serial and not nest.common):
        return False
    nest.add(stage, bound, common)
    return True


def _bind(nest: Nest, stage: Stage, placement: Placement) -> tuple[dict[int, int], set[int]] | None:
    """The stage's loops as axes of the nest, and the common axes that remain.

    A loop becomes an axis only if their extents are proved equal, since the nest iterates over the
    extent of the axis.
    """
    bound: dict[int, int] = {}
    common = set(nest.common)
    linked, same = False, placement.extents.equal
    for access in placement.inlining.reads(stage):
        tensor = access.tensor
        if not isinstance(tensor, Computed) or tensor.stage not in nest.axes:
            continue
        if access.uses is None or tensor.stage.window is not None:
            return None
        linked = True
        written = uses_of(tensor.stage.inits[tensor.index].indices)
        for own, use in zip(written, access.uses, strict=True):
            for axis in nest.use_axes(tensor.stage, own):
                loop = use.dim
                # Two loops at one axis would visit its diagonal alone.
                is_free = loop in bound or axis not in bound.values()
                fits = own.plain and loop is not None and bound.get(loop, axis) == axis and is_free
                if loop is not None and fits and same(stage, loop, *nest.origin[axis]):
                    bound[loop] = axis
                    continue
                common.discard(axis)
                if loop is not None:
                    common.discard(bound.get(loop, axis))
    parallel = {axis for loop, axis in bound.items() if not stage.reduces[loop]}
    return (bound, common & parallel) if linked else None


def _overlaps(
    nest: Nest, stage: Stage, bound: dict[int, int], common: set[int], placement: Placement
) -> bool:
    """Whether iterations of the nest would access memory that other iterations write."""
    written = {placement.spots[r].owner for s in nest.stages for r in s.results
               if r in placement.spots}  # fmt: skip
    for access in placement.inlining.reads(stage):
        spot = placement.spot(access.tensor)
        own = isinstance(access.tensor, Computed) and access.tensor.stage in nest.axes
        if spot is not None and spot.owner in written and not own:
            return True
    for result, init in zip(stage.results, stage.inits, strict=True):
        if result not in placement.spots:
            continue
        spot = placement.spots[result]
        dims = [use.dim for use in uses_of(init.indices)]
        target = [None if dim is None else bound.get(dim) for dim in dims]
        for member in nest.stages:
            for access in placement.inlining.reads(member):
                read = placement.spot(access.tensor)
                if read is None or read.owner is not spot.owner:
                    continue
                if spot.path or access.uses is None or access.sliced or stage.window is not None:
                    return True
                read_axes = [next(iter(nest.use_axes(member, u)), None) if u.plain else None
                          for u in access.uses]  # fmt: skip
                if any(
                    axis in common and axis != at
                    for axis, at in zip(target, read_axes, strict=True)
                ):
                    return True
    return False


@dataclass(eq=False)
class Cluster:
    """Stages that share all their loops: values pass from one to the next in registers."""

    stages: list[Stage]
    axes: list[int]


def clusters(nest: Nest, inlining: Inlining) -> list[Cluster]:
    """Splits a nest into runs of stages that run in one loop."""
    result: list[Cluster] = []
    for stage in nest.stages:
        if not result or not _continues(result[-1], nest, stage, inlining):
            result.append(Cluster([], nest.inner(stage)))
        result[-1].stages.append(stage)
    return result


def _continues(cluster: Cluster, nest: Nest, stage: Stage, inlining: Inlining) -> bool:
    if set(nest.inner(stage)) != set(cluster.axes):
        return False
    if not cluster.axes:
        # A reduction over one element ends before another stage reads its result.
        return not any(member.has_reduction for member in [*cluster.stages, stage])
    if any(_is_mixed(nest, member) for member in [*cluster.stages, stage]):
        return False
    for access in inlining.reads(stage):
        tensor = access.tensor
        if isinstance(tensor, Computed) and tensor.stage in cluster.stages:
            if not _is_forwarded(nest, stage, access, tensor):
                return False
    return True


def _is_mixed(nest: Nest, stage: Stage) -> bool:
    """Whether the stage reduces over some of its inner axes and not over others."""
    inner = set(nest.inner(stage))
    reduced = {a for a, r in zip(nest.axes[stage], stage.reduces, strict=True) if r and a in inner}
    return bool(reduced) and reduced != inner


def _is_forwarded(nest: Nest, stage: Stage, access: Access, tensor: Computed) -> bool:
    """Whether the stage reads the element that the same iteration computed."""
    producer = tensor.stage
    if producer.has_reduction or producer.window is not None or access.sliced:
        return False
    if access.uses is None:
        return False
    written = uses_of(producer.inits[tensor.index].indices)
    return all(
        own.plain and use.plain and nest.use_axes(producer, own) == nest.use_axes(stage, use)
        for own, use in zip(written, access.uses, strict=True)
    )
