"""Keys that clients of a server need: of a file, of the environment, or given as they are."""

import os
from collections.abc import Sequence
from pathlib import Path

from relax_mlir.errors import UsageError

KEY_VARIABLE = "RELAX_API_KEY"


def read_keys(given: Sequence[str], file: str | None) -> list[str]:
    """The keys that are given, those of the environment, and those of the lines of a file.

    Raises UsageError if the file cannot be read or is empty, or a key is none.
    """
    keys = [*given, *os.environ.get(KEY_VARIABLE, "").split()]
    if file is not None:
        lines = [line.strip() for line in _text(file).splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"'{file}' has no key; expects one on each line")
        keys += lines
    for key in keys:
        if not (key.isascii() and key.isprintable() and " " not in key and key):
            raise UsageError("an API key is empty, or has other than visible ASCII characters")
    return keys


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read '{file}': {reason}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read '{file}': it is no UTF-8 text") from None
