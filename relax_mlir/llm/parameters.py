"""Weights as the arguments of a compiled decoder: decoded or repacked, joined, in one place."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.executable import Executable
from relax_mlir.llm.arrays import ELEMENTS, aligned_arrays
from relax_mlir.llm.nn import BF16, Parameter
from relax_mlir.llm.panels import DTYPES, pack_part
from relax_mlir.llm.weights import WeightSource


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
            total=sum(piece.nbytes for piece in pieces),
            unit="B",
            unit_scale=True,
            leave=False,
            disable=None,  # no terminal, no bar
        ) as bar,
    ):
        for filled in pool.map(lambda piece: piece.fill(source), pieces):
            bar.update(filled.nbytes)
    return arrays


def lay_out(executable: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The parameters in the layout that the decoder takes: what its `main_params` makes of them.

    A decoder without that function, compiled below `-O3`, takes them as they are.
    """
    if "main_params" not in executable.functions:
        return list(arrays)
    function = executable["main_params"]
    kinds = [(result.dims, ELEMENTS[result.dtype]) for result in function.results]
    laid_out = aligned_arrays(kinds)
    return list(function.bind(*arrays, results=laid_out).run())


@dataclass(frozen=True, eq=False)
class _Piece:
    """What weight `name` fills of the array of a parameter."""

    name: str
    part: str
    out: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that are filled."""
        return self.out.nbytes

    def fill(self, source: WeightSource) -> np.ndarray:
        """Reads the weight."""
        if self.part == "values":
            if self.out.dtype == ELEMENTS[BF16]:
                return source.raw(self.name).to_bf16(self.out)
            return source.load_f32(self.name, self.out)
        return pack_part(source.raw(self.name), self.part, self.out)


def _pieces(source: WeightSource, parameter: Parameter, array: np.ndarray) -> list[_Piece]:
    """The parts of `array` that the sources of the parameter fill: rows, or panels of rows."""
    shapes = source.config.weight_shapes()
    unit = 1 if parameter.part == "values" else PANEL
    pieces, begin = [], 0
    for name in parameter.sources:
        end = begin + -(-shapes[name][0] // unit)
        pieces.append(_Piece(name, parameter.part, array[begin:end]))
        begin = end
    return pieces


def dtype_of(parameter: Parameter) -> np.dtype:
    """The element type of a parameter's array."""
    if parameter.part != "values":
        return DTYPES[parameter.part]
    return ELEMENTS[BF16 if parameter.scheme == BF16 else "f32"]
