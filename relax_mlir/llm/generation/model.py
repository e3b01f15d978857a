"""A language model that is ready to run: checkpoint, compiled decoder, weights.

One compilation serves every prompt and context length: they are symbols of the decoder's graph.
Decoder and weights are cached on disk, so that a model is compiled once per machine and version,
and later starts are fast.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.executable import Executable
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint, open_checkpoint
from relax_mlir.llm.decoder.caches import placed
from relax_mlir.llm.decoder.decoder import Settings, decoder_for
from relax_mlir.llm.formats.quantization import DECODED
from relax_mlir.llm.generation.beams import Beam, Beams, EarlyStopping, beam_search
from relax_mlir.llm.generation.drafts import Draft
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.reading import read
from relax_mlir.llm.generation.session import Session
from relax_mlir.llm.generation.text_model import DRY_BREAKERS, TextModel
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.vision.images import ImageSource
from relax_mlir.machine.limits import num_cpus
from relax_mlir.target import Target

WEIGHTS = ("f32", "bf16", "q8_0", "q4_0", "q4_1", "native")
"""The storage types of weights."""
SCHEMES = {"q8_32": "q8_0", "q4_32": "q4_0", "q4_32_minimum": "q4_1"}
"""The names of some of them in `relax-quantize`."""
ACTIVATIONS = ("int8", "f32")
"""The types of activations that are multiplied with quantised weights."""
CACHES = ("f32", "bf16", "int8")
"""The storage types of key and value caches."""


def load(
    model: str = "smollm2",
    weights: str = "native",
    threads: int | None = None,
    target: str | Target = "native",
    opt_level: int = 3,
    context: int | None = None,
    use_cache: bool = True,
    activations: str = "int8",
    cache: str | None = None,
    lora: str | None = None,
    adapters: Mapping[str, str] = MappingProxyType({}),
) -> "LanguageModel":
    """Opens a model, compiles its decoder and loads its weights.

    Args:
        model: a packaged name ("smollm2"), a GGUF file, or a Hugging Face folder.
        weights: the storage type of weights: "native", where matrices in bfloat16, Q8_0, Q4_0,
            Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K keep their format, and all others become f32, with
            a warning if that takes more memory; "f32"; "bf16", which rounds to bfloat16; "q8_0",
            "q4_0" or "q4_1", which round to 8 or 4 bits in blocks of 32, unless the file has that
            format ("q8_32", "q4_32" and "q4_32_minimum" are the same).
        threads: threads of a call; by default all CPUs of the process.
        target: the machine to compile for; it must be able to run here.
        opt_level: 0, 1, 2 or 3; 3 packs the weights for the kernels.
        context: the maximum length of a sequence in tokens; by default that of the model.
        use_cache: whether decoder and weights are read from and stored in the disk cache.
        activations: the type of activations that are multiplied with matrices other than f32:
            "int8" rounds them to 8 bits in blocks of 32 for quantised matrices, and to bfloat16
            for bfloat16 ones, as other engines do; "f32" is exact, and about three times slower.
        cache: the type of the key and value caches: "f32"; "bf16", where attention computes in
            bfloat16 too unless activations are "f32"; or "int8", in blocks of 32 with a scale. By
            default "f32" if all products are exact, that is with weights or activations of "f32",
            else "bf16".
        lora: a folder of PEFT with a LoRA adapter, which is added to the weights. Quantised
            matrices that it changes have 8 bits then, unless `weights` says otherwise.
        adapters: folders of such adapters by names, of which each answer may choose one. They
            are beside the weights, which stay as they are.

    Raises:
        UsageError: an argument is wrong, or the model does not exist.
        ModelError: the model is damaged or not supported.
        CompileError: the decoder cannot be compiled for the target.
    """
    begin = time.perf_counter()
    checkpoint = open_checkpoint(model, lora, adapters)
    context = checked_context(context, checkpoint.config)
    settings = settings_for(checkpoint, weights, activations, target, opt_level, cache)
    decoder = decoder_for(checkpoint, settings, threads or num_cpus(), use_cache)
    statistics = Statistics(
        load_seconds=time.perf_counter() - begin - decoder.compile_seconds,
        compile_seconds=decoder.compile_seconds,
    )
    loaded = LanguageModel(
        checkpoint,
        decoder.executable,
        placed(decoder.executable["main"], decoder.parameters),
        statistics,
        context,
        weights,
        use_cache,
        threads,
    )
    if threads is not None:
        loaded.threads = threads
    return loaded


def settings_for(
    checkpoint: Checkpoint,
    weights: str,
    activations: str,
    target: str | Target,
    opt_level: int,
    cache: str | None,
) -> Settings:
    """How a decoder is compiled by arguments of `load`; raises UsageError for wrong ones."""
    weights = checked_types(weights, activations)
    if weights == "native":
        _warn_of_decoded_matrices(checkpoint)
    cache = cache_type(cache, weights, activations, checkpoint)
    return Settings(weights, activations, target, opt_level, cache=cache)


def checked_types(weights: str, activations: str) -> str:
    """The type of weights by its own name; raises UsageError for unknown types."""
    weights = SCHEMES.get(weights, weights)
    if weights not in WEIGHTS:
        known = ", ".join([*WEIGHTS, *SCHEMES])
        raise UsageError(f"unknown weights '{weights}'; accepted are {known}")
    if activations not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UsageError(f"unknown activations '{activations}'; accepted are {known}")
    return weights


def _formats(checkpoint: Checkpoint) -> list[str]:
    """The format of each matrix in the file."""
    shapes = checkpoint.config.weight_shapes()
    return [checkpoint.weights.format(name) for name, shape in shapes.items() if len(shape) == 2]


def _warn_of_decoded_matrices(checkpoint: Checkpoint) -> None:
    """Warns of matrices that take more memory than their file."""
    formats = _formats(checkpoint)
    for format in DECODED:
        if count := formats.count(format):
            warnings.warn(
                f"{checkpoint.path}: {count} of {len(formats)} matrices are in {format}, and "
                "stored as float32",
                stacklevel=4,
            )


def cache_type(cache: str | None, weights: str, activations: str, checkpoint: Checkpoint) -> str:
    """The given type of caches, or the default for the weights.

    Raises UsageError for an unknown type, and for int8 if blocks of 32 do not divide the heads.
    """
    if cache is None:
        is_exact = weights == "f32" or activations == "f32"
        if weights == "native":
            is_exact |= {*_formats(checkpoint)} <= {"F32", *DECODED}
        return "f32" if is_exact else "bf16"
    if cache not in CACHES:
        raise UsageError(f"unknown cache '{cache}'; accepted are {', '.join(CACHES)}")
    features = checkpoint.config.cache_columns[0]
    if cache == "int8" and features % 32:
        raise UsageError(
            f"int8 caches take heads of a multiple of 32 features, and this model's have "
            f"{features}; accepted are f32, bf16"
        )
    return cache


def checked_context(context: int | None, config: DecoderConfig) -> int:
    """The longest sequence: `context`, or the model's; raises UsageError if it is longer."""
    longest = config.max_context
    if context is not None and not 0 < context <= longest:
        raise UsageError(f"context is {context}; expects 1 to {longest}, the model's maximum")
    return longest if context is None else context


