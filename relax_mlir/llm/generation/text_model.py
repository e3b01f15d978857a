"""What surrounds a decoder: tokenizer, chat template, samplers and grammars."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.pictures import Picture, check_count, inserted
from relax_mlir.llm.generation.grammar import Grammar, Grammars
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.tokenization.chat import Message
from relax_mlir.llm.tokenization.content import asked_of, in_parts, in_texts, takes_parts
from relax_mlir.llm.vision.images import ImageSource, read_image
from relax_mlir.llm.vision.model import Vision, load_vision

DRY_BREAKERS = ("\n", ":", '"', "*")
"""The texts that end the repeated sequences of DRY, unless others are given."""


class TextModel:
    """The parts of a model that turn texts into tokens and back, and choose tokens.

    `name` is that of its file or folder, `context` the maximum length of a sequence. `weights` and
    `threads` are those of `load`. `adapters` are names of those that answers may choose.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        context: int,
        weights: str = "native",
        use_cache: bool = True,
        threads: int | None = None,
    ) -> None:
        self._path, self._weights, self._uses_cache = checkpoint.path, weights, use_cache
        self._threads, self._lock = threads, Lock()
        self.name = checkpoint.path.name.removesuffix(".gguf")
        self.config = checkpoint.config
        self.tokenizer = checkpoint.tokenizer
        self.chat = checkpoint.chat
        self.context = context
        self.adapters = checkpoint.adapters

    def adapter_index(self, name: str | None) -> int:
        """The index of an adapter by its name, from 1 on; 0 for None.

        Raises UsageError for an unknown name.
        """
        if name is None:
            return 0
        if name not in self.adapters:
            known = ", ".join(self.adapters) or "none"
            raise UsageError(f"the model '{self.name}' has no adapter '{name}'; it has {known}")
        return 1 + self.adapters.index(name)

    def encode(
        self, prompt: str | Sequence[Message], raw: bool = False, images: int = 0
    ) -> list[int]:
        """The tokens of a prompt, in which one token stands for each of so many `images`.

        A text is a user message if the model has a chat template, unless `raw`; a sequence of
        messages, with `role` and `content`, is a conversation. Images come before a text that does
        not say where they are. Raises UsageError if messages are given to a model without a
        template, or with `raw`, and for images if the model reads none.
        """
        if images:
            self.check_reads_images()
        if isinstance(prompt, str):
            if raw or self.chat is None:
                return self._encode_text(prompt, images)
            prompt = [asked_of(prompt, images)]
        if self.chat is None or raw:
            reason = "raw" if raw else "without a chat template"
            raise UsageError(f"messages cannot be given to a model {reason}; expects a text")
        return self.encode_messages(prompt)

    def encode_messages(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[int]:
        """The tokens of a conversation by the chat template, which the model has."""
        assert self.chat is not None
        if self.config.image_id is not None:
            parts = self._takes_parts
            messages = in_parts(messages) if parts else in_texts(messages, self._image_text)
        text = self.chat.render(messages, tools=tools)
        return self.tokenizer.encode(text, add_special_tokens=False)

    def check_reads_images(self) -> None:
        """Raises UsageError if the model reads no images."""
        if self.config.image_id is None:
            raise UsageError(f"the model '{self.name}' reads no images")

    @property
    def vision(self) -> Vision:
        """What turns images into rows of the decoder's input: compiled when it is first used.

        Raises UsageError if the model reads no images, ModelError if its encoder is not supported.
        """
        self.check_reads_images()
        with self._lock:
            return self._vision

    @cached_property
    def _vision(self) -> Vision:
        weights = "f32" if self._weights == "f32" else "native"
        return load_vision(
            self._path,
            self.config.hidden_size,
            lambda text: self.tokenizer.encode(text, add_special_tokens=False),
            weights=weights,
            threads=self._threads,
            use_cache=self._uses_cache,
        )

    def placed(
        self, ids: Sequence[int], images: Sequence[ImageSource]
    ) -> tuple[list[int], list[Picture]]:
        """Tokens of a prompt with all of those of its images, and the rows that replace them.

        Raises UsageError if images cannot be read, or are more or fewer than the prompt is on.
        """
        token = self.config.image_id
        if token is None:
            return list(ids), []
        check_count(ids, token, len(images))
        seen, total = [], len(ids) - len(images)
        for source in images:
            image = read_image(source)
            total += len(self.vision.tokens_of(*image.shape[:2]))
            if total > self.context:  # before the encoder has run for long
                raise UsageError(
                    f"{total} tokens of the prompt and its images do not fit in a context of "
                    f"{self.context}"
                )
            seen.append(self.vision.see(image))
        return inserted(ids, token, seen)

    def length(self, ids: Sequence[int], images: Sequence[ImageSource]) -> int:
        """The count of tokens of a prompt with those of its images."""
        sizes = [read_image(image).shape[:2] for image in images]
        tokens = (len(self.vision.tokens_of(*size)) for size in sizes)
        return len(ids) - len(images) + sum(tokens)

    def _encode_text(self, text: str, images: int) -> list[int]:
        ids = self.tokenizer.encode(text)
        if images and self.config.image_id not in ids:
            ids = self.tokenizer.encode(self._image_text * images + text)
        return ids

    @cached_property
    def _image_text(self) -> str:
        """What stands for an image in a text: in a frame, or on a line."""
        assert self.config.image_id is not None
        before, after = self.config.image_frame[:1], self.config.image_frame[1:]
        ids = [*before, self.config.image_id, *after]
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text if before else f"{text}\n"

    @cached_property
    def _takes_parts(self) -> bool:
        assert self.chat is not None
        return takes_parts(self.chat)

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
