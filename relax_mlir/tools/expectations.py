"""Comments that say which diagnostics a test expects, in the form of MLIR's own tests.

    // expected-error @below {{text that the message contains}}
    // expected-note @+2 {{...}}      expected-warning @above {{...}}     expected-remark {{...}}

Without a place, the line of the comment is meant; `@above` and `@below` skip lines that are such
comments themselves; `@unknown` is a diagnostic without a line. `expected-error-re` takes regular
expressions between inner `{{` and `}}`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.diagnostics import Diagnostic

_COMMENT = re.compile(
    r"expected-(error|warning|note|remark)(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*"
    r"\{\{(.*?)\}\}\s*(?=$|,?\s*expected-)"
)
_MARK = re.compile(r"expected-(error|warning|note|remark)")


@dataclass(frozen=True)
class Expectation:
    """One diagnostic that the input says it causes; `line` is 0 if it has none."""

    severity: str
    line: int
    text: str
    is_pattern: bool
    written_at: int

    def fits(self, diagnostic: Diagnostic) -> bool:
        """Whether this is the diagnostic meant."""
        line = diagnostic.line if diagnostic.file == "-" else 0
        if (diagnostic.severity, line) != (self.severity, self.line):
            return False
        if not self.is_pattern:
            return self.text in diagnostic.message
        parts = re.split(r"\{\{(.*?)\}\}", self.text)
        pattern = "".join(
            f"(?:{part})" if index % 2 else re.escape(part) for index, part in enumerate(parts)
        )
        return re.search(pattern, diagnostic.message) is not None


def expectations(lines: Sequence[str]) -> list[Expectation]:
    """Reads the comments of a source text; lines count from 1."""
    return [
        Expectation(match[1], _line(lines, number, match[3]), match[4], bool(match[2]), number)
        for number, line in enumerate(lines, 1)
        for match in _COMMENT.finditer(line)
    ]


def _line(lines: Sequence[str], number: int, place: str | None) -> int:
    if place is None:
        return number
    if place == "unknown":
        return 0
    if place not in ("above", "below"):
        return number + int(place)
    step = 1 if place == "below" else -1
    number += step
    while 0 < number <= len(lines) and _MARK.search(lines[number - 1]):
        number += step
    return number


def unmet(lines: Sequence[str], found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What differs between the diagnostics expected and found, as errors; empty if nothing does.

    Each expectation stands for one diagnostic. Notes count as diagnostics of their own, except
    MLIR's dumps of the current operation.
    """
    remaining = expectations(lines)
    errors = []
    for diagnostic in [shown for one in found for shown in (one, *one.notes)]:
        if diagnostic.message.startswith("see current operation:"):
            continue
        hit = next((wanted for wanted in remaining if wanted.fits(diagnostic)), None)
        if hit is None:
            text = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            errors.append(
                Diagnostic("error", text, diagnostic.file, diagnostic.line, diagnostic.column)
            )
        else:
            remaining.remove(hit)
    for wanted in remaining:
        text = f'expected {wanted.severity} "{wanted.text}" was not produced'
        errors.append(Diagnostic("error", text, "-", wanted.written_at, 1))
    return errors
