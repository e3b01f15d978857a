"""What sees in a model, ready to run: compiled preprocessing and encoder, and their weights."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from relax_mlir.executable import Executable
from relax_mlir.llm.decoder.pictures import Seen
from relax_mlir.llm.vision.config import Encode, VisionConfig
from relax_mlir.llm.vision.idefics_config import IdeficsVisionConfig
from relax_mlir.llm.vision.qwen_config import QwenVisionConfig

KNOWN = 16
"""Images whose rows are remembered."""


class Vision:
    """An encoder of images that is compiled for this machine; `load_vision` makes one."""

    def __init__(
        self,
        config: VisionConfig | QwenVisionConfig | IdeficsVisionConfig,
        front: Executable,
        encoder: Executable,
        parameters: Sequence[np.ndarray],
        encode: Encode,
    ) -> None:
        self.config = config
        self._encode = encode
        self._front, self._encoder, self._parameters = front, encoder, parameters
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()  # the least recently used one first
        self._lock = Lock()

    def pixels(self, image: np.ndarray) -> np.ndarray:
        """What the encoder takes of an image uint8[h, w, 3]: see `preprocessing.py`."""
        shapes = self.config.shapes_of(*image.shape[:2])
        return self._front["main"](np.ascontiguousarray(image), *shapes)

    def tokens_of(self, height: int, width: int) -> list[int]:
        """The tokens of an image, some of which stand for rows."""
        return self.config.tokens_of(height, width, self._encode)

    def rows(self, pixels: np.ndarray, *more: Any) -> np.ndarray:
        """The rows float32[n, hidden] of pixels; `more` is what the encoder takes after them."""
        return self._encoder["main"](np.ascontiguousarray(pixels), *more, *self._parameters)

    def see(self, image: np.ndarray) -> Seen:
        """What a prompt has of an image uint8[h, w, 3]; the last few are known, by their digest."""
        key = image_key(image)
        with self._lock:
            if key not in self._seen:
                self._seen[key] = self._encoded(image, key)
            self._seen.move_to_end(key)
            if len(self._seen) > KNOWN:
                self._seen.popitem(last=False)
            return self._seen[key]

    def _encoded(self, image: np.ndarray, key: bytes) -> Seen:
        config, size = self.config, image.shape[:2]
        rows = self.rows(self.pixels(image), *config.arguments_of(*size))
        return Seen(self.tokens_of(*size), rows, key, config.grid_of(*size))


def load_vision(
    folder: Path,
    hidden_size: int,
    encode: Encode,
    *,
    weights: str = "native",
    threads: int | None = None,
    use_cache: bool = True,
) -> Vision:
    """Reads and compiles what sees in the model of a folder, for decoders of `hidden_size`.

    Some images have texts among their rows, which `encode` turns into tokens. `weights` "native"
    keeps matrices in bfloat16 if they are stored so; "f32" does not.

    Raises ModelError for what is missing in the folder, or not supported.
    """
    # MLIR takes 0.3 s to import, which only images need.
    from relax_mlir.llm.vision import building

    return building.build(folder, hidden_size, encode, weights, threads, use_cache)


def image_key(image: np.ndarray) -> bytes:
    """A digest of an image's size and elements."""
    digest = blake2b(repr(image.shape).encode(), digest_size=32)
    digest.update(np.ascontiguousarray(image).data)
    return digest.digest()
