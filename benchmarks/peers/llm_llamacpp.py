"""llama.cpp, on a GGUF file with the weights in the wanted type."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from peers.llm_decoder import CAPACITY, Decoder, Program

from relax_mlir.llm.measurement.peers import LlamaCpp


class Llama(Decoder):
    """The packaged model; its file is written into the cache folder when it is first needed."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        # Not on the pages of its file, but on huge ones, like the others.
        self._model = LlamaCpp("smollm2", CAPACITY, weights, map_file=False)
        self._model.set_threads(threads)

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        self._model.append(tokens)

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._model.truncate(length)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._model.logits()


class LlamaProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Llama, LlamaCpp.version, threads)
