"""Writes a language model as a folder of files that a web server, or Node, has nothing to add to.

model.wasm         the decoder
webgpu.wasm        the same for WebGPU, if the target is 'webgpu'
weights-000.bin    its parameters in order, each aligned to 64 bytes, cut into chunks
tokenizer.json     see `tokens.py`
manifest.json      what `web/llm.js` reads first
index.html, *.js   a page to chat, and the loader
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.arrays import total_bytes
from relax_mlir.llm.decoder.building import compile_decoder, decoder_file
from relax_mlir.llm.decoder.decoder import Settings, check_attention, parameter_kinds
from relax_mlir.llm.decoder.parameters import File, load_parameters
from relax_mlir.llm.modules.nn import Parameter
from relax_mlir.llm.web.tokens import describe_tokenizer
from relax_mlir.llm.web.turns import describe_template
from relax_mlir.target import WASM, Target

LOADER = Path(__file__).resolve().parent / "loader"
CHUNK_BYTES = 32 << 20
MOST_BYTES = 1 << 32
MOST_BYTES_OF_TENSOR = 1 << 31
VERSION = 1
PLAIN_LEVEL = 2
"""Of optimisation: weights are packed for the kernels of a target from the next one on."""


def export_web(
    checkpoint: Checkpoint, settings: Settings, folder: Path, context: int, threads: int = 1
) -> list[Path]:
    """Writes the files of a model that is compiled for a target of WebAssembly; returns them.

    `context` is the longest sequence; `threads` load the weights.

    Raises UsageError for another target, ModelError for a model whose weights do not fit into the
    memory of a module, or whose tokenizer or chat template the loader does not have; CompileError,
    OSError.
    """
    target = settings.target
    target = target if isinstance(target, Target) else Target.parse(target)
    if target.host.arch != WASM:
        raise UsageError(f"target is '{target}'; pages take one of WebAssembly, such as 'wasm32'")
    device = None if target.device is None else settings
    if device is not None:
        target = replace(target, devices=())
        settings = _plain(replace(settings, target=target))
    check_attention(checkpoint, "browsers")
    if checkpoint.config.image_id is not None:
        raise ModelError(f"{checkpoint.path}: reads images, which pages do not")
    where = str(checkpoint.path)
    tokenizer = describe_tokenizer(checkpoint.tokenizer)
    turns = None if checkpoint.chat is None else describe_template(checkpoint.chat, where)
    executable, parameters = compile_decoder(checkpoint, settings)
    kinds = parameter_kinds(executable)
    _check_sizes(where, [dtype.itemsize * prod(dims) for dims, dtype in kinds])
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "model.wasm"
    shutil.copyfile(executable.path, module)
    on_device = (
        None if device is None else _compile_for_device(checkpoint, device, folder, parameters)
    )
    chunks = Chunks(folder, total_bytes(kinds))
    sink: Any = File(chunks.as_file(), kinds)
    load_parameters(checkpoint.weights, parameters, executable, sink, threads)
    chunks.close()
    manifest = {
        "version": VERSION,
        "name": checkpoint.path.name,
        "target": str(target),
        "module": _described(module),
        "webgpu": on_device,
        "weights": [_described(path) for path in chunks.paths],
        "context": context,
        "vocab_size": checkpoint.config.vocab_size,
        "end_ids": sorted(checkpoint.config.eos_ids),
        "chat": turns,
    }
    written = [_write(folder / "tokenizer.json", tokenizer), *chunks.paths, module]
    written += [folder / on_device["file"]] if on_device else []
    written += [Path(shutil.copy(path, folder)) for path in _loader()]
    return [*written, _write(folder / "manifest.json", manifest)]


def _plain(settings: Settings) -> Settings:
    """Those for weights that are not packed."""
    return replace(settings, opt_level=min(settings.opt_level, PLAIN_LEVEL))


def _compile_for_device(
    checkpoint: Checkpoint, settings: Settings, folder: Path, parameters: Sequence[Parameter]
) -> dict[str, Any]:
    """Writes the module for WebGPU, which takes the same weights; returns its description."""
    exact = _plain(replace(settings, activations="f32", cache="f32"))
    path, others = decoder_file(checkpoint, exact)
    assert [p.dims for p in others] == [p.dims for p in parameters], "layouts are those of a level"
    module = folder / "webgpu.wasm"
    shutil.copyfile(path, module)
    return {**_described(module), "target": str(settings.target)}


def _described(path: Path) -> dict[str, Any]:
    """A file, its size, and its digest, by which browsers cache it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def _check_sizes(where: str, sizes: list[int]) -> None:
    total, largest = sum(sizes), max(sizes, default=0)
    if largest >= MOST_BYTES_OF_TENSOR:
        raise ModelError(
            f"{where}: a weight takes {largest} bytes, but tensors in WebAssembly have less than "
            f"2^31 = {MOST_BYTES_OF_TENSOR}; fewer bits (--weights q4_1) take less"
        )
    if total >= MOST_BYTES:
        raise ModelError(
            f"{where}: weights take {total} bytes, but all memory of a WebAssembly module is "
            f"2^32 = {MOST_BYTES} bytes; fewer bits (--weights q4_1) take less"
        )


def _loader() -> Iterable[Path]:
    return sorted(
        path for path in LOADER.iterdir() if path.suffix in (".js", ".mjs", ".ts", ".html", ".json")
    )


def _write(path: Path, value: object) -> Path:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    return path


@dataclass
class _Writer:
    """As much of a binary file as `File` uses."""

    writelines: Callable[[Iterable[memoryview]], None]


class Chunks:
    """Bytes that are written to files of at most CHUNK_BYTES, one after another."""

    def __init__(self, folder: Path, total: int) -> None:
        self.paths: list[Path] = []
        self._folder = folder
        self._room = 0
        self._digits = max(3, len(str(total // CHUNK_BYTES)))
        self._file: BinaryIO | None = None
        for path in folder.glob("weights-*.bin"):  # of an earlier model
            path.unlink()

    def as_file(self) -> Any:
        """What `File` writes to."""
        return _Writer(self.write)

    def write(self, pieces: Iterable[memoryview]) -> None:
        """Appends bytes."""
        for piece in pieces:
            while piece.nbytes:
                if not self._room:
                    self._next()
                assert self._file is not None
                self._file.write(piece[: self._room])
                taken = min(self._room, piece.nbytes)
                piece, self._room = piece[taken:], self._room - taken

    def _next(self) -> None:
        self.close()
        self.paths.append(self._folder / f"weights-{len(self.paths):0{self._digits}}.bin")
        self._file, self._room = self.paths[-1].open("wb"), CHUNK_BYTES

    def close(self) -> None:
        """Ends the last file."""
        if self._file is not None:
            self._file.close()
        self._file = None
