"""What leaves store to: parameters that are inout, and tensors of their own, against NumPy."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, each, graph, leaf, module, whole
from relax_mlir.errors import CompileError


def every_way(built: Any) -> list[Any]:
    compiled = [relax_mlir.compile(built, opt_level=level) for level in LEVELS]
    return [relax_mlir.interpret(built), *compiled]


@leaf(row="inout f32[4]", x="f32", at="i64")
def stored(instance: Instance, row: Tensor, x: Scalar, at: Scalar) -> Tensor:
    """Adds to an element; to none if the index is outside."""
    return row.set(at, row[at] + x)


@leaf(x="f32")
def spread(instance: Instance, x: Scalar) -> Tensor:
    return instance.filled(0.5, 4).set(1, x)


@graph(rows="f32[n, 4]", x="f32[n]", at="i64[n]")
def of_arguments(rows: Port, x: Port, at: Port) -> Any:
    return stored.over("n")(each(rows), each(x), each(at))


@graph(x="f32[n]", at="i64[n]")
def of_its_own(x: Port, at: Port) -> Any:
    first = spread.over("n")(each(x))
    once = stored.over("n")(each(first), each(x), each(at))
    return stored.over("n")(each(once), each(x), each(at))


@graph(x="f32[n]", at="i64[n]")
def of_needed_ones(x: Port, at: Port) -> Any:
    first = spread.over("n")(each(x))
    return first, stored.over("n")(each(first), each(x), each(at))


def updated(rows: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    result, (inside,) = rows.copy(), np.nonzero((at >= 0) & (at < 4))
    result[inside, at[inside]] += x[inside]
    return result


def test_h12_stores_change_what_is_inout() -> None:
    """Operands keep their values; indices outside store nothing."""
    built, draw = module(of_arguments, of_its_own, of_needed_ones), np.random.default_rng()
    for way in every_way(built):
        for n in (0, 1, 2, 17, 1025):
            rows = draw.standard_normal((n, 4)).astype(np.float32)
            x = draw.standard_normal(n).astype(np.float32)
            at = draw.choice([0, 1, 2, 3, 4, -1, 2**63 - 1, -(2**63)], n)
            before = rows.copy()
            np.testing.assert_array_equal(way["of_arguments"](rows, x, at), updated(rows, x, at))
            np.testing.assert_array_equal(rows, before)
            first = np.full((n, 4), 0.5, np.float32)
            first[:, 1] = x
            once = updated(first, x, at)
            np.testing.assert_array_equal(way["of_its_own"](x, at), updated(once, x, at))
            kept, new = way["of_needed_ones"](x, at)
            np.testing.assert_array_equal(kept, first)
            np.testing.assert_array_equal(new, once)


@pytest.mark.parametrize(
    ("function", "copies"), [(of_arguments, 1), (of_its_own, 0), (of_needed_ones, 1)]
)
def test_h12_only_what_is_needed_later_is_copied(function: Any, copies: int) -> None:
    passes = "relax-lower-dataflow,relax-legalize-ops,relax-lower-calls"
    lowered = module(function, passes=passes)
    assert str(lowered).count('"graph.copy"') == copies


def test_h12_a_store_to_an_argument_that_is_in_is_refused() -> None:
    @leaf(row="f32[4]")
    def stores(at: Instance, row: Tensor) -> Tensor:
        return at.loop(4, row, lambda i, made: made.set(i, 1.0))

    @graph(rows="f32[n, 4]")
    def main(rows: Port) -> Any:
        return stores.over("n")(each(rows))

    with pytest.raises(CompileError, match="stores to parameter 0, which is in"):
        relax_mlir.compile(module(main))


def test_h12_an_operand_that_is_also_read_is_copied() -> None:
    """Each instance adds what its neighbour had before."""

    @leaf(row="inout f32[4]", rows="f32[n, 4]")
    def shifted(at: Instance, row: Tensor, rows: Tensor) -> Tensor:
        return row.set(2, row[2] + rows[at.id() - 1, 2])

    @graph(x="f32[n]")
    def main(x: Port) -> Any:
        rows = spread.over("n")(each(x))
        return shifted.over("n")(each(rows), whole(rows))

    built = module(main)
    x = np.random.default_rng().standard_normal(9).astype(np.float32)
    want = np.full((9, 4), 0.5, np.float32)
    want[:, 1], want[:, 2] = x, 1.0
    for way in every_way(built):
        np.testing.assert_array_equal(way["main"](x), want)


@leaf(x="f32[n, m]")
def histogram_of_row(at: Instance, x: Tensor) -> Tensor:
    """Elements outside of the bins count nowhere."""

    def count(j: Scalar, bins: Tensor) -> Tensor:
        bin_ = x[at.id(), j].astype("i64")
        return bins.set(bin_, bins[bin_] + 1)

    return at.loop(x.extent(1), at.filled(0, 8, element="i64"), count)


@graph(x="f32[n, m]")
def histograms(x: Port) -> Any:
    return histogram_of_row.over("n")(whole(x))


def test_h13_memory_of_a_leaf_is_taken_once_by_each_thread() -> None:
    """In the kernel, the loop over instances takes none."""
    passes = "relax-lower-dataflow,relax-schedule{target=x86-64-v3}"
    built = module(histograms, passes=passes)
    (kernel,) = (op for op in built.body.operations if "tir.scheduled" in op.attributes)
    (threads,) = (op for op in kernel.entry_block.operations if op.operation.name == "scf.parallel")
    inside = list(threads.regions[0].blocks[0].operations)
    assert [op.operation.name for op in inside].count("memref.alloc") == 2  # a mark, and the bins
    (instances,) = (op for op in inside if op.operation.name == "scf.for")
    assert "memref.alloc" not in str(instances)
    assert "memref.store" in str(instances)


def test_h13_a_leaf_has_memory_of_its_own() -> None:
    built, draw = module(histograms), np.random.default_rng()
    for way in every_way(built):
        for n, m in ((0, 3), (1, 0), (3, 17), (5, 100)):
            x = draw.uniform(1, 10, (n, m)).astype(np.float32)
            want = [np.bincount(row.astype(int), minlength=11)[:8] for row in x]
            np.testing.assert_array_equal(way["histograms"](x), np.array(want).reshape(n, 8))
