"""Diagnostics with the parts of the text that they are about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from relax_mlir.diagnostics import Diagnostic
from relax_mlir.lsp.analysis import Analysis
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features.run_lines import unknown_passes
from relax_mlir.lsp.text import MAX_LENGTH, Span
from relax_mlir.testing.expectations import expectations

_DUMP = "see current operation:"
"""MLIR's note that prints an operation, which the editor shows anyway."""

MAX_LINE = 1000
"""Longer lines expect nothing: matching them takes time with the square of their length."""
_EXPECTS = "--verify-diagnostics"


@dataclass(frozen=True)
class Problem:
    """A message on a part of the text.

    The severity is that of the diagnostic, or "expected" where a test expects it; `related` are the
    notes, with what they are about.
    """

    severity: str
    message: str
    span: Span
    related: tuple[tuple[Span, str], ...] = ()


def problems(document: Document, analysis: Analysis) -> list[Problem]:
    """The diagnostics of an analysis of this version of the document."""
    expected = _expected(document.text.text, analysis.diagnostics)
    result = [
        replace(_problem(document, each), severity="expected")
        if each in expected
        else _problem(document, each)
        for each in analysis.diagnostics
    ]
    result += _unknown_passes(document)
    top = Span(0, 0)
    if analysis.ended:
        result.append(Problem("warning", analysis.ended, top))
    if len(document.text.text) > MAX_LENGTH:
        message = f"the text has more than {MAX_LENGTH} characters: it is checked, no more"
        result.append(Problem("remark", message, top))
    return result


def _expected(text: str, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics that comments of a test expect."""
    if _EXPECTS not in text:
        return []
    lines = [line if len(line) <= MAX_LINE else "" for line in text.split("\n")]
    waiting, expected = expectations(lines), []
    for diagnostic in diagnostics:
        hit = next((each for each in waiting if each.fits(diagnostic)), None)
        if hit is not None:
            waiting.remove(hit)
            expected.append(diagnostic)
    return expected


def _unknown_passes(document: Document) -> Iterator[Problem]:
    """Names in `RUN` lines that are of no pass."""
    for syntax in document.syntaxes():
        for comment in syntax.comments:
            for span, message in unknown_passes(comment.text):
                start, end = comment.start + span.start, comment.start + span.end
                yield Problem("warning", message, Span(start, end))


def _problem(document: Document, diagnostic: Diagnostic) -> Problem:
    related, messages = [], [diagnostic.message]
    for note in diagnostic.notes:
        if note.message.startswith(_DUMP):
            continue
        if note.file == "-" and note.line:
            related.append((_span(document, note), note.message))
        else:
            messages.append(note.message)
    message = "\n".join(messages)
    return Problem(diagnostic.severity, message, _span(document, diagnostic), tuple(related))


def _span(document: Document, diagnostic: Diagnostic) -> Span:
    """The token at a diagnostic's position; its line if the position is in no token."""
    if diagnostic.file != "-" or not diagnostic.line:
        return Span(0, 0)
    start = document.text.offset_in_mlir(diagnostic.line, diagnostic.column)
    for token in document.syntax_at(start).tokens:
        if token.start <= start < token.end:
            return Span(start, token.end)
    return Span(start, start)
