"""Mean squares, and products of pairs, of what each matrix is multiplied with in a text."""

import warnings
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.calibration.observing import ObservedDecoder
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.rounding.error_feedback import Inputs

ROUNDINGS = ("importance", "gptq")
"""What is gathered: squares alone, or products of pairs too."""
WINDOW = 512
MEMORY = 1 << 30
"""Bytes of products that are gathered in one run over the text."""
GREATEST = 1e15
"""Of inputs: float32 represents products of two, and what they are multiplied with."""
ROWS = 512
"""Rows whose products are computed at once: a few would take as long, for reading the sum."""


class _Products:
    """The sum of products of pairs, float32[columns, columns]; rows are added many at a time."""

    def __init__(self, columns: int) -> None:
        self.sum = np.zeros((columns, columns), np.float32)
        self._rows: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> None:
        """Adds those of rows [n, columns]."""
        self._rows.append(rows)
        if sum(map(len, self._rows)) >= ROWS:
            self.finish()

    def finish(self) -> None:
        """Adds what is left."""
        if self._rows:
            rows = np.concatenate(self._rows)
            self.sum += rows.T @ rows
            self._rows.clear()


class Calibration:
    """The inputs of the matrices of a model for a text, by names of weights.

    Squares are gathered in one run over the text. Products take as many runs as their sizes need
    memory: those of the next matrices are gathered when one of them is asked for.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        text: str,
        rounding: str = "importance",
        window: int = WINDOW,
        memory: int = MEMORY,
    ) -> None:
        """Compiles the decoder; raises UsageError for a wrong argument or a text too short."""
        if rounding not in ROUNDINGS:
            raise UsageError(f"no rounding {rounding!r}; accepted are {', '.join(ROUNDINGS)}")
        self._where, self._memory = checkpoint.path, memory
        self._pairs = rounding == "gptq"
        self._windows = _windows(checkpoint, text, window)
        self._decoder = ObservedDecoder(checkpoint, len(self._windows[0]))
        units = enumerate(self._decoder.units)
        self._unit = {name: unit for unit, names in units for name in names}
        self._squares = [np.zeros(columns) for columns in self._decoder.columns]
        self._counts = [0] * len(self._squares)
        self._products: dict[int, _Products] = {}
        self._inputs: dict[int, Inputs] = {}

    def inputs(self, name: str) -> Inputs | None:
        """Those of a weight; None if the text has none, as for an expert that is not chosen.

        Raises ModelError if they are not finite, or so great that products of them are not.
        """
        unit = self._unit.get(name)
        if unit is None:
            return None
        if not any(self._counts) or (self._pairs and unit not in self._products):
            self._gather(unit)
        count = self._counts[unit]
        if not count:
            return None
        if unit not in self._inputs:
            products = self._products[unit].sum if self._pairs else None
            squares = self._squares[unit] / count
            if not (squares <= GREATEST**2).all():
                what = f"inputs of '{name}' are infinite or NaN, or greater than {GREATEST:g}"
                raise ModelError(f"{self._where}: {what}")
            self._inputs[unit] = Inputs(squares, count, products)
        return self._inputs[unit]

    def _gather(self, first: int) -> None:
        """Runs the text for squares, unless they are known, and for products from a unit on."""
        is_first_run = not any(self._counts)
        self._inputs.clear()
        self._products.clear()
        chosen = self._next_units(first) if self._pairs else []
        for unit in chosen:
            self._products[unit] = _Products(self._decoder.columns[unit])
        total = sum(map(len, self._windows))
        with tqdm(desc="calibrating", total=total, unit="token", leave=False, disable=None) as bar:
            for window in self._windows:
                for tokens, observed in self._decoder.run(window):
                    for each in observed:
                        if is_first_run:
                            self._counts[each.unit] += len(each.rows)
                            squares = np.square(each.rows, dtype=np.float64)
                            self._squares[each.unit] += squares.sum(0)
                        if each.unit in self._products:
                            self._products[each.unit].add(each.rows)
                    bar.update(tokens)
        for unit, products in self._products.items():
            products.finish()
            products.sum /= max(self._counts[unit], 1)
        if is_first_run and (unseen := self._counts.count(0)):
            warnings.warn(
                f"{unseen} of {len(self._counts)} inputs, of experts that the text does not "
                "choose, are unknown: their matrices are rounded without",
                stacklevel=4,
            )

    def _next_units(self, first: int) -> list[int]:
        """Units from `first` on whose products fit into memory; after the last one, the first."""
        chosen: list[int] = []
        count, bytes_left = len(self._decoder.columns), self._memory
        for unit in [(first + step) % count for step in range(count)]:
            bytes_left -= 4 * self._decoder.columns[unit] ** 2
            if chosen and bytes_left < 0:
                break
            chosen.append(unit)
        return chosen


def _windows(checkpoint: Checkpoint, text: str, window: int) -> list[Sequence[int]]:
    """The tokens of a text in windows, of which the last may be shorter."""
    if window < 1:
        raise UsageError(f"window is {window}; expects 1 token or more")
    ids = checkpoint.tokenizer.encode(text)
    length, size = min(window, checkpoint.config.max_context), checkpoint.config.vocab_size
    if len(ids) < length:
        raise UsageError(
            f"the text for calibration has {len(ids)} tokens; expects {length} or more, a window"
        )
    if (greatest := max(ids)) >= size:  # it would be taken for the last one
        raise ModelError(
            f"{checkpoint.path}: has token {greatest} for the text for calibration, but a "
            f"vocabulary of {size} tokens"
        )
    return [ids[begin : begin + length] for begin in range(0, len(ids), length)]
