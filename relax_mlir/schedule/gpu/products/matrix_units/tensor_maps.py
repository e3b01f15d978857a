"""Sides that lie in memory as a tensor, of which a device copies boxes by itself.

    side [.., rows, k], rows at multiples of 16 bytes
      ->
    %map = nvgpu.tma.create.descriptor %side box[1, rows of a tile, 64]

What is beyond an extent of the tensor is zero in a box. The host makes a map before each launch,
which takes it as an argument.

Source: NVIDIA, CUDA driver API, cuTensorMapEncodeTiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir, memref, nvgpu
from relax_mlir.program.contraction import loops_of
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from ..sides import Product
from .descriptors import ROW, UNIT, SwizzledPlan

MOST_DIMS = 5
"""Dims of a tensor of which boxes are copied."""
_MOST_EXTENT, _MOST_STRIDE = 1 << 30, 1 << 38
"""Extents are below the first, so that coordinates have 32 bits, and strides, in elements, below
the second; devices take a little more."""
_SHARED = 3
"""Memory of a group in the type of a map."""


@dataclass(frozen=True)
class MappedSide:
    """A side as a tensor: its dims are batch loops, then rows of memory, then what is along them.

    `batch` are the positions of its batch loops among all, `sizes` and `strides` those of all dims,
    in elements; the last stride is 1.
    """

    plan: SwizzledPlan
    batch: tuple[int, ...]
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]

    @property
    def box(self) -> tuple[int, ...]:
        """What is copied at once: rows of 128 bytes."""
        return (*(1 for _ in self.batch), self.plan.outer, ROW)

    def fits(self) -> bool | ir.Value:
        """Whether a device takes a map of it; emits what only the host knows."""
        result: bool | ir.Value = self.plan.is_direct
        for size in self.sizes:
            # The least one is 1: what is less wraps around.
            result = loops.and_(result, loops.less(loops.sub(size, 1), _MOST_EXTENT - 1))
        for stride in self.strides[:-1]:
            result = loops.and_(result, loops.less(stride, _MOST_STRIDE))
        return result

    def create(self) -> ir.Value:
        """Emits the map."""
        dynamic = ir.ShapedType.get_dynamic_size()
        stride = ir.ShapedType.get_dynamic_stride_or_offset()
        element, rank = self.plan.element, len(self.sizes)
        layout = f"strided<[{'?, ' * (rank - 1)}1], offset: ?>"
        view = self.plan.side.view
        tensor = memref.ReinterpretCastOp(
            ir.Type.parse(f"memref<{'?x' * rank}{element}, {layout}>"),
            view.base,
            [loops.value(view.offset)],
            [loops.value(size) for size in self.sizes],
            [loops.value(stride) for stride in self.strides[:-1]],
            [stride],
            [dynamic] * rank,
            [*([stride] * (rank - 1)), 1],
        ).result
        whole = memref.cast(ir.Type.parse(f"memref<*x{element}>"), tensor)
        box = "x".join(map(str, self.box))
        kind = ir.Type.parse(
            f"!nvgpu.tensormap.descriptor<tensor = memref<{box}x{element}, {_SHARED}>, "
            "swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>"
        )
        return nvgpu.tma_create_descriptor(kind, whole, [loops.value(x) for x in self.box])

    def coordinates(self, batch: Sequence[Index], row: Index, k: Index, block: int) -> list[Index]:
        """Where the box of a block of 64 elements along rows of memory begins."""
        outer, inner = (row, k) if self.plan.along_depth else (k, row)
        return [*(batch[i] for i in self.batch), outer, loops.add(inner, block * ROW)]


def mapped(product: Product, plan: SwizzledPlan) -> MappedSide | None:
    """A side as a tensor; None if it is none, or is computed on the way."""
    side, contraction = plan.side, plan.side.contraction
    known = loops_of(side.factor.indices)
    if plan.is_direct is False or known is None or side.padding:
        return None
    used = [i for i, loop in enumerate(contraction.batch) if loop in known]
    own = [*(contraction.batch[i] for i in used), *side.along, contraction.depth]
    if sorted(known) != sorted(own) or product.summed != (contraction.depth,):
        return None
    if len(used) + 2 > MOST_DIMS or not _are_in_a_row(known, side.along, side.view.whole):
        return None
    steps = {loop: (side.view.strides[at], side.view.sizes[at]) for at, loop in enumerate(known)}
    ends = [contraction.batch[i] for i in used], (side.along[-1], contraction.depth)
    sizes = [product.shape[loop] for loop in ends[0]]
    extents = side.extent, product.depth
    rows, inner = (0, 1) if plan.along_depth else (1, 0)
    strides = [_stride(*steps[loop]) for loop in (*ends[0], ends[1][rows])]
    return MappedSide(plan, tuple(used), (*sizes, extents[rows], extents[inner]), (*strides, 1))


def _stride(stride: Index, size: Index) -> Index:
    """The stride of a dim; of a single element, one that devices take."""
    return UNIT if size == 1 else stride


def _are_in_a_row(indices: Sequence[int], along: Sequence[int], is_whole: bool) -> bool:
    """Whether the loops of rows are one dim in memory."""
    if len(along) == 1:
        return True
    first = indices.index(along[0])
    return is_whole and tuple(indices[first : first + len(along)]) == tuple(along)
