"""What a machine lacks, memory, room on disk, CPUs, instructions, is said, and worked around."""

import os
import resource
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import ExecutionError
from relax_mlir.llm import load
from relax_mlir.llm.decoder.arrays import aligned_arrays
from relax_mlir.target import detect
from relax_mlir.tools.relax_llm import main

MIB = 1 << 20
EXP = """
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @once(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  return %0 : !n
}
func.func @twice(%x: !n) -> !n {
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.exp"(%0) : (!n) -> !n
  return %1 : !n
}
"""
BEYOND_MEMORY = """
import resource, sys
import numpy as np
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import load
functions = load(sys.argv[1])
x, y = np.ones(1 << 24, np.float32), np.ones(1 << 24, np.float32)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)
for name, results in (("once", None), ("twice", [y])):
    try:
        functions[name].bind(x, results=results).run()
    except ExecutionError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("scarce") / "tiny.gguf"
    return str(write_gguf(path, random_weights(), llama__context_length=1 << 25))


def run(*arguments: str, limit: tuple[int, int] | None = None, **environment: str):
    """Runs `relax-llm`, under a limit of the system if one is given."""
    return subprocess.run(
        [sys.executable, "-m", "relax_mlir.tools.relax_llm", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        preexec_fn=lambda: limit and resource.setrlimit(limit[0], (limit[1],) * 2),
        capture_output=True,
        text=True,
    )


def test_caches_that_do_not_fit_into_memory(tiny):
    limit = resource.RLIMIT_AS, 8 << 30
    found = run("generate", tiny, "hi", "--raw", "--max-tokens", "30000000", limit=limit)
    assert found.returncode == 1
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith("relax-llm: out of memory: caches of 1536000")
    assert line.endswith("tokens; a smaller context needs less")


def test_weights_that_do_not_fit_into_memory():
    with pytest.raises(MemoryError, match=r"^the weights of 281474976710656 bytes$"):
        aligned_arrays([((1 << 48,), np.dtype(np.uint8))], "the weights")


def test_results_and_temporaries_that_do_not_fit_into_memory():
    program = [sys.executable, "-c", BEYOND_MEMORY, str(compile_to_file(EXP, opt_level=1))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(program, env=environment, check=True, capture_output=True, text=True)
    assert found.stdout.splitlines() == [
        "out of memory: result 0 of dims [16777216], 67108864 bytes",
        "out of memory: the function needs 67108864 bytes for temporaries",
    ]


def test_a_disk_that_is_full_keeps_no_weights(tmp_path):
    """A limit on the size of files stands for the full disk."""
    config = replace(CONFIG, vocab_size=30_000)
    model = write_gguf(tmp_path / "m.gguf", random_weights(config), config=config)
    cache = tmp_path / "cache"
    arguments = ["generate", str(model), "hi", "--raw", "--max-tokens", "4"]
    limit = resource.RLIMIT_FSIZE, 8 * MIB
    found = run(*arguments, limit=limit, RELAX_CACHE_DIR=str(cache))
    assert found.returncode == 0, found.stderr
    warning, statistics = found.stderr.splitlines()
    assert warning.startswith("relax-llm: warning: 23")
    assert warning.endswith(f"weights are not cached in '{cache}' for later starts: file too large")
    assert "stopped by" in statistics
    assert not list(cache.glob("*/*.weights"))
    assert not list(cache.glob("*/*.new"))
    again = run(*arguments, RELAX_CACHE_DIR=str(cache))
    assert again.stdout == found.stdout
    assert list(cache.glob("*/*.weights"))


def test_a_cache_folder_that_cannot_be_written(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ["generate", tiny, "hi", "--raw", "--max-tokens", "1"]
    found = run(*arguments, RELAX_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert found.returncode == 0
    warning, statistics = found.stderr.splitlines()
    assert "file/cache' cannot be written (not a directory): nothing is cached" in warning
    assert "stopped by length" in statistics


def test_more_threads_than_cpus_are_warned_of_once(tiny, capsys):
    arguments = ["generate", tiny, "hi", "--raw", "--max-tokens", "2", "--threads", "1000"]
    assert main(arguments) == 0
    warning, _ = capsys.readouterr().err.splitlines()
    assert warning.startswith("relax-llm: warning: 1000 threads share ")
    assert main(arguments) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_model_that_is_cut_short(tiny, tmp_path, capsys):
    cut = tmp_path / "cut.gguf"
    with open(tiny, "rb") as file:
        cut.write_bytes(file.read()[:-100])
    assert main(["generate", str(cut), "hi"]) == 1
    assert "is cut short: tensor" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("weights", "chosen", "numbers"),
    [("bf16", "x86-64-v3", "bfloat16"), ("q8_0", "x86-64-v2", "8-bit integers")],
)
def test_instructions_that_the_target_lacks_are_done_without(weights, chosen, numbers, tmp_path):
    model = str(write_gguf(tmp_path / "m.gguf", random_weights()))
    with pytest.warns(
        UserWarning, match=f"'{chosen}' has no instruction that multiplies {numbers}"
    ):
        found = load(model, weights, target=chosen)
    expected = load(model, weights, activations="f32")
    assert found.logits([3, 4, 5]) == pytest.approx(expected.logits([3, 4, 5]), abs=0.05)


def test_code_for_another_machine_is_compiled_but_not_run(tiny, monkeypatch, capsys):
    monkeypatch.setattr(detect, "host_flags", lambda: frozenset({"sse2", "pni", "avx"}))
    path = compile_to_file(EXP, "x86-64-v3")
    assert path.stat().st_size
    with pytest.raises(ExecutionError, match=r"compiled for x86-64-v3, but this machine has no "):
        load(tiny, target="x86-64-v3")
    assert main(["generate", tiny, "hi", "--target", "x86-64-v3"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("relax-llm: cannot run ")
    assert "avx2" in error
    assert error.count("\n") == 1
