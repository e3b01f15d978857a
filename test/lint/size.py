# RUN: %PYTHON %s %ROOT
"""Fails on files over 600 lines and functions over 80."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE, FUNCTION = 600, 80
PATTERNS = ["relax_mlir/**/*.py", "relax_mlir/**/*.[ch]", "dialects/**/*.py", "test/**/*.py"]
PATTERNS += ["test/**/*.mlir", "benchmarks/**/*.py", "examples/**/*.py", "*.py"]


def too_long(path: Path) -> Iterator[str]:
    """What is over the budget in one file."""
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > FILE:
        yield f"{path}: {lines} lines, but a file has {FILE} at most"
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines, over {FUNCTION}"


root = Path(sys.argv[1])
paths = sorted({path.resolve() for pattern in PATTERNS for path in root.glob(pattern)})
if len(paths) < 20:
    sys.exit(f"{root} does not look like the project")
sys.exit("\n".join(line for path in paths for line in too_long(path)) or 0)
