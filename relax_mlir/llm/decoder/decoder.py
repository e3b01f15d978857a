"""The decoder of a checkpoint: compiled, with the weights in its layout.

Both are cached on disk under a hash of their inputs, so that a later start needs neither the
compiler nor the checkpoint's weights: it loads the shared object and maps the weights into memory,
which processes with the same model share.

Weights are not cached if RELAX_CACHE_WEIGHTS is 0, if they would take more than half of the cache
(RELAX_CACHE_BYTES), or if less than four times their size is free on the disk. Those of all models
together take at most half of the cache, so that they never evict compiled code.
"""

import errno
import os
import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relax_mlir import cache
from relax_mlir.errors import ModelError
from relax_mlir.executable import Argument, Executable, load
from relax_mlir.fingerprint import compiler_fingerprint, processor_fingerprint
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.arrays import ELEMENTS, Kind, total_bytes, views_of
from relax_mlir.llm.decoder.mapping import map_file
from relax_mlir.target import Target


@dataclass(frozen=True)
class Settings:
    """How a decoder is compiled: see `relax_mlir.llm.load` and `relax_mlir.pipelines.pipeline`.

    A `batched` one takes tokens of many sequences, whose caches are pages.
    """

    weights: str = "native"
    activations: str = "int8"
    target: str | Target = "native"
    opt_level: int = 3
    without: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    cache: str = "f32"
    batched: bool = False


@dataclass(frozen=True, eq=False)
class Decoder:
    """A compiled decoder, its parameters in order, and the time of compilation."""

    executable: Executable
    parameters: Sequence[np.ndarray]
    compile_seconds: float


def decoder_for(
    checkpoint: Checkpoint, settings: Settings, threads: int, use_cache: bool = True
) -> Decoder:
    """Loads the decoder from the cache, or builds it with `threads` threads.

    Raises UsageError for invalid settings, CompileError if the decoder cannot be compiled for the
    target, ModelError if a weight cannot be read.
    """
    if settings.batched:
        check_attention(checkpoint, "batches")
    key = _key(checkpoint, settings)
    known = _find(key) if use_cache else None
    if known is not None:
        return known
    # MLIR takes 0.3 s to import, which a later start saves.
    from relax_mlir.llm.decoder import building

    return building.build(checkpoint, settings, threads, key if use_cache else None)


def check_attention(checkpoint: Checkpoint, what: str) -> None:
    """Raises ModelError if the model has layers with states, which `what` do not take."""
    if checkpoint.config.states is not None:
        raise ModelError(f"{checkpoint.path}: has layers with states; {what} take attention alone")


def _key(checkpoint: Checkpoint, settings: Settings) -> bytes:
    """The cache key of decoder and weights."""
    paths = checkpoint.path, *checkpoint.folders
    files = [f for path in paths for f in (sorted(path.iterdir()) if path.is_dir() else [path])]
    states = [(str(file.resolve()), file.stat()) for file in files]
    model = [(name, state.st_size, state.st_mtime_ns) for name, state in states]
    machine = processor_fingerprint() if "native" in str(settings.target) else ""
    count = len(checkpoint.adapters)
    return repr(("decoder", model, count, settings, machine, compiler_fingerprint())).encode()


def _find(key: bytes) -> Decoder | None:
    begin = time.perf_counter()
    weights = cache.lookup(key, ".weights")
    module = cache.lookup(key, ".so") if weights else None
    if weights is None or module is None:
        return None
    executable = load(module)
    seconds = time.perf_counter() - begin
    parameters = _map(weights, parameter_kinds(executable))
    return None if parameters is None else Decoder(executable, parameters, seconds)


def parameter_kinds(executable: Executable) -> list[Kind]:
    """Shapes and element types of the parameters that a decoder takes."""
    arguments = executable["main"].arguments
    is_cache = [argument.inout for argument in arguments]
    return argument_kinds(arguments[is_cache.index(True) + is_cache.count(True) :])


def argument_kinds(arguments: Sequence[Argument]) -> list[Kind]:
    """Shapes and element types of arguments that are weights."""
    return [(_static_dims(argument), ELEMENTS[argument.dtype]) for argument in arguments]


def _static_dims(argument: Argument) -> tuple[int, ...]:
    dims = tuple(dim for dim in argument.dims or () if isinstance(dim, int))
    assert dims == argument.dims  # a parameter's are those of its weights
    return dims


def _map(path: Path, kinds: Sequence[Kind]) -> list[np.ndarray] | None:
    """The weights of a file, read-only; None if it has another size."""
    size = total_bytes(kinds)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != size:
            return None
        try:
            memory = map_file(file, size)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise MemoryError(f"the weights of {size} bytes") from None
    return views_of(memory, kinds)


def cached_weights(
    key: bytes, executable: Executable, kinds: Sequence[Kind], write: Callable[[BinaryIO], None]
) -> list[np.ndarray] | None:
    """Caches the weights that `write` writes, and maps them into memory.

    None if they should not or cannot be cached.
    """
    size = total_bytes(kinds)
    if os.environ.get("RELAX_CACHE_WEIGHTS") == "0" or 2 * size > cache.limit():
        return None
    if 4 * size > shutil.disk_usage(cache.directory()).free:
        return None
    try:
        cache.trim(cache.limit() // 2 - size, suffix=".weights")
        with cache.create(key, ".weights") as file:
            write(file)
        cache.store(key, [executable.path.read_bytes()], ".so")
        path = cache.lookup(key, ".weights")
        return None if path is None else _map(path, kinds)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        folder = cache.directory()
        warnings.warn(
            f"{size} bytes of weights are not cached in '{folder}' for later starts: {reason}",
            stacklevel=2,
        )
        return None
