"""A Whisper model from a folder: its compiled parts and their weights."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from relax_mlir.compiler import compile
from relax_mlir.executable import Executable
from relax_mlir.llm.checkpoints.folder_weights import FolderWeights
from relax_mlir.llm.decoder.arrays import aligned_arrays
from relax_mlir.llm.decoder.parameters import arguments_after
from relax_mlir.llm.modules.nn import Storage
from relax_mlir.llm.speech.config import WhisperConfig, read_config
from relax_mlir.llm.speech.network import Decoder, Encoder, export_decoder, export_encoder
from relax_mlir.llm.speech.spectrogram import export_spectrogram
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


class Window:
    """What layers of the decoder read of one window, and the cache of the text so far."""

    def __init__(self, read: Sequence[np.ndarray], caches: Sequence[np.ndarray]) -> None:
        self.read, self.caches = read, caches
        self.length = 0


class Whisper:
    """A model that is compiled for this machine. Use `Whisper.load`."""

    def __init__(
        self,
        config: WhisperConfig,
        tokenizer: Tokenizer,
        front: Executable,
        encoder: tuple[Executable, Sequence[np.ndarray]],
        decoder: tuple[Executable, Sequence[np.ndarray]],
    ) -> None:
        self.config, self.tokenizer = config, tokenizer
        self._front, self._encoder, self._decoder = front["main"], encoder, decoder

    @staticmethod
    def load(
        folder: str | Path, *, weights: str = "native", threads: int | None = None
    ) -> "Whisper":
        """Reads and compiles the model of a Hugging Face folder.

        `weights` "native" keeps matrices in bfloat16 if they are stored so; "f32" does not.

        Raises ModelError for a folder with another model, or an incomplete one.
        """
        path = Path(folder)
        config, source = read_config(path), FolderWeights(path)
        tokenizer = Tokenizer.from_hugging_face(path)
        storage = Storage(source.halves() if weights == "native" else {}, activations="f32")
        encoder, decoder = Encoder(config, storage), Decoder(config, storage)
        source.check([*encoder.parameters(), *decoder.parameters()])
        with tqdm(desc="compiling the model", bar_format="{desc} ...", leave=False, disable=None):
            front = compile(export_spectrogram(config.features), opt_level=3)
            parts = (
                compile(export_encoder(encoder), opt_level=3),
                compile(export_decoder(decoder), opt_level=3),
            )
        loaded = []
        networks = encoder.parameters(), decoder.parameters()
        givens = 1, 2 + 4 * config.decoder_layers
        for part, parameters, given in zip(parts, networks, givens, strict=True):
            if threads is not None:
                part.threads = threads
            loaded.append((part, arguments_after(part, given, source, parameters)))
        if threads is not None:
            front.threads = threads
        return Whisper(config, tokenizer, front, *loaded)

    def spectrogram(self, sound: np.ndarray) -> np.ndarray:
        """Of samples float32[n] and one window of silence: float32[mels, frames]."""
        return self._front(np.ascontiguousarray(sound, np.float32))

    def encode(self, mel: np.ndarray) -> Window:
        """Encodes a window, float32[mels, frames of one]."""
        executable, parameters = self._encoder
        read = executable["main"](np.ascontiguousarray(mel), *parameters)
        c = self.config
        dims = (c.decoder_heads, c.target_positions, c.size // c.decoder_heads)
        kind = (dims, np.dtype(np.float32))
        return Window(read, aligned_arrays([kind] * (2 * c.decoder_layers), "caches"))

    def step(self, window: Window, tokens: Sequence[int]) -> np.ndarray:
        """Adds tokens to the text of a window; returns logits of each, float32[n, vocab]."""
        executable, parameters = self._decoder
        logits, *_ = executable["main"](
            np.array(tokens, np.int32), (window.length,), *window.read, *window.caches, *parameters
        )
        window.length += len(tokens)
        return logits
