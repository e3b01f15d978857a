"""Loads weights as the arguments of a compiled decoder, one at a time.

A weight is decoded or repacked, concatenated with others, and packed for the kernels by a function
of the decoder. This needs memory for the result and one more weight.
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
from relax_mlir.llm.decoder.arrays import ELEMENTS, Kind, aligned_arrays, as_bytes
from relax_mlir.llm.decoder.panels import pack_matrix
from relax_mlir.llm.formats.quantization import RawTensor
from relax_mlir.llm.modules.nn import BF16, Parameter

CHUNK_ROWS = 256 * PANEL
"""Rows of a matrix that one thread decodes at a time."""


class Weights(Protocol):
    """Weights by name, as `WeightSource` has them; `where` names their file."""

    where: str

    def raw(self, name: str) -> RawTensor:
        """A weight in its storage format."""

    def release(self) -> None:
        """Releases the memory of pages that were read."""


class Sink(Protocol):
    """The destination of a decoder's arguments."""

    def allocate(self, index: int) -> np.ndarray:
        """An array for argument `index`, to be filled."""

    def finish(self, index: int) -> None:
        """Called in order, once the array has been filled."""


class Memory:
    """Stores all arguments in memory: `arrays`, in one allocation."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.arrays = aligned_arrays(kinds, "the weights")

    def allocate(self, index: int) -> np.ndarray:
        """See `Sink`."""
        return self.arrays[index]

    def finish(self, index: int) -> None:
        """See `Sink`."""


class File:
    """Writes the arguments to a file, in the layout of `arrays.views_of`."""

    def __init__(self, file: BinaryIO, kinds: Sequence[Kind]) -> None:
        self._file = file
        self._kinds = kinds
        self._open: dict[int, np.ndarray] = {}

    def allocate(self, index: int) -> np.ndarray:
        """See `Sink`."""
        [self._open[index]] = aligned_arrays([self._kinds[index]], "a weight")
        return self._open[index]

    def finish(self, index: int) -> None:
        """See `Sink`."""
        self._file.writelines(as_bytes([self._open.pop(index)]))


@dataclass(frozen=True)
class _Origin:
    """The function that computes an argument, None for a parameter of the graph, and its inputs."""

    by: str | None
    sources: tuple[int, ...]


def load_parameters(
    source: Weights,
    parameters: Sequence[Parameter],
    executable: Executable,
    sink: Sink,
    threads: int = 1,
) -> None:
    """Makes the arguments of a decoder that follow its caches, and passes them to `sink` in order.

    `parameters` are those of its graph. Each weight is decoded or repacked by `threads` threads,
    with a progress bar on a terminal.

    Raises ModelError if a weight cannot be read, MemoryError, and errors of `sink`.
    """
    origins = _origins(executable, parameters)
    groups = groupby(
        range(len(origins)), lambda index: parameters[origins[index].sources[0]].sources
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
            indices = list(group)
            _make(source, parameters, executable, sink, pool, {p: origins[p] for p in indices})
            source.release()
            bar.update(len(indices))


def arguments_after(
    executable: Executable, given: int, source: Weights, parameters: Sequence[Parameter]
) -> Sequence[np.ndarray]:
    """The weights that `@main` takes after so many arguments, in memory; see `load_parameters`."""
    kinds = [
        (tuple(dim for dim in each.dims or () if isinstance(dim, int)), ELEMENTS[each.dtype])
        for each in executable["main"].arguments[given:]
    ]
    memory = Memory(kinds)
    load_parameters(source, parameters, executable, memory, executable.threads)
    return memory.arrays


def _origins(executable: Executable, parameters: Sequence[Parameter]) -> list[_Origin]:
    """The origin of each argument, from the metadata of `relax-lift-params`.

    A decoder that was compiled below `-O3` takes the graph's parameters.
    """
    arguments = executable.metadata["functions"]["main"]["arguments"]
    computed = [argument["made"] for argument in arguments if "made" in argument]
    if not computed:
        return [_Origin(None, (index,)) for index in range(len(parameters))]
    return [_Origin(made["by"], tuple(made["from"])) for made in computed]


def _make(
    source: Weights,
    parameters: Sequence[Parameter],
    executable: Executable,
    sink: Sink,
    pool: ThreadPoolExecutor,
    origins: Mapping[int, _Origin],
) -> None:
    """Makes the arguments that are computed from the same weights."""
    outs = {index: sink.allocate(index) for index in origins}
    arrays = {o.sources[0]: outs[index] for index, o in origins.items() if o.by is None}
    for given in {given for origin in origins.values() for given in origin.sources}:
        if given not in arrays:
            kind = (parameters[given].dims, ELEMENTS[parameters[given].dtype])
            [arrays[given]] = aligned_arrays([kind], "a weight")
    chosen = sorted(arrays)
    pieces = list(_pieces(source, [parameters[n] for n in chosen], [arrays[n] for n in chosen]))
    for _ in pool.map(_Piece.fill, pieces):
        pass
    for index, origin in origins.items():
        if origin.by is not None:
            inputs = [arrays[given] for given in origin.sources]
            executable[origin.by].bind(*inputs, results=[outs[index]]).run()
        sink.finish(index)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows of a weight, and the slices of parameters that they fill: `outs`, by part."""

    where: str
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
                raise ModelError(f"{self.where}: weight '{self.name}' {error}") from None
        else:
            self.raw.to_f32(self.outs["values"])


def _pieces(
    source: Weights, parameters: Sequence[Parameter], arrays: Sequence[np.ndarray]
) -> Iterator[_Piece]:
    """Splits the weights that fill the arrays into chunks of rows."""
    by_sources = groupby(zip(parameters, arrays, strict=True), lambda pair: pair[0].sources)
    for sources, pairs in by_sources:
        members = list(pairs)
        parts = {parameter.part: array for parameter, array in members}
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
                yield _Piece(source.where, name, chunk, members[0][0].scheme, outs)
            begin += -(-length // unit)
