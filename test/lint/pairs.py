# RUN: %PYTHON %s %ROOT
"""Fails on a pass without a test file, and on a constraint of a graph op without a test.

The pass `transforms/fuse_ops.py` has `test/Transforms/fuse_ops.mlir`. A constraint `C3` in the
docstring of the op `matmul` has a function `@matmul_c3` (or `@matmul_c3_symbolic`, `@matmul_c1_c3`)
in `test/Dialect/Graph/invalid*.mlir`, or in `test/Transforms/verify.mlir` if it takes a module.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LABEL = re.compile(r"^\s*C(\d+)\b", re.MULTILINE)
FUNCTION = re.compile(r"func\.func[^@\n]*@([\w.$-]+)")


def constraints(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Every (place, op, label) of the ops that the folder declares."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            names = [k.value.value for k in node.keywords if k.arg == "name"]
            for label in LABEL.findall(ast.get_docstring(node) or ""):
                for name in names:
                    yield f"{path}:{node.lineno}", name.replace(".", "_"), f"c{label}"


def tested(paths: list[Path]) -> set[tuple[str, str]]:
    """Every (op, label) that has a test function."""
    names = [name for path in paths for name in FUNCTION.findall(path.read_text(encoding="utf-8"))]
    return {
        (re.split(r"_c\d+(?=_|$)", name)[0], label)
        for name in names
        for label in re.findall(r"_(c\d+)(?=_|$)", name)
    }


def main(root: Path) -> None:
    """Compares sources and tests."""
    missing = [
        f"{path}: no test/Transforms/{path.stem}.mlir"
        for path in sorted((root / "relax_mlir" / "transforms").glob("[!_]*.py"))
        if not (root / "test" / "Transforms" / f"{path.stem}.mlir").is_file()
    ]
    invalid = sorted((root / "test" / "Dialect" / "Graph").glob("invalid*.mlir"))
    done = tested([*invalid, root / "test" / "Transforms" / "verify.mlir"])
    missing += [
        f"{place}: no function @{op}_{label} in test/Dialect/Graph/invalid*.mlir"
        for place, op, label in constraints(root / "dialects" / "graph")
        if (op, label) not in done
    ]
    sys.exit("\n".join(missing) or 0)


main(Path(sys.argv[1]))
