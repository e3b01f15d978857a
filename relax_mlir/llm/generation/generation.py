"""Generates text with a session: prompt, sampling, detokenization, timing."""

import resource
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.answer import Answer
from relax_mlir.llm.generation.context_shift import check_keep, dropped
from relax_mlir.llm.generation.drafts import Draft
from relax_mlir.llm.generation.grammar import Grammar
from relax_mlir.llm.generation.reading import known_prefix, read
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.generation.session import Session
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


@dataclass
class Statistics:
    """Times in seconds, and counts of tokens.

    `reused_tokens` of the prompt were in the caches already. `steps` counts the generated tokens
    after the first; times include sampling. `drafted` tokens were guessed, and `accepted` of them
    were right, so that the decoder ran that many times less. `shifts` counts how often a full
    context was made shorter.
    """

    load_seconds: float = 0.0
    compile_seconds: float = 0.0
    reused_tokens: int = 0
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    steps: int = 0
    step_seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    shifts: int = 0

    @property
    def prompt_rate(self) -> float:
        """Prompt tokens per second."""
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds else 0.0

    @property
    def generation_rate(self) -> float:
        """Generated tokens per second."""
        return self.steps / self.step_seconds if self.step_seconds else 0.0

    @property
    def peak_bytes(self) -> int:
        """The peak memory of this process."""
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __str__(self) -> str:
        reused = f" (and {self.reused_tokens} from the cache)" if self.reused_tokens else ""
        drafts = f" ({self.accepted} of {self.drafted} guessed)" if self.drafted else ""
        shifts = f" ({self.shifts} context shifts)" if self.shifts else ""
        return (
            f"load {self.load_seconds:.2f} s, compile {self.compile_seconds:.2f} s, "
            f"prompt {self.prompt_tokens} tokens{reused} at {self.prompt_rate:.1f}/s, "
            f"generation {self.steps} steps{drafts}{shifts} at {self.generation_rate:.1f}/s, "
            f"peak memory {self.peak_bytes / 1e6:.0f} MB"
        )


class Generation:
    """An answer while it is being generated: iterating yields its text, piece by piece.

    `tokens` are those generated so far. `stop_reason` is None at first, then "end" (the model
    ended the text), "stop" (one of the `stop` texts follows), "length" (`max_tokens` reached) or
    "context" (the context is full). With `keep`, it goes on then after the first so many tokens and
    half of the others: see `context_shift.py`.

    Another answer may be generated on the same session before this one ends: tokens that are no
    longer in the caches are run again. Raises UsageError for an empty stop text, and a `keep` that
    is out of range, or with pictures.
    """

    def __init__(
        self,
        session: Session,
        prompt: Sequence[int],
        tokenizer: Tokenizer,
        sampler: Sampler,
        end_ids: Collection[int],
        max_tokens: int | None,
        statistics: Statistics,
        stop: Sequence[str] = (),
        draft: Draft | None = None,
        grammar: Grammar | None = None,
        pictures: Sequence[Picture] = (),
        keep: int | None = None,
    ) -> None:
        capacity: int | None = session.capacity
        if keep is not None:
            check_keep(keep, session.capacity, bool(pictures))
            capacity = None
        self.session = session
        self.stop_reason: str | None = None
        self.statistics = statistics
        self._answer = Answer(
            prompt, tokenizer, sampler, end_ids, capacity, max_tokens, stop, grammar
        )
        self._keep = keep
        self._dropped = 0  # tokens after those
        self._draft = draft
        self._pictures = pictures
        self._rows: list[np.ndarray] = []  # logits after the last token and after each guess
        self._guesses: list[int] = []
        self._seen = -1  # the last known `changes` of the session
        self._pieces = self._generate()

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    @property
    def tokens(self) -> list[int]:
        """The tokens so far."""
        return self._answer.tokens

    @property
    def _seen_tokens(self) -> list[int]:
        """The tokens that the next one follows from."""
        tokens = self._answer.prompt + self.tokens
        if self._keep is not None:
            del tokens[self._keep : self._keep + self._dropped]
        return tokens

    def _generate(self) -> Iterator[str]:
        answer = self._answer
        while answer.reason is None:
            if piece := answer.push(self._next_token()):
                yield piece
        self._drop_guesses()
        rest = answer.flush()
        self.stop_reason = answer.reason
        if rest:
            yield rest

    def _next_token(self) -> int:
        """Runs the decoder on new tokens, the prompt or the last one, and samples."""
        begin = time.perf_counter()
        if not self._rows:
            self._rows = list(self._logits())
        token = self._answer.sample(self._rows.pop(0))
        if self._guesses and self._guesses[0] == token:
            del self._guesses[0]
            self.statistics.accepted += 1
        else:
            self._drop_guesses()
        seconds = time.perf_counter() - begin
        if self.tokens:
            self.statistics.steps += 1
            self.statistics.step_seconds += seconds
        else:
            self.statistics.prompt_seconds = seconds
        return token

    def _drop_guesses(self) -> None:
        """Removes wrong guesses, and what was computed after them."""
        if self._guesses and self.session.changes == self._seen:
            self.session.truncate(len(self._seen_tokens))
            self._seen = self.session.changes
        self._guesses.clear()
        self._rows.clear()

    def _logits(self) -> np.ndarray:
        """The logits after the prompt and the tokens so far, and after each of new guesses."""
        session = self.session
        if not self._shift() and self.tokens and session.changes == self._seen:
            self._guesses = self._guess()
            new = self.tokens[-1:] + self._guesses
            logits = session.append(new, rows=len(new))
        else:  # the first token, a context shift, or the session was used otherwise since
            logits = self._read(self._seen_tokens)
        self._seen = session.changes
        return logits

    def _shift(self) -> bool:
        """Drops tokens if the answer goes on in a full context; whether it did."""
        length = len(self._answer.prompt) + len(self.tokens) - self._dropped
        if self._keep is None or not self.tokens or length <= self.session.capacity:
            return False
        self._dropped += dropped(length, self._keep)
        self.statistics.shifts += 1
        return True

    def _guess(self) -> list[int]:
        """Tokens that may follow, as many as fit at most."""
        if self._draft is None:
            return []
        tokens = self._seen_tokens
        most = self.session.capacity - len(tokens)
        if self._answer.max_tokens is not None:
            most = min(most, self._answer.max_tokens - len(self.tokens) - 1)
        guesses = self._draft.propose(tokens, most) if most > 0 else []
        self.statistics.drafted += len(guesses)
        return guesses

    def _read(self, tokens: Sequence[int]) -> np.ndarray:
        """Appends the tokens that the caches lack; returns the logits after them."""
        session = self.session
        # The last token is always run again: the caches do not contain logits.
        known = min(known_prefix(session, tokens, self._pictures), max(len(tokens) - 1, 0))
        session.truncate(known)
        session.check_room(len(tokens) - known)
        if not self.tokens:
            self.statistics.reused_tokens = known
            self.statistics.prompt_tokens = len(tokens) - known
        return read(session, tokens[known:], self._pictures)
