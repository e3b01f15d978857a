"""Passes and their options in comments that run them: `// RUN: relax-opt %s --relax-fuse-ops`."""

import re
from collections.abc import Iterator

from relax_mlir.lsp import catalogue
from relax_mlir.lsp.features.hover import pass_text
from relax_mlir.lsp.text import Span
from relax_mlir.passes.names import among

_RUN = re.compile(r"//\s*RUN:")
_OPTIONS = re.compile(r"""([a-z][\w-]*)(?:=['"]?|\{)(?:[^'"{}]*\s)?(?P<start>[\w-]*)$""")
_PASS = re.compile(r"""(?:--|[(,'"=])(?P<start>[a-z][\w-]*|)$""")

_NAMED = re.compile(r"""(?:--|[(,'"=])(relax-[\w-]+)""")
_LOADS = "--load-passes"

Row = tuple[str, str, Span, str, str, str]
"""Label, kind, what is replaced, text, detail, documentation."""


def complete_run_line(before: str, offset: int) -> Iterator[Row]:
    """The passes, or the options of one, that may follow the beginning of a line."""
    if not _RUN.search(before):
        return
    if (match := _OPTIONS.search(before)) and match[1] in catalogue.passes():
        entry = catalogue.passes()[match[1]]
        span = Span(offset - len(match["start"]), offset)
        for name, kind in entry.option_names():
            yield name, "option", span, f"{name}=", kind, entry.documentation
    elif match := _PASS.search(before):
        span = Span(offset - len(match["start"]), offset)
        for name, entry in catalogue.passes().items():
            summary = entry.documentation.partition("\n")[0]
            yield name, "pass", span, name, summary, pass_text(entry)


def unknown_passes(comment: str) -> Iterator[tuple[Span, str]]:
    """The names in a comment that look like passes but are none, and what to say of each."""
    if not _RUN.match(comment) or _LOADS in comment:
        return
    for match in _NAMED.finditer(comment):
        known = catalogue.passes()
        if match[1] not in known:
            yield Span(*match.span(1)), f"unknown pass '{match[1]}'{among(match[1], known)}"
