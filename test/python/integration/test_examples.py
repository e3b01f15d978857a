"""The scripts under examples/ run as they are, and print what they should."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(name: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *args],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    names = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert names == {"dynamic_mlp.py", "step_by_step.py", "generate_text.py", "train.py"}


def test_dynamic_mlp() -> None:
    signature, *rows = run("dynamic_mlp.py").splitlines()
    assert signature == "main(x: f32[n, 64], w1: f32[64, 128], w2: f32[128, 10]) -> (f32[n, 10])"
    for n, row in zip((1, 4, 7), rows, strict=True):
        found = re.fullmatch(rf"n = {n}: classes \[([\d ]+)\]", row)
        assert len(found[1].split()) == n


def test_step_by_step() -> None:
    shown = run("step_by_step.py")
    assert "==== after relax-legalize-ops\n" in shown
    assert "graph.call_tir @fused_matmul_add_relu(%arg0, %arg1, %arg2)" in shown
    assert "graph.alloc_storage() {size=" in shown
    assert "relax-to-host" not in shown


def test_train() -> None:
    rows = run("train.py").splitlines()
    matches = [re.fullmatch(r"step (\d+): loss ([\d.]+), (\d+)% right", row) for row in rows]
    assert [int(match[1]) for match in matches] == [0, 200, 400, 600]
    assert float(matches[-1][2]) < 0.2
    assert int(matches[-1][3]) > 90


def test_generate_text() -> None:
    shown = run("generate_text.py")
    assert "> What is the capital of France?\n" in shown
    assert "Paris" in shown
    assert "from the cache) at" in shown
