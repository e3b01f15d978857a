"""Results of the features as the protocol has them."""

from collections.abc import Mapping

from lsprotocol import types

from relax_mlir.lsp.features.completion import Completion
from relax_mlir.lsp.features.hover import Hover
from relax_mlir.lsp.features.outline import Entry, Hint
from relax_mlir.lsp.features.problems import Problem
from relax_mlir.lsp.features.quick_fixes import Fix
from relax_mlir.lsp.features.signature_help import Signature
from relax_mlir.lsp.text import Span, Text

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
    "expected": types.DiagnosticSeverity.Hint,
}
_KINDS = {
    "alias": types.CompletionItemKind.Class,
    "attribute": types.CompletionItemKind.Property,
    "function": types.CompletionItemKind.Function,
    "operator": types.CompletionItemKind.Method,
    "option": types.CompletionItemKind.Property,
    "pass": types.CompletionItemKind.Module,
    "symbol": types.CompletionItemKind.Variable,
    "value": types.CompletionItemKind.Variable,
}


def position(text: Text, offset: int) -> types.Position:
    """A position of the protocol."""
    line, character = text.position(offset)
    return types.Position(line, character)


def span_range(text: Text, span: Span) -> types.Range:
    """A range of the protocol."""
    return types.Range(position(text, span.start), position(text, span.end))


def diagnostic(text: Text, uri: str, problem: Problem) -> types.Diagnostic:
    """A diagnostic with its notes."""
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, span_range(text, span)), message)
        for span, message in problem.related
    ]
    return types.Diagnostic(
        span_range(text, problem.span),
        problem.message,
        severity=_SEVERITIES.get(problem.severity, types.DiagnosticSeverity.Information),
        source="relax-mlir",
        related_information=related or None,
    )


def hover(text: Text, result: Hover) -> types.Hover:
    """Markdown on a part of the text."""
    content = types.MarkupContent(types.MarkupKind.Markdown, result.markdown)
    return types.Hover(content, span_range(text, result.span))


def completion(text: Text, each: Completion, index: int, snippets: bool) -> types.CompletionItem:
    """A completion; editors sort them by index."""
    replaced = text.text[each.span.start : each.span.end]
    content = types.MarkupContent(types.MarkupKind.Markdown, each.documentation)
    return types.CompletionItem(
        each.label,
        kind=_KINDS[each.kind],
        detail=each.detail or None,
        documentation=content if each.documentation else None,
        sort_text=f"{index:05}",
        filter_text=f'"{each.label}' if replaced.startswith('"') else each.label,
        insert_text_format=(
            types.InsertTextFormat.Snippet if snippets else types.InsertTextFormat.PlainText
        ),
        text_edit=types.TextEdit(
            span_range(text, each.span), each.snippet if snippets else each.plain
        ),
    )


def symbol(text: Text, entry: Entry) -> types.DocumentSymbol:
    """An entry of the outline."""
    return types.DocumentSymbol(
        entry.name,
        types.SymbolKind.Function if entry.is_function else types.SymbolKind.TypeParameter,
        span_range(text, entry.span),
        span_range(text, entry.name_span),
    )


def hint(text: Text, each: Hint) -> types.InlayHint:
    """A type, shown after a value."""
    return types.InlayHint(position(text, each.offset), each.text, kind=types.InlayHintKind.Type)


def edit(text: Text, uri: str, changes: Mapping[Span, str]) -> types.WorkspaceEdit:
    """Replacements in one document."""
    edits = [types.TextEdit(span_range(text, span), new) for span, new in changes.items()]
    return types.WorkspaceEdit(changes={uri: edits})


def signature_help(result: Signature) -> types.SignatureHelp:
    """The signature of one operator; its operands are parts of the label."""
    content = types.MarkupContent(types.MarkupKind.Markdown, result.documentation)
    parameters = [
        types.ParameterInformation(result.label[span.start : span.end]) for span in result.operands
    ]
    information = types.SignatureInformation(result.label, content, parameters)
    return types.SignatureHelp([information], 0, result.active)


def code_action(text: Text, uri: str, fix: Fix) -> types.CodeAction:
    """A correction."""
    return types.CodeAction(
        f"Change to {fix.text}",
        kind=types.CodeActionKind.QuickFix,
        edit=edit(text, uri, {fix.span: fix.text}),
    )
