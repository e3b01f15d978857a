"""JSON of requests, which may be anything, and of responses.

A text is strict JSON in UTF-8: no NaN or infinities, no lone surrogates, bounded nesting.
"""

import json
import math
from typing import Any, NoReturn

DEEPEST = 64
"""Levels of arrays and objects; schemas and messages of real programs have a dozen."""

MOST_DIGITS = 1000


def dump(value: Any) -> bytes:
    """The JSON of a value, compact."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def load(text: bytes) -> Any:
    """The value of a JSON text; raises ValueError, which says what is wrong."""
    try:
        value = json.loads(text.decode("utf-8"), parse_int=_integer, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    _check(value)
    return value


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"an integer has {len(text)} digits")
    return int(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _check(value: Any) -> None:
    """Visits all of a value, level by level, so that its depth costs no stack."""
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str):
                _check_text(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise ValueError("a value is beyond float64")
        if not below:
            return
        level = below
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a string has half of a surrogate pair") from None
