"""Control flow of graph functions, interpreted and compiled at every level, against NumPy."""

import re
import signal
import time
from typing import Any

import numpy as np
import pytest
from control_cases import CALLED, CASES, M, N, functions, numbers
from control_nested_cases import DOUBLED, NESTED
from levels import LEVELS

import relax_mlir
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import ir, scf
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import CopyOp
from relax_mlir.errors import ExecutionError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.rewriting import walk_ops

WAYS = ("interpreted", *LEVELS)
ALL = CASES | NESTED
MODULE = CALLED + DOUBLED + functions(ALL)


def made(text: str, way: object) -> Any:
    if way == "interpreted":
        return relax_mlir.interpret(text)
    if way == "wasm32":
        return relax_mlir.compile(text, target="wasm32")
    return relax_mlir.compile(text, opt_level=way)


@pytest.fixture(scope="module", params=WAYS)
def module(request: pytest.FixtureRequest) -> Any:
    return made(MODULE, request.param)


@pytest.mark.parametrize("name", ALL)
def test_control_flow_is_that_of_python(module: Any, name: str) -> None:
    case = ALL[name]
    for arguments in case.calls:
        before = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
        got, want = module[name](*arguments), case.meaning(*before)
        for got_one, want_one in zip(sequence(got), sequence(want), strict=True):
            assert isinstance(got_one, np.ndarray) or type(got_one) is type(want_one)
            np.testing.assert_array_equal(got_one, want_one)
        for argument, old in zip(arguments, before, strict=True):
            np.testing.assert_array_equal(argument, old)


def sequence(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", ["grow_by_rounds", "insert_elements", "while_sum"])
def test_later_calls_allocate_nothing_for_loops(name: str) -> None:
    exe = made(MODULE, 2)
    (x,), results = CASES[name].calls[-1], CASES[name].meaning(*CASES[name].calls[-1])
    bound = exe[name].bind(x, results=[np.empty_like(result) for result in sequence(results)])
    bound.run()
    before = exe.counters()
    bound.run()
    after = exe.counters()
    assert (after["allocations"], after["arena_bytes"]) == (
        before["allocations"],
        before["arena_bytes"],
    )


@pytest.mark.parametrize("name", ["count", "while_sum", "product_in_loop", "insert_elements"])
def test_rounds_copy_nothing(name: str) -> None:
    steps = re.sub(r"relax-schedule\{[^}]*\},|,relax-to-host\{[^}]*\}", "", pipeline("x86-64-v3"))
    with make_context(), ir.Location.unknown():
        module = parse_module(MODULE)
        Pipeline.parse(steps).run(module)
        function = functions_by_name(module.operation)[name]
        (loop,) = walk_ops(function, scf.ForOp, scf.WhileOp)
        assert walk_ops(loop, CopyOp) == []


ENDLESS = """
func.func @endless(%x: tensor<?xf32>, %rounds: index, %goes_on: i1) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.while (%a = %x) : (tensor<?xf32>) -> tensor<?xf32> {
    %b = scf.for %i = %zero to %rounds step %one iter_args(%c = %a) -> tensor<?xf32> {
      %0 = "graph.negative"(%c) : (tensor<?xf32>) -> tensor<?xf32>
      scf.yield %0 : tensor<?xf32>
    }
    scf.condition(%goes_on) %b : tensor<?xf32>
  } do {
  ^body(%a: tensor<?xf32>):
    scf.yield %a : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}"""


class Stop(Exception):
    pass


UPDATED = f"""
func.func @rounds(%x: {N} {{graph.inout = 0 : i64}}, %y: {N}) -> ({N}, {N}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %zero : {N}
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> {N} {{
    %0 = "graph.add"(%a, %y) : ({N}, {N}) -> {N}
    %e = tensor.extract %y[%i] : {N}
    %1 = tensor.insert %e into %0[%i] : {N}
    scf.yield %1 : {N}
  }}
  %s = "graph.negative"(%x) : ({N}) -> {N}
  return %r, %s : {N}, {N}
}}"""


@pytest.mark.parametrize("way", ["interpreted", 0, 2])
def test_a_loop_updates_an_argument_in_place(way: object) -> None:
    rounds = made(UPDATED, way)["rounds"]
    for n in (0, 1, 5):
        x, y = numbers(n), numbers(n, 1)
        want, negative = x.copy(), -x
        for i in range(n):
            want = want + y
            want[i] = y[i]
        got = rounds(x, y)
        assert got[0] is x
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(got[1], negative)


@pytest.mark.parametrize("way", ["interpreted", 2, "wasm32"])
@pytest.mark.parametrize("rounds", [0, 3, 2**62])
def test_an_endless_loop_can_be_interrupted(way: object, rounds: int) -> None:
    def stop(*_: object) -> None:
        raise Stop

    endless = made(ENDLESS, way)["endless"]
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Stop):
                endless(numbers(5), rounds, True)
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(endless(numbers(5), 3, False), -numbers(5))


def test_handlers_of_signals_run_while_a_loop_does() -> None:
    handled: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: handled.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        x = np.zeros(1, np.float32)
        begin, rounds = time.monotonic(), 1000
        while time.monotonic() - begin < 0.2:
            rounds *= 2
            handled.clear()
            begin = time.monotonic()
            made(ENDLESS, 2)["endless"](x, rounds, False)
        assert len(handled) >= 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_branch_alone_checks_what_it_needs(module: Any) -> None:
    with pytest.raises(ExecutionError, match="requires n == m") as error:
        module["branch_needs_agreement"](numbers(7), numbers(3))
    if isinstance(module, relax_mlir.Executable):
        line = 1 + MODULE[: MODULE.index(f"({N}, {M})")].count("\n")
        assert re.match(
            rf"-:{line}:\d+: graph.add requires n == m, but m = 3, n = 7$", str(error.value)
        )
