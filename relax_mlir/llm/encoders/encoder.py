"""An encoder that is ready to run: its files, compiled code and weights.

encoder = load_encoder("minilm")
vectors, tokens = encoder.embed(["a text", "another"])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from relax_mlir.compiler import compile
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.executable import Executable
from relax_mlir.llm.architectures.registry import ENCODERS, is_encoder, of_folder
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.llm.decoder.building import storage_of
from relax_mlir.llm.decoder.caches import placed
from relax_mlir.llm.decoder.decoder import Settings, argument_kinds
from relax_mlir.llm.decoder.parameters import Memory, load_parameters
from relax_mlir.llm.encoders.batches import arguments, batches
from relax_mlir.llm.encoders.pooling import Finish, read_finish
from relax_mlir.llm.generation.model import checked_types
from relax_mlir.llm.modules.encoder import INPUTS, export_encoder
from relax_mlir.llm.modules.encoder import Encoder as Graph
from relax_mlir.llm.modules.encoder_config import EncoderConfig
from relax_mlir.llm.tokenization.tokenizer import Tokenizer
from relax_mlir.machine.limits import num_cpus
from relax_mlir.target import Target


def load_encoder(
    model: str = "minilm",
    weights: str = "native",
    threads: int | None = None,
    target: str | Target = "native",
    opt_level: int = 3,
    use_cache: bool = True,
    activations: str = "int8",
) -> "Encoder":
    """Opens an encoder in a folder, compiles it and loads its weights.

    The arguments are those of `relax_mlir.llm.load`. Raises UsageError for a wrong one, ModelError
    for a model that is damaged or not supported, CompileError if it cannot be compiled.
    """
    weights = checked_types(weights, activations)
    path = resolve(model)
    if not path.is_dir():
        raise ModelError(f"{path}: is a file; expects a folder with the files of an encoder")
    checkpoint = open_encoder(path)
    settings = Settings(weights, activations, target, opt_level)
    graph = Graph(checkpoint.finish.config, storage_of(checkpoint.weights, settings))
    executable = compile(export_encoder(graph), target, opt_level, use_cache)
    executable.threads = threads or num_cpus()
    kinds = argument_kinds(executable["main"].arguments[len(INPUTS) :])
    memory = Memory(kinds)
    parameters = list(dict.fromkeys(graph.parameters()))
    load_parameters(checkpoint.weights, parameters, executable, memory, executable.threads)
    return Encoder(checkpoint, executable, placed(executable["main"], memory.arrays))


def is_encoder_model(model: str) -> bool:
    """Whether a model is an encoder; raises UsageError if there is none, ModelError."""
    path = resolve(model)
    return path.is_dir() and is_encoder(path)


@dataclass(frozen=True, eq=False)
class EncoderCheckpoint:
    """An encoder on disk, opened."""

    path: Path
    finish: Finish
    weights: HuggingFaceWeights
    tokenizer: Tokenizer


def open_encoder(folder: Path) -> EncoderCheckpoint:
    """Opens the encoder in a folder; raises ModelError."""
    architecture, config = of_folder(folder, ENCODERS)
    finish = read_finish(folder, cast(EncoderConfig, config))
    weights = HuggingFaceWeights(folder, (architecture, finish.config), finish.tensors)
    tokenizer = Tokenizer.from_hugging_face(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens, but the model "
            f"{config.vocab_size}"
        )
    return EncoderCheckpoint(folder, finish, weights, tokenizer)


class Encoder:
    """A compiled encoder; sequences have `max_tokens`, and `prompts` are texts by name."""

    def __init__(
        self,
        checkpoint: EncoderCheckpoint,
        executable: Executable,
        parameters: Sequence[np.ndarray],
    ) -> None:
        self.config = checkpoint.finish.config
        self.max_tokens = checkpoint.finish.max_tokens
        self.prompts = checkpoint.finish.prompts
        self.tokenizer = checkpoint.tokenizer
        self.executable = executable
        self._parameters = parameters

    def embed(
        self,
        texts: Sequence[str | Sequence[int]],
        *,
        prompt: str | None = None,
        truncate: bool = False,
    ) -> tuple[np.ndarray, int]:
        """A vector per text, float32[texts, size], and the count of all tokens.

        A text may be its tokens, with those that the model adds. The text of `prompt`, a name in
        `prompts`, comes before each. Longer texts than `max_tokens` end there with `truncate`.

        Raises UsageError for a text that is too long, or without tokens, a token that is none of
        the vocabulary, and an unknown prompt.
        """
        sequences = [self._tokens(i, text, prompt, truncate) for i, text in enumerate(texts)]
        vectors = np.empty((len(sequences), self.config.size), np.float32)
        for batch in batches([len(sequence) for sequence in sequences]):
            given = arguments([sequences[index] for index in batch])
            vectors[batch] = np.asarray(self.executable["main"](*given, *self._parameters))
        return vectors, sum(map(len, sequences))

    def _tokens(
        self, index: int, text: str | Sequence[int], prompt: str | None, truncate: bool
    ) -> list[int]:
        if prompt is not None and prompt not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise UsageError(f"unknown prompt {prompt!r}; the model has {known}")
        before = "" if prompt is None else self.prompts[prompt]
        if isinstance(text, str):
            ids = self.tokenizer.encode(before + text)
            if truncate and len(ids) > self.max_tokens:
                ids = self._shortened(before + text)
        else:
            ids = list(text)[: self.max_tokens] if truncate else list(text)
        size = self.config.vocab_size
        if not ids or len(ids) > self.max_tokens:
            raise UsageError(
                f"text {index} has {len(ids)} tokens; expects 1 to {self.max_tokens}, or truncation"
            )
        if wrong := [id for id in ids if not 0 <= id < size]:
            raise UsageError(f"text {index} has token {wrong[0]}; the vocabulary has {size}")
        return ids

    def _shortened(self, text: str) -> list[int]:
        """The first tokens of a text, between those that the model adds."""
        inner = self.tokenizer.encode(text, add_special_tokens=False)
        framed = self.tokenizer.encode(text)
        extra = len(framed) - len(inner)
        begin = next((i for i in range(extra + 1) if framed[i : i + len(inner)] == inner), extra)
        end = framed[begin + len(inner) :]
        return [*framed[:begin], *inner[: max(self.max_tokens - extra, 0)], *end]
