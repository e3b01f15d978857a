"""The package's front door: light to import, names on first use."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import relax_mlir

PROJECT = Path(__file__).resolve().parents[2]
TOOLS = dict(
    re.findall(r'^(relax-[\w-]+) = "([\w.]+):main"', (PROJECT / "pyproject.toml").read_text(), re.M)
)


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import relax_mlir", ["numpy", "torch_mlir", "relax_mlir.errors"]),
        ("import relax_mlir; relax_mlir.load", ["torch_mlir", "relax_mlir.compiler"]),
        ("import relax_mlir; relax_mlir.Executable", ["torch_mlir", "relax_mlir.compiler"]),
        ("import relax_mlir; relax_mlir.llm", ["numpy", "torch_mlir", "gguf"]),
    ],
)
def test_imports_no_more_than_it_needs(statement, unwanted):
    program = f"import sys\n{statement}\nassert not {set(unwanted)!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names():
    assert set(relax_mlir.__all__) <= set(dir(relax_mlir))
    for name in relax_mlir.__all__:
        assert getattr(relax_mlir, name) is not None
    with pytest.raises(AttributeError, match="module 'relax_mlir' has no attribute 'nothing'"):
        relax_mlir.nothing
    assert {"load", "LanguageModel", "Session"} <= set(dir(relax_mlir.llm))
    with pytest.raises(AttributeError, match=r"module 'relax_mlir\.llm' has no attribute"):
        relax_mlir.llm.nothing


def test_compile_and_call(tmp_path):
    module = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n" + (
        '  %0 = "graph.add"(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n'
        "  return %0 : tensor<3xf32>\n}"
    )
    x = np.array([1, 2, 3], np.float32)
    exe = relax_mlir.compile(module)
    np.testing.assert_array_equal(exe["main"](x), x + x)
    exe.save(tmp_path / "module.so")
    np.testing.assert_array_equal(relax_mlir.load(tmp_path / "module.so")["main"](x), x + x)


@pytest.mark.parametrize("tool", TOOLS)
def test_version(tool, capsys):
    with pytest.raises(SystemExit) as end:
        import_module(TOOLS[tool]).main(["--version"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{tool} {relax_mlir.__version__} (")
    assert version("torch-mlir") in said
    assert version("llvmlite") in said


def test_licence():
    assert "Apache License" in (PROJECT / "LICENSE").read_text()
    assert 'license = "Apache-2.0"' in (PROJECT / "pyproject.toml").read_text()
