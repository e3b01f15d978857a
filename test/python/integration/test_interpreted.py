"""Interpreted modules give what compiled ones do: those of the FileCheck tests and the examples."""

import importlib.util
import re
from pathlib import Path

import pytest

import relax_mlir
from relax_mlir.testing.calls import Calls

pytestmark = pytest.mark.usefixtures("llvm_turns")

ROOT = Path(__file__).parents[3]
SEPARATOR = "// -----"
FOLDERS = ROOT / "test" / "Integration", ROOT / "test" / "Paper"
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.mlir"))
EXAMPLES = ("dynamic_mlp", "step_by_step")


def texts() -> dict[str, str]:
    """Each module, by a name."""
    found = {}
    for path in FILES:
        chunks = re.split(rf"^{SEPARATOR}[ \t]*\n", path.read_text(), flags=re.MULTILINE)
        for number, chunk in enumerate(chunks):
            # A library that a module names need not be there.
            if "expected-error" not in chunk and "lib.function" not in chunk:
                found[f"{path.stem}_{number}" if number else path.stem] = chunk
    for name in EXAMPLES:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        found[name] = example.MODULE
    return found


@pytest.mark.parametrize(("name", "text"), texts().items(), ids=texts())
def test_modules(name: str, text: str) -> None:
    meant, compiled = relax_mlir.interpret(text), relax_mlir.compile(text, opt_level=0)
    assert meant.functions == compiled.functions
    for function in meant.functions:
        calls = Calls(meant[function])
        assert len(calls) > 0, calls.refused
        assert calls.difference(compiled[function]) is None