@lru_cache  # once per thread count
def _warn_of_threads(threads: int) -> None:
    cpus = num_cpus()
    warnings.warn(
        f"{threads} threads share {cpus} CPUs, which is slower than {cpus} threads",
        stacklevel=3,
    )


class LanguageModel(TextModel):
    """A compiled decoder with its weights, tokenizer and chat template; `load` makes one.

    `context` is the maximum length of a sequence. `statistics` are those of loading.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        executable: Executable,
        parameters: Sequence[np.ndarray],
        statistics: Statistics,
        context: int,
        weights: str = "native",
        use_cache: bool = True,
        threads: int | None = None,
    ) -> None:
        super().__init__(checkpoint, context, weights, use_cache, threads)
        self.executable = executable
        self.statistics = statistics
        self.parameters = parameters

    @property
    def num_parameters(self) -> int:
        """The count of the elements of all weights."""
        return sum(prod(shape) for shape in self.config.weight_shapes().values())

    @property
    def threads(self) -> int:
        """Threads of a call."""
        return self.executable.threads

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise UsageError(f"threads is {count}; expects 1 or more")
        if count > num_cpus():
            _warn_of_threads(count)
        self.executable.threads = count

    def session(self, capacity: int | None = None, adapter: str | None = None) -> Session:
        """An empty sequence of up to `capacity` tokens, by default the whole context.

        Raises UsageError if the capacity is out of range, or the model has no such `adapter`.
        """
        index = self.adapter_index(adapter)
        if capacity is None:
            capacity = self.context
        if not 0 < capacity <= self.context:
            raise UsageError(f"capacity is {capacity}; expects 1 to {self.context}, the context")
        main, chosen = self.executable["main"], index if self.adapters else None
        return Session(main, self.config, self.parameters, capacity, chosen)

    def logits(self, ids: Sequence[int] | np.ndarray, adapter: str | None = None) -> np.ndarray:
        """The logits after each of `ids`: float32[len(ids), vocabulary].

        Raises UsageError if there are no tokens, too many, or unknown ones, or no such adapter.
        """
        capacity = min(max(len(ids), 1), self.context)
        return self.session(capacity, adapter).append(ids, rows=len(ids))

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        *,
        max_tokens: int | None = 256,
        stop: str | Sequence[str] = (),
        raw: bool = False,
        session: Session | None = None,
        images: Sequence[ImageSource] = (),
        adapter: str | None = None,
        draft: Draft | None = None,
        grammar: str | None = None,
        json_schema: str | Mapping[str, Any] | None = None,
        keep: int | None = None,
        dry_breakers: Sequence[str] = DRY_BREAKERS,
        **sampling: Any,
    ) -> Generation:
        """Answers a prompt; iterate over the result to get the text as it comes.

        Args:
            prompt: a text, or the messages of a conversation; see `encode`.
            max_tokens: the most tokens to generate; None goes on until the context is full.
            stop: texts that end the answer; they are not part of it.
            raw: let the model continue the text, whatever its chat template.
            session: the caches to use. A common prefix with the prompt is not run again: pass the
                session of the last answer to continue a conversation.
            images: files, their bytes, or arrays uint8[height, width, 3], in the order of the
                prompt; they come before a text that does not say where they are.
            adapter: the name of one of the model's; by default that of the session, or none.
            draft: guesses tokens, which are checked together; the answer is the same.
            grammar: the answer is a text of this grammar, in GBNF.
            json_schema: the answer is JSON of this schema.
            keep: an answer goes on in a full context, after so many of the first tokens and the
                last half of the others, instead of ending there.
            dry_breakers: texts whose last tokens end the repeated sequences of DRY.
            sampling: the other fields of `Sampler`, such as `temperature`, `top_p` and `seed`.

        Raises:
            UsageError: an argument is out of range, the prompt does not fit into the context,
                images cannot be read, or are not those of the prompt, or there is no such adapter,
                or another one in the session.
        """
        if max_tokens is not None and max_tokens < 0:
            raise UsageError(f"max_tokens is {max_tokens}; expects an integer >= 0")
        sampler = self.sampler(dry_breakers, **sampling)
        ids, pictures = self.placed(self.encode(prompt, raw, len(images)), images)
        if session is None:
            session = self.session(self._capacity_for(ids, max_tokens, keep), adapter)
        elif adapter is not None and session.adapter != self.adapter_index(adapter):
            raise UsageError(f"the session is not of adapter '{adapter}'")
        statistics = replace(self.statistics)
        end_ids = self.config.eos_ids
        texts = (stop,) if isinstance(stop, str) else tuple(stop)
        return Generation(
            session,
            ids,
            self.tokenizer,
            sampler,
            end_ids,
            max_tokens,
            statistics,
            texts,
            draft,
            self.grammar(grammar, json_schema),
            pictures,
            keep,
        )

    def _capacity_for(self, ids: Sequence[int], max_tokens: int | None, keep: int | None) -> int:
        """The capacity of a session for an answer, which is the context if that may be full."""
        if max_tokens is None or keep is not None:
            return self.context
        return min(max(len(ids) + max_tokens, 1), self.context)

    def samples(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        count: int,
        *,
        max_tokens: int | None = 256,
        raw: bool = False,
        seed: int | None = None,
        images: Sequence[ImageSource] = (),
        adapter: str | None = None,
        **options: Any,
    ) -> list[Generation]:
        """`count` answers to one prompt, which is run once; see `generate` for the rest.

        With a `seed`, answer i is that of `generate` with `seed + i`. Raises UsageError as
        `generate` does, and for a count less than 1.
        """
        if count < 1:
            raise UsageError(f"the count of samples is {count}; expects an integer >= 1")
        ids, pictures = self.placed(self.encode(prompt, raw, len(images)), images)
        keep = options.get("keep")
        first = self.session(self._capacity_for(ids, max_tokens, keep), adapter)
        if count > 1:
            read(first, ids[:-1], pictures)  # an answer runs the last token itself, for its logits
        sessions = [*(first.fork() for _ in range(count - 1)), first]
        return [
            self.generate(
                prompt,
                max_tokens=max_tokens,
                raw=raw,
                session=session,
                images=images,
                seed=None if seed is None else seed + i,
                **options,
            )
            for i, session in enumerate(sessions)
        ]

    def beams(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        count: int,
        *,
        max_tokens: int | None = 256,
        raw: bool = False,
        length_penalty: float = 1.0,
        early_stopping: EarlyStopping = False,
        adapter: str | None = None,
    ) -> list[Beam]:
        """The best answers of a beam search, best first; see `Beams` for the options.

        Raises UsageError if an argument is out of range, or the prompt does not fit.
        """
        options = Beams(count, length_penalty, early_stopping)
        if max_tokens is not None and max_tokens < 0:
            raise UsageError(f"max_tokens is {max_tokens}; expects an integer >= 0")
        ids = self.encode(prompt, raw)
        room = self.context - len(ids) + 1  # the last token is in no cache
        most = max(room, 0) if max_tokens is None else min(max_tokens, max(room, 0))
        session = self.session(min(self.context, max(len(ids) + most, 1)), adapter)
        session.check_room(len(ids))
        if len(ids) > 1:
            read(session, ids[:-1])
        return beam_search(session, ids[-1], self.config.eos_ids, most, options)
