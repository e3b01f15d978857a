"""Control flow of graph functions, interpreted and compiled at every level, against NumPy."""

from typing import Any

import numpy as np
import pytest
from control_cases import CASES, MODULE, numbers

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.pipelines import OPT_LEVELS

WAYS = ("interpreted", *OPT_LEVELS)


def made(text: str, way: object) -> Any:
    if way == "interpreted":
        return relax_mlir.interpret(text)
    return relax_mlir.compile(text, opt_level=way)


@pytest.fixture(scope="module", params=WAYS)
def module(request: pytest.FixtureRequest) -> Any:
    return made(MODULE, request.param)


@pytest.mark.parametrize("name", CASES)
def test_control_flow_is_that_of_python(module: Any, name: str) -> None:
    case = CASES[name]
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


def test_a_branch_alone_checks_what_it_needs(module: Any) -> None:
    with pytest.raises(ExecutionError, match="requires n == m"):
        module["branch_needs_agreement"](numbers(7), numbers(3))
