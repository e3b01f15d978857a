"""Damaged modules: what is found, what is made of it, and that the compiler does nothing wrong."""

import io
import os
import time
from pathlib import Path
from random import Random

import pytest

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline
from relax_mlir.testing.mutate import words
from relax_mlir.testing.mutate.command import run
from relax_mlir.testing.mutate.pool import Pool
from relax_mlir.testing.mutate.shrink import shrink
from relax_mlir.testing.mutate.trial import Failure, Input, attempt, single_passes

TEXT = """func.func @main(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32> {
  %0 = "graph.exp"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""


def test_each_pass_runs_alone():
    for text in single_passes():
        Pipeline.parse(f"builtin.module({text})")


def _job(job: str, folder: Path) -> object:
    (folder / "reached").write_text("parse")
    if job == "abort":
        os.abort()
    if job == "hang":
        time.sleep(60)
    return job


def test_pool_tells_how_a_process_ends_and_goes_on(tmp_path):
    with Pool(_job, tmp_path, 2, seconds=2) as pool:
        answers = {job: answer for job, answer, _ in pool.map(["a", "abort", "hang", "b"])}
    assert (answers["a"], answers["b"]) == ("a", "b")
    assert answers["abort"].kind == "crash"
    assert answers["abort"].key.startswith("SIGABRT")
    assert answers["hang"].kind == "hang"


def test_shrink_keeps_what_fails():
    given = Input("a\nb\nc\nd\ne\n", ("cse", "relax-verify", "symbol-dce"))
    small = shrink(given, lambda x: "c\n" in x.data and "relax-verify" in (x.passes or ()))
    assert small == Input("c\n", ("relax-verify",))


def test_attempt_tells_a_traceback_from_a_refusal(monkeypatch):
    given = Input(TEXT, ("relax-infer-shapes",))
    assert attempt(given) is None
    assert attempt(Input(TEXT.replace("exp", "nothing"), ())) is None
    monkeypatch.setattr("relax_mlir.transforms.infer_shapes.update_results", lambda _: 1 / 0)
    failure = attempt(given)
    assert failure is not None
    assert failure.key == "ZeroDivisionError in infer_shapes.py:function"


def test_invalid_ir_after_a_pass_is_a_failure(monkeypatch):
    def spoil(function):
        function.attributes["sym_name"] = ir.UnitAttr.get()

    monkeypatch.setattr("relax_mlir.transforms.infer_shapes.update_results", spoil)
    failure = attempt(Input(TEXT, ("relax-infer-shapes",)))
    assert isinstance(failure, Failure)
    assert failure.kind == "invalid IR"


def _read(data: bytes) -> ir.Module | CompileError:
    try:
        return parse_module(data)
    except CompileError as error:
        return error


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytecode_is_read_or_refused(seed):
    buffer = io.BytesIO()
    with dialects.make_context(upstream=None), ir.Location.unknown():
        ir.Module.parse(TEXT).operation.write_bytecode(buffer)
        data = words.flip_bits(buffer.getvalue(), Random(seed))
        found = _read(data)
    assert found.operation.verify() if isinstance(found, ir.Module) else found.diagnostics


def test_no_input_of_a_small_batch_fails(tmp_path):
    assert not run(range(60), seed=11, jobs=2, folder=tmp_path)


@pytest.mark.sweep
def test_no_input_fails(tmp_path):
    assert not run(range(5000), seed=12, jobs=2, folder=tmp_path)
