"""A sequence of tokens that a compiled decoder has processed, with its key and value caches."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.executable import BoundCall, Executable, Function
from relax_mlir.llm.decoder.caches import caches_for
from relax_mlir.llm.decoder.pictures import Picture, coordinates, image_arguments
from relax_mlir.llm.modules.config import DecoderConfig

STATE_TOKENS = 64
"""The most tokens that layers with states take at once."""


class Session:
    """One sequence of at most `capacity` tokens; `append` makes it longer.

    Sessions of one model are independent. `changes` counts changes of the
    tokens. A decoder with adapters has an index of one here, from 1 on, or 0; others None.
    """

    def __init__(
        self,
        main: Function,
        config: DecoderConfig,
        parameters: Sequence[np.ndarray],
        capacity: int,
        adapter: int | None = None,
    ) -> None:
        self.capacity = capacity
        self.adapter = adapter
        self._main = main
        self._config = config
        self._vocab_size = config.vocab_size
        self._parameters = parameters
        self._caches = caches_for(main, capacity)
        self._tokens: list[int] = []
        self._pictures: list[Picture] = []
        self.changes = 0
        self._are_states_lost = False
        # Every call reads these two values in place: cached tokens, rows of logits.
        self._lengths = np.zeros(2, np.int64)
        self._row = np.empty((1, config.vocab_size), np.float32)

    @property
    def executable(self) -> Executable:
        """The compiled decoder."""
        return self._main.executable

    @property
    def length(self) -> int:
        """The count of tokens in the caches."""
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens in the caches."""
        return tuple(self._tokens)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The images of which rows are in the caches."""
        return tuple(self._pictures)

    def append(
        self,
        ids: Sequence[int] | np.ndarray,
        rows: int = 1,
        pictures: Sequence[Picture] = (),
    ) -> np.ndarray:
        """Runs the decoder on new tokens, and adds them to the caches.

        Rows of `pictures`, by their positions in the session, replace those of tokens.

        Returns the logits after the last `rows` of them: float32[rows, vocabulary]. A single row
        is always the same buffer, which the next call overwrites; several rows are a new array.

        Raises UsageError, and leaves the session unchanged, if there are no tokens, more than fit,
        one that is not in the vocabulary, or fewer than `rows`, or if the model reads no images.
        """
        if pictures and self._config.image_id is None:
            raise UsageError("the model reads no images")
        is_one = rows == 1 and isinstance(ids, list) and len(ids) == 1 and type(ids[0]) is int
        if is_one and not pictures and not self._ends_within_image:
            return self._step(ids[0])
        tokens = self._checked(ids, rows)
        self._restore()
        if self._config.states is not None and len(tokens) > STATE_TOKENS:
            return self._append_in_chunks(tokens, rows, pictures)
        self._grow(len(tokens))
        self._lengths[:] = self.length, rows
        call = self._one_row if rows == 1 else self._several_rows
        call.set(0, tokens)
        self._set_images(call, len(tokens), pictures)
        logits = np.asarray(self._run(call))  # of several rows, it is where the weights are
        self._add(tokens.tolist())
        return logits

    @property
    def _ends_within_image(self) -> bool:
        return bool(self._pictures) and self._pictures[-1].end > self.length

    def _set_images(self, call: BoundCall, count: int, pictures: Sequence[Picture]) -> None:
        """Gives a call the rows of images within new tokens."""
        if self._config.image_id is None:
            return
        begin, end = self.length, self.length + count
        new = [picture for picture in pictures if picture.begin < end and picture.end > begin]
        begins = {picture.begin for picture in new}
        known = [picture for picture in self._pictures if picture.begin not in begins]
        self._pictures = [*known, *new]
        given = image_arguments(self._pictures, begin, end, self._config)
        for index, array in enumerate(given, 2 if self.adapter is None else 3):
            call.set(index, array)

    def _append_in_chunks(
        self, tokens: np.ndarray, rows: int, pictures: Sequence[Picture]
    ) -> np.ndarray:
        """Appends tokens a chunk at a time, since scores of layers with states grow as squares."""
        parts = []
        for begin in range(0, len(tokens), STATE_TOKENS):
            chunk = tokens[begin : begin + STATE_TOKENS]
            wanted = min(max(begin + len(chunk) - (len(tokens) - rows), 0), len(chunk))
            parts.append(self.append(chunk, wanted, pictures).copy())
        if rows == 1:
            self._row[:] = parts[-1]
            return self._row
        return np.concatenate(parts)

    def _step(self, token: int) -> np.ndarray:
        """Appends one token by a prepared call, in a tenth of the time."""
        self.check_room(1)
        self._check_token(token)
        self._restore()
        self._grow(1)
        tokens, images, call = self._one_token
        tokens[0] = token
        if len(images) > 2:
            length = len(self._tokens)
            images[2][:] = coordinates(self._pictures, length, length + 1)
        lengths = self._lengths
        lengths[0], lengths[1] = len(self._tokens), 1
        logits = self._run(call)
        self._add([token])
        return logits

    def _run(self, call: BoundCall) -> np.ndarray:
        """The logits of a call, which may have changed states for tokens that are not added."""
        self._are_states_lost = self._config.states is not None
        logits: np.ndarray = call.run()[0]
        return logits

    def _add(self, tokens: list[int]) -> None:
        """Has tokens, of which states are now."""
        self._tokens.extend(tokens)
        self._are_states_lost = False
        self.changes += 1

    def _restore(self) -> None:
        """Computes states again after a call that did not end."""
        if self._are_states_lost:
            self._run_again(self._tokens, self._pictures)

    def _run_again(self, tokens: list[int], pictures: list[Picture]) -> None:
        """Has these tokens alone, of which all states are."""
        self._tokens, self._pictures = [], []
        try:
            self._caches.clear()
            self._are_states_lost = False
            if tokens:
                self.append(tokens, 0, pictures)
        except BaseException:
            self._tokens, self._pictures = tokens, pictures
            self._are_states_lost = True
            raise

    def _check_token(self, token: int) -> None:
        if not 0 <= token < self._vocab_size:
            raise UsageError(f"token {token} is not in the vocabulary of {self._vocab_size} tokens")

    def check_room(self, count: int) -> None:
        """Raises UsageError if there are no tokens to append, or more than fit."""
        if count == 0:
            raise UsageError("no tokens are given; expects one or more")
        if count > self.capacity - self.length:
            raise UsageError(
                f"{count} new tokens do not fit after {self.length} in a context of {self.capacity}"
            )

    def _grow(self, count: int) -> None:
        """Grows the caches until `count` more tokens fit."""
        if self._caches.grow(len(self._tokens), count):
            self._forget_calls()

    def _forget_calls(self) -> None:
        """Has calls prepared again, since caches are other arrays."""
        for call in ("_one_token", "_one_row", "_several_rows"):
            self.__dict__.pop(call, None)

    def truncate(self, length: int) -> None:
        """Removes all tokens but the first `length`; raises UsageError if there are fewer."""
        if not 0 <= length <= self.length:
            raise UsageError(f"length is {length}; the session has {self.length} tokens")
        self.changes += 1
        pictures = [picture.until(length) for picture in self._pictures if picture.begin < length]
        if self._config.states is None or length == self.length:
            del self._tokens[length:]
            self._pictures = pictures
            return
        # States are of all tokens: those that stay are run again.
        self._run_again(self._tokens[:length], pictures)

    def fork(self) -> "Session":
        """An independent session with the same tokens and capacity; nothing is run again."""
        self._restore()
        copy = Session(self._main, self._config, self._parameters, self.capacity, self.adapter)
        copy._grow(self.length)
        copy._caches.copy(self._caches, self.length)
        copy._tokens, copy._pictures = list(self._tokens), list(self._pictures)
        return copy

    def reset(self) -> None:
        """Removes all tokens."""
        self.truncate(0)

    @cached_property
    def _one_token(self) -> tuple[np.ndarray, list[np.ndarray], BoundCall]:
        tokens, images = np.zeros(1, np.int32), self._no_images()
        return tokens, images, self._bind(tokens, self._row, images)

    @cached_property
    def _one_row(self) -> BoundCall:
        return self._bind(np.zeros(1, np.int32), self._row, self._no_images())

    @cached_property
    def _several_rows(self) -> BoundCall:
        return self._bind(np.zeros(1, np.int32), None, self._no_images())

    def _no_images(self) -> list[np.ndarray]:
        """The arguments for images of one token."""
        return [] if self._config.image_id is None else image_arguments((), 0, 1, self._config)

    def _bind(
        self, tokens: np.ndarray, logits: np.ndarray | None, images: Sequence[np.ndarray]
    ) -> BoundCall:
        """A call with the caches as arguments and results, so that it allocates nothing."""
        given = [tokens, self._lengths]
        if self.adapter is not None:
            given.append(np.array([self.adapter], np.int32))
        arguments = (*given, *images, *self._caches.arrays, *self._parameters)
        return self._main.bind(*arguments, results=[logits, *self._caches.arrays])

    def _checked(self, ids: Sequence[int] | np.ndarray, rows: int) -> np.ndarray:
        array = np.asarray(ids)
        self.check_room(array.size)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise UsageError(
                f"tokens are {array.dtype} of rank {array.ndim}; expects a sequence of integers"
            )
        if array.min() < 0 or array.max() >= self._vocab_size:
            for token in array.tolist():
                self._check_token(token)
        if not 0 <= rows <= len(array):
            raise UsageError(f"rows is {rows}; expects 0 to {len(array)}, the count of new tokens")
        return np.ascontiguousarray(array, np.int32)
