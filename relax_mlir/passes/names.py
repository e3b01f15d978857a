"""The names of passes: derived from files and classes; suggestions for misspelt names."""

import ast
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "transforms"
PACKAGE = "relax_mlir.transforms"
PREFIX = "relax-"


def pass_name(module: str, cls: str) -> str:
    """`relax-<stem>` for a file of `transforms/`; elsewhere the hyphenated name of the class."""
    if module.startswith(PACKAGE + "."):
        return PREFIX + module.rpartition(".")[2].replace("_", "-")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls).lower()


@cache
def own_passes() -> dict[str, Path]:
    """Every pass of this package and its file; nothing is imported."""
    files = sorted(FOLDER.glob("[!_]*.py"))
    return {PREFIX + file.stem.replace("_", "-"): file for file in files}


def describe(file: Path) -> tuple[str, list[str]]:
    """The first line of a pass's module docstring, and its options; nothing is imported.

    An option is listed with its type and, unless it is required, its default.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and _is_pass(node))
    options = [
        f"{ast.unparse(node.target).replace('_', '-')}: {ast.unparse(node.annotation)}"
        + (f" = {_default(node.value)}" if node.value else "")
        for node in cls.body
        if isinstance(node, ast.AnnAssign)
        and not ast.unparse(node.annotation).startswith("ClassVar")
    ]
    return (ast.get_docstring(tree) or "").partition("\n")[0], options


def _default(value: ast.expr) -> str:
    """A default value, or the name of its factory."""
    made = [k.value for k in getattr(value, "keywords", ()) if k.arg == "default_factory"]
    return ast.unparse(made[0] if made else value)


def _is_pass(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Pass" for base in node.bases)


def among(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: the closest known one, or all if they are few."""
    known = list(known)
    if near := get_close_matches(name, known, n=1):
        return f"; did you mean '{near[0]}'?"
    if len(known) > 12:
        return ""
    return f"; it has {', '.join(known)}" if known else "; it has none"
