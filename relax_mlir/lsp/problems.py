"""Diagnostics with the parts of the text that they are about."""

from dataclasses import dataclass

from relax_mlir.diagnostics import Diagnostic
from relax_mlir.lsp.analysis import Analysis
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.text import MAX_LENGTH, Span

_DUMP = "see current operation:"
"""MLIR's note that prints an operation, which the editor shows anyway."""


@dataclass(frozen=True)
class Problem:
    """A message on a part of the text; `related` are the notes, with what they are about."""

    severity: str
    message: str
    span: Span
    related: tuple[tuple[Span, str], ...] = ()


def problems(document: Document, analysis: Analysis) -> list[Problem]:
    """The diagnostics of an analysis of this version of the document."""
    result = [_problem(document, each) for each in analysis.diagnostics]
    top = Span(0, 0)
    if analysis.ended:
        result.append(Problem("warning", analysis.ended, top))
    if len(document.text.text) > MAX_LENGTH:
        message = f"the text has more than {MAX_LENGTH} characters: it is checked, no more"
        result.append(Problem("remark", message, top))
    return result


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
