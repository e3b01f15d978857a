"""Operators and passes from outside: they are found, and results depend on what they are now."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir import compiler, extensions
from relax_mlir.dialects import load_operators
from relax_mlir.errors import UsageError
from relax_mlir.passes import load_passes
from relax_mlir.pipelines import pipeline
from relax_mlir.target import Target

OPERATOR = """
from typing import Any
from relax_mlir.bindings import arith, ext, ir
from relax_mlir.dialects.graph import InferredOp
from relax_mlir.legalize import KernelBuilder
from relax_mlir.legalize.kernel import elementwise
from relax_mlir.legalize.scalars import multiply, scalar

class TimesOp(InferredOp, name="own_times"):
    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input):
        return input

def times(op: "TimesOp", kernel: KernelBuilder) -> None:
    from own_factor import FACTOR
    (x,) = kernel.ins
    body = lambda x: multiply(x, scalar(x.type, FACTOR))
    kernel.finish(elementwise([x], kernel.outs[0], body))
"""
MODULE = """
func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>> {graph.name = "x"})
    -> tensor<?xf32, #graph.shape<["n"]>> {
  %0 = "graph.own_times"(%x)
    : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return %0 : tensor<?xf32, #graph.shape<["n"]>>
}
"""
CALL = """
import sys, numpy as np, own_times, relax_mlir
print(*relax_mlir.compile("model.mlir")["main"](np.arange(3, dtype=np.float32)))
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    """Runs Python in the folder, whose modules it can import; a process that knows no operator."""
    time.sleep(0.05)  # what was changed before it began is certain to it
    paths = [str(folder), str(Path(relax_mlir.__file__).parents[1])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RELAX_CACHE_DIR": str(folder / "c")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_a_changed_operator_is_compiled_anew_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own_times.py").write_text(OPERATOR)
    (tmp_path / "model.mlir").write_text(MODULE)
    for factor in (2, 3):
        (tmp_path / "own_factor.py").write_text(f"FACTOR = {factor}")
        done = run(tmp_path, "-c", CALL)
        assert done.stdout.split() == [str(float(factor * i)) for i in range(3)], done.stderr
    # Both were kept, which a process that does not know the operator must not find.
    assert len(list((tmp_path / "c").glob("*/*.so"))) == 2
    done = run(tmp_path, "-m", "relax_mlir.tools.relax_compile", "model.mlir", "-o", "m.so")
    assert done.returncode == 1
    assert "model.mlir:4:8: error: " in done.stderr
    assert "graph.own_times" in done.stderr
    for tool in (
        ["relax_compile", "-o", "m.so"],
        ["relax_opt", "--relax-legalize-ops"],
        ["relax_run", "--interpret", "--list"],
    ):
        options = ["model.mlir", *tool[1:], "--load-ops", "own_times.py"]
        done = run(tmp_path, "-m", f"relax_mlir.tools.{tool[0]}", *options)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def _all_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_process_start", lambda: math.inf)


@pytest.mark.usefixtures("_all_is_certain")
def test_sources_of_a_package_are_all_that_it_imports_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "site-packages" / "own_package"
    (package / "inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(package.parent)
    (package / "__init__.py").write_text("from .inner import deep\nimport numpy, json")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "deep.py").write_text("def f():\n  from .. import late, missing\n")
    (package / "late.py").write_text("import own_sibling")
    (tmp_path / "own_sibling.py").write_text("")
    (package / "unused.py").write_text("")
    name = extensions.load("own_package")
    files = [Path(file) for file in extensions._sources([name])]
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        "own_sibling.py",
        "site-packages/own_package/__init__.py",
        "site-packages/own_package/inner/__init__.py",
        "site-packages/own_package/inner/deep.py",
        "site-packages/own_package/late.py",
    ]
    before = extensions.fingerprint([name, "relax_mlir.passes"])
    assert before == extensions.fingerprint([name])
    for file in files:
        file.write_text(file.read_text() + "\n# changed")
        assert extensions.fingerprint([name]) != before
        before = extensions.fingerprint([name])


