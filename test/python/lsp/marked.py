"""Documents whose text has marks: `‸` is where the cursor is, and is left out."""

from relax_mlir.lsp.analysis import analyse
from relax_mlir.lsp.document import Document
from relax_mlir.lsp.text import Span

CURSOR = "‸"

MODULE = """\
!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
func.func private @half(%x: !x) -> !x {
  return %x : !x
}
func.func @main(%x: !x, %y: tensor<?xf32>, %c: i1) -> !x attributes {graph.facts = ["n <= 100"]} {
  %0 = "graph.exp"(%x) : (!x) -> tensor<?x4xf32>
  %1 = "graph.match_cast"(%y) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["k"]>>
  "graph.require"() {any_of = ["k <= n"], by = "me"} : () -> ()
  %2:2 = scf.if %c -> (!x, index) {
    %3 = arith.constant 3 : index
    scf.yield %x, %3 : !x, index
  } else {
    %3 = arith.constant 4 : index
    scf.yield %x, %3 : !x, index
  }
  %4 = "graph.add"(%2#0, %0) : (!x, tensor<?x4xf32>) -> !x
  return %4 : !x
}
"""


def opened(marked: str, check: bool = False) -> tuple[Document, int]:
    """A document and the offset of its mark; analysed if `check`."""
    offset = marked.index(CURSOR)
    document = Document.of(marked.replace(CURSOR, "", 1))
    if check:
        document.analysis = analyse(document.text)
    return document, offset


def at(before: str, after: str, module: str = MODULE) -> str:
    """The module with a mark at the one position between two texts."""
    assert module.count(before + after) == 1
    return module.replace(before + after, before + CURSOR + after)


def shown(document: Document, span: Span | None) -> str | None:
    """A part of a document, in its line: `  [%0] = ...`."""
    if span is None:
        return None
    text = document.text.text
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    return (
        f"{text[start : span.start]}[{text[span.start : span.end]}]{text[span.end : end]}".strip()
    )
