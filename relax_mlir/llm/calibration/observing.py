"""Runs a decoder over texts, and passes on what its matrices are multiplied with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.compiler import compile
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.arrays import ELEMENTS, aligned_arrays
from relax_mlir.llm.decoder.building import storage_of
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.decoder.parameters import arguments_after
from relax_mlir.llm.decoder.pictures import image_arguments
from relax_mlir.llm.modules.decoder import Transformer
from relax_mlir.llm.modules.operands import export_operands

CHUNK = 64
"""Tokens of a call, which bounds the memory of operands; layers with states take no more."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Rows that the weights of unit `unit` were multiplied with, float32[rows, columns]."""

    unit: int
    rows: np.ndarray


class ObservedDecoder:
    """A decoder with exact products, whose weights stay in the types of the file.

    `units` are the names of the weights that share an operand, those of each expert apart;
    `columns` are its sizes.
    """

    def __init__(self, checkpoint: Checkpoint, window: int) -> None:
        """Compiles it for windows of so many tokens. Raises as `decoder_for` does."""
        self._config = checkpoint.config
        graph = Transformer(
            checkpoint.config, storage_of(checkpoint.weights, Settings(activations="f32"))
        )
        text, self._operands = export_operands(graph)
        executable = compile(text, "native", 3)
        self._main = executable["main"]
        caches = [argument for argument in self._main.arguments if argument.inout]
        first = self._main.arguments.index(caches[0])
        given = first + len(caches)
        parameters = arguments_after(executable, given, checkpoint.weights, graph.parameters())
        kinds = [
            (tuple(d if isinstance(d, int) else window for d in c.dims or ()), ELEMENTS[c.dtype])
            for c in caches
        ]
        self._caches = aligned_arrays(kinds, "caches")
        self._lengths = np.zeros(2, np.int64)
        images: list[np.ndarray] = []
        if checkpoint.config.image_id is not None:
            images = image_arguments((), 0, 1, checkpoint.config)
        arguments = (np.zeros(1, np.int32), self._lengths, *images, *self._caches, *parameters)
        self._call = self._main.bind(*arguments)
        self.units = [names for operand in self._operands for names in operand.names]
        self.columns = self._columns()

    def _columns(self) -> list[int]:
        results = iter(self._main.results[1 + len(self._caches) :])
        columns: list[int] = []
        for operand in self._operands:
            dims = next(results).dims
            if operand.has_experts:
                next(results)
            assert dims is not None
            assert isinstance(dims[-1], int)
            columns += [dims[-1]] * len(operand.names)
        return columns

    def run(self, tokens: Sequence[int]) -> Iterator[tuple[int, list[Observed]]]:
        """Runs a window: the count of tokens and what was observed, a chunk at a time."""
        for cache in self._caches:
            cache[...] = 0
        for begin in range(0, len(tokens), CHUNK):
            chunk = np.array(tokens[begin : begin + CHUNK], np.int32)
            self._lengths[:] = begin, len(chunk)
            self._call.set(0, chunk)
            if self._config.image_id is not None:
                images = image_arguments((), begin, begin + len(chunk), self._config)
                for index, array in enumerate(images, 2):
                    self._call.set(index, array)
            results = self._call.run()
            yield len(chunk), list(self._observed(results[1 + len(self._caches) :]))

    def _observed(self, results: Sequence[np.ndarray]) -> Iterator[Observed]:
        unit, rest = 0, iter(results)
        for operand in self._operands:
            rows = np.asarray(next(rest))
            if not operand.has_experts:
                yield Observed(unit, rows.reshape(-1, rows.shape[-1]))
            else:
                chosen = np.asarray(next(rest))
                shape = (*chosen.shape, rows.shape[-1])
                # Either a row for each token, or one for each of its experts.
                by_expert = rows.reshape(len(chosen), -1, rows.shape[-1])
                by_expert = np.broadcast_to(by_expert, shape)
                for expert in range(len(operand.names)):
                    yield Observed(unit + expert, by_expert[chosen == expert])
            unit += len(operand.names)
