"""The operands of the operator whose operands are being written."""

from dataclasses import dataclass

from relax_mlir.lsp import catalogue
from relax_mlir.lsp.context import operand_index
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.text import Span


@dataclass(frozen=True)
class Signature:
    """A label, parts of which are operands, and the index of the operand being written."""

    label: str
    operands: tuple[Span, ...]
    active: int
    documentation: str


def signature(document: Document, offset: int) -> Signature | None:
    """The signature of the operator in whose parentheses an offset is."""
    syntax = document.syntax_at(offset)
    statement = syntax.statement_at(offset)
    if statement is None:
        return None
    operator = catalogue.operators().get(syntax.op_name(statement))
    index = operand_index(syntax, statement, offset)
    if operator is None or index is None:
        return None
    label, spans = operator.signature, []
    start = label.index("(") + 1
    for part in catalogue.shown(operator.operands).split(", "):
        spans.append(Span(start, start + len(part)))
        start += len(part) + 2
    return Signature(label, tuple(spans), min(index, len(spans) - 1), operator.documentation)
