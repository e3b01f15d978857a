"""Reads test inputs with a stock `mlir-opt`, which knows our dialects from their IRDL only.

    stock_mlir_opt.py MLIR_OPT IRDL_FOLDER FOLDER...

Every module of the folders that this project's parser takes must be taken by `mlir-opt --irdl-file`
too, and what that prints must be the same module. Those of torch-mlir are left out, which the
bindings know and `mlir-opt` does not.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from relax_mlir.bindings import arities, ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError

SEPARATOR = "// -----"
TORCH = "!torch."
LEAST = 100
"""Modules below which the folders cannot be the right ones."""


def generic(text: str) -> str | None:
    """The module in generic form; None if it does not parse or verify, or is of torch-mlir."""
    if TORCH in text:
        return None
    with make_context(), ir.Location.unknown():
        try:
            return parse_module(text).operation.get_asm(print_generic_op_form=True)
        except CompileError:
            return None


def compare(mlir_opt: str, irdl: Path, path: Path) -> tuple[int, list[str]]:
    """Number of modules of a file that were read, and what went wrong."""
    chunks = re.split(rf"^{SEPARATOR}[ \t]*\n", path.read_text(), flags=re.MULTILINE)
    expected = {chunk: form for chunk in chunks if (form := generic(chunk)) is not None}
    if not expected:
        return 0, []
    declared = irdl.with_stem("used")
    declared.write_text(arities.with_used(irdl.read_text(), path.read_text()))
    done = subprocess.run(
        [mlir_opt, f"--irdl-file={declared}", "--split-input-file", "-"],
        input=f"\n{SEPARATOR}\n".join(expected),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return len(expected), [f"{path}: {done.stderr[:2000]}"]
    printed = re.split(rf"^{SEPARATOR}[ \t]*\n", done.stdout, flags=re.MULTILINE)
    wrong = [
        f"{path}: printed differently by {mlir_opt}:\n{text[:2000]}"
        for text, form in zip(printed, expected.values(), strict=True)
        if generic(text) != form
    ]
    return len(expected), wrong


def main(mlir_opt: str, irdl_folder: str, *folders: str) -> None:
    """Compares every file; exits with the list of differences."""
    with tempfile.TemporaryDirectory() as scratch:
        irdl = Path(scratch, "dialects.mlir")
        irdl.write_text("".join(path.read_text() for path in sorted(Path(irdl_folder).iterdir())))
        files = sorted(path for folder in folders for path in Path(folder).rglob("*.mlir"))
        results = [compare(mlir_opt, irdl, path) for path in files]
    count = sum(number for number, _ in results)
    wrong = [text for _, texts in results for text in texts]
    if count < LEAST:
        wrong.append(f"only {count} modules found, but {LEAST} expected")
    print(f"{count} modules of {len(files)} files")
    sys.exit("\n".join(wrong) or 0)


main(*sys.argv[1:])
