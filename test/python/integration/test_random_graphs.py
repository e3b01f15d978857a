"""Random graphs give what NumPy gives, at every level of optimisation and every size.

Kernels for other machines are interpreted: they give what the graphs mean, and leave no memory.
"""

import numpy as np
import pytest
from random_graphs import RandomGraph

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.testing.calls import Calls

pytestmark = pytest.mark.usefixtures("llvm_turns")

SIZES = ((0, 3), (1, 0), (2, 1), (7, 5), (33, 16))
LEVELS = (0, 2)


def check(graph: RandomGraph, tolerance: float) -> None:
    """Compiles a graph at each level and compares with NumPy at each size."""
    compiled = [relax_mlir.compile(graph.text, opt_level=level)["main"] for level in LEVELS]
    for n, m in SIZES:
        arrays = graph.arrays(n, m)
        want = graph.reference(arrays)
        for main in compiled:
            got = main(*arrays)
            got = got if isinstance(got, tuple) else (got,)
            for value, expected in zip(got, want, strict=True):
                assert value.shape == expected.shape
                np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("seed", range(12))
def test_floats(seed: int) -> None:
    check(RandomGraph(seed, "f32", 20), 2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_doubles(seed: int) -> None:
    check(RandomGraph(seed, "f64", 20), 1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_integers_are_exact(seed: int) -> None:
    check(RandomGraph(seed, "i32", 20), 0)


TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver5", "aarch64")
SCHEDULE = """relax-infer-shapes,relax-canonicalize-bindings,relax-state-assumptions,
relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,symbol-dce,relax-schedule"""


@pytest.mark.parametrize("seed", range(100, 115))
def test_kernels_of_other_machines(seed: int) -> None:
    text = RandomGraph(seed, ("f32", "i32", "f64")[seed % 3], 12).text
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        calls = Calls(relax_mlir.interpret(module)["main"], seed)
        target = TARGETS[seed % len(TARGETS)]
        Pipeline.parse(f"{SCHEDULE}{{target={target}}}").run(module)
        assert len(calls) > 0
        assert calls.difference(relax_mlir.interpret(module)["main"]) is None
