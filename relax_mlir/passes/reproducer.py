"""Files that replay a failing pass: the IR before it, and the pipeline from it on.

The form is upstream MLIR's (`mlir-opt --run-reproducer`): the module's text, then

    {-# external_resources: { mlir_reproducer: { pipeline: "builtin.module(...)", ... } } #-}
"""

import json
import re
import tempfile
from pathlib import Path

from relax_mlir.bindings import ir
from relax_mlir.errors import UsageError

_SECTION = re.compile(
    r'\{-#\s*external_resources:\s*\{\s*mlir_reproducer:\s*\{\s*pipeline:\s*("(?:[^"\\]|\\.)*").*?#-\}',
    re.DOTALL,
)


def write_reproducer(pipeline: str, before: ir.Operation, verify: bool) -> str:
    """Writes the file into a fresh temporary folder; returns the line that tells how to use it."""
    path = Path(tempfile.mkdtemp(prefix="relax-mlir-")) / "reproducer.mlir"
    text = before.get_asm(assume_verified=True)
    section = (
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {json.dumps(pipeline)},\n"
        f"      disable_threading: true,\n      verify_each: {str(verify).lower()}\n"
        "    }\n  }\n#-}\n"
    )
    path.write_text(f"{text.rstrip()}\n\n{section}", encoding="utf-8")
    return f"reproduce with: relax-opt --run-reproducer {path}"


def split_reproducer(text: str) -> tuple[str, str]:
    """The IR and the pipeline of a reproducer's text.

    Raises UsageError if the text has no `mlir_reproducer` section.
    """
    section = _SECTION.search(text)
    if section is None:
        raise UsageError("the input has no 'mlir_reproducer' section, so it is no reproducer")
    return text[: section.start()] + text[section.end() :], json.loads(section[1])
