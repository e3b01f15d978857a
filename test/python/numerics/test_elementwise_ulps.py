"""Element-wise operators of floats over the whole range of their types, against exact values.

    pytest test/python/numerics                some numbers, on this machine
    pytest test/python/numerics -m sweep       a hundred times as many, all levels and targets

The seed of a sweep is that of its call: `RELAX_SEED=5 pytest ...`. All of it is printed with `-rP`.
"""

import os
from collections.abc import Iterator
from functools import lru_cache

import exact
import numpy as np
import pytest
from operators import (
    BINARY,
    COMPARISONS,
    NOT_FLOATS,
    PREDICATES,
    UNARY,
    Operator,
    compiled,
    declared,
    name_of,
)
from ulps import FORMATS, errors, numbers, pairs

import relax_mlir
from relax_mlir.target import Target, lacking

TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64")
# Results of half precision are rounded from singles.
HALF_BOUND = 0.501
SOME, MANY = 300, 30_000
SLOW = {"nn_gelu_tanh", "logaddexp", "floor_divide"}
"""Operators whose exact values take Python's numbers: they get fewer points."""

pytestmark = [
    pytest.mark.skipif(not exact.is_wide(), reason="long doubles are doubles here"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
executable = lru_cache(maxsize=1)(compiled)


def _generator() -> np.random.Generator:
    return np.random.default_rng(int(os.environ.get("RELAX_SEED", "0")))


def _samples(op: type, dtype: str, count: int) -> tuple[np.ndarray, ...]:
    kind = FORMATS[dtype]
    few = count // 10 if name_of(op) in SLOW else count
    if op in BINARY or op in COMPARISONS:
        return pairs(kind, few, _generator())
    x = numbers(kind, few, _generator())
    return (x[:: 8 if dtype == "f64" else 1],) if name_of(op) in SLOW else (x,)


def _failures(
    module: relax_mlir.Executable, dtype: str, count: int, ops: dict[type, Operator]
) -> Iterator[str]:
    for op, operator in ops.items():
        operands = _samples(op, dtype, count)
        got = module[f"{name_of(op)}_op"](*operands)
        want = operator.exact(*(x.astype(exact.Wide) for x in operands))
        error = errors(got, want, FORMATS[dtype])
        bound = operator.bound if dtype in ("f32", "f64") else min(operator.bound, HALF_BOUND)
        at = int(np.argmax(error))
        operand = ", ".join(str(x[at]) for x in operands)
        line = f"{name_of(op)}({operand}) = {got[at]} for {want[at]}: {error[at]:.3f} ulp"
        print(f"{dtype} {line}")
        # The references have errors of their own, far below one hundredth.
        if error[at] > bound + 0.01:
            yield f"{line}, {np.sum(error > bound + 0.01)} of {error.size} beyond {bound}"


def _check(module: relax_mlir.Executable, dtype: str, count: int) -> None:
    failures = list(_failures(module, dtype, count, {**UNARY, **BINARY}))
    assert not failures, "\n".join(failures)
    for op, answer in (*PREDICATES.items(), *COMPARISONS.items()):
        operands = _samples(op, dtype, count)
        np.testing.assert_array_equal(module[f"{name_of(op)}_op"](*operands), answer(*operands))


@pytest.mark.parametrize("dtype", FORMATS)
def test_some_numbers(dtype: str) -> None:
    _check(executable(dtype), dtype, SOME)


@pytest.mark.parametrize("dtype", FORMATS)
def test_elements_are_computed_alone(dtype: str) -> None:
    """The same bits at every position of a vector or its rest, on any number of threads."""
    module, kind = executable(dtype), FORMATS[dtype]
    x, y = (operand[::7] for operand in pairs(kind, SOME, _generator()))
    for op in (*UNARY, *BINARY):
        function = module[f"{name_of(op)}_op"]
        operands = (x, y) if op in BINARY else (x,)
        whole = function(*operands)
        for start, stop in ((0, 1), (1, 4), (3, 20), (5, 38), (9, 76), (40, 171)):
            part = function(*(operand[start:stop].copy() for operand in operands))
            np.testing.assert_array_equal(_bits(part, kind), _bits(whole[start:stop], kind))
        long = (np.tile(operand, 40) for operand in operands)
        shared = function(*long, threads=2)
        np.testing.assert_array_equal(_bits(shared, kind), _bits(np.tile(whole, 40), kind))


def _bits(x: np.ndarray, kind) -> np.ndarray:
    """The bits of numbers, one NaN like another."""
    bits = x.view(kind.integer)
    return np.where(np.isnan(x), kind.integer.type(0), bits)


def test_every_operator_is_here() -> None:
    covered = {*UNARY, *BINARY, *PREDICATES, *COMPARISONS, *NOT_FLOATS}
    assert set(declared()) == covered


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("opt_level", range(4))
def test_sweep(dtype: str, opt_level: int) -> None:
    _check(executable(dtype, opt_level), dtype, MANY)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("target", TARGETS)
def test_sweep_targets(dtype: str, target: str) -> None:
    parsed, native = Target.parse(target), Target.parse("native")
    if parsed.host.arch != native.host.arch or lacking(parsed.host.needs):
        pytest.skip("this machine does not run the target's code")
    _check(executable(dtype, 2, target), dtype, MANY)
