"""This project's decoder, and kernels that find the machine's limits, as programs of `llm.py`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from peers.llm_decoder import CAPACITY, Decoder, Program
from worker import Prepared

import relax_mlir
from relax_mlir.llm import load
from relax_mlir.machine.measure import peak_call, read_call
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


class Multiplier:
    """Multiply-adds, as many on any count of threads."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, case: dict) -> Prepared:
        """A case has a "unit" of the processor, and for how many threads there is to be work."""
        made = peak_call(case["unit"], Target.parse("native"), case["threads"])
        if made is None:
            raise NotImplementedError(f"this processor has no {case['unit']} unit")
        call, _ = made
        return Prepared(lambda: call.run(self._threads))
