"""Weights as the arguments of a compiled decoder, made one after the other.

A weight is decoded or repacked, joined with its neighbours, and laid out for the kernels by the
function that the decoder has for that. Memory is needed for the result, and for one weight besides.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import BinaryIO, Protocol

import numpy as np
from tqdm import tqdm

from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.errors import ModelError
from relax_mlir.executable import Executable
from relax_mlir.llm.arrays import ELEMENTS, Kind, aligned_arrays, as_bytes
from relax_mlir.llm.nn import BF16, Parameter
from relax_mlir.llm.panels import pack_matrix
from relax_mlir.llm.quantization import RawTensor
from relax_mlir.llm.weights import WeightSource

CHUNK_ROWS = 256 * PANEL
"""Rows of a matrix that one thread decodes at a time."""


class Sink(Protocol):
    """Where the arguments of a decoder go."""

    def room(self, place: int) -> np.ndarray:
        """An array for argument `place`, to be filled."""

    def finish(self, place: int) -> None:
        """Called in order, once the array has been filled."""


class Memory:
    """Keeps all arguments: `arrays`, in one allocation."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.arrays = aligned_arrays(kinds, "the weights")

    def room(self, place: int) -> np.ndarray:
        """See `Sink`."""
        return self.arrays[place]

    def finish(self, place: int) -> None:
        """See `Sink`."""


class File:
    """Writes the arguments to a file, from which `arrays.placed` reads them."""

    def __init__(self, file: BinaryIO, kinds: Sequence[Kind]) -> None:
        self._file = file
        self._kinds = kinds
        self._open: dict[int, np.ndarray] = {}

    def room(self, place: int) -> np.ndarray:
        """See `Sink`."""
        [self._open[place]] = aligned_arrays([self._kinds[place]], "a weight")
        return self._open[place]

    def finish(self, place: int) -> None:
        """See `Sink`."""
        self._file.writelines(as_bytes([self._open.pop(place)]))


@dataclass(frozen=True)
class _Origin:
    """What makes an argument, None if it is a parameter of the graph, and of which of these."""

    by: str | None
    sources: tuple[int, ...]


def load_parameters(
    source: WeightSource,
    parameters: Sequence[Parameter],
    executable: Executable,
    sink: Sink,
    threads: int = 1,
) -> None:
    """Makes the arguments of a decoder that follow its caches, and hands them to `sink` in order.

    `parameters` are those of its graph. Each weight is decoded or repacked by `threads` threads,
    with a progress bar if a person is watching.

    Raises ModelError if a weight cannot be read, MemoryError, and what `sink` raises.
    """
    origins = _origins(executable, parameters)
    groups = groupby(
        range(len(origins)), lambda place: parameters[origins[place].sources[0]].sources
    )
    with (
        ThreadPoolExecutor(threads) as pool,
        tqdm(
            desc="loading weights",
            total=len(origins),
            leave=False,
            disable=None,  # no terminal, no bar
        ) as bar,
    ):
        for _, group in groups:
            places = list(group)
            _make(source, parameters, executable, sink, pool, {p: origins[p] for p in places})
            source.release()
            bar.update(len(places))


def _origins(executable: Executable, parameters: Sequence[Parameter]) -> list[_Origin]:
    """Where each argument comes from: `relax-lift-params` has written it down.

    A decoder that was compiled below `-O3` takes the parameters as they are.
    """
    arguments = executable.metadata["functions"]["main"]["arguments"]
    found = [argument["made"] for argument in arguments if "made" in argument]
    if not found:
        return [_Origin(None, (place,)) for place in range(len(parameters))]
    return [_Origin(made["by"], tuple(made["from"])) for made in found]


def _make(
    source: WeightSource,
    parameters: Sequence[Parameter],
    executable: Executable,
    sink: Sink,
    pool: ThreadPoolExecutor,
    origins: Mapping[int, _Origin],
) -> None:
    """Makes the arguments that come from the same weights."""
    rooms = {place: sink.room(place) for place in origins}
    arrays = {o.sources[0]: rooms[place] for place, o in origins.items() if o.by is None}
    for number in {number for origin in origins.values() for number in origin.sources}:
        if number not in arrays:
            kind = (parameters[number].dims, ELEMENTS[parameters[number].dtype])
            [arrays[number]] = aligned_arrays([kind], "a weight")
    chosen = sorted(arrays)
    pieces = list(_pieces(source, [parameters[n] for n in chosen], [arrays[n] for n in chosen]))
    for _ in pool.map(_Piece.fill, pieces):
        pass
    for place, origin in origins.items():
        if origin.by is not None:
            inputs = [arrays[number] for number in origin.sources]
            executable[origin.by].bind(*inputs, results=[rooms[place]]).run()
        sink.finish(place)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows of a weight, and what they fill of the arrays of parameters: `outs`, by part."""

    name: str
    raw: RawTensor
    scheme: str
    outs: Mapping[str, np.ndarray]

    def fill(self) -> None:
        """Decodes or repacks the rows; raises ModelError if they cannot be rounded."""
        if self.scheme == BF16:
            self.raw.to_bf16(self.outs["values"])
        elif self.scheme:
            try:
                pack_matrix(self.raw, self.scheme, self.outs)
            except ModelError as error:
                raise ModelError(f"weight '{self.name}' {error}") from None
        else:
            self.raw.to_f32(self.outs["values"])


def _pieces(
    source: WeightSource, parameters: Sequence[Parameter], arrays: Sequence[np.ndarray]
) -> Iterator[_Piece]:
    """What fills the arrays: some rows of a weight each."""
    by_sources = groupby(zip(parameters, arrays, strict=True), lambda pair: pair[0].sources)
    for sources, pairs in by_sources:
        found = list(pairs)
        parts = {parameter.part: array for parameter, array in found}
        unit = PANEL if "data" in parts else 1
        begin = 0  # of the weight, in units
        for name in sources:
            raw = source.raw(name)
            length = raw.shape[0]
            step = CHUNK_ROWS if len(raw.shape) > 1 else max(length, 1)
            for first in range(0, length, step):
                last = min(first + step, length)
                rows = slice(begin + first // unit, begin + -(-last // unit))
                outs = {part: array[rows] for part, array in parts.items()}
                chunk = raw if last - first == length else raw.rows(first, last)
                yield _Piece(name, chunk, found[0][0].scheme, outs)
            begin += -(-length // unit)
