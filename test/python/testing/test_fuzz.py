"""The fuzzer writes all operators, finds what is wrong, and finds nothing in a few programs."""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.interpreter.depth import on_large_stack
from relax_mlir.interpreter.elements import (
    accumulated,
    exact,
    is_noisy,
    noisy,
    round_to,
    rounded,
)
from relax_mlir.passes import Pipeline
from relax_mlir.testing.fuzz import program as writer
from relax_mlir.testing.fuzz import shrink
from relax_mlir.testing.fuzz.batch import Outcome, Work, check, check_programs
from relax_mlir.testing.fuzz.check import CODE, DEVICE, PASSES, Setting, compare, meanings
from relax_mlir.testing.fuzz.pool import checked
from relax_mlir.testing.fuzz.program import GROUP, Program, program
from relax_mlir.testing.fuzz.recipes import FAMILIES, NOT_WRITTEN, operators
from relax_mlir.testing.fuzz.replay import public_name, read
from relax_mlir.testing.fuzz.slopes import slope_error
from relax_mlir.testing.recall import Memory, recalled

PAST = sorted((Path(__file__).parent / "Inputs" / "fuzz").glob("*.mlir"))
"""Programs that were wrong once, made small."""
TYPE = 'tensor<?x4xf32, #graph.shape<["n", 4]>>'


def test_every_op_has_a_recipe_or_a_reason() -> None:
    written = {op for recipes in FAMILIES.values() for op in recipes}
    assert {cls for cls in operators().values() if cls not in NOT_WRITTEN} <= written
    assert not written & NOT_WRITTEN.keys()


def test_each_recipe_writes_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    for recipes in FAMILIES.values():
        for op, recipe in recipes.items():
            monkeypatch.setattr(writer, "step", lambda b, _, op=op, recipe=recipe: recipe(b, op))
            name = op if isinstance(op, str) else op.OPERATION_NAME.partition(".")[2]
            assert any(name in program(seed, size=2).ops for seed in range(0, 1000, 100)), name


def test_a_seed_is_one_program() -> None:
    assert program(77).text == program(77).text != program(78).text


def test_a_few_programs() -> None:
    """The same ones each time; `python -m relax_mlir.testing.fuzz` tries others."""
    outcome = check(Work(0, 12, sizes=2, levels=(2,), compiled=0))
    assert outcome.failures == []
    assert (outcome.programs, outcome.calls > 24) == (12, True)


@pytest.mark.parametrize(
    ("stage", "target"),
    [(PASSES, "gpu"), (DEVICE, "gpu"), (DEVICE, "cuda:sm_80"), (CODE, "gpu")],
)
def test_a_few_programs_of_two_devices(stage: str, target: str) -> None:
    """On the stand-in for a device, whose memory the host cannot use, and on the host."""
    seeds = map(program, range(640, 700))
    moving = [p for p in seeds if p.ops["to_device"] + p.ops["hint_on_device"]]
    programs = [p for p in moving if "lib.function" not in p.text][:4]
    assert len(programs) == 4
    setting = Setting(2, target, stage=stage, optimises=False)
    assert compare(programs, meanings(programs, sizes=2), setting, {}) == []


def test_programs_that_were_wrong_once() -> None:
    programs = [Program(i, *read(path), Counter()) for i, path in enumerate(PAST)]
    assert len(programs) >= 4
    outcome = check_programs(programs, Work(0, len(programs), compiled=0), Outcome())
    for level in (0, 2):
        known = meanings(programs, sizes=4)
        outcome.failures += compare(programs, known, Setting(level), {})
    assert outcome.failures == []


def _binary(op: str) -> str:
    return f"""func.func @f(%x: {TYPE}, %y: {TYPE}) -> ({TYPE}, {TYPE}) {{
      %0 = "graph.tanh"(%x) : ({TYPE}) -> {TYPE}
      %1 = "graph.{op}"(%0, %y) : ({TYPE}, {TYPE}) -> {TYPE}
      %2 = "graph.exp"(%1) : ({TYPE}) -> {TYPE}
      return %0, %2 : {TYPE}, {TYPE}
    }}"""


def test_what_differs_is_found() -> None:
    known, memory = meanings([Program(0, "f", _binary("add"))], sizes=3), {}
    for setting in (Setting(0), Setting(2, stage=PASSES)):
        (failure,) = compare([Program(0, "f", _binary("subtract"))], known, setting, memory)
        assert failure.kind.startswith("differs")
        assert "result 1 at [0, 0]" in failure.text
        assert compare([Program(0, "f", _binary("add"))], known, setting, memory) == []


def _dies_of_seed_6(work: Work, begun: Callable[[str], None]) -> Outcome:
    begun("calls")
    if work.first <= 6 < work.first + work.count:
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(programs=work.count)


def test_a_program_that_ends_the_process_is_found() -> None:
    """The batch of which a worker dies is cut until one program is left."""
    outcomes = [outcome for _, outcome in checked([Work(6, 2)], 1, _dies_of_seed_6)]
    assert sum(outcome.programs for outcome in outcomes) == 2
    found = [failure for outcome in outcomes for failure in outcome.failures]
    assert [(f.seed, f.kind.split()[0]) for f in found] == [(6, "crash")]


def _hangs_of_seed_6(work: Work, begun: Callable[[str], None]) -> Outcome:
    begun("calls")
    if work.first <= 6 < work.first + work.count:
        time.sleep(600)
    return Outcome(programs=work.count)


