"""relax-compile and relax-run: from text to numbers, messages and exit statuses."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import UsageError
from relax_mlir.tools import relax_compile, relax_run

MODULE = """
func.func @main(
    %x: tensor<?x4xf32, #graph.shape<["n", 4]>> {graph.name = "x"},
    %w: tensor<4x3xf32> {graph.name = "w"}
) -> tensor<?x3xf32, #graph.shape<["n", 3]>> {
  %0 = "graph.matmul"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4x3xf32>)
      -> tensor<?x3xf32, #graph.shape<["n", 3]>>
  return %0 : tensor<?x3xf32, #graph.shape<["n", 3]>>
}
"""


ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("compile")
    (path / "model.mlir").write_text(MODULE)
    (path / "wrong.mlir").write_text(MODULE.replace("4x3xf32", "5x3xf32"))
    assert relax_compile.main([str(path / "model.mlir"), "-o", str(path / "model.so")]) == 0
    return path


@pytest.mark.parametrize("tool", ["relax_compile", "relax_run"])
def test_help_loads_nothing_heavy(tool):
    program = (
        f"import sys; from relax_mlir.tools import {tool}\n"
        f"try: {tool}.main(['--help'])\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'numpy', 'torch_mlir', 'llvmlite'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.parametrize("command", ["fuzz", "mutate"])
def test_help_of_what_tests_needs_no_package(command):
    name = f"relax_mlir.testing.{command}"
    program = (
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "sys.argv = ['', '--help']\n"
        f"runpy.run_module({name!r}, run_name='__main__')"
    )
    flags = ["-I", "-S", "-c"]  # none of what is installed
    done = subprocess.run([sys.executable, *flags, program], check=True, capture_output=True)
    assert done.stdout.decode().startswith(f"usage: python -m {name}")


def test_running_needs_no_compiler(folder):
    program = (
        "import sys; from relax_mlir.tools import relax_run\n"
        f"relax_run.main([{str(folder / 'model.so')!r}, '--list'])\n"
        "heavy = {'torch_mlir', 'llvmlite', 'relax_mlir.compiler'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.decode() == "main(x: f32[n, 4], w: f32[4, 3]) -> (f32[n, 3])\n"


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_compiled_and_run(folder, tmp_path, rows, level):
    module, out = str(tmp_path / "m.so"), tmp_path / "out.npy"
    assert relax_compile.main([str(folder / "model.mlir"), "-o", module, "-O", level]) == 0
    rng = np.random.default_rng(rows)
    x, w = rng.standard_normal((rows, 4)), rng.standard_normal((4, 3))
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    np.save(tmp_path / "w.npy", w.astype(np.float32))
    inputs = ["--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "w.npy")]
    assert relax_run.main([module, *inputs, "--output", str(out), "--threads", "1"]) == 0
    np.testing.assert_allclose(np.load(out), x @ w, rtol=1e-5, atol=1e-5)


def test_output_is_named_after_the_input(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert relax_compile.main([str(folder / "model.mlir"), "--no-cache"]) == 0
    assert (tmp_path / "model.so").read_bytes().startswith(b"\x7fELF")
    assert [path.name for path in tmp_path.iterdir()] == ["model.so"]


def test_results_and_times_are_printed(folder, capsys):
    inputs = ["--input", "ones:2x4xf32", "--input", "ones:4x3xf32", "--repeat", "3"]
    assert relax_run.main([str(folder / "model.so"), *inputs]) == 0
    out, err = capsys.readouterr()
    assert out == "result 0: 2x3xf32\n[[4. 4. 4.]\n [4. 4. 4.]]\n"
    assert err.startswith("3 runs: best ")


def test_random_inputs_are_repeatable(folder, capsys):
    command = [str(folder / "model.so"), "--input", "random:2x4xf32", "--input", "ones:4x3xf32"]
    outs = []
    for seed in ("1", "1", "2"):
        assert relax_run.main([*command, "--seed", seed]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] != outs[2]


@pytest.mark.parametrize(
    ("stage", "has", "has_not"),
    [
        ("mlir-infer-shapes", "graph.matmul", "linalg.generic"),
        ("mlir-legalize-ops", "linalg.generic", "graph.matmul"),
        ("mlir-to-host", "@rx_fn_main", "graph."),
        ("llvm", "define i32 @rx_fn_main(", "func.func"),
    ],
)
def test_stages(folder, capsys, stage, has, has_not):
    assert relax_compile.main([str(folder / "model.mlir"), f"--emit={stage}"]) == 0
    out = capsys.readouterr().out
    assert has in out
    assert has_not not in out


def test_pipeline_is_narrated(capsys):
    assert relax_compile.main(["--print-pipeline", "-O", "1"]) == 0
    out = capsys.readouterr().out
    assert "relax-legalize-ops " in out
    assert "relax-fuse-ops" not in out
    assert "relax-quantize" not in out
    assert "{{" not in out
    assert relax_compile.main(["--print-pipeline", "--quantize", "q4_32"]) == 0
    assert "relax-quantize{scheme=q4_32} " in capsys.readouterr().out


def test_stats(folder, tmp_path, capsys):
    arguments = [str(folder / "model.mlir"), "-o", str(tmp_path / "m.so"), "--stats"]
    assert relax_compile.main(arguments) == 0
    err = capsys.readouterr().err
    assert "relax-build-kernels" in err
    assert "code generation: math" in err


def test_wrong_module_is_located(folder, capsys):
    name = str(folder / "wrong.mlir")
    assert relax_compile.main([name]) == 1
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{name}:6:")
    assert "error: 'graph.matmul' op contracts dim 4 of lhs with dim 5 of rhs" in first


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"func.func @f(")))
    assert relax_compile.main(["-o", "unused.so"]) == 1
    assert capsys.readouterr().err.startswith("<stdin>:1:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.mlir"], "cannot read 'missing.mlir': no such file or directory"),
        (["-"], "the module comes from standard input; name the output with -o FILE"),
        (["{folder}/model.mlir", "-O", "9"], "unknown optimisation level 9; levels are 0, 1, 2, 3"),
        (["{folder}/model.mlir", "--target", "z80"], "unknown target 'z80'"),
        (["{folder}/model.mlir", "--emit=wasm"], "unknown stage 'wasm'"),
        (["{folder}/model.mlir", "--emit=mlir-legalize"], "did you mean 'mlir-legalize-ops'"),
        (["{folder}/model.mlir", "-o", "{folder}/no/m.so"], "cannot write '"),
    ],
)
def test_wrong_usage_of_compile(folder, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MODULE.encode())))
    assert relax_compile.main([part.format(folder=folder) for part in arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("relax-compile: ")
    assert message in err
    assert err.count("\n") == 1


X, W = "--input=ones:2x4xf32", "--input=ones:4x3xf32"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["missing.so"], 2, "cannot read 'missing.so': no such file"),
        (["model.mlir"], 1, "cannot load 'model.mlir'"),
        (["model.so", "--function", "f"], 2, "no function 'f'; the module has main"),
        (["model.so", X], 2, "1 inputs are given, but there are 2 arguments: main(x: f32[n, 4]"),
        (["model.so", X, "--input=ones:4x2xf32"], 1, "argument 1 'w': dim 1 is 2, but 3 is"),
        (["model.so", X, "--input=1,2"], 1, "argument 1 'w': rank is 1, but 2 is expected"),
        (["model.so", X, "--input=a.npy"], 2, "cannot read 'a.npy'"),
        (["model.so", X, "--input=what"], 2, "cannot read input 'what'; expects FILE.npy"),
        (["model.so", X, "--input=ones:4xf7"], 2, "unknown dtype in 'ones:4xf7'"),
        (["model.so", X, W, "--repeat", "0"], 2, "--repeat is 0; expects 1 or more"),
        (["model.so", X, W, "--threads", "0"], 2, "--threads is 0; expects 1 or more"),
        (["model.so", X, W, "--output=a", "--output=b"], 2, "2 outputs are named, but main("),
        (["model.so", X, W, "--output=no/a.npy"], 2, "cannot write 'no/a.npy'"),
    ],
)
def test_wrong_usage_of_run(folder, capsys, monkeypatch, arguments, status, message):
    monkeypatch.chdir(folder)
    assert relax_run.main(arguments) == status
    err = capsys.readouterr().err
    assert err.startswith("relax-run: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("value", ["abc", "0", "-1"])
def test_a_number_of_threads_that_is_none(folder, value):
    found = subprocess.run(
        [sys.executable, "-m", "relax_mlir.tools.relax_run", "--list", str(folder / "model.so")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RELAX_NUM_THREADS": value},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2
    assert found.stderr == (
        f"relax-run: RELAX_NUM_THREADS is '{value}'; expects a thread count of 1 or more\n"
    )


def test_models_of_other_frameworks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(b"\x08\x09\xff\x00")
    assert relax_compile.main(["model.onnx"]) == 1
    assert "cannot read the model: Error parsing message" in capsys.readouterr().err
    for source in ("model.onnx", Path("model.onnx"), Path("missing/model.onnx")):
        with pytest.raises(UsageError, match="it is an ONNX model; relax_mlir"):
            relax_mlir.compile(source)
    with pytest.raises(UsageError, match=r"a language model; relax_mlir\.llm\.load takes it"):
        relax_mlir.compile("Model.GGUF")
    with pytest.raises(UsageError, match="cannot compile an object of type bytes; expects"):
        relax_mlir.compile(b"module {}")
