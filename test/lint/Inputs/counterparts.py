"""What another project has, and what of it is here: text files, and pages made from them.

A line is `name | ours, ours | remark`. The remark of a name that is not here begins with `no need:`
or is `missing`, perhaps with a reason behind a colon.
"""

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from relax_mlir import decompositions, gradients
from relax_mlir.dialects import graph


class Theirs(NamedTuple):
    """What another project has: its name, what is here for it, and a remark."""

    name: str
    ours: tuple[str, ...]
    remark: str


UPSTREAM = (
    *("arith.constant", "func.return", "scf.for", "scf.if", "scf.while"),
    "tensor.extract",
)
"""Ops of MLIR that operators of others become."""


def operator_names() -> set[str]:
    """The names of the operators of the graph dialect."""
    kinds = [kind for kind in vars(graph).values() if isinstance(kind, type)]
    names = [vars(kind)["OPERATION_NAME"] for kind in kinds if "OPERATION_NAME" in vars(kind)]
    return {str(name).partition(".")[2] for name in names}


def known_names() -> set[str]:
    """What an operator of others may be here: operators, functions that build them, ops of MLIR."""
    composed = {f"decompositions.{name}" for name in decompositions.__all__}
    composed |= {f"gradients.{name}" for name in gradients.__all__}
    return operator_names() | composed | set(UPSTREAM)


def read(path: Path, known: Collection[str], text: str | None = None) -> Iterator[Theirs]:
    """The lines of a file, or of a part of it; ends the program at one that is wrong."""
    text = path.read_text(encoding="utf-8") if text is None else text
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, ours, remark = (part.strip() for part in line.split("|"))
        theirs = Theirs(name, tuple(part.strip() for part in ours.split(",") if part), remark)
        unknown = set(theirs.ours) - set(known)
        if unknown:
            sys.exit(f"{path}: {name}: there is no {sorted(unknown)}")
        if not theirs.ours and reason(theirs) not in ("no need", "missing"):
            sys.exit(f"{path}: {name}: say 'no need: ...' or 'missing' instead of '{remark}'")
        yield theirs


def reason(theirs: Theirs) -> str:
    """Why something is not here: 'no need' or 'missing'."""
    return theirs.remark.partition(":")[0]


def missing(all_of_theirs: Collection[Theirs], why: str) -> int:
    """How many are not here, for that reason."""
    return sum(reason(each) == why for each in all_of_theirs if not each.ours)


def settle(page: Path, text: str, script: str) -> None:
    """Writes a page if the command line says so; otherwise ends the program if it is stale."""
    if "--write" in sys.argv:
        page.write_text(text, encoding="utf-8")
    elif not page.is_file() or page.read_text(encoding="utf-8") != text:
        sys.exit(f"{page} is stale: python test/lint/{script} . --write")
