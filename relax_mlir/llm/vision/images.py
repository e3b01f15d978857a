"""Images of files, or of bytes, as uint8[height, width, 3]."""

import base64
import binascii
import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.formats.model_files import in_short, open_model_file

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MAX_BYTES = 64 << 20
MAX_PIXELS = 64 << 20
"""Of an image, before and after it is decoded."""
MAX_EDGE = 1 << 16
"""Of either edge: resizing takes memory as it grows."""
MAX_SCANNED = 1 << 30
"""Of all scans of a JPEG file together: each takes the time of the whole image, however short."""
_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")
"""What begins a segment of a JPEG file: others are within a scan, or have no length."""
_SCAN, _END = 0xDA, 0xD9
ImageSource = str | Path | bytes | np.ndarray
"""A file, the bytes of one, or elements."""


def read_image(source: ImageSource) -> np.ndarray:
    """The elements of an image, uint8[height, width, 3].

    Of a file with several images it is the first. It is upright by what the camera noted, what is
    transparent is on white, and of 16 bits the upper 8 are taken. Arrays have this form already.

    Raises UsageError for what is no image, is too large, or has no pixels.
    """
    if isinstance(source, np.ndarray):
        if source.dtype != np.uint8 or source.ndim != 3 or source.shape[2] != 3 or not source.size:
            raise UsageError(
                f"an image is {source.dtype} of shape {source.shape}; expects uint8 of "
                "(height, width, 3), with pixels"
            )
        _check_pixels("an image", source.shape[1], source.shape[0])
        return source
    name = "the image" if isinstance(source, bytes) else str(source)
    return _decoded(name, source if isinstance(source, bytes) else _bytes(Path(source)))


def decode_data_url(url: str) -> bytes:
    """The bytes of a URL `data:image/...;base64,...`; raises UsageError for any other one."""
    kind, _, data = url.partition(",")
    if not kind.lower().startswith("data:image/") or not kind.endswith(";base64"):
        raise UsageError(f"the URL begins with {kind[:40]!r}; expects data:image/...;base64,...")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise UsageError("the URL has no base64 after the comma") from None


def _bytes(path: Path) -> bytes:
    try:
        with open_model_file(path) as file:
            data = file.read(MAX_BYTES + 1)
    except ModelError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return data


def _decoded(name: str, data: bytes) -> np.ndarray:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise UsageError("images need the package 'pillow': the extra 'vision' has it") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}: has more than {MAX_BYTES} bytes, the maximum")
    formats = ", ".join(FORMATS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged parts that do not matter
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                _check_pixels(name, *image.size)
                _check_scans(name, data, *image.size)
                return _as_rgb(ImageOps.exif_transpose(image))
    except UsageError:
        raise
    except UnidentifiedImageError:  # whose message has an address in memory
        raise UsageError(f"{name}: is no image: expects one of {formats}") from None
    except Exception as error:  # decoders raise what they like for damaged files
        reason = in_short(error)
        raise UsageError(f"{name}: is no image: {reason}; expects one of {formats}") from None


def _check_pixels(name: str, width: int, height: int) -> None:
    if width * height > MAX_PIXELS or max(width, height) > MAX_EDGE:
        raise UsageError(
            f"{name}: has {width} x {height} pixels; expects at most {MAX_PIXELS} in all, and "
            f"{MAX_EDGE} on an edge"
        )


def _check_scans(name: str, data: bytes, width: int, height: int) -> None:
    count = _scans(data) if data.startswith(b"\xff\xd8") else 0
    if count * width * height > MAX_SCANNED:
        raise UsageError(
            f"{name}: has {count} scans of {width} x {height} pixels; expects at most "
            f"{MAX_SCANNED} pixels in all of them"
        )


def _scans(data: bytes) -> int:
    """How many scans a JPEG file has; what follows its end, such as a film, is no part of it."""
    count = at = 0
    while (marker := _MARKER.search(data, at)) and marker[0][1] != _END:
        count += marker[0][1] == _SCAN
        length = int.from_bytes(data[marker.end() : marker.end() + 2], "big")
        at = marker.end() + max(length, 2)
    return count


def _as_rgb(image: "Image.Image") -> np.ndarray:
    from PIL import Image

    if image.mode.startswith("I;16"):
        return np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        above = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, above)
    return np.array(image.convert("RGB"))
