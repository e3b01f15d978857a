# RUN: %PYTHON %s %ROOT
"""Fails if docs/operators.md is not what the graph dialect and docs/operators.txt say.

    python test/lint/operators_page.py . --write       writes it

What an operator does is the first line of its docstring; what it is after stands behind `Source:`
there. Families are the modules of the dialect.
"""

import inspect
import re
import sys
from pathlib import Path

from Inputs.counterparts import known_names, missing, read, settle

from relax_mlir.dialects import graph

HEAD = """\
# Operators

{operators} ops of the graph dialect, by the files that define them. Each operator on tensors has a
rule for shapes, a tensor program and a meaning in the interpreter;
[adding_an_op.md](adding_an_op.md) says how one is added. Compositions of them, `decompositions.*`
below, are in [decompositions.md](decompositions.md), `gradients.*` in
[training.md](training.md). Of the {theirs} operators of TVM Relax 0.27, {here} have one here,
{needless} are not needed and {missing} are missing.
`python test/lint/operators_page.py . --write` writes this page.
"""
TABLE = """
| operator | what it does | source |
|---|---|---|
"""
MIDDLE = """
## TVM Relax

| TVM | here | |
|---|---|---|
"""
DIALECT = "relax_mlir.dialects.graph."


def page_of(root: Path) -> str:
    """The text of the page."""
    families: dict[str, list[type]] = {}
    for kind in vars(graph).values():
        if isinstance(kind, type) and "OPERATION_NAME" in vars(kind):
            families.setdefault(kind.__module__.rpartition(".")[2], []).append(kind)
    names = {name_of(kind) for kinds in families.values() for kind in kinds}
    theirs = list(read(root / "docs" / "operators.txt", known_names()))
    head = HEAD.format(
        operators=len(names),
        theirs=len(theirs),
        here=sum(bool(each.ours) for each in theirs),
        needless=missing(theirs, "no need"),
        missing=missing(theirs, "missing"),
    )
    counterparts = "".join(
        f"| `{each.name}` | {', '.join(f'`{name}`' for name in each.ours) or '-'} "
        f"| {each.remark} |\n"
        for each in theirs
    )
    parts = [family_of(name, families[name]) for name in sorted(families)]
    return head + "".join(parts) + MIDDLE + counterparts


def family_of(family: str, kinds: list[type]) -> str:
    """The section of a module."""
    title = f"\n## [{family}](../dialects/graph/{family}.py)\n"
    rows = [
        f"| `{name_of(kind)}` | {does} | {source} |\n"
        for kind in sorted(kinds, key=name_of)
        for does, source in [described(kind)]
    ]
    return title + TABLE + "".join(rows)


def name_of(kind: type) -> str:
    """The name of an operator in the dialect."""
    return str(vars(kind)["OPERATION_NAME"]).partition(".")[2]


def described(kind: type) -> tuple[str, str]:
    """What the docstring of an operator says that it does, and where it is from."""
    text = inspect.getdoc(kind) or ""
    source = re.search(r"^Source: (.*?)(\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return cell(text.partition("\n")[0]), cell(source[1]).rstrip(".") if source else ""


def cell(text: str) -> str:
    """Text in one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


root = Path(sys.argv[1])
settle(root / "docs" / "operators.md", page_of(root), "operators_page.py")
