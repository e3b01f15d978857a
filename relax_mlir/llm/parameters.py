"""Weights as the arguments of a compiled decoder: decoded to float32, joined, in one allocation."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod

import numpy as np
from tqdm import tqdm

from relax_mlir.llm.nn import Parameter
from relax_mlir.llm.weights import WeightSource

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def load_parameters(
    source: WeightSource, parameters: Sequence[Parameter], threads: int = 1
) -> list[np.ndarray]:
    """Reads the value of each parameter: its sources, joined along dim 0.

    Each weight is decoded to where it stays, by `threads` threads, with a progress bar if a person
    is watching. The arrays are float32, row-major and aligned, and share one allocation.
    """
    arrays = aligned_arrays([parameter.dims for parameter in parameters])
    pieces = [
        piece
        for parameter, array in zip(parameters, arrays, strict=True)
        for piece in _pieces(source, parameter, array)
    ]
    with (
        ThreadPoolExecutor(threads) as pool,
        tqdm(
            desc="loading weights",
            total=sum(piece.nbytes for _, piece in pieces),
            unit="B",
            unit_scale=True,
            leave=False,
            disable=None,  # no terminal, no bar
        ) as bar,
    ):
        for decoded in pool.map(lambda piece: source.load_f32(*piece), pieces):
            bar.update(decoded.nbytes)
    return arrays


def _pieces(
    source: WeightSource, parameter: Parameter, array: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    """The rows of `array` that each source of the parameter fills."""
    shapes = source.config.weight_shapes()
    pieces, begin = [], 0
    for name in parameter.sources:
        end = begin + shapes[name][0]
        pieces.append((name, array[begin:end]))
        begin = end
    return pieces


def aligned_arrays(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """New float32 arrays that begin at cache lines of one allocation; their values are undefined.

    One large allocation can be backed by huge pages, which saves address translations.
    """
    sizes = [4 * prod(shape) for shape in shapes]
    rooms = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
    memory = np.empty(sum(rooms) + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    arrays = []
    for shape, size, room in zip(shapes, sizes, rooms, strict=True):
        arrays.append(memory[begin : begin + size].view(np.float32).reshape(shape))
        begin += room
    return arrays
