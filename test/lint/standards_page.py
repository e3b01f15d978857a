# RUN: %PYTHON %s %ROOT
"""Fails if docs/standards.md is not what docs/standards.txt says, or that names what is not here.

python test/lint/standards_page.py . --write       writes it
"""

import sys
from pathlib import Path

from Inputs.counterparts import known_names, missing, read, settle

HEAD = """\
# Operators of the standards

What frontends build for the operators of [ONNX](https://onnx.ai/onnx/operators/), Core ATen and
[StableHLO](https://openxla.org/stablehlo/spec) that models and conformance tests use: operators of
the graph dialect, `decompositions.*` ([decompositions.md](decompositions.md)), `gradients.*`
([training.md](training.md)), and ops of MLIR. `python test/lint/standards_page.py . --write` writes
this page from `standards.txt`.
"""
TABLE = """
## {title}

{here} are here, {needless} are not needed, {missing} are missing.

| {title} | here | |
|---|---|---|
"""


def page_of(path: Path) -> str:
    """The text of the page."""
    parts = [HEAD]
    known = known_names()
    for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, lines = section.partition("\n")
        theirs = list(read(path, known, lines))
        counts = {"needless": missing(theirs, "no need"), "missing": missing(theirs, "missing")}
        here = sum(bool(each.ours) for each in theirs)
        parts.append(TABLE.format(title=title, here=here, **counts))
        for each in theirs:
            ours = ", ".join(f"`{name}`" for name in each.ours) or "-"
            parts.append(f"| `{each.name}` | {ours} | {each.remark} |\n")
    return "".join(parts)


docs = Path(sys.argv[1]) / "docs"
settle(docs / "standards.md", page_of(docs / "standards.txt"), "standards_page.py")
