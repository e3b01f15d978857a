"""Files that replay a failing pass: the IR before it, and the rest of the pipeline.

The form is upstream MLIR's (`mlir-opt --run-reproducer`): the module's text, then

    {-# external_resources: { mlir_reproducer: { pipeline: "builtin.module(...)", ... } } #-}

A module with large constants is bytecode instead, as text would be several times as large.
"""

import json
import re
import shlex
import tempfile
from pathlib import Path

from relax_mlir.bindings import arith, ir
from relax_mlir.data import bytes_of, large_constants
from relax_mlir.errors import UsageError

MAX_BYTES = 1 << 16
"""Of large constants in a reproducer that is text; each byte takes two characters."""

_SECTION = re.compile(
    r'\{-#\s*external_resources:\s*\{\s*mlir_reproducer:\s*\{\s*pipeline:\s*("(?:[^"\\]|\\.)*").*?#-\}',
    re.DOTALL,
)


def write_reproducer(pipeline: str, before: ir.Operation, verify: bool) -> str:
    """Writes the file to a new temporary folder; returns the line that tells how to use it.

    With large constants it is bytecode, which has their bytes, and the line says what to run.
    """
    folder = Path(tempfile.mkdtemp(prefix="relax-mlir-"))
    if sum(map(_stored_bytes, large_constants(before))) > MAX_BYTES:
        path = folder / "reproducer.mlirbc"
        with path.open("wb") as file:
            before.write_bytecode(file)
        each = "" if verify else " --verify-each=false"
        return f"reproduce with: relax-opt{each} --pass-pipeline={shlex.quote(pipeline)} {path}"
    path = folder / "reproducer.mlir"
    text = before.get_asm(assume_verified=True)
    section = (
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {json.dumps(pipeline)},\n"
        f"      disable_threading: true,\n      verify_each: {str(verify).lower()}\n"
        "    }\n  }\n#-}\n"
    )
    path.write_text(f"{text.rstrip()}\n\n{section}", encoding="utf-8")
    return f"reproduce with: relax-opt --run-reproducer {path}"


def _stored_bytes(constant: arith.ConstantOp) -> int:
    data = bytes_of(constant.attributes["value"])
    return 0 if data is None else data.nbytes


def split_reproducer(text: str) -> tuple[str, str]:
    """The IR and the pipeline of a reproducer's text.

    Raises UsageError if the text has no `mlir_reproducer` section.
    """
    section = _SECTION.search(text)
    if section is None:
        raise UsageError("the input has no 'mlir_reproducer' section, so it is not a reproducer")
    return text[: section.start()] + text[section.end() :], json.loads(section[1])
