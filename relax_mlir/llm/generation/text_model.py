"""What surrounds a decoder: tokenizer, chat template, samplers and grammars."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.generation.grammar import Grammar, Grammars
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.tokenization.chat import Message

DRY_BREAKERS = ("\n", ":", '"', "*")
"""The texts that end the repeated sequences of DRY, unless others are given."""


class TextModel:
    """The parts of a model that turn texts into tokens and back, and choose tokens.

    `name` is that of its file or folder, `context` the maximum length of a sequence.
    """

    def __init__(self, checkpoint: Checkpoint, context: int) -> None:
        self.name = checkpoint.path.name.removesuffix(".gguf")
        self.config = checkpoint.config
        self.tokenizer = checkpoint.tokenizer
        self.chat = checkpoint.chat
        self.context = context

    def encode(self, prompt: str | Sequence[Message], raw: bool = False) -> list[int]:
        """The tokens of a prompt.

        A text is a user message if the model has a chat template, unless `raw`; a sequence of
        messages, with `role` and `content`, is a conversation. Raises UsageError if messages are
        given to a model without a template, or with `raw`.
        """
        if isinstance(prompt, str):
            if raw or self.chat is None:
                return self.tokenizer.encode(prompt)
            prompt = [{"role": "user", "content": prompt}]
        if self.chat is None or raw:
            reason = "raw" if raw else "without a chat template"
            raise UsageError(f"messages cannot be given to a model {reason}; expects a text")
        return self.tokenizer.encode(self.chat.render(prompt), add_special_tokens=False)

    def sampler(self, dry_breakers: Sequence[str] = DRY_BREAKERS, **sampling: Any) -> Sampler:
        """A sampler for this vocabulary, of the fields of `Sampler`.

        Raises UsageError if one is out of range.
        """
        if sampling.get("dry_multiplier"):
            # A text is often one token only after another text.
            ids = [self.tokenizer.encode(f"a{text}")[-1:] for text in dry_breakers]
            sampling["dry_breakers"] = frozenset(id for last in ids for id in last)
        sampler = Sampler(**sampling)
        self.check(sampler)
        return sampler

    def check(self, sampler: Sampler) -> None:
        """Raises UsageError if a sampler names tokens that are not in the vocabulary."""
        for token in sampler.logit_bias:
            if token >= self.config.vocab_size:
                raise UsageError(
                    f"logit_bias has token {token}; the vocabulary has {self.config.vocab_size}"
                )

    def grammar(
        self, gbnf: str | None = None, json_schema: str | Mapping[str, Any] | None = None
    ) -> Grammar | None:
        """The state of one answer within a grammar in GBNF, or of JSON of a schema.

        None if neither is given. Raises UsageError if both are, or if it is wrong.
        """
        if json_schema is None:
            return None if gbnf is None else self._grammars.gbnf(gbnf)
        if gbnf is not None:
            raise UsageError("a grammar and a JSON schema exclude each other")
        return self._grammars.json(json_schema)

    @cached_property
    def _grammars(self) -> Grammars:
        return Grammars(self.tokenizer, self.config.vocab_size, self.config.eos_ids)
