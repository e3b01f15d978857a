"""Weights as the arguments of a compiled decoder: decoded or repacked, joined, in one place."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from tqdm import tqdm

from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.executable import Executable
from relax_mlir.llm.arrays import ELEMENTS, aligned_arrays
from relax_mlir.llm.nn import BF16, Parameter
from relax_mlir.llm.panels import pack_matrix
from relax_mlir.llm.weights import WeightSource


def load_parameters(
    source: WeightSource, parameters: Sequence[Parameter], threads: int = 1
) -> list[np.ndarray]:
    """Reads the value of each parameter: its sources, joined along dim 0.

    Each weight is decoded or repacked to where it stays, by `threads` threads, with a progress bar
    if a person is watching. The arrays are row-major and aligned, and share one allocation.
    """
    arrays = aligned_arrays([(p.dims, ELEMENTS[p.dtype]) for p in parameters])
    pieces = _pieces(source, parameters, arrays)
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
        for piece in pool.map(lambda piece: piece.fill(source), pieces):
            bar.update(piece.nbytes)
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
    """What weight `name` fills of the arrays of parameters: `outs`, by part."""

    name: str
    scheme: str
    outs: Mapping[str, np.ndarray]

    @property
    def nbytes(self) -> int:
        """Bytes that are filled."""
        return sum(out.nbytes for out in self.outs.values())

    def fill(self, source: WeightSource) -> "_Piece":
        """Reads the weight."""
        if self.scheme == BF16:
            source.raw(self.name).to_bf16(self.outs["values"])
        elif self.scheme:
            pack_matrix(source.raw(self.name), self.scheme, self.outs)
        else:
            source.load_f32(self.name, self.outs["values"])
        return self


def _pieces(
    source: WeightSource, parameters: Sequence[Parameter], arrays: Sequence[np.ndarray]
) -> list[_Piece]:
    """The parts of the arrays that each weight fills: rows, or panels of rows."""
    shapes = source.config.weight_shapes()
    pieces = []
    by_sources = groupby(zip(parameters, arrays, strict=True), lambda pair: pair[0].sources)
    for sources, pairs in by_sources:
        found = list(pairs)
        parts = {parameter.part: array for parameter, array in found}
        scheme = found[0][0].scheme
        unit = PANEL if "data" in parts else 1
        begin = 0
        for name in sources:
            end = begin + -(-shapes[name][0] // unit)
            outs = {part: array[begin:end] for part, array in parts.items()}
            pieces.append(_Piece(name, scheme, outs))
            begin = end
    return pieces
