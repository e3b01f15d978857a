"""This project's decoder, and the machine's reading kernel, as programs of `llm.py`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from peers.llm_decoder import CAPACITY, Decoder, Program
from worker import Prepared

import relax_mlir
from relax_mlir.llm import load
from relax_mlir.machine import read_call
from relax_mlir.target import Target


class Relax(Decoder):
    """The packaged model, from the disk cache if it was compiled before."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        self._session = load(weights=weights, threads=threads).session(CAPACITY)
        self._row = np.empty(0, np.float32)

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        self._row = self._session.append(tokens)[0]

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._session.truncate(length)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._row


class Ours(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(Relax, relax_mlir.__version__, threads)


class Reader:
    """Reads memory that is asked to be on huge pages."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        call = read_call(True, Target.parse("native"))
        self._prepared = Prepared(lambda: call.run(threads))

    def prepare(self, case: dict) -> Prepared:
        """The same for each case."""
        return self._prepared
