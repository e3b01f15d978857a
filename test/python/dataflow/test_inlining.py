"""Internal nodes that are leaves: what is between their nodes is memory of the leaf."""

import random
from typing import Any

import numpy as np

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    internal,
    leaf,
    module,
    where,
    whole,
)

INLINE = "relax-inline-nodes"


@leaf(x="f32[n]")
def loaded(at: Instance, x: Tensor) -> Scalar:
    """An element of a tile with its neighbours: 18 for 16."""
    return x[at.id(level=1) * 16 + at.id() - 1] * 0.5


@leaf(scratch="f32[18]")
def smoothed(at: Instance, scratch: Tensor) -> Scalar:
    i = at.id()
    near = at.loop(3, 0.0, lambda k, t: t + scratch[i + k])
    return where(i < at.size() - 1, near, 0.0)


@leaf(row="f32[4]", scale="f32")
def pair(at: Instance, row: Tensor, scale: Scalar) -> tuple[Scalar, Tensor]:
    """The sum of a row, and its ends, scaled."""
    sum_ = at.loop(4, 0.0, lambda k, t: t + row[k])
    ends = at.filled(0.0, 2).set(0, row[0] * scale).set(1, row[3] * scale)
    return sum_, ends


@leaf(ends="inout f32[4, 2]", sums="f32[4]")
def updated(at: Instance, ends: Tensor, sums: Tensor) -> Tensor:
    return at.loop(4, ends, lambda k, made: made.set((k, 1), made[k, 1] - sums[k]))


@leaf(x="f32[16]")
def rows(at: Instance, x: Tensor) -> Scalar:
    return x[at.id(0) * 4 + at.id(1)]


@internal(x="f32[n]", scale="f32")
def tile(x: Port, scale: Port) -> Any:
    """Siblings pass on a scratchpad: rows of it, all of it, and an update of it."""
    smooth = smoothed.over(16)(whole(loaded.over(18)(whole(x))))
    sums, ends = pair.over(4)(each(rows.over(4, 4)(whole(smooth))), whole(scale))
    return updated.over()(each(ends), whole(sums)), sums, ends


@internal(x="f32[n]", scale="f32")
def around(x: Port, scale: Port) -> Any:
    """A level more: the inner node is run once."""
    return nested.over(2)(whole(x), whole(scale))


@internal(x="f32[n]", scale="f32")
def nested(x: Port, scale: Port) -> Any:
    return total.over()(whole(ids.over(3)(whole(scale))))


@leaf(scale="f32")
def ids(at: Instance, scale: Scalar) -> Scalar:
    index = (at.id(level=2) * at.size(level=1) + at.id(level=1)) * at.size() + at.id()
    return scale + index.astype("f32")


@leaf(x="f32[3]")
def total(at: Instance, x: Tensor) -> Scalar:
    return at.loop(3, 0.0, lambda k, t: t + x[k])


@graph(x="f32[n]", scale="f32[]")
def tiles(x: Port, scale: Port) -> Any:
    return tile.over("(n + 15) floordiv 16")(whole(x), whole(scale))


@graph(x="f32[n]", scale="f32[]")
def levels(x: Port, scale: Port) -> Any:
    return around.over("n")(whole(x), whole(scale))


def tiles_by_numpy(x: np.ndarray, scale: float) -> list[np.ndarray]:
    count = (len(x) + 15) // 16
    at = np.arange(count)[:, None] * 16 + np.arange(18) - 1
    scratch = 0.5 * x.astype(float)[np.clip(at, 0, len(x) - 1)] if len(x) else np.zeros((0, 18))
    smooth = sum(scratch[:, k : k + 16] for k in range(3))
    smooth[:, -1] = 0
    smooth = smooth.reshape(count, 4, 4)
    sums, ends = smooth.sum(-1), smooth[..., ::3] * scale
    return [np.stack([ends[..., 0], ends[..., 1] - sums], -1), sums, ends]


def test_h13_siblings_share_memory_of_their_node() -> None:
    built = module(tiles, levels, passes=INLINE)
    assert str(built).count("graph.node") == 2
    assert "graph.internal_node" not in str(built)
    draw = np.random.default_rng()
    meant = relax_mlir.interpret(built)
    compiled = relax_mlir.compile(built, opt_level=random.choice([0, 2]))
    for n in (0, 1, 15, 16, 17, 33, 1031):
        x, scale = draw.standard_normal(n).astype(np.float32), np.float32(draw.uniform())
        numbered = scale + np.arange(n * 6.0).reshape(n, 2, 3)
        for way in (meant, compiled) if n < 18 else (compiled,):
            for got, want in zip(way["tiles"](x, scale), tiles_by_numpy(x, scale), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(way["levels"](x, scale), numbered.sum(-1), rtol=1e-5)


def test_h13_what_siblings_share_is_taken_once_by_each_thread() -> None:
    """One kernel, whose loop over instances takes no memory."""
    built = module(
        tiles, passes=f"{INLINE},relax-lower-dataflow,relax-schedule{{target=x86-64-v3}}"
    )
    (kernel,) = (op for op in built.body.operations if "tir.scheduled" in op.attributes)
    (threads,) = (op for op in kernel.entry_block.operations if op.operation.name == "scf.parallel")
    (instances,) = (
        op for op in threads.regions[0].blocks[0].operations if op.operation.name == "scf.for"
    )
    assert "memref.alloc" not in str(instances)
    assert "memref<18xf32>" in str(threads)
