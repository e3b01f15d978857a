"""Tensors that an instance has for itself: workgroup memory of a device, if that is enough."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import vulkan

import relax_mlir
from relax_mlir.compiler import compile_to_file
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, module, whole

PASSES = "relax-lower-dataflow,relax-schedule{target=gpu},relax-outline-launches"
SIZES = ((8, "i32"), (40, "i64"), (1500, "i32"), (7, "i16"))


@cache
def counting(bins: int, element: str) -> Any:
    """Each instance has counts of its own, from which it returns the greatest two."""

    @leaf(x="i32[n, m]")
    def greatest(at: Instance, x: Tensor) -> Any:
        def count(j: Scalar, counts: Tensor) -> Tensor:
            bin_ = x[at.id(), j]
            return counts.set(bin_, counts[bin_] + 1)

        counts = at.loop(x.extent(1), at.filled(0, bins, element=element), count)
        first, last = counts[0].astype("i32"), counts[bins - 1].astype("i32")
        return first, last

    @graph(x="i32[n, m]")
    def main(x: Port) -> Any:
        return greatest.over("n")(whole(x))

    return main


@pytest.mark.parametrize(
    ("bins", "element", "threads"), [(*s, t) for s, t in zip(SIZES, (256, 128))]
)
def test_h13_gpu_scratch_is_workgroup_memory(bins: int, element: str, threads: int) -> None:
    """The threads of a group are as many as have room: 48 KiB for 40 counts of 8 bytes are 153."""
    text = str(module(counting(bins, element), passes=PASSES))
    assert f"memref<{bins * threads}x{element}, #gpu.address_space<workgroup>>" in text
    assert f"known_block_size = array<i32: {threads}, 1, 1>" in text
    assert "memref.alloc" not in text


@pytest.mark.parametrize(("bins", "element"), SIZES[2:])
def test_h13_gpu_scratch_that_is_too_large_is_memory_of_the_device(bins: int, element: str) -> None:
    text = str(module(counting(bins, element), passes=PASSES))
    assert "address_space<workgroup>" not in text
    assert "memref.alloc(" in text


@pytest.mark.parametrize("target", ["gpu", "vulkan"])
@pytest.mark.parametrize(("bins", "element"), SIZES[:3])
def test_h13_gpu_results(target: str, bins: int, element: str) -> None:
    """The interpreter of threads fails where one reads what another one writes."""
    if target == "vulkan":
        vulkan.require()
    compiled = relax_mlir.compile(module(counting(bins, element)), target)
    for n, m in ((0, 3), (1, 0), (3, 5), (33, 2)):
        x = np.random.default_rng().choice([-1, 0, 1, bins - 1, bins], (n, m)).astype(np.int32)
        for got, bin_ in zip(compiled["main"](x), (0, bins - 1), strict=True):
            np.testing.assert_array_equal(got, (x == bin_).sum(1))


@pytest.mark.parametrize("target", ["cuda:sm_90a", "webgpu"])
def test_h13_gpu_code_of_other_devices(target: str) -> None:
    """Their printers have workgroup memory; no driver is needed."""
    code = compile_to_file(module(counting(8, "i32")), target).read_bytes()
    wanted = rb"\.shared .*8192" if target.startswith("cuda") else rb"var<workgroup>.*2048"
    assert re.search(wanted, code)
