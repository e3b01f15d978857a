"""Weights as the arguments of a compiled decoder: decoded or repacked, joined, in one allocation."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod

import numpy as np
from tqdm import tqdm

from relax_mlir.executable import Executable
from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.llm.nn import Parameter
from relax_mlir.llm.panels import DTYPES, pack_part
from relax_mlir.llm.weights import WeightSource

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def load_parameters(
    source: WeightSource, parameters: Sequence[Parameter], threads: int = 1
) -> list[np.ndarray]:
    """Reads the value of each parameter: its sources, joined along dim 0.

    Each weight is decoded or repacked to where it stays, by `threads` threads, with a progress bar
    if a person is watching. The arrays are row-major and aligned, and share one allocation.
    """
    arrays = aligned_arrays([(p.dims, dtype_of(p)) for p in parameters])
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


def lay_out(executable: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The parameters in the layout that the decoder takes: what its `main_params` makes of them.

    A decoder without that function, compiled below `-O3`, takes them as they are.
    """
    if "main_params" not in executable.functions:
        return list(arrays)
    function = executable["main_params"]
    laid_out = aligned_arrays([result.dims for result in function.results])
    return list(function.bind(*arrays, results=laid_out).run())


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


def aligned_arrays(
    kinds: Sequence[tuple[tuple[int, ...], np.dtype]],
) -> list[np.ndarray]:
    """New arrays of shapes and element types, each from a cache line on, in one allocation.

    Their values are undefined. One large allocation can be backed by huge pages, which saves
    address translations.
    """
    sizes = [dtype.itemsize * prod(shape) for shape, dtype in kinds]
    rooms = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
    memory = np.empty(sum(rooms) + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    arrays = []
    for (shape, dtype), size, room in zip(kinds, sizes, rooms, strict=True):
        arrays.append(memory[begin : begin + size].view(dtype).reshape(shape))
        begin += room
    return arrays
