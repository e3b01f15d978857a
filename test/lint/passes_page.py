# RUN: %PYTHON %s %ROOT
"""Fails if docs/passes.md is not what the passes and docs/passes.txt say.

    python test/lint/passes_page.py . --write       writes it

What a pass does is the first line of its module's docstring; what it is after stands behind
`Source:` there.
"""

import ast
import re
import sys
from pathlib import Path

from Inputs.counterparts import missing, read, settle

from relax_mlir.pipelines import STEPS

HEAD = """\
# Passes

{passes} passes, of which the default pipelines ([pipelines.py](../relax_mlir/pipelines.py)) run
{run}. Of the {theirs} passes of `tvm.relax.transform`, {here} have one here, {needless} are not
needed and {missing} are missing. `python test/lint/passes_page.py . --write` writes this page.

| pass | what it does | runs | source |
|---|---|---|---|
"""
MIDDLE = """
`-O1` is where the default pipelines begin to run a pass, *option* that they do with one; the
others run by name.

| TVM | here | |
|---|---|---|
"""


def page_of(root: Path) -> str:
    """The text of the page."""
    files = sorted((root / "relax_mlir" / "transforms").glob("[!_]*.py"))
    ours = {path.stem.replace("_", "-"): path for path in files}
    theirs = list(read(root / "docs" / "passes.txt", ours))
    runs = {name: where(name) for name in ours}
    return (
        HEAD.format(
            passes=len(ours),
            run=sum(place != "by name" for place in runs.values()),
            theirs=len(theirs),
            here=sum(bool(each.ours) for each in theirs),
            needless=missing(theirs, "no need"),
            missing=missing(theirs, "missing"),
        )
        + "".join(
            f"| `relax-{name}` | {does} | {runs[name]} | {source} |\n"
            for name, path in ours.items()
            for does, source in [described(path)]
        )
        + MIDDLE
        + "".join(
            f"| `{each.name}` | {', '.join(f'`relax-{name}`' for name in each.ours) or '-'} "
            f"| {each.remark} |\n"
            for each in theirs
        )
    )


def where(name: str) -> str:
    """Where the default pipelines run a pass."""
    for step in STEPS:
        if step.name == name:
            return "option" if step.only_with else f"`-O{step.min_level}`"
    return "by name"


def described(path: Path) -> tuple[str, str]:
    """What the docstring of a pass says that it does, and where it is from."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    source = re.search(r"^Source: (.*?)\Z", text, re.MULTILINE | re.DOTALL)
    return text.partition("\n")[0], " ".join(source[1].split()).rstrip(".") if source else ""


root = Path(sys.argv[1])
settle(root / "docs" / "passes.md", page_of(root), "passes_page.py")
