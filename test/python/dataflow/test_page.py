"""The page lists the tests by what they show, and quotes the example."""

import re
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[2] / "examples/dataflow_pipeline.py"
PAGE = HERE.parents[2] / "docs/dataflow.md"


def test_each_capability_has_tests() -> None:
    listed = re.findall(r"^\| `(test_h\d\d)_\*` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    text = "".join(file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py"))
    assert listed == sorted(set(re.findall(r"^def (test_h\d\d)_", text, re.MULTILINE)))
    assert len(listed) == 18


def test_the_page_quotes_the_example() -> None:
    (quoted,) = re.findall(r"```python\n(@.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert f"\n\n{quoted}" in EXAMPLE.read_text(encoding="utf-8")
