"""The server: has the open documents, checks them as they change, and answers requests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from lsprotocol import types
from pygls.lsp.server import LanguageServer

import relax_mlir
from relax_mlir.lsp import protocol
from relax_mlir.lsp.analysis import Analysis, Stop, analyse
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.features import (
    completion,
    hover,
    navigation,
    outline,
    quick_fixes,
    signature_help,
)
from relax_mlir.lsp.features.problems import problems
from relax_mlir.lsp.text import Span, Text

DELAY = 0.25
"""How long a text must not have changed before it is checked, in seconds."""
CHECKERS = 2
"""How many texts are checked at once."""
TRIGGERS = ["%", "@", "!", "#", '"', ".", "-", "{", ","]


class Server(LanguageServer):
    """The open documents, by URI, and the tasks that check them."""

    def __init__(self) -> None:
        super().__init__(
            "relax-lsp",
            relax_mlir.__version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
        )
        self.documents: dict[str, Document] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.stops: dict[str, Stop] = {}
        self.checkers = ThreadPoolExecutor(CHECKERS)

    def update(self, uri: str, text: str) -> None:
        """Takes a new version of a document, and has it checked soon."""
        old = self.documents.get(uri)
        encoding = self.workspace.position_encoding or types.PositionEncodingKind.Utf16
        self.documents[uri] = (
            Document.of(text, types.PositionEncodingKind(encoding).value)
            if old is None
            else old.changed(text)
        )
        self._stop(uri)
        if uri not in self.tasks:
            self.tasks[uri] = asyncio.ensure_future(self._check(uri))

    def close(self, uri: str) -> None:
        """Forgets a document and its diagnostics."""
        self.documents.pop(uri, None)
        self._stop(uri)
        self._publish(uri, [])

    async def _check(self, uri: str) -> None:
        """Checks a document once it rests; again if it has changed meanwhile."""
        try:
            while (document := self.documents.get(uri)) is not None:
                await asyncio.sleep(DELAY)
                if self.documents.get(uri) is not document:
                    continue
                stop = self.stops[uri] = Stop()
                loop = asyncio.get_running_loop()
                analysis = await loop.run_in_executor(self.checkers, analyse, document.text, stop)
                if self.documents.get(uri) is document:
                    self._take(uri, document, analysis)
                    return
        finally:
            del self.tasks[uri]
            self.stops.pop(uri, None)

    def _take(self, uri: str, document: Document, analysis: Analysis) -> None:
        """Tells the editor about an analysis of the current version."""
        document.analysis = analysis
        told = problems(document, analysis)
        self._publish(uri, [protocol.diagnostic(document.text, uri, each) for each in told])
        self._refresh_hints()

    def _stop(self, uri: str) -> None:
        """Ends the check of an old version."""
        if uri in self.stops:
            self.stops[uri].now()

    def stop_all(self) -> None:
        """Ends all checks, so that the process can end."""
        self.documents.clear()
        for stop in self.stops.values():
            stop.now()

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    def _refresh_hints(self) -> None:
        """Asks the editor to show inferred types anew, if it can."""
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def at(
        self, identifier: types.TextDocumentIdentifier, position: types.Position
    ) -> tuple[Document, int]:
        """The document of a request, and the offset in it."""
        document = self.documents.get(identifier.uri, EMPTY)
        return document, document.text.offset((position.line, position.character))


EMPTY = Document.of("")


def serve() -> int:
    """Answers requests until the editor ends the conversation; returns the exit status."""
    server = make_server()
    try:
        server.start_io()
    finally:
        server.stop_all()
    return 0


def make_server() -> Server:
    """A server with all features."""
    server = Server()
    _add_documents(server)
    _add_navigation(server)
    _add_editing(server)
    return server


def _add_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(server: Server, params: types.DidOpenTextDocumentParams) -> None:
        server.update(params.text_document.uri, params.text_document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(server: Server, params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.update(uri, server.workspace.get_text_document(uri).source)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(server: Server, params: types.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(server: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = server.documents.get(params.text_document.uri, EMPTY)
        return [protocol.symbol(document.text, each) for each in outline.outline(document)]

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(server: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.documents.get(params.text_document.uri, EMPTY)
        span = _span(document.text, params.range)
        return [protocol.hint(document.text, each) for each in outline.hints(document, span)]


def _add_navigation(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def tell(server: Server, params: types.HoverParams) -> types.Hover | None:
        document, offset = server.at(params.text_document, params.position)
        result = hover.hover(document, offset)
        return None if result is None else protocol.hover(document.text, result)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(server: Server, params: types.DefinitionParams) -> types.Location | None:
        document, offset = server.at(params.text_document, params.position)
        span = navigation.definition(document, offset)
        if span is None:
            return None
        return types.Location(params.text_document.uri, protocol.span_range(document.text, span))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(server: Server, params: types.ReferenceParams) -> list[types.Location]:
        document, offset = server.at(params.text_document, params.position)
        spans = navigation.references(document, offset)
        if not params.context.include_declaration:
            spans = [span for span in spans if span != navigation.definition(document, offset)]
        uri = params.text_document.uri
        return [types.Location(uri, protocol.span_range(document.text, span)) for span in spans]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlights(
        server: Server, params: types.DocumentHighlightParams
    ) -> list[types.DocumentHighlight]:
        document, offset = server.at(params.text_document, params.position)
        spans = navigation.references(document, offset)
        return [types.DocumentHighlight(protocol.span_range(document.text, span)) for span in spans]


def _add_editing(server: Server) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS)
    )
    def complete(server: Server, params: types.CompletionParams) -> list[types.CompletionItem]:
        document, offset = server.at(params.text_document, params.position)
        snippets = _takes_snippets(server.client_capabilities)
        return [
            protocol.completion(document.text, each, index, snippets)
            for index, each in enumerate(completion.complete(document, offset))
        ]

    @server.feature(
        types.TEXT_DOCUMENT_SIGNATURE_HELP,
        types.SignatureHelpOptions(trigger_characters=["(", ","]),
    )
    def signature(server: Server, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        document, offset = server.at(params.text_document, params.position)
        result = signature_help.signature(document, offset)
        return None if result is None else protocol.signature_help(result)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def fixes(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.documents.get(uri, EMPTY)
        told = quick_fixes.quick_fixes(document, _span(document.text, params.range))
        return [protocol.code_action(document.text, uri, fix) for fix in told]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(server: Server, params: types.PrepareRenameParams) -> types.Range | None:
        document, offset = server.at(params.text_document, params.position)
        span = navigation.can_rename(document, offset)
        return None if span is None else protocol.span_range(document.text, span)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(server: Server, params: types.RenameParams) -> types.WorkspaceEdit | None:
        document, offset = server.at(params.text_document, params.position)
        changes = navigation.rename(document, offset, params.new_name)
        if changes is None:
            return None
        return protocol.edit(document.text, params.text_document.uri, changes)


def _takes_snippets(capabilities: types.ClientCapabilities) -> bool:
    document = capabilities.text_document
    item = document.completion.completion_item if document and document.completion else None
    return bool(item and item.snippet_support)


def _span(text: Text, part: types.Range) -> Span:
    start, end = part.start, part.end
    return Span(text.offset((start.line, start.character)), text.offset((end.line, end.character)))