def test_a_program_that_hangs_is_found() -> None:
    """Other programs of its batch are checked."""
    outcomes = [outcome for _, outcome in checked([Work(6, 2)], 1, _hangs_of_seed_6, (1.5, 0.5))]
    assert sum(outcome.programs for outcome in outcomes) == 2
    found = [failure for outcome in outcomes for failure in outcome.failures]
    assert [(f.seed, f.setting, f.kind.split()[0]) for f in found] == [(6, "calls", "hang")]


def test_shrinking_keeps_what_fails() -> None:
    """What is left of a program that is to hold `exp` is one operator."""
    smaller = shrink.shrink(_binary("add"), lambda text: "graph.exp" in text)
    assert [line.split('"')[1] for line in smaller.splitlines() if '"graph.' in line] == [
        "graph.exp"
    ]
    assert public_name(smaller) == "f"


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_noise_moves_inexact_results_by_a_unit(element: str) -> None:
    numbers = np.concatenate([np.linspace(-3, 3, 101), [0.0, 1.0, np.inf, np.nan]])
    plain = exact(round_to(numbers, element), element)
    with noisy(np.random.default_rng(0)):
        moved = exact(rounded(numbers, element), element)
    kept = plain == numbers
    np.testing.assert_array_equal(moved[kept], plain[kept])
    units = np.spacing(np.abs(plain[~kept]).astype(np.float32)) * {"f32": 1, "f16": 2**13}.get(
        element, 2**16
    )
    inside = np.isfinite(plain[~kept])
    distance = np.abs(moved[~kept][inside] - plain[~kept][inside])
    assert (distance <= units[inside]).all()
    assert (distance > 0).sum() > distance.size // 2
    assert (rounded(numbers, element) == round_to(numbers, element)).sum() >= 104


def test_noise_moves_what_is_accumulated() -> None:
    """What cancels in one order does not in another."""
    total, count = np.array([0.0, 1.1, np.inf, np.nan, 7e300] * 20), np.float64(16)
    size = lambda: np.abs(total)  # noqa: E731
    exact_ones = np.ones(4)
    with noisy(np.random.default_rng(0)):
        moved = accumulated(total, "f64", count, size)
        of_f32 = accumulated(total, "f32", count, size)
        np.testing.assert_array_equal(
            accumulated(exact_ones, "f32", count, lambda: exact_ones), exact_ones
        )
    np.testing.assert_allclose(moved, total, rtol=2.0**-50)
    np.testing.assert_allclose(of_f32, total, rtol=2.0**-21)
    assert (moved != total)[1::5].all()
    assert (of_f32 != total)[1::5].all()
    np.testing.assert_array_equal(accumulated(total, "f64", count, size), total)


def test_recursion_is_noisy_too() -> None:
    with noisy(np.random.default_rng(0)):
        assert on_large_stack(is_noisy)
    assert not on_large_stack(is_noisy)


@pytest.mark.sweep
@pytest.mark.parametrize("batch", range(4))
def test_more_programs(batch: int) -> None:
    outcome = check(Work(GROUP * (1000 + batch), GROUP, compiled=-1))
    assert outcome.failures == []


def test_gradients_are_compared_with_slopes_where_there_are_some() -> None:
    x = np.random.default_rng(0).standard_normal(5)

    def told(loss: Callable[[np.ndarray], float], gradient: np.ndarray) -> str | None:
        return slope_error(lambda a: loss(a[0]), [x], [gradient], np.random.default_rng(1))

    assert told(lambda v: np.sin(v).sum(), np.cos(x)) is None
    assert "the loss has the slope" in (told(lambda v: np.sin(v).sum(), np.sin(x)) or "")
    assert "the loss has the slope" in (told(lambda v: (v**2).sum(), x) or "")
    assert told(lambda v: (v > x).sum(), x) is None  # a step


def test_effects_are_compared() -> None:
    """What is printed, by compiled code too, and calls of functions that are noted."""
    text = """func.func @f(%x: tensor<2xi32>) {
      "graph.print"(%x) {format = "FORMAT {}", operandSegmentSizes = SEGMENTS,
                         resultSegmentSizes = array<i32: NONE>} : (tensor<2xi32>) -> ()
      return
    }""".replace("SEGMENTS", f"array<i32: {', '.join('1' + '0' * 31)}>")
    text = text.replace("NONE", ", ".join("0" * 8))
    one, other = (Program(0, "f", text.replace("FORMAT", word)) for word in ("one", "other"))
    known = meanings([one], sizes=1)
    for setting in (Setting(0), Setting(2, stage=PASSES)):
        assert compare([one], known, setting, {}) == []
        (failure,) = compare([other], known, setting, {})
        assert failure.kind.startswith("effects")


def test_noise_is_not_remembered() -> None:
    """Calls of tensor programs are, but not those that measure how far results move."""
    memory: Memory = {}
    with make_context(), ir.Location.unknown():
        module = parse_module(_binary("add"))
        Pipeline.parse("relax-legalize-ops").run(module)
        call = relax_mlir.interpret(module)["f"]
        given = np.full((3, 4), 0.1, np.float32), np.full((3, 4), 3, np.float32)
        with recalled(memory):
            with noisy(np.random.default_rng(0)):
                call(*given)
            assert not memory
            first, second = call(*given), call(*given)
    assert len(memory) == 3  # tanh, add, exp
    np.testing.assert_array_equal(first, second)


def test_other_passes_are_put_where_they_may_run() -> None:
    """Different seeds have different pipelines, all of which are read."""
    orders = [Setting(2, order=seed).steps for seed in range(40)]
    assert len(set(orders)) > 20
    assert all(Pipeline.parse(steps) for steps in orders)
    assert {"relax-lift-workspace", "relax-capture-static", "relax-fuse-ops-by-pattern"} <= set(
        re.findall("relax-[a-z-]+", " ".join(orders))
    )
