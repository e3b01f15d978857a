"""The rule for convolutions of 16 or 8 bits, on devices whose warps or subgroups multiply matrices.

    filters [f, (c, u, v)]          16 bytes at a time, where they lie so
    windows [(c, u, v), (n, y, x)]  element by element; a thread's elements are of one pixel
    windows [(n, y, x), (u, v, c)]  16 bytes at a time, where channels lie so

Filters and pixels are those of `convolution.py`, tiles those of `tensor_cores.py` or, on
devices of Vulkan, of `cooperative.py`, where all is by element. No windows are stored: steps are
copied from images, zeros for padding.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Callable
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.program import Program
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from ..convolution import Convolution, match
from . import cooperative, tensor_cores
from .copies import SidePlan
from .narrow import are_narrow, is_half_or_byte, plan_sides


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that convolves images of 16 or 8 bits; False for others."""
    if device.cooperative("f16"):
        known = partial(cooperative.multiplies, device)
        return rewrite(prim_func, ONE_LANE, partial(_match, known), partial(_cooperative, device))
    if not device.multiplies_matrices:
        return False

    def emit(kernel: Kernel, convolution: Convolution) -> None:
        product = convolution.product(kernel, tensor_cores.tile_of)
        plans = plan_sides(product, SidePlan, tensor_cores.depth_of(convolution.contraction))
        tensor_cores.launch(product, plans, device)

    return rewrite(prim_func, ONE_LANE, partial(_match, is_half_or_byte), emit)


def _cooperative(device: Device, kernel: Kernel, convolution: Convolution) -> None:
    cooperative.launch(convolution.product(kernel, cooperative.tile_of), device)


def _match(is_narrow: Callable[[ir.Type], bool], program: Program) -> Convolution | None:
    convolution = match(program)
    if convolution is None or not are_narrow([convolution.contraction], is_narrow):
        return None
    return convolution
