"""This project's steps of generation for many sequences, as a program of `batches.py`."""

import numpy as np
from worker import Prepared

import relax_mlir
from relax_mlir.llm.batching.batch import Batch, Run
from relax_mlir.llm.batching.loading import load_batch
from relax_mlir.llm.batching.sequence import pages_of


class Steps:
    """Started by `worker.py`."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._loaded: tuple[str, int, Batch] | None = None

    def prepare(self, case: dict) -> Prepared:
        """A token of each sequence after `context` others; gives float32[sequences, vocabulary]."""
        each = pages_of(case["context"] + 1)
        batch = self._batch(case["weights"], each * case["most"])
        tokens = np.array(case["tokens"])
        pages = np.arange(len(tokens) * each).reshape(-1, each).tolist()
        for row, table in zip(tokens, pages, strict=True):
            batch.step([Run(row[:-1].tolist(), 0, table)])
        runs = [
            Run([int(row[-1])], case["context"], table)
            for row, table in zip(tokens, pages, strict=True)
        ]
        return Prepared(lambda: [batch.step(runs)])

    def _batch(self, weights: str, pages: int) -> Batch:
        if self._loaded is None or self._loaded[:2] != (weights, pages):
            _, batch = load_batch("smollm2", weights, self._threads, pages)
            self._loaded = weights, pages, batch
        return self._loaded[2]
