"""Finds the functions of other people's libraries that a compiled module calls."""

import ctypes
import ctypes.util
from collections.abc import Iterator, Sequence
from importlib import metadata


def find_function(symbol: str, providers: Sequence[str]) -> int:
    """Address of the C function `symbol` in the first of `providers` that has it.

    A provider is a shared object ("libopenblas.so.0", or a path), an installed Python distribution
    that contains one ("scipy-openblas64"), or a library's name ("openblas").

    Raises:
        LookupError: no provider has it; the text says what was tried.
    """
    for provider in providers:
        for file in _shared_objects(provider):
            try:
                function = getattr(ctypes.CDLL(file), symbol)
            except (OSError, AttributeError):
                continue  # the next candidate may have it
            return ctypes.cast(function, ctypes.c_void_p).value
    raise LookupError(f"'{symbol}' is in none of: {', '.join(providers) or '(no libraries)'}")


def _shared_objects(provider: str) -> Iterator[str]:
    if ".so" in provider:
        yield provider
        return
    try:
        files = metadata.files(provider) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if ".so" in file.name and file.name.startswith("lib"):
            yield str(file.locate())
    found = ctypes.util.find_library(provider)
    if found:
        yield found
