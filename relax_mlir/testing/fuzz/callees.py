"""Python functions that random programs call, and what calls do besides results.

with noted() as notes:
    module["main"](x)
notes.lines        # what was printed; what functions with effects were called with
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any
from zlib import crc32

import numpy as np

from relax_mlir.runtime.callees import register_function

PREFIX = "fuzz."
_calls: list[str] = []


@dataclass
class Notes:
    """Lines that were printed, in order, and calls of functions with effects, in order."""

    lines: list[str] = field(default_factory=list)


@contextmanager
def noted(is_code: bool = False) -> Iterator[Notes]:
    """Notes the effects of what runs inside; compiled code prints to the descriptor 1."""
    notes, told = Notes(), StringIO()
    _calls.clear()
    if not is_code:
        with redirect_stdout(told):
            yield notes
        notes.lines = [*told.getvalue().splitlines(), *_calls]
        return
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield notes
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(saved, 1)
            os.close(saved)
        file.seek(0)
        notes.lines = [*file.read().decode().splitlines(), *_calls]


def _flipped(x: np.ndarray) -> np.ndarray:
    return np.flip(x)


def _both(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [np.maximum(x, y), np.minimum(x, y)]


def _filled(x: np.ndarray, out: np.ndarray) -> None:
    out[...] = np.flip(x)


def _updated(y: np.ndarray, out: np.ndarray) -> None:
    out[...] = np.maximum(np.flip(out), y)


def _scratched(x: np.ndarray, out: np.ndarray, *workspaces: np.ndarray) -> None:
    """Turns x around in the first workspace; whoever shares memory with one loses what is there."""
    for workspace in workspaces:
        workspace[...] = 0xA5
    first = workspaces[0]
    first[: x.nbytes] = np.frombuffer(x.tobytes(), np.uint8)
    out[...] = np.flip(np.frombuffer(first.tobytes()[: x.nbytes], x.dtype).reshape(x.shape))


def _noted(x: np.ndarray) -> np.ndarray:
    _calls.append(f"called with {x.dtype.name}{list(x.shape)} of {crc32(x.tobytes())}")
    return x


def _boxed(x: np.ndarray) -> list[np.ndarray]:
    return [x.copy()]


def _unboxed(box: list[np.ndarray]) -> np.ndarray:
    return box[0]


FUNCTIONS: dict[str, tuple[Any, bool]] = {
    "flipped": (_flipped, False),
    "both": (_both, False),
    "filled": (_filled, True),
    "updated": (_updated, True),
    "scratched": (_scratched, True),
    "noted": (_noted, False),
    "boxed": (_boxed, False),
    "unboxed": (_unboxed, False),
}
"""Functions, and whether they write to their last arguments."""
for _name, (_function, _writes) in FUNCTIONS.items():
    register_function(PREFIX + _name, _function, writes=_writes)
