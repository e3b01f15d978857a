"""Builds a decoder from a checkpoint: graph, compilation, weights. `decoder.py` caches it."""

import time
import warnings
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from relax_mlir.compiler import compile, compile_to_file
from relax_mlir.dialects.graph.quantized import BLOCK, SCHEMES
from relax_mlir.executable import Executable
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.decoder.decoder import Decoder, Settings, cached_weights, parameter_kinds
from relax_mlir.llm.decoder.parameters import File, Memory, Sink, load_parameters
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.llm.modules.nn import BF16, Parameter, Storage
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target


def build(checkpoint: Checkpoint, settings: Settings, threads: int, key: bytes | None) -> Decoder:
    """Compiles the decoder, or takes it from the disk cache, and loads the weights.

    Without a `key`, the disk cache is neither read nor written. Raises as `decoder.decoder_for`
    does.
    """
    _warn_of_missing_instructions(settings, storage_of(checkpoint.weights, settings))
    begin = time.perf_counter()
    executable, parameters = compile_decoder(checkpoint, settings, key is not None)
    seconds = time.perf_counter() - begin
    kinds = parameter_kinds(executable)

    def load(sink: Sink) -> None:
        load_parameters(checkpoint.weights, parameters, executable, sink, threads)

    arrays = (
        None
        if key is None
        else cached_weights(key, executable, kinds, lambda f: load(File(f, kinds)))
    )
    if arrays is None:
        memory = Memory(kinds)
        load(memory)
        arrays = memory.arrays
    return Decoder(executable, arrays, seconds)


def _warn_of_missing_instructions(settings: Settings, storage: Storage) -> None:
    """Warns if products are in float32 since the target has no narrower multiplications."""
    target = settings.target
    target = target if isinstance(target, Target) else Target.parse(target)
    schemes = set(storage.schemes.values()) if storage.activations != "f32" else set()
    layouts, missing = backend_of(target).layouts, []
    if layouts is None:
        return
    if BF16 in schemes and not layouts.multiplies("bf16"):
        missing.append("bfloat16")
    if schemes - {BF16} and not layouts.multiplies("int8"):
        missing.append("8-bit integers")
    for elements in missing:
        warnings.warn(
            f"target '{target.name}' has no instruction that multiplies {elements}: products are "
            "of float32, which takes longer",
            stacklevel=2,
        )


def compile_decoder(
    checkpoint: Checkpoint, settings: Settings, use_cache: bool = True
) -> tuple[Executable, list[Parameter]]:
    """The compiled decoder, and the parameters of its graph, which `parameters.py` loads."""
    graph = Transformer(checkpoint.config, storage_of(checkpoint.weights, settings))
    with tqdm(desc="compiling the decoder", bar_format="{desc} ...", leave=False, disable=None):
        executable = compile(
            export(graph, settings.batched),
            settings.target,
            settings.opt_level,
            use_cache,
            settings.without,
            settings.libraries,
        )
    return executable, graph.parameters()


def decoder_file(checkpoint: Checkpoint, settings: Settings) -> tuple[Path, list[Parameter]]:
    """The file of a decoder that cannot be loaded here, and the parameters of its graph."""
    graph = Transformer(checkpoint.config, storage_of(checkpoint.weights, settings))
    return compile_to_file(
        export(graph, settings.batched), settings.target, settings.opt_level
    ), graph.parameters()


def storage_of(source: WeightSource, settings: Settings) -> Storage:
    """The storage of the matrices of a model."""
    plain = Storage({}, settings.activations, settings.cache, source.changes)
    if settings.weights == "f32":
        return plain
    shapes = source.config.weight_shapes()
    if settings.weights != "native":
        unit = 1 if settings.weights == BF16 else BLOCK
        names = [n for n, shape in shapes.items() if len(shape) == 2 and shape[1] % unit == 0]
        return replace(plain, schemes=dict.fromkeys(names, settings.weights))
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    formats = {name: source.format(name).lower() for name in matrices}
    schemes = {name: format for name, format in formats.items() if format in (BF16, *SCHEMES)}
    return replace(plain, schemes=schemes)
