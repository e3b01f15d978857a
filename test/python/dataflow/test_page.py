"""The page lists the tests by what they show: each line has some, and each of them has a line."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/dataflow.md"


def test_each_capability_has_tests() -> None:
    listed = re.findall(r"^\| `(test_h\d\d)_\*` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    text = "".join(file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py"))
    assert listed == sorted(set(re.findall(r"^def (test_h\d\d)_", text, re.MULTILINE)))
    assert len(listed) == 18
