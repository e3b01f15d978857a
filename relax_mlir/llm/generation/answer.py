"""One answer while its tokens come: sampling, grammar, stop texts and detokenization."""

from collections.abc import Collection, Sequence

import numpy as np

from relax_mlir.llm.generation.grammar import Grammar
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.tokenization.stopping import StopTexts
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


class Answer:
    """The tokens and the text after a prompt; a decoder gives the logits.

    While `reason` is None a token follows: `sample` it from logits, and `push` it. Then `reason` is
    "end" (the model ended the text, or nothing can follow in the grammar), "stop" (one of the
    `stop` texts follows), "length" (`max_tokens` reached) or "context" (prompt and tokens are more
    than `capacity`, unless that is None).

    Raises UsageError for an empty stop text.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        tokenizer: Tokenizer,
        sampler: Sampler,
        end_ids: Collection[int],
        capacity: int | None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        grammar: Grammar | None = None,
    ) -> None:
        self.prompt = list(prompt)
        self.tokens: list[int] = []
        self.max_tokens = max_tokens
        self._text = tokenizer.stream()
        self._sampler = sampler
        self._end_ids = end_ids
        self._capacity = capacity
        self._stop_texts = StopTexts(stop)
        self._stop_ids = {tokenizer.special_id(text) for text in stop} - {None}
        self._grammar = grammar
        self._ended_by: str | None = None

    @property
    def reason(self) -> str | None:
        """Why no token follows; None if one does."""
        if self._ended_by is not None:
            return self._ended_by
        if len(self.tokens) == self.max_tokens:
            return "length"
        length = len(self.prompt) + len(self.tokens)
        if self._capacity is not None and self.tokens and length > self._capacity:
            return "context"
        if self._grammar is not None and self._grammar.is_complete:
            return "end"
        return None

    @property
    def takes_likeliest(self) -> bool:
        """Whether the next token is that of the largest logit, and `sample` only finds it."""
        return self._grammar is None and self._sampler.takes_likeliest

    def sample(self, logits: np.ndarray) -> int:
        """The next token for its logits (1-D). Raises ExecutionError as `Sampler.sample` does."""
        if self._grammar is not None:
            logits = self._grammar.masked(logits)
        history = self.prompt + self.tokens if self._sampler.reads_history else ()
        token = self._sampler.sample(logits, history, len(self.prompt))
        if self._grammar is not None:
            self._grammar.accept(token)
        return token

    def push(self, token: int) -> str:
        """Adds a token, unless it ends the answer; returns the text that it completes."""
        if token in self._end_ids or token in self._stop_ids:
            self._ended_by = "end" if token in self._end_ids else "stop"
            return ""
        self.tokens.append(token)
        piece = self._stop_texts.push(self._text.push(token))
        if self._stop_texts.reached:
            self._ended_by = "stop"
        return piece

    def flush(self) -> str:
        """The rest of the text, once no token follows."""
        rest = self._stop_texts.push(self._text.flush()) + self._stop_texts.flush()
        if self._stop_texts.reached:
            self._ended_by = "stop"
        return rest
