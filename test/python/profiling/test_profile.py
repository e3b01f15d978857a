"""Profiles of calls: what they say of kernels, and the files and tables made of them."""

import json

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable
from relax_mlir.machine.limits import Limits, Machine
from relax_mlir.profile import profile, record, symbol_values, table, write_trace

MODULE = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>
func.func @main(%x: !x, %w: tensor<64x32xf32>, %s: !graph.shape_value<["2*k + 1"]>) -> !y {
  %0 = "graph.tanh"(%x) : (!x) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, tensor<64x32xf32>) -> !y
  return %1 : !y
}
"""
LIMITS = Limits(1, read=1e9, read_huge_pages=2e9, f32=3e9, bf16=None, int8=None)


@pytest.fixture(scope="module")
def module() -> Executable:
    return compile(MODULE, opt_level=0)


def call(module: Executable, n: int):
    return module["main"].bind(np.ones((n, 64), np.float32), np.ones((64, 32), np.float32), [7])


def test_symbols_are_those_that_the_arguments_bind(module):
    assert symbol_values(call(module, 5)) == {"n": 5, "k": 3}


@pytest.mark.parametrize("n", [0, 1, 129])
def test_a_profile_describes_each_call(module, n):
    found = profile(call(module, n), threads=1)
    assert [span.kernel for span in found.spans] == ["tanh", "matmul"]
    tanh, matmul = found.spans
    assert (tanh.bytes, tanh.flops) == (2 * 4 * 64 * n, 64 * n)
    assert matmul.bytes == 4 * (64 * n + 64 * 32 + 32 * n)
    assert matmul.flops == 2 * 64 * 32 * n
    assert 0 <= tanh.begin <= tanh.begin + tanh.seconds <= matmul.begin
    assert 0 <= found.gaps <= found.seconds


def test_the_roof_is_the_slower_of_bytes_and_operations(module):
    tanh, matmul = profile(call(module, 1024)).spans
    assert tanh.roof(LIMITS) == pytest.approx(2 * 4 * 64 * 1024 / 2e9)
    assert matmul.roof(LIMITS) == pytest.approx(2 * 64 * 32 * 1024 / 3e9)


def test_recording_ends_with_the_profile(module):
    bound = call(module, 3)
    profile(bound)
    bound.run()
    assert len(module.spans()) == 0


def test_work_that_makes_two_calls_is_refused(module):
    bound = call(module, 3)
    with pytest.raises(ExecutionError, match="one call of 'main'"):
        record(module, "main", lambda: (bound.run(), bound.run()), {}, "twice", 1)


def test_the_table_sorts_kernels_by_time(module):
    found = profile(call(module, 256), "some name")
    first, _, *rows, last = table(found, LIMITS).splitlines()
    assert "some name" in first
    assert "2 kernel calls" in first
    times = [float(row.split()[2]) for row in rows]
    assert len(times) == 2
    assert times == sorted(times, reverse=True)
    assert last.startswith("all")


def test_kernels_beyond_the_top_are_summed_up(module):
    rows = table(profile(call(module, 8)), top=1).splitlines()
    assert rows[3].startswith("1 others")


def test_counts_that_are_not_known_show_as_such(module):
    bound = call(module, 8)
    found = record(module, "main", bound.run, {}, "no symbols", 1)
    assert {span.flops for span in found.spans} == {None}
    assert "?" in table(found)


def test_a_trace_holds_each_call_within_the_whole(module, tmp_path):
    found = profile(call(module, 64), "decode")
    write_trace(tmp_path / "trace.json", [found, found], Machine("some", 1, (LIMITS,)))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    whole = next(event for event in events if event["ph"] == "X" and event["cat"] == "call")
    kernels = [event for event in events if event.get("cat") == "kernel" and not event["pid"]]
    assert [event["name"] for event in kernels] == ["tanh", "matmul"]
    for event in kernels:
        assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= whole["dur"]
        assert event["args"]["percent of roof"] > 0


BRANCH = """
!n = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !n) -> !n {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %n = tensor.dim %x, %zero : !n
  %c = arith.cmpi slt, %n, %four : index
  %r = scf.if %c -> !n {
    %0 = "graph.nn_softmax"(%x) {axis = 0 : i64} : (!n) -> !n
    scf.yield %0 : !n
  } else {
    %0 = "graph.negative"(%x) : (!n) -> !n
    scf.yield %0 : !n
  }
  %1 = "graph.exp"(%r) : (!n) -> !n
  return %1 : !n
}
"""


@pytest.mark.parametrize(("n", "kernel"), [(3, "softmax"), (4, "negative")])
def test_a_profile_has_the_branch_that_ran(n: int, kernel: str) -> None:
    main = compile(BRANCH, opt_level=0)["main"]
    found = profile(main.bind(np.ones(n, np.float32)), threads=1)
    assert [span.kernel for span in found.spans] == [kernel, "exp"]
    assert [span.flops for span in found.spans][1] == n