def test_what_is_not_certain_is_never_the_same(tmp_path: Path) -> None:
    assert extensions.fingerprint(["relax_mlir.passes", "relax_mlir"]) == b""
    (tmp_path / "own_written_now.py").write_text("")
    changed = extensions.load(str(tmp_path / "own_written_now.py"))
    assert extensions.fingerprint([changed]) != extensions.fingerprint([changed])
    sys.modules["own_typed_in"] = type(sys)("own_typed_in")
    assert extensions.fingerprint(["own_typed_in"]) != extensions.fingerprint(["own_typed_in"])


PASS = """
from dataclasses import dataclass
from relax_mlir.passes import Pass

@dataclass(frozen=True)
class OwnKeyed(Pass):
    def run(self, op): ...
"""


@pytest.mark.usefixtures("_all_is_certain")
def test_results_depend_on_the_passes_from_outside_that_run(tmp_path: Path) -> None:
    def key(passes: str) -> bytes:
        return compiler.cache_key("", Target.parse("x86-64"), passes)

    file, without = tmp_path / "own_keyed.py", key("cse")
    file.write_text(PASS)
    assert load_passes(str(file)) == load_passes(str(file)) == ["own-keyed"]
    nested = "builtin.module(func.func(own-keyed))"
    assert key("cse") == without
    before = key(nested)
    assert before == key(nested)
    file.write_text(PASS + "    # changed")
    assert key("cse") == without
    assert key(nested) != before


DIFFERENCE = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x {graph.name = "x"}, %y: !x {graph.name = "y"}) -> !x {
  %0 = "graph.subtract"(%x, %y) : (!x, !x) -> !x
  return %0 : !x
}
"""


def test_a_pipeline_of_ones_own_is_compiled_and_kept_apart() -> None:
    load_passes(str(Path(__file__).parents[1] / "lib" / "test_passes.py"))
    default = pipeline(opt_level=1)
    swapped = default.replace("relax-legalize-ops", "test-swap-subtraction,relax-legalize-ops")
    x, y = np.arange(5, dtype=np.float32), np.full(5, 2, np.float32)
    for passes, expected in ((None, x - y), (default, x - y), (swapped, y - x)):
        exe = relax_mlir.compile(DIFFERENCE, opt_level=1, passes=passes)
        np.testing.assert_array_equal(exe["main"](x, y), expected)
    with pytest.raises(UsageError, match="a given pipeline is all that runs"):
        relax_mlir.compile(DIFFERENCE, passes=default, without=["plan-memory"])
    with pytest.raises(
        UsageError, match=r"'relax-map-nodes' is for aarch64.*; write relax-map-nodes"
    ):
        relax_mlir.compile(DIFFERENCE, passes=pipeline("aarch64"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", r"bad.py': line 1: invalid syntax"),
        ("def f():\n  raise KeyError('y')\n\nf()", r"bad.py': line 2: KeyError: 'y'"),
        ("import nothing_at_all", r"bad.py': line 1: ModuleNotFoundError: No module named"),
        ("x = 1", r"cannot load (passes|operators) from '.*bad.py': (no class|it declares none)"),
    ],
)
@pytest.mark.parametrize("loader", [load_passes, load_operators])
def test_files_that_cannot_be_loaded(tmp_path: Path, loader, text: str, message: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        loader(str(file))
    with pytest.raises(UsageError, match=r"no such module, and no \.py file"):
        loader("nothing_at_all")
    with pytest.raises(UsageError, match=r"cannot load 'none.py': no such file"):
        loader("none.py")


def test_operators_are_loaded_by_file_or_module() -> None:
    assert "graph.nn_relu" in load_operators("relax_mlir.dialects.graph")
    assert len(load_operators("relax_mlir.dialects.graph.nn")) > 5
