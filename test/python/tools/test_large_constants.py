"""What tools print of modules with large constants: names, unless all of a module is asked for."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import CompileError
from relax_mlir.tools import relax_compile, relax_opt

COUNT = 30_000
VALUES = np.random.default_rng(0).standard_normal(COUNT).astype(np.float32)
TYPE = f"tensor<{COUNT}xf32>"
TEXT = f"""func.func @main() -> {TYPE} {{
  %0 = arith.constant dense<"0x{VALUES.tobytes().hex()}"> : {TYPE}
  %1 = "graph.exp"(%0) : ({TYPE}) -> {TYPE}
  return %1 : {TYPE}
}}"""
FAILING = "--pass-pipeline=relax-externalize-constants,relax-to-host"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "large.mlir"
    path.write_text(TEXT)
    return str(path)


def test_dumps_name_constants(file: str, capsys: pytest.CaptureFixture[str]):
    passes = "--pass-pipeline=relax-externalize-constants,cse"
    wanted = ["--mlir-print-ir-before-all", "--mlir-print-ir-after-all"]
    assert relax_opt.main([file, passes, *wanted, "-o", "/dev/null"]) == 0
    dumps = capsys.readouterr().err
    assert dumps.count("IR Dump") == 4
    assert dumps.count("dense_resource<data_") == 3
    assert len(dumps) < 3000


def test_a_change_of_data_alone_is_a_change(file: str, capsys: pytest.CaptureFixture[str]):
    passes = "--pass-pipeline=cse,relax-externalize-constants"
    assert relax_opt.main([file, passes, "--mlir-print-ir-after-change", "-o", "/dev/null"]) == 0
    dumps = capsys.readouterr().err
    assert dumps.count("IR Dump") == 1
    assert "IR Dump After relax-externalize-constants" in dumps


@pytest.mark.parametrize("verify", [[], ["--verify-each=false"]])
def test_a_reproducer_has_the_data(
    verify: list[str], file: str, capsys: pytest.CaptureFixture[str]
):
    assert relax_opt.main([file, FAILING, *verify]) == 1
    said = capsys.readouterr().err
    assert len(said) < 2000
    command = shlex.split(said[said.index("relax-opt ") :])
    assert command[1:-2] == verify
    path = Path(command[-1])
    assert VALUES.nbytes < path.stat().st_size < VALUES.nbytes + 2000
    assert relax_opt.main(command[1:]) == 1
    again = capsys.readouterr().err
    error = "'graph.exp' op cannot be host code"
    assert error in said
    assert error in again
    assert relax_opt.main([str(path), "-o", f"{path}.mlir"]) == 0
    with pytest.raises(CompileError, match=error):
        relax_mlir.compile(f"{path}.mlir", passes="builtin.module(relax-to-host)")


def test_a_stage_is_for_people_and_bytecode_for_programs(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert relax_compile.main([file, "--emit=mlir-legalize-ops"]) == 0
    assert len(capsys.readouterr().out) < 2000
    assert relax_opt.main([file, "--emit-bytecode", "-o", str(tmp_path / "m.mlirbc")]) == 0
    output = tmp_path / "m.so"
    assert relax_compile.main([str(tmp_path / "m.mlirbc"), "-o", str(output)]) == 0
    np.testing.assert_allclose(relax_mlir.load(output)["main"](), np.exp(VALUES), rtol=1e-6)


@pytest.mark.parametrize("element", ["i4", "i2", "i7", "i128", "f8E3M4"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_elements_that_are_not_stored(
    element: str, level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "few.mlir"
    values = ", ".join("10"[i % 2] + ".0" * (element[0] == "f") for i in range(400))
    path.write_text(f"""func.func @main() -> tensor<400x{element}> {{
  %0 = arith.constant dense<[{values}]> : tensor<400x{element}>
  return %0 : tensor<400x{element}>
}}""")
    assert relax_compile.main([str(path), level, "-o", str(tmp_path / "few.so")]) == 1
    said = capsys.readouterr().err
    assert f"few.mlir:2:8: error: 'arith.constant' op has elements of {element}; accepted" in said
    assert len(said) < 400
