"""Builds the plugin, and runs passes through a stock `mlir-opt`, if this machine has one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relax_mlir

ROOT = Path(relax_mlir.__file__).parents[1]
MLIR_OPT = shutil.which("mlir-opt-22")
PACKAGE = Path("/usr/lib/llvm-22/lib/cmake/mlir/MLIRConfig.cmake")

pytestmark = pytest.mark.skipif(
    not MLIR_OPT or not PACKAGE.exists() or not shutil.which("cmake"),
    reason="needs cmake and Debian's libmlir-22-dev, llvm-22-dev and mlir-22-tools",
)

X = 'tensor<?xf32, #graph.shape<["n"]>>'
MODULE = f"""
func.func @main(%x: {X}) -> {X} {{
  %0 = "graph.add"(%x, %x) : ({X}, {X}) -> {X}
  %1 = "graph.exp"(%0) : ({X}) -> {X}
  return %1 : {X}
}}
"""
WRONG = f"""
func.func @main(%x: {X}) -> {X} {{
  %0 = "graph.permute_dims"(%x) {{axes = array<i64: 1>}} : ({X}) -> {X}
  return %0 : {X}
}}
"""
PASSES = "relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory) -> Path:
    """The plugin, built in a folder of its own."""
    build = tmp_path_factory.mktemp("plugin")
    for command in (
        ["cmake", "-S", ROOT, "-B", build, "-DRELAX_MLIR_PLUGIN=ON"],
        ["cmake", "--build", build, "--target", "RelaxPlugin"],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    return build / "plugin" / "libRelaxPlugin.so"


@pytest.fixture
def mlir_opt(plugin, tmp_path):
    """Runs a pipeline over a module: exit status, output, messages."""

    def run(module: str, pipeline: str, *flags: str) -> tuple[int, str, str]:
        file = tmp_path / "model.mlir"
        file.write_text(module)
        program = Path(sys.executable).with_name("relax-opt")
        pipeline = pipeline.replace("PROGRAM", str(program))
        command = [MLIR_OPT, f"--load-pass-plugin={plugin}", f"--pass-pipeline={pipeline}"]
        done = subprocess.run([*command, *flags, file], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr.replace(str(tmp_path), "DIR")

    return run


def test_passes_run_among_those_of_mlir(mlir_opt):
    own = f"relax-pipeline{{passes={PASSES} relax-opt=PROGRAM timing=true}}"
    status, output, said = mlir_opt(MODULE, f"builtin.module({own},cse,canonicalize)")
    assert status == 0, said
    assert "func.func private @fused_add_exp" in output
    assert "relax-fuse-ops" in said  # the report of times
    # A second stage takes what `mlir-opt` printed of the first.
    own = "relax-pipeline{passes=relax-fuse-tir relax-opt=PROGRAM}"
    status, output, said = mlir_opt(output, f"builtin.module({own})")
    assert (status, said) == (0, "")
    assert output.count("linalg.generic") == 1
    assert "math.exp" in output
    assert "arith.addf" in output


def test_options_and_users_passes(mlir_opt, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from relax_mlir.bindings import ir\n"
        "from relax_mlir.passes import Pass\n"
        "@dataclass(frozen=True)\n"
        "class Mark(Pass):\n"
        '    """Marks the module."""\n'
        "    def run(self, op):\n"
        "        op.attributes['mine.marked'] = ir.UnitAttr.get()\n"
    )
    own = (
        "relax-pipeline{passes=relax-inline-functions{max-ops=3},mark "
        f"load-passes={tmp_path}/mine.py relax-opt=PROGRAM}}"
    )
    status, output, said = mlir_opt(MODULE, f"builtin.module({own})")
    assert (status, said) == (0, "")
    assert "module attributes {mine.marked}" in output


def test_errors_are_where_they_belong(mlir_opt):
    own = "relax-pipeline{passes=relax-legalize-ops relax-opt=PROGRAM}"
    status, output, said = mlir_opt(WRONG, f"builtin.module({own})")
    assert (status, output) == (1, "")
    assert said.startswith(
        "DIR/model.mlir:3:8: error: 'graph.permute_dims' op expects a permutation"
    )


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("{passes=nothing relax-opt=PROGRAM}", "error: the passes did not run: relax-opt: unknown"),
        ("{passes=cse relax-opt=/no/such}", "needs the program '/no/such', which is not found"),
        ("{passes=cse relax-opt=false}", "error: the passes did not run:"),
    ],
    ids=["pass", "program", "other program"],
)
def test_what_does_not_run(mlir_opt, own, message):
    status, output, said = mlir_opt(MODULE, f"builtin.module(relax-pipeline{own})")
    assert (status, output) == (1, "")
    assert message in said


def test_another_declaration_of_dialects_is_taken(mlir_opt):
    status, _, said = mlir_opt(
        MODULE, "builtin.module(cse)", f"--irdl-file={ROOT}/dialects/irdl/lib.mlir"
    )
    assert status == 1
    assert "unregistered dialect" in said
