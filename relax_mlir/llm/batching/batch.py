"""A step of a decoder over tokens of many sequences, whose keys and values are in pages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.executable import BoundCall, Function
from relax_mlir.llm.batching.page_memory import copy_page, pages_for
from relax_mlir.llm.decoder.pictures import Picture, image_arguments
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.modules.kv_cache import PAGE


@dataclass(frozen=True)
class Run:
    """New tokens of one sequence: they follow `length` cached ones, in `pages`.

    With `rows`, there are logits after so many of the last tokens. Rows of `pictures`, by their
    positions in the sequence, replace those of tokens. The model has the changes of an `adapter`,
    from 1 on, or none with 0.
    """

    tokens: Sequence[int]
    length: int
    pages: Sequence[int]
    rows: int = 1
    pictures: Sequence[Picture] = ()
    adapter: int = 0


class Batch:
    """The pages of one decoder, compiled for batches, and steps over any runs.

    Nothing is computed of padding: a step has as many rows as tokens. `pages` are of `PAGE` tokens.
    The decoder has so many `adapters`.
    """

    def __init__(
        self,
        main: Function,
        config: DecoderConfig,
        parameters: Sequence[np.ndarray],
        pages: int,
        adapters: int = 0,
    ) -> None:
        self.pages = pages
        self._adapters = adapters
        self._config = config
        self._caches = pages_for(main, pages)
        # Parameters are described once, which takes as long as half a step of one sequence. Logits
        # of several rows are a new array, since calls have results of one shape.
        changing = [np.zeros(dims, np.int32) for dims in (1, 1, (1, 1), 1, 1, 1)]
        if adapters:
            changing.append(np.zeros(1, np.int32))
        if config.image_id is not None:
            changing += image_arguments((), 0, 1, config)
        arguments = (*changing, *self._caches, *parameters)
        row = np.empty((1, config.vocab_size), np.float32)
        self._one_row, self._several_rows = (
            _Call(main.bind(*arguments, results=[logits, *self._caches]), changing)
            for logits in (row, None)
        )

    def step(self, runs: Sequence[Run]) -> np.ndarray:
        """Runs the decoder on the tokens of all runs, which it adds to their pages.

        Returns the logits after the rows of each run, in order: float32[rows of all, vocabulary].
        A single row is always the same buffer, which the next step overwrites.

        Raises UsageError, and changes nothing, for a token, a page, a length or an adapter out of
        range, a page that two runs write, or no tokens.
        """
        self._check(runs)
        counts = [len(run.tokens) for run in runs]
        slots = max(len(run.pages) for run in runs)
        tables = np.zeros((len(runs), slots), np.int32)
        for table, run in zip(tables, runs):
            table[: len(run.pages)] = run.pages
        ends = np.cumsum(counts)
        rows = [np.arange(end - run.rows, end) for end, run in zip(ends, runs)]
        tokens = np.concatenate([run.tokens for run in runs]).astype(np.int32)
        positions = [np.arange(run.length, run.length + len(run.tokens)) for run in runs]
        changing = [
            tokens,
            np.concatenate(rows).astype(np.int32),
            tables,
            np.repeat(np.arange(len(runs), dtype=np.int32), counts),
            np.concatenate(positions).astype(np.int32),
            np.array([run.length + len(run.tokens) for run in runs], np.int32),
        ]
        if self._adapters:
            changing.append(np.array([run.adapter for run in runs], np.int32))
        if self._config.image_id is not None:
            changing += _images(runs, self._config)
        call = self._one_row if len(changing[1]) == 1 else self._several_rows
        return call.run(changing)

    def copy(self, source: int, target: int) -> None:
        """Copies the keys and values of a page to another one."""
        for page in (source, target):
            self._check_page(page)
        copy_page(self._caches, source, target)

    def _check(self, runs: Sequence[Run]) -> None:
        if not runs:
            raise UsageError("no runs are given; expects one or more")
        written: set[int] = set()
        for run in runs:
            total = run.length + len(run.tokens)
            if not run.tokens or not 0 <= run.rows <= len(run.tokens):
                raise UsageError(f"expects 0 to {len(run.tokens)} rows of tokens, got {run.rows}")
            if run.length < 0 or total > min(len(run.pages) * PAGE, self._config.max_context):
                raise UsageError(
                    f"{len(run.tokens)} tokens after {run.length} do not fit in {len(run.pages)} "
                    f"pages of {PAGE}, or in a context of {self._config.max_context}"
                )
            if run.pictures and self._config.image_id is None:
                raise UsageError("the model reads no images")
            if not 0 <= run.adapter <= self._adapters:
                raise UsageError(f"adapter {run.adapter} is not one of {self._adapters}, or 0")
            for token in run.tokens:
                if not 0 <= token < self._config.vocab_size:
                    count = self._config.vocab_size
                    raise UsageError(f"token {token} is not in the vocabulary of {count} tokens")
            for page in run.pages:
                self._check_page(page)
            new = set(run.pages[run.length // PAGE : -(-total // PAGE)])
            if len(new) < -(-total // PAGE) - run.length // PAGE or new & written:
                raise UsageError("a page would be written twice; expects pages of their own")
            written |= new

    def _check_page(self, page: int) -> None:
        if not 0 <= page < self.pages:
            raise UsageError(f"page {page} is not one of {self.pages}")


class _Call:
    """A call whose first arguments, `changing`, are others each time."""

    def __init__(self, call: BoundCall, changing: Sequence[np.ndarray]) -> None:
        self._call = call
        self._changing = [array.copy() for array in changing]
        for index, array in enumerate(self._changing):
            call.set(index, array)

    def run(self, changing: Sequence[np.ndarray]) -> np.ndarray:
        """The first result for these arguments."""
        for index, (array, new) in enumerate(zip(self._changing, changing)):
            if array.shape == new.shape:
                array[:] = new  # a hundredth of the time that a description takes
            else:
                self._call.set(index, new)
                self._changing[index] = new
        return np.asarray(self._call.run()[0])  # of several rows, it is where the weights are


def _images(runs: Sequence[Run], config: DecoderConfig) -> list[np.ndarray]:
    """The arguments for images of all runs: see `image_arguments`."""
    parts = [
        image_arguments(run.pictures, run.length, run.length + len(run.tokens), config)
        for run in runs
    ]
    images, rows, *coordinates = map(list, zip(*parts, strict=True))
    ends = np.cumsum([0, *map(len, images)])
    rows = [np.where(own < 0, own, own + end) for own, end in zip(rows, ends)]
    joined = [np.concatenate(each) for each in (images, rows, *coordinates)]
    return [joined[0], joined[1].astype(np.int32), *joined[2:]]
