"""Comments with the diagnostics that a test expects, in the form of MLIR's own tests.

    // expected-error @below {{text that the message contains}}
    // expected-note @+2 {{...}}      expected-warning @above {{...}}     expected-remark {{...}}

Without a location, the diagnostic is on the line of the comment; `@above` and `@below` skip lines
with such comments; `@unknown` is a diagnostic without a line. `expected-error-re` takes regular
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
    """A diagnostic that the input expects; `line` is 0 if it has none."""

    severity: str
    line: int
    text: str
    is_pattern: bool
    written_at: int

    def fits(self, diagnostic: Diagnostic) -> bool:
        """Whether the diagnostic matches."""
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
    """Parses the comments of a source text; lines count from 1."""
    return [
        Expectation(
            match[1], _line(lines, written_at, match[3]), match[4], bool(match[2]), written_at
        )
        for written_at, line in enumerate(lines, 1)
        for match in _COMMENT.finditer(line)
    ]


def _line(lines: Sequence[str], line: int, location: str | None) -> int:
    if location is None:
        return line
    if location == "unknown":
        return 0
    if location not in ("above", "below"):
        return line + int(location)
    step = 1 if location == "below" else -1
    line += step
    while 0 < line <= len(lines) and _MARK.search(lines[line - 1]):
        line += step
    return line


def unmet(lines: Sequence[str], actual: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The differences between expected and actual diagnostics, as errors.

    Each expectation matches one diagnostic. Notes count as diagnostics, except MLIR's dumps of the
    current operation.
    """
    remaining = expectations(lines)
    errors = []
    for diagnostic in [shown for one in actual for shown in (one, *one.notes)]:
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
