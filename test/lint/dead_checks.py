# RUN: %PYTHON %s %ROOT/test
"""Fails on directives that FileCheck or the verifier of diagnostics would silently ignore.

A missing or odd colon, a space before it, a misspelt or lower-case word: the line then checks
nothing.
"""

import re
import sys
from pathlib import Path

GOOD = re.compile(r"CHECK(-(NEXT|SAME|LABEL|NOT|DAG|EMPTY|COUNT-[1-9]\d*))?:")
NEARLY = re.compile(
    r"(?:C[HE]*[CHEK]*CK|CHEK|CHCEK)(?=[-_: \uff1a]|$)|(?i:check[-_\w]*\s*[:\uff1a])"
)
NEARLY_EXPECTED = re.compile(
    r"exp[a-z]*ted?[-_ ]*(?:er+or|warn|note|rem)\w*(?:-re)?\s*(?:@|\{\{)", re.I
)
EXPECTED = re.compile(
    r"expected-(?:error|warning|note|remark)(?:-re)?\s*(?:@(?:[+-]\d+|above|below|unknown))?\s*\{\{.+\}\}"
)


def is_dead(line: str) -> bool:
    """Whether a comment line looks like a directive without being one."""
    comment = re.match(r"\s*(?://|#)\s*(.*)", line)
    if comment is None:
        return False
    text = comment[1]
    if NEARLY_EXPECTED.match(text):
        return EXPECTED.match(text) is None
    return NEARLY.match(text) is not None and GOOD.match(text) is None


def main(folder: str) -> None:
    """Looks through every `.mlir` file of the folder."""
    dead = [
        f"{path}:{number}: dead directive: {line.strip()}"
        for path in sorted(Path(folder).rglob("*.mlir"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if is_dead(line)
    ]
    samples = [
        "// CHECK : x",
        "// CEHCK: x",
        "// CHECK\uff1a x",
        "// check-next: x",
        "// CHECK_NEXT: x",
    ]
    samples += [
        "// expected-eror @below {{x}}",
        "// expected-error @bellow {{x}}",
        "// CHECK-NXT: x",
    ]
    dead += [f"this lint lets through: {sample}" for sample in samples if not is_dead(sample)]
    sys.exit("\n".join(dead) or 0)


main(sys.argv[1])
