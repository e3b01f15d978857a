"""A conversation with the server over its standard input and output."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from marked import MODULE

types = pytest.importorskip("lsprotocol.types")
client = pytest.importorskip("pygls.lsp.client")

URI = "file:///module.mlir"
TOOL = [sys.executable, "-m", "relax_mlir.tools.relax_lsp"]


class Editor:
    """A client with one document."""

    def __init__(self) -> None:
        self.client = client.BaseLanguageClient("editor", "1")
        self.diagnostics: asyncio.Queue[Any] = asyncio.Queue()
        feature = self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        feature(lambda params: self.diagnostics.put_nowait(params.diagnostics))
        self.document = types.TextDocumentIdentifier(URI)
        self.version = 1

    async def start(self, *options: str, encoding: str = "utf-16") -> Any:
        await self.client.start_io(*TOOL, "--stdio", *options)
        item = types.ClientCompletionItemOptions(snippet_support=True)
        completion = types.CompletionClientCapabilities(completion_item=item)
        capabilities = types.ClientCapabilities(
            text_document=types.TextDocumentClientCapabilities(completion=completion),
            general=types.GeneralClientCapabilities(position_encodings=[encoding]),
        )
        result = await self.client.initialize_async(types.InitializeParams(capabilities))
        self.client.initialized(types.InitializedParams())
        return result

    def open(self, text: str) -> None:
        item = types.TextDocumentItem(URI, "mlir", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, text: str) -> None:
        self.version += 1
        identifier = types.VersionedTextDocumentIdentifier(self.version, URI)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(identifier, [change])
        )

    async def told(self) -> Any:
        return await asyncio.wait_for(self.diagnostics.get(), 60)

    async def end(self) -> int:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        return await asyncio.wait_for(self.client._server.wait(), 60)


def position(text: str, part: str) -> Any:
    before = text[: text.index(part)]
    return types.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)


async def converse() -> None:
    editor = Editor()
    started = await editor.start()
    assert started.server_info.name == "relax-lsp"
    wrong = MODULE.replace('"graph.add"', '"graph.addd"')
    editor.open(wrong)
    (diagnostic,) = await editor.told()
    assert "unregistered operation 'graph.addd'" in diagnostic.message
    assert diagnostic.range.start == position(wrong, '"graph.addd"')
    actions = await editor.client.text_document_code_action_async(
        types.CodeActionParams(
            editor.document, diagnostic.range, types.CodeActionContext([diagnostic])
        )
    )
    assert 'Change to "graph.add"' in [action.title for action in actions]
    editor.change(MODULE)
    assert not await editor.told()
    await ask(editor)
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(editor.document))
    assert not await editor.told()
    assert await editor.end() == 0


async def ask(editor: Editor) -> None:
    to, document = editor.client, editor.document
    exp, use = position(MODULE, '"graph.exp"'), position(MODULE, "%0) : (!x, t")
    hover = await to.text_document_hover_async(types.HoverParams(document, exp))
    assert '"graph.exp"(input) -> result' in hover.contents.value
    place = await to.text_document_definition_async(types.DefinitionParams(document, use))
    assert place.range.start == position(MODULE, "%0 = ")
    context = types.ReferenceContext(include_declaration=False)
    places = await to.text_document_references_async(types.ReferenceParams(context, document, use))
    assert [each.range.start for each in places] == [use]
    highlights = await to.text_document_document_highlight_async(
        types.DocumentHighlightParams(document, use)
    )
    assert len(highlights) == 2
    items = await to.text_document_completion_async(types.CompletionParams(document, exp))
    assert "graph.matmul" in [item.label for item in items]
    assert items[0].insert_text_format == types.InsertTextFormat.Snippet
    symbols = await to.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols] == ["!x", "@half", "@main"]
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    (hint,) = await to.text_document_inlay_hint_async(types.InlayHintParams(document, everything))
    assert hint.label == ": tensor<n x 4 x f32>"
    signature = await to.text_document_signature_help_async(
        types.SignatureHelpParams(document, use)
    )
    assert (signature.signatures[0].label, signature.active_parameter) == (
        '"graph.add"(lhs, rhs) -> result',
        1,
    )
    edit = await to.text_document_rename_async(types.RenameParams(document, use, "%new"))
    assert len(edit.changes[URI]) == 2
    assert await to.text_document_rename_async(types.RenameParams(document, use, "%4")) is None


def test_conversation():
    asyncio.run(converse())


async def columns(encoding: str) -> tuple[int, int]:
    editor = Editor()
    await editor.start(encoding=encoding)
    editor.open('func.func @"𝄞é"() { return %5 : i1 }')
    (diagnostic,) = await editor.told()
    assert await editor.end() == 0
    return diagnostic.range.start.character, diagnostic.range.end.character


@pytest.mark.parametrize(("encoding", "extra"), [("utf-8", 4), ("utf-16", 1), ("utf-32", 0)])
def test_columns_are_in_the_encoding_of_the_editor(encoding, extra):
    first = len('func.func @"𝄞é"() { return ') + extra
    assert asyncio.run(columns(encoding)) == (first, first + 2)


async def vanish() -> None:
    editor = Editor()
    await editor.start()
    editor.open(MODULE * 50)
    process = editor.client._server
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0


def test_the_server_ends_with_its_editor():
    asyncio.run(vanish())


def test_without_pygls():
    program = "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None\n"
    program += "from relax_mlir.tools.relax_lsp import main; sys.exit(main([]))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert (
        ran.stderr
        == "relax-lsp: the package 'lsprotocol' is missing: pip install 'relax-mlir[lsp]'\n"
    )


def test_help_imports_no_mlir():
    program = "import sys\nfrom relax_mlir.tools.relax_lsp import main\ntry: main(['--help'])\n"
    program += "except SystemExit: assert not {'numpy', 'torch_mlir', 'pygls'} & set(sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "docs/editors.md" in ran.stdout


OWN = """
from dataclasses import dataclass
from typing import Any
from relax_mlir.bindings import ext, ir
from relax_mlir.dialects.graph import InferredOp, TensorType
from relax_mlir.passes import Pass

class CubeOp(InferredOp, name="own_cube", traits=[ext.Pure]):
    "The third power of each element."
    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        return input

@dataclass(frozen=True)
class OwnPass(Pass):
    "Does nothing."
    max_size: int = 8

    def run(self, op: ir.Operation) -> None: ...
"""
USING = """// RUN: relax-opt %s --load-passes=own.py --own-pass
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "graph.own_cube"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


async def use_own(path: str) -> None:
    editor = Editor()
    await editor.start("--load-ops", path, "--load-passes", path)
    editor.open(USING)
    assert not await editor.told()
    to, document = editor.client, editor.document
    params = types.HoverParams(document, position(USING, '"graph.own_cube"'))
    hover = await to.text_document_hover_async(params)
    assert "The third power of each element." in hover.contents.value
    params = types.HoverParams(document, position(USING, "own-pass"))
    hover = await to.text_document_hover_async(params)
    assert hover.contents.value == "**own-pass**\n\nDoes nothing.\n\n- `max-size: int`"
    assert await editor.end() == 0


def test_operators_and_passes_from_outside(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    asyncio.run(use_own(str(path)))
