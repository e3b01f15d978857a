"""Loads models to serve: decoders, encoders of texts, or models that write down speech."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.engine import MAX_SEQUENCES, STEP_TOKENS, Engine
from relax_mlir.llm.encoders.encoder import is_encoder_model, load_encoder
from relax_mlir.llm.generation.context_shift import check_keep
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.sandbox import Sandbox
from relax_mlir.llm.serving.speech import Recordings
from relax_mlir.llm.speech.config import is_whisper
from relax_mlir.llm.speech.model import Whisper

MAX_QUEUE = 256


@dataclass(frozen=True)
class Loading:
    """How models are loaded: options of `Engine.load`, with `max_queue` for those that wait.

    `keep` is that of `Served`.
    """

    weights: str = "native"
    activations: str = "int8"
    cache: str | None = None
    context: int | None = None
    threads: int | None = None
    lora: str | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    keep: int | None = None
    pages: int | None = None
    max_sequences: int = MAX_SEQUENCES
    step_tokens: int = STEP_TOKENS
    max_queue: int = MAX_QUEUE
    use_cache: bool = True
    target: str = "native"
    opt_level: int = 3


def named_models(
    models: Sequence[str], adapters: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The models by their names: NAME of NAME=MODEL, or that of the file or folder.

    Raises UsageError if one is no model, or two have the same name, or if `adapters` are not of one
    model, or have its name.
    """
    named: dict[str, str] = {}
    for model in models:
        name, equals, path = model.partition("=")
        if not equals or "/" in name:
            name, path = Path(model).name.removesuffix(".gguf"), model
        if not name or not path:
            raise UsageError(f"'{model}' is no model; expects MODEL or NAME=MODEL")
        if name in named:
            raise UsageError(f"two models have the name '{name}'; NAME=MODEL gives another one")
        named[name] = path
    if adapters and len(named) > 1:
        raise UsageError(f"adapters are of one model, but {len(named)} are given")
    if shared := adapters.keys() & named.keys():
        raise UsageError(f"a model and an adapter have the name '{shared.pop()}'")
    return named


def load_served(name: str, path: str, options: Loading, sandbox: Sandbox) -> dict[str, Served]:
    """A model, and its adapters, by their names; grammars and chat template run in the sandbox.

    Raises UsageError, ModelError and CompileError as `Engine.load` does.
    """
    adapts = options.lora is not None or options.adapters
    if adapts and (is_whisper(Path(path)) or is_encoder_model(path)):
        raise UsageError(f"'{path}' generates no text; adapters are for language models")
    if is_whisper(Path(path)):
        if options.target != "native":
            raise UsageError(f"'{path}' writes down speech, here and natively; leave --target out")
        model = Whisper.load(path, threads=options.threads)
        return {name: Served(name, transcriber=Recordings(model))}
    if is_encoder_model(path):
        encoder = load_encoder(
            path,
            weights=options.weights,
            threads=options.threads,
            use_cache=options.use_cache,
            activations=options.activations,
            target=options.target,
            opt_level=options.opt_level,
        )
        return {name: Served(name, embedder=encoder)}
    engine = Engine.load(
        path,
        weights=options.weights,
        threads=options.threads,
        pages=options.pages,
        max_sequences=options.max_sequences,
        step_tokens=options.step_tokens,
        max_waiting=options.max_queue,
        activations=options.activations,
        cache=options.cache,
        context=options.context,
        lora=options.lora,
        adapters=options.adapters,
        use_cache=options.use_cache,
        target=options.target,
        opt_level=options.opt_level,
    )
    with ExitStack() as stack:
        stack.callback(engine.close, drain=False)
        if options.keep is not None:
            check_keep(options.keep, engine.capacity, False)
        if engine.model.chat is not None:
            engine.model.chat = sandbox.template(engine.model.chat)
        stack.pop_all()
    return Served(name, engine, sandbox=sandbox, keep=options.keep).with_adapters()
