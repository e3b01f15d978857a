"""Loops of leaves that end early: at the first round after which nothing changes."""

from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, module, where, whole


@leaf(x="f32[n, m]", bound="f32")
def first_above(at: Instance, x: Tensor, bound: Scalar) -> Scalar:
    """The position of a row's first element above a bound; -1 if there is none."""
    i, none = at.id(), at.id().astype("i64") * 0 - 1

    def look(j: Scalar, position: Scalar) -> Scalar:
        return where(x[i, j] > bound, j.astype("i64"), position)

    return at.loop(x.extent(1), none, look, until=lambda position: position >= 0)


@leaf(x="f32[n, m]")
def products(at: Instance, x: Tensor) -> Scalar:
    """Products of a row up to the one that exceeds 4."""
    i = at.id()
    return at.loop(x.extent(1), 1.0, lambda j, y: y * x[i, j], until=lambda y: y > 4.0)


@graph(x="f32[n, m]", bound="f32[]")
def main(x: Port, bound: Port) -> Any:
    return first_above.over("n")(whole(x), whole(bound)), products.over("n")(whole(x))


@pytest.mark.parametrize("way", [relax_mlir.interpret, relax_mlir.compile])
def test_rounds_end_once_nothing_changes(way: Any) -> None:
    run, draw = way(module(main))["main"], np.random.default_rng()
    for n, m in [(0, 3), (1, 0), (3, 1), (17, 33)]:
        x = draw.uniform(0.5, 2, (n, m)).astype(np.float32)
        above, made = run(x, np.float32(1.9))
        hits = x > np.float32(1.9)
        want = np.where(hits.any(1), hits.argmax(1) if m else 0, -1)
        np.testing.assert_array_equal(above, want)
        for row, got in zip(x, made, strict=True):
            steps = np.cumprod(np.concatenate([[1.0], row.astype(np.float64)]))
            last = np.argmax(steps > 4) if (steps > 4).any() else m
            np.testing.assert_allclose(got, steps[last], rtol=1e-5)


def test_loops_have_an_exit_only_where_a_carried_value_decides() -> None:
    @leaf(x="f32[n, m]")
    def of_index(at: Instance, x: Tensor) -> Scalar:
        i = at.id()
        return at.loop(x.extent(1), 1.0, lambda j, y: where(j < 5, y * x[i, j], y))

    @graph(x="f32[n, m]", bound="f32[]")
    def both(x: Port, bound: Port) -> Any:
        return first_above.over("n")(whole(x), whole(bound)), of_index.over("n")(whole(x))

    passes = "relax-lower-dataflow,relax-legalize-ops,relax-schedule"
    kernels = str(module(both, passes=passes)).split("func.func private @")[1:]
    exits = {kernel.partition("(")[0]: kernel.count("scf.while") for kernel in kernels}
    assert exits == {"first_above_node": 1, "of_index_node": 0}
