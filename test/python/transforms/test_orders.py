"""Passes in any order: what a pass needs and does not find is a located error, never a traceback.

Random pipelines run over the modules of the other tests; after each pass the module is interpreted,
and has to compute what it computed before.
"""

import random
import re
from functools import cache
from pathlib import Path

import pytest

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import CompileError
from relax_mlir.interpreter.elements import UnknownElement
from relax_mlir.passes import Pipeline
from relax_mlir.testing.equivalence import Equivalence

TESTS = Path(__file__).parents[2]
PIPELINE = (
    "infer-shapes verify inline-functions name-dims expand-data-dependent fuse-attention "
    "canonicalize-bindings state-assumptions legalize-ops annotate-pattern fuse-ops fuse-tir "
    "pack-weights pack-filters lift-params schedule lower-calls plan-memory to-host"
).split()
OTHERS = (
    "adjust-matmul-order combine-parallel-matmul convert-to-dataflow dead-code-elimination "
    "eliminate-common-subexpr expand-matmul-of-sum fold-batch-norm remove-redundant-reshape "
    "remove-unused-parameters remove-unused-results reorder-permute-dims-after-concat "
    "reorder-take-after-matmul to-non-dataflow topological-sort mixed-precision "
    "sink-permute-dims use-inplace-calls"
).split()
WITH_OPTIONS = (
    "fuse-ops-by-pattern{match='a.sum = _ ^ add; b.two = _ ^ (multiply | exp); a.t = call_tir'}",
    "dispatch-library{when='m >= 3'}",
    "capture-static{symbols=n,m,k}",
    "quantize{scheme=q8_32 min-size=1}",
)
PASSES = [*PIPELINE, *OTHERS, *WITH_OPTIONS, "merge-composite-functions", "lift-workspace"]
LEFT_OUT = re.compile(
    "schedule|quantized|lower_to_llvm|outline|masked|math|convolution|filters|optional_arguments"
)
"""Files whose modules are kernels, take long to schedule, or get other arguments at first."""
VALID = "builtin.module(relax-infer-shapes,relax-verify,relax-inline-functions,relax-name-dims)"
"""What fails at modules that break a rule, or hold any value at all."""
LONGEST = 12000
PER_CASE = 10


@cache
def modules() -> list[tuple[str, str]]:
    """The parts of test files, with where each is from."""
    paths = [*TESTS.glob("Integration/*.mlir"), *TESTS.glob("Transforms/*.mlir")]
    found = []
    for path in sorted(paths):
        if not LEFT_OUT.search(path.name):
            parts = re.split(r"^// -----.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            found += [(f"{path.name} part {i}", part) for i, part in enumerate(parts)]
    return [(name, part) for name, part in found if len(part) < LONGEST]


def order(chance: random.Random) -> list[str]:
    """Some passes at random, or the beginning of the pipeline with a few changes."""
    if chance.random() < 0.4:
        return chance.choices(PASSES, k=chance.randint(1, 6))
    passes = PIPELINE[: chance.randint(1, len(PIPELINE))]
    for _ in range(chance.randint(1, 3)):
        at, other = (chance.randrange(len(passes)) for _ in range(2))
        match chance.randrange(3):
            case 0:
                passes.insert(at, chance.choice(PASSES))
            case 1 if len(passes) > 1:
                passes.pop(at)
            case _:
                passes[at], passes[other] = passes[other], passes[at]
    return passes


def run(text: str, passes: list[str], seed: int) -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        compared = oracle(module, text, seed)
        for name in passes:
            try:
                Pipeline.parse(f"builtin.module(relax-{name})").run(module)
            except CompileError:
                return
            compared = (
                None if name in ("schedule", "mixed-precision") else compared
            )  # round otherwise
            if compared is not None:
                compared.check(name, module)


def oracle(module: ir.Module, text: str, seed: int) -> Equivalence | None:
    """What the module computes, if it is right and its loops come to an end."""
    if "scf.for" in text or "scf.while" in text:
        return None
    if "graph.optional" in text and "graph.argument_tree" in text:
        return None  # its trees get another leaf when optional arguments are lowered
    try:
        Pipeline.parse(VALID).run(parse_module(text))
        return Equivalence(module, seed)
    except (CompileError, ShapeError, UnknownElement):
        return None


def check(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(PER_CASE):
        name, text = chance.choice(modules())
        passes = order(chance)
        try:
            run(text, passes, seed)
        except Exception as error:
            raise AssertionError(f"{name}: {','.join(passes)}") from error


def test_results_that_are_numbers_are_compared():
    """Functions of scalars return Python's numbers, which are wider than some types."""
    text = "func.func @main(%x: f32, %b: i1) -> (f32, i1) { return %x, %b : f32, i1 }"
    run(text, ["sink-permute-dims"], 900018)


@pytest.mark.parametrize("seed", range(8))
def test_any_order(seed):
    check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_any_order_of_many(seed):
    check(seed)
