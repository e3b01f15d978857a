"""The steps of docs/adding_an_op.md, done to a copy of the sources and outside of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPERATOR = "LeakyReluOp"


def _run(command: list[str], *path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=path[0],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _blocks() -> list[str]:
    page = (ROOT / "docs" / "adding_an_op.md").read_text()
    return [text for _, text in BLOCK.findall(page)]


def test_the_page_adds_an_operator(tmp_path: Path) -> None:
    own = ("test/python/ops", "test/python/chromium.py", "test/python/vulkan.py")
    for name in ("dialects", "relax_mlir", "pyproject.toml", *own):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.md")
            shutil.copytree(source, target, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, target)
    invalid, operator, meaning, program, numbers, *_ = _blocks()
    dialect = tmp_path / "dialects" / "graph"
    for path, text in (
        (dialect / "nn.py", operator),
        (dialect / "__init__.py", f"from .nn import {OPERATOR}\n"),
        (tmp_path / "relax_mlir" / "interpreter" / "operators" / "nn.py", meaning),
        (tmp_path / "relax_mlir" / "legalize" / "nn.py", program),
        (tmp_path / "test" / "python" / "ops" / "test_nn.py", numbers),
    ):
        imported = f"from relax_mlir.dialects.graph import {OPERATOR}\n\n\n"
        needs_import = path.parent.name == "legalize"
        path.write_text(path.read_text() + "\n\n" + imported * needs_import + text)
    (tmp_path / "invalid_nn.mlir").write_text(invalid)
    options = invalid.splitlines()[0].removeprefix("// RUN: relax-opt %s ").split()
    _run(["relax_mlir.tools.relax_opt", "invalid_nn.mlir", *options], tmp_path)
    files = ["test/python/ops/test_nn.py", "test/python/ops/test_legalize.py"]
    options = ["-k", "(leaky or legalization) and not wgsl", "-p", "no:cacheprovider"]
    _run(["pytest", "-q", *files, *options], tmp_path, tmp_path / "test" / "python")


def test_the_page_adds_an_operator_in_a_package_of_its_own(tmp_path: Path) -> None:
    operator, numbers = _blocks()[5:]
    (tmp_path / "own_cube.py").write_text(operator)
    (tmp_path / "test_cube.py").write_text(numbers)
    _run(["pytest", "-q", "test_cube.py", "-p", "no:cacheprovider"], tmp_path, ROOT)
    module = re.search('MODULE = """\n(.*?)"""', numbers, re.DOTALL)
    assert module is not None
    (tmp_path / "cube.mlir").write_text(module[1])
    options = ["cube.mlir", "--load-ops", "own_cube.py"]
    _run(["relax_mlir.tools.relax_compile", *options, "-O1", "-o", "cube.so"], tmp_path, ROOT)
