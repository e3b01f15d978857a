"""The rule for convolutions with an elementwise epilogue: products of filters and windows.

    result[n, (g), f, y, x] = sum over c, u, v of
        image[n, (g), c, y * s + u * d, x * t + v * e] * filter[(g), f, c, u, v]

    columns   pixels of the result, of all images: (n, y, x)
    rows      filters of a group: f
    k         what a filter has, in the order of its memory: (c, u, v)

Rows and columns are the other way round where filters are the last dim of the result. Tiles are
those of other products: no windows are stored, but elements are copied from images to memory of the
group one by one, where those in padding are zero.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import (
    Contraction,
    Factor,
    constant_of,
    factor_of,
    factors_of,
    loops_of,
)
from relax_mlir.program.padding import Padding, take_padding
from relax_mlir.program.program import Program, Stage, all_known
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.gpu.nests import ONE_LANE
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Device

from .sides import Product, Shape
from .tiles import DEPTH, launch, tile_of

FEWEST_FILTERS = 16
"""Groups of fewer filters, where that is known, leave most of a tile unused."""


@dataclass(frozen=True)
class Convolution:
    """A product of filters and windows.

    `summed` are the loops of k, outermost first; `padding` is that of the left and right side.
    """

    contraction: Contraction
    summed: tuple[int, ...]
    padding: tuple[Padding, Padding]

    def product(self, kernel: Kernel, tile: Callable[[Index], Shape]) -> Product:
        """The product; see `Product.of`."""
        return Product.of(kernel, [self.contraction], tile, self.summed, self.padding)


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a program that convolves images; False for others."""

    def emit(kernel: Kernel, convolution: Convolution) -> None:
        launch(convolution.product(kernel, lambda rows: tile_of(device)), device)

    return rewrite(prim_func, ONE_LANE, match, emit)


def match(program: Program) -> Convolution | None:
    """The convolution of a program that works elementwise on its result, or None.

    The padding is removed from the program.
    """
    reducing = [stage for stage in program.stages if stage.has_reduction]
    if len(reducing) != 1 or len(reducing[0].reads) != 2 or len(reducing[0].inits) != 1:
        return None
    stage = reducing[0]
    if stage.block is None or any(each.gathers for each in program.stages):
        return None
    plain = [read for read in range(2) if loops_of(stage.reads[read].indices) is not None]
    return _match_sides(program, stage, *plain) if len(plain) == 1 else None


def _match_sides(program: Program, stage: Stage, filters: int) -> Convolution | None:
    """The stage as a convolution whose filters are read `filters`."""
    image = 1 - filters
    values, initial = factors_of(stage), constant_of(stage.inits[0].tensor)
    if values is None or initial is None:
        return None
    padding = take_padding(program, stage, image, values[image])
    if padding is None or any(each.window is not None for each in program.stages):
        return None
    sides = all_known(factor_of(stage, read, values[read]) for read in (filters, image))
    if sides is None or (padding and sides[1].indices != stage.reads[image].indices):
        return None  # a producer of the image permutes it
    return _assign(stage, sides[0], sides[1], initial, padding)


def _assign(
    stage: Stage, filters: Factor, image: Factor, initial: float, padding: Padding
) -> Convolution | None:
    """Gives the loops their roles."""
    result, within = loops_of(stage.inits[0].indices), loops_of(filters.indices)
    reduced = [loop for loop, is_summed in enumerate(stage.reduces) if is_summed]
    if result is None or within is None or len(set(within)) != len(within):
        return None
    if sorted([*result, *reduced]) != list(range(len(stage.extents))):
        return None
    own = _present(stage, [loop for loop in result if loop in filters.dims - image.dims])
    pixels = _present(stage, [loop for loop in result if loop in image.dims - filters.dims])
    inner = [loop for loop in within if loop in reduced]
    summed = _present(stage, [*(loop for loop in reduced if loop not in inner), *inner])
    if not (own and pixels and summed) or _is_small(stage, own, summed):
        return None
    batch = tuple(loop for loop in result if loop not in (*own, *pixels))
    k = summed[-1]
    if result.index(own[-1]) > result.index(pixels[-1]):
        contraction = Contraction(stage, image, filters, batch, pixels, own, k, False, initial)
        return Convolution(contraction, summed, (padding, ()))
    contraction = Contraction(stage, filters, image, batch, own, pixels, k, False, initial)
    return Convolution(contraction, summed, ((), padding))


def _present(stage: Stage, loops: Sequence[int]) -> tuple[int, ...]:
    """The loops without those of one iteration, or the last one."""
    return tuple(loop for loop in loops if stage.extents[loop] != 1) or tuple(loops[-1:])


def _is_small(stage: Stage, rows: Sequence[int], summed: Sequence[int]) -> bool:
    """Whether there are known to be fewer filters, or shorter sums, than a tile is for."""
    filters, depth = ([stage.extents[loop] for loop in loops] for loops in (rows, summed))
    return _is_less(filters, FEWEST_FILTERS) or _is_less(depth, DEPTH)


def _is_less(extents: Sequence[int | None], least: int) -> bool:
    known = all_known(extents)
    return known is not None and prod(known) < least
