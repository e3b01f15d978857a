"""Recordings: WAVE files as samples of one channel, at the rate that a model takes."""

import io
import math
import wave
from pathlib import Path

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.llm.formats.model_files import in_short

ZEROS = 32
"""Zero crossings of the interpolating function on each side."""
MAX_SECONDS = 24 * 3600
_FULL = {1: 128.0, 2: 32768.0, 3: 8388608.0, 4: 2147483648.0}


def read_audio(source: Path | bytes, rate: int) -> np.ndarray:
    """The samples of a WAVE file of integers, float32[n] in -1 to 1, `rate` of them a second.

    Channels are averaged. Raises UsageError for what is no such file, or longer than a day.
    """
    name = str(source) if isinstance(source, Path) else "the recording"
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        with file, wave.open(file) as reader:
            count, own = reader.getnframes(), reader.getframerate()
            width, channels = reader.getsampwidth(), reader.getnchannels()
            if own < 1 or count > MAX_SECONDS * own:
                raise UsageError(f"{name}: is longer than a day, or has no rate")
            data = reader.readframes(count)
    except (wave.Error, EOFError, OSError) as error:
        raise UsageError(
            f"{name}: cannot be read: {in_short(error)}; expects a WAVE file of integer samples"
        ) from None
    whole = len(data) // (width * channels) * channels
    samples = _integers(data[: whole * width], width) / np.float32(_FULL[width])
    return resampled(samples.reshape(-1, channels).mean(1, dtype=np.float32), own, rate)


def _integers(data: bytes, width: int) -> np.ndarray:
    """Samples of 1 to 4 bytes, as float32."""
    if width == 1:
        return np.frombuffer(data, np.uint8).astype(np.float32) - 128
    if width == 3:
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
        values = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
        return (values - ((values & 0x800000) << 1)).astype(np.float32)
    return np.frombuffer(data, "<i2" if width == 2 else "<i4").astype(np.float32)


def resampled(x: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """Samples at another rate, by a windowed sinc below both rates' highest frequencies."""
    if rate == wanted or not len(x):
        return x.astype(np.float32)
    common = math.gcd(rate, wanted)
    up, down = wanted // common, rate // common
    cutoff = min(1.0, wanted / rate)
    count = -(-len(x) * up // down)
    reach = math.ceil(ZEROS / cutoff)
    padded = np.pad(x.astype(np.float32), reach + 1)
    taps = np.arange(-reach, reach + 1)
    out = np.empty(count, np.float32)
    for phase in range(min(up, count)):
        at = np.arange(phase, count, up) * down
        first = at // up  # the sample before, and how far after it
        offset = (phase * down % up) / up
        distance = (taps - offset) * cutoff
        window = np.cos(np.clip(distance / ZEROS, -1, 1) * (np.pi / 2)) ** 2
        kernel = (np.sinc(distance) * window * cutoff).astype(np.float32)
        for begin in range(0, len(first), 1 << 14):
            part = first[begin : begin + (1 << 14)]
            out[phase + up * begin : phase + up * (begin + len(part)) : up] = (
                padded[part[:, None] + taps + reach + 1] @ kernel
            )
    return out
