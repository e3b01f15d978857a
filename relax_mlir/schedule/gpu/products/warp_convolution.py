"""The rule for convolutions of f16, bf16 or i8, on devices whose warps multiply matrices.

    filters [f, (c, u, v)]          16 bytes at a time, where they lie so
    windows [(c, u, v), (n, y, x)]  element by element; a thread's elements are of one pixel
    windows [(n, y, x), (u, v, c)]  16 bytes at a time, where channels lie so

Filters and pixels are those of `convolution.py`, tiles those of `tensor_cores.py`. No windows are
stored: while warps multiply a step, the next one is copied from images, zeros for padding.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.program import Program
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .convolution import Convolution, match
from .copies import SidePlan
from .narrow import are_narrow, is_half_or_byte, plan_sides
from .tensor_cores import depth_of, launch, tile_of


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that convolves images of 16 or 8 bits; False for others."""
    if not device.multiplies_matrices:
        return False

    def emit(kernel: Kernel, convolution: Convolution) -> None:
        product = convolution.product(kernel, tile_of)
        plans = plan_sides(product, SidePlan, depth_of(convolution.contraction))
        launch(product, plans, device)

    return rewrite(prim_func, ONE_LANE, _match, emit)


def _match(program: Program) -> Convolution | None:
    convolution = match(program)
    if convolution is None or not are_narrow([convolution.contraction], is_half_or_byte):
        return None
    return convolution
