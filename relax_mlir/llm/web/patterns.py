r"""Regular expressions of tokenizers, as Oniguruma reads them, in JavaScript's notation.

`\s` has other characters in JavaScript, and letters of either case, `(?i:...)`, are not in all
browsers: such letters become sets, such classes properties of Unicode.

Source: Oniguruma, "RE" (its syntax of Ruby); ECMAScript 2024, 22.2 (the flag `u`).
"""

import re
from collections.abc import Iterator

from relax_mlir.errors import ModelError

_TOKEN = re.compile(
    r"\\[pP]\{\^?\w+\}|\\.|\(\?i:|\(\?[:=!]|\(\?<[=!]|\{\d*,?\d*\}|[?*+}]\+|&&|\[:|\(\?|.",
    re.DOTALL,
)
_CLASSES = {
    r"\s": r"\p{White_Space}",
    r"\S": r"\P{White_Space}",
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
}
_ESCAPES = frozenset("rntfv")
_SYNTAX = frozenset("^$\\.*+?()[]{}|/-")
_FOLDED = {"s": "\u017f", "k": "\u212a"}
"""What is equal to a letter of ASCII but for its case, and is none."""


def to_javascript(pattern: str, where: str) -> str:
    """The pattern for `new RegExp(pattern, "gu")`; raises ModelError for what is not supported."""
    return "".join(_translated(pattern, where))


def _translated(pattern: str, where: str) -> Iterator[str]:
    groups: list[bool] = []  # of open groups, whether they ignore the case
    inside = False  # of a set
    for match in _TOKEN.finditer(pattern):
        token = match.group()
        if inside:
            inside = token != "]"
            if token in ("[", "&&", "[:"):
                raise _refused(pattern, token, where)
        elif token == "[":
            inside = True
        elif token.startswith("(?") or token == "(":
            if token == "(?":
                raise _refused(pattern, pattern[match.start() : match.start() + 4], where)
            ignores = token == "(?i:" or (bool(groups) and groups[-1])
            groups.append(ignores)
            yield "(?:" if token in ("(?i:", "(") else token
            continue
        elif token == ")" and groups:
            groups.pop()
        elif len(token) == 2 and token[1] == "+" and token[0] != "\\":
            raise _refused(pattern, token, where)  # possessive
        yield _one(token, pattern, where, inside, bool(groups) and groups[-1])


def _one(token: str, pattern: str, where: str, inside: bool, ignores: bool) -> str:
    """A token that opens and closes no group."""
    if token in _CLASSES:
        return _CLASSES[token]
    if token[0] == "\\" and len(token) == 2:
        letter = token[1]
        if letter in _ESCAPES or (letter in _SYNTAX and (inside or letter != "-")):
            return token
        if letter.isalnum():
            raise _refused(pattern, token, where)
        return letter
    if ignores and len(token) == 1 and token.isascii() and token.isalpha():
        both = token.lower() + token.upper() + _FOLDED.get(token.lower(), "")
        return both if inside else f"[{both}]"
    if ignores and not token.isascii():
        raise _refused(pattern, token, where)
    return token


def _refused(pattern: str, part: str, where: str) -> ModelError:
    return ModelError(
        f"{where}: the pattern {pattern!r} has {part!r}; accepted are groups, sets, properties of "
        "Unicode, repetitions and assertions"
    )
