"""The scripts under examples/ run as they are, and print what they should."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

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
    tested = re.findall(r'run\("(\w+\.py)"\)', Path(__file__).read_text())
    assert names == set(tested)


def test_dynamic_mlp() -> None:
    signature, *rows = run("dynamic_mlp.py").splitlines()
    assert signature == "main(x: f32[n, 64], w1: f32[64, 128], w2: f32[128, 10]) -> (f32[n, 10])"
    for n, row in zip((1, 4, 7), rows, strict=True):
        found = re.fullmatch(rf"n = {n}: classes \[([\d ]+)\]", row)
        assert len(found[1].split()) == n


def errors(lines: Sequence[str]) -> list[float]:
    """The numbers that lines end with."""
    return [float(number) for line in lines for number in re.findall(r"\d+e[+-]?\d+", line)]


def test_import_onnx() -> None:
    signature, *rows = run("import_onnx.py").splitlines()
    assert signature == "main(images: f32[n, 1, 8, 8]) -> (f32[n, 10])"
    assert rows == [f"n = {n}: ({n}, 10)" for n in (1, 3, 16)]


def test_import_mlir() -> None:
    signature, *rows = run("import_mlir.py").splitlines()
    assert signature.startswith(
        "main(arg0: f32[arg0_0, arg0_1], arg1: f32[arg0_1, 4], arg2: f32[4])"
    )
    assert len(errors(rows)) == 3
    assert max(errors(rows)) < 1e-4


def test_import_torch() -> None:
    pytest.importorskip("torch")
    _, *rows = run("import_torch.py").splitlines()
    assert len(errors(rows)) == 6
    assert max(errors(rows)) < 1e-5


def test_import_jax() -> None:
    pytest.importorskip("jax")
    rows = run("import_jax.py").splitlines()
    assert len(errors(rows)) == 3
    assert max(errors(rows)) < 1e-4


def test_step_by_step() -> None:
    shown = run("step_by_step.py")
    assert "==== after relax-legalize-ops\n" in shown
    assert "graph.call_tir @fused_matmul_add_relu(%arg0, %arg1, %arg2)" in shown
    assert "graph.alloc_storage() {size=" in shown
    assert "relax-to-host" not in shown


def edges_of_rows(size: int) -> np.ndarray:
    """How many pixels of each row `dataflow_pipeline.py` finds to be edges of its square."""
    image = np.zeros((size, size))
    image[size // 4 : size // 2, size // 4 : size // 2] = 4
    for _ in range(2):  # along rows, then along columns
        padded = np.pad(image, ((0, 0), (1, 1)), "edge")
        image = (0.25 * padded[:, :-2] + 0.5 * image + 0.25 * padded[:, 2:]).T
    padded = np.pad(image, 1, "edge")
    dx, dy = padded[1:-1, 2:] - padded[1:-1, :-2], padded[2:, 1:-1] - padded[:-2, 1:-1]
    steep = np.pad(np.hypot(dx, dy), ((0, 0), (1, 1)), "edge")
    ridge = steep[:, 1:-1] >= np.maximum(steep[:, :-2], steep[:, 2:])
    return np.sum(ridge & (steep[:, 1:-1] > 0.5), axis=1)


NODES = ("along_rows", "along_columns", "steepness", "ridge", "above", "total")


def check_frames(lines: list[str], mapping: str) -> None:
    """What is said of a mapping: the edges of three frames, and a time for each node."""
    for size, row in zip((16, 33, 64), lines[:3], strict=True):
        count = np.count_nonzero(edges_of_rows(size))
        assert row == f"{size} rows, {count} of them with edges"
    times = ", ".join(rf"{node} \d+\.\d\d" for node in NODES)
    assert re.fullmatch(f"{mapping}, in ms: {times}", lines[3])


def test_dataflow_pipeline() -> None:
    lines = run("dataflow_pipeline.py").splitlines()
    check_frames(lines[:4], "cpu")
    assert lines[4:] == ["18 spans in 6 tracks"]


def test_dataflow_pipeline_on_two_devices(tmp_path: Path) -> None:
    """The same of both mappings; spans of the first have ended when the second begins."""
    lines = run("dataflow_pipeline.py", str(tmp_path / "trace.json"), "gpu").splitlines()
    check_frames(lines[:4], "cpu")
    check_frames(lines[4:8], "gpu and cpu")
    assert lines[8:] == ["36 spans in 6 tracks"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["name"] for event in events} == {f"edges_stage_{i}" for i in range(6)}
    assert max(each["ts"] + each["dur"] for each in events[:18]) <= events[18]["ts"]


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
