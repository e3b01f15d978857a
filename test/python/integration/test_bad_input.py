"""What users get wrong, through the command-line tools: one error that says what and where.

Exit status 1 if the program, the data or a call is wrong, 2 if the command line is; no traceback,
and no file that was not there before or differs from before.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tool_processes import ROOT, run_tool

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

GOOD = """
!x = tensor<?x4xf32, #graph.shape<["n", 4]>>
func.func @main(%x: !x {graph.name = "x"}, %s: !graph.shape_value<["m"]> {graph.name = "s"}) -> !x
    attributes {graph.facts = ["m <= n"]} {
  %0 = "graph.exp"(%x) : (!x) -> !x
  return %0 : !x
}
"""

# name -> (module, place, what the error says); `%x` is a tensor<4xf32>
BODIES = {
    "undeclared": ('"graph.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>', "undeclared SSA value"),
    "unknown_op": ('"graph.frobnicate"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "frobnicate"),
    "unknown_dialect": ('"toy.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "unregistered dialect"),
    "wrong_rank": (
        '"graph.matmul"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
        "'graph.matmul' op expects operands of rank 2 or more",
    ),
    "wrong_result": (
        '"graph.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32>',
        "'graph.exp' op infers result type 'tensor<4xf32>', but has 'tensor<5xf32>'",
    ),
    "wrong_axis": (
        '"graph.nn_softmax"(%x) {axis = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>',
        "'graph.nn_softmax' op has axis 3, but rank 1 accepts -1 to 0",
    ),
    "missing_attribute": (
        '"graph.nn_softmax"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        'attribute "axis" is expected but not provided',
    ),
    "unreadable_dims": (
        '"graph.reshape"(%x) {shape = #graph.shape<["2*"]>} : (tensor<4xf32>) -> tensor<4xf32>',
        "'graph.reshape' op has 'shape'",
    ),
    "dims_of_a_wrong_kind": (
        '"graph.reshape"(%x) {shape = #graph.shape<[4.5]>} : (tensor<4xf32>) -> tensor<4xf32>',
        "expects an integer >= 0 or an expression",
    ),
    "unbound_symbol": (
        '"graph.reshape"(%x) {shape = #graph.shape<["q"]>} : (tensor<4xf32>) -> tensor<?xf32>',
        "'graph.reshape' op uses the symbol 'q', which nothing binds",
    ),
    "no_graph_op": ("memref.alloc() : memref<4xf32>", "'memref.alloc' op cannot be host code"),
}
ANNOTATIONS = {
    "expression": ('tensor<?xf32, #graph.shape<["n +"]>>', "an expression expected, not the end"),
    "rank": ('tensor<?xf32, #graph.shape<["n", 2]>>', "which names 2 dims of rank 1"),
    "extent": ("tensor<4xf32, #graph.shape<[5]>>", "whose extent 4 is named 5"),
    "divisor": ('tensor<?xf32, #graph.shape<["n mod 0"]>>', "a divisor is positive"),
    "shape_value": ('!graph.shape_value<["n", "*"]>', "an expression expected"),
    "unsolvable": ('tensor<?xf32, #graph.shape<["n floordiv 4"]>>', "which no argument binds"),
    "element": ("tensor<4xcomplex<f32>>", "complex<f32>"),
    "object": (
        "!graph.object",
        "argument 0 'x' of '!graph.object', not a ranked tensor or a shape",
    ),
    "size": ("tensor<99999999999x99999999999xf32>", "which no memory can hold"),
}
ATTRIBUTES = {
    "fact_text": ('graph.facts = ["n <="]', "malformed 'graph.facts'"),
    "fact_kind": ("graph.facts = [1]", "expects an array of strings"),
    "fact_symbol": ('graph.facts = ["q <= 4"]', "nothing binds the symbol 'q'"),
}


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refuse(folder: Path, status: int, says: str, tool: str, *args: str, stdin: str = "") -> str:
    """Runs a tool that must fail with one error, and leave all files as they are."""
    before = contents(folder)
    done = run_tool(tool, *args, cwd=folder, stdin=stdin)
    assert done.returncode == status, done.stderr
    errors = [
        line
        for line in done.stderr.splitlines()
        if ": error: " in line or line.startswith(f"{tool}: ")
    ]
    assert len(errors) == 1, done.stderr
    assert says in errors[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert contents(folder) == before
    return errors[0]


def refuse_module(folder: Path, module: str, line: int, says: str) -> None:
    """A module must be refused at a line, and the output of an earlier run must stay."""
    (folder / "in.mlir").write_text(module)
    (folder / "out.so").write_bytes(b"of an earlier run")
    error = refuse(folder, 1, says, "relax-compile", "in.mlir", "-o", "out.so")
    assert error.startswith(f"in.mlir:{line}:")


@pytest.mark.parametrize("name", BODIES)
def test_wrong_op(name: str, tmp_path: Path) -> None:
    op, says = BODIES[name]
    module = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = {op}\n  return %x"
    refuse_module(tmp_path, module + " : tensor<4xf32>\n}\n", 2, says)


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_wrong_annotation(name: str, tmp_path: Path) -> None:
    type_, says = ANNOTATIONS[name]
    argument = f'%x: {type_} {{graph.name = "x"}}'
    refuse_module(tmp_path, f"\nfunc.func @main({argument}) {{\n  return\n}}\n", 2, says)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_wrong_function_attribute(name: str, tmp_path: Path) -> None:
    attribute, says = ATTRIBUTES[name]
    head = "func.func @main(%x: tensor<4xf32>) attributes"
    refuse_module(tmp_path, f"{head} {{{attribute}}} {{\n  return\n}}\n", 1, says)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["missing.mlir"], "cannot read 'missing.mlir': no such file or directory"),
        (["."], "cannot read '.': is a directory"),
        (["binary"], "neither UTF-8 text nor MLIR bytecode"),
        (["good.mlir", "-o", "missing/out.so"], "cannot write 'missing/out.so'"),
        (["good.mlir", "--target=z80"], "unknown target 'z80'; accepted are native"),
        (["good.mlir", "-O9"], "unknown optimisation level 9"),
        (["good.mlir", "--emit=mlir-legalize"], "did you mean 'mlir-legalize-ops'?"),
        (["good.mlir", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        ([], "name the output with -o FILE"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_of_relax_compile(args: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "good.mlir").write_text(GOOD)
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    refuse(tmp_path, 2, says, "relax-compile", *args, stdin=GOOD)


@pytest.mark.parametrize(
    ("pipeline", "status", "says"),
    [
        ("relax-lower-call", 2, "did you mean 'relax-lower-calls'?"),
        ("relax-schedule{targett=native}", 2, "has no option 'targett'; did you mean 'target'?"),
        ("relax-schedule{fuse=7}", 2, "option 'fuse' of pass 'relax-schedule' is true or false"),
        ("relax-schedule(", 2, "expected the name of a pass at column 16"),
        ("relax-to-host", 1, "'graph.exp' op cannot be host code, which supports "),
        ("relax-legalize-ops,relax-to-host", 1, "run relax-schedule before relax-to-host"),
        (
            "relax-legalize-ops,relax-schedule,relax-to-host",
            1,
            "'graph.call_tir' op cannot be host code",
        ),
    ],
)
def test_wrong_pipeline(pipeline: str, status: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "good.mlir").write_text(GOOD)
    options = [f"--pass-pipeline={pipeline}", "-o", "out.mlir"]
    refuse(tmp_path, status, says, "relax-opt", "good.mlir", *options)


def test_a_pipeline_without_memory_planning(tmp_path: Path) -> None:
    twice = GOOD.replace("  return %0", '  %1 = "graph.exp"(%0) : (!x) -> !x\n  return %1')
    (tmp_path / "twice.mlir").write_text(twice)
    pipeline = "relax-legalize-ops,relax-schedule,relax-lower-calls,relax-to-host"
    says = "twice.mlir:5:8: error: 'graph.alloc_tensor' op is not planned; run relax-plan-memory"
    refuse(tmp_path, 1, says, "relax-opt", "twice.mlir", f"--pass-pipeline={pipeline}")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "good.mlir").write_text(GOOD)
    done = run_tool("relax-compile", "good.mlir", "-o", "good.so", cwd=folder)
    assert done.returncode == 0, done.stderr
    return (folder / "good.so").read_bytes()


@pytest.mark.parametrize(
    ("inputs", "status", "says"),
    [
        (["random:3x4xf32", "4"], 1, "'main' requires m <= n, but m = 4 from argument 1 's'"),
        (["random:3x5xf32", "2"], 1, "argument 0 'x': dim 1 is 5, but 4 is expected"),
        (["random:3x4xf64", "2"], 1, "argument 0 'x': dtype is float64, but float32 is expected"),
        (["random:3xf32", "2"], 1, "argument 0 'x': rank is 1, but 2 is expected"),
        (["random:3x4xf32", "1,2"], 1, "argument 1 's': number of values is 2, but 1 is expected"),
        (["random:3x4xf32", "-1"], 1, "'m' must not be negative"),
        (["random:3x4xf32"], 2, "1 inputs are given, but there are 2 arguments"),
        (["missing.npy", "2"], 2, "cannot read 'missing.npy'"),
        (["text.npy", "2"], 2, "'text.npy' is not an array file"),
        (["empty.npy", "2"], 2, "'empty.npy' is not an array file"),
        ([f"zeros:{10**20}x4xf32", "2"], 2, "cannot make 'zeros:100000000000000000000x4xf32'"),
        (["zeros:3x4xf32", str(10**20)], 2, "'100000000000000000000' does not fit into i64"),
        (["three by four", "2"], 2, "cannot read input 'three by four'"),
        (["random:3x4xq7", "2"], 2, "unknown dtype in 'random:3x4xq7'; accepted are"),
    ],
)
def test_wrong_call(
    inputs: list[str], status: int, says: str, compiled: bytes, tmp_path: Path
) -> None:
    (tmp_path / "good.so").write_bytes(compiled)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    options = [f"--input={text}" for text in inputs]
    refuse(tmp_path, status, says, "relax-run", "good.so", *options, "--output", "out.npy")


def test_wrong_use_of_relax_run(compiled: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.so").write_bytes(compiled)
    inputs = ["--input=ones:1x4xf32", "--input=1"]
    for args, says in (
        (["--function=f"], "no function 'f'; the module has main"),
        (["--threads=0"], "--threads is 0; expects 1 or more"),
        (["--seed=-1"], "--seed is -1; expects 0 or more"),
        (["--output=missing/y.npy"], "cannot write 'missing/y.npy'"),
        (["--output=a.npy", "--output=b.npy"], "2 outputs are named"),
    ):
        refuse(tmp_path, 2, says, "relax-run", "good.so", *inputs, *args)


def test_files_that_are_no_compiled_modules(compiled: bytes, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no shared object")
    refuse(tmp_path, 1, "cannot load 'text.so'", "relax-run", "text.so", "--list")
    refuse(tmp_path, 2, "cannot read 'missing.so'", "relax-run", "missing.so", "--list")
    for size in (10, 100, len(compiled) // 4, len(compiled) // 2):
        (tmp_path / "cut.so").write_bytes(compiled[:size])
        refuse(tmp_path, 1, "cannot load 'cut.so'", "relax-run", "cut.so", "--list")


def test_wrong_models(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model")
    (tmp_path / "folder").mkdir()
    for model, status, says in (
        ("missing.gguf", 2, "no model 'missing.gguf': it is neither a file nor a folder"),
        ("text.gguf", 1, "text.gguf: is no GGUF file"),
        ("folder", 1, "folder/config.json: cannot be read"),
    ):
        refuse(tmp_path, status, says, "relax-llm", "generate", model, "Hello")


def test_text_that_nests_too_deep(tmp_path: Path) -> None:
    (tmp_path / "deep.mlir").write_text("module {" * 5000 + "}" * 5000)
    for tool in ("relax-opt", "relax-compile"):
        refuse(
            tmp_path,
            1,
            "deep.mlir:1:8008: error: brackets nest deeper than 1000",
            tool,
            "deep.mlir",
        )


@pytest.mark.parametrize(
    ("redirection", "says"),
    [
        (">/dev/full", "cannot write standard output: no space left on device"),
        (">&-", "cannot write standard output: it is closed"),
        ("<&-", "cannot read standard input: it is closed"),
    ],
)
def test_streams_that_fail(redirection: str, says: str) -> None:
    tool = f"{sys.executable} -m relax_mlir.tools.relax_opt"
    command = f"echo 'module {{}}' | {{ {tool} - {redirection}; }}"
    done = subprocess.run(
        ["sh", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"relax-opt: {says}\n")
