"""Conversions of f16 on WebAssembly, which has no instructions for them: all values."""

import numpy as np
import pytest
from cpu_modules import operator, tensor

import relax_mlir

HALVES = np.arange(1 << 16).astype(np.uint16).view(np.float16)


@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_every_value(wide: str) -> None:
    """As vectors, and as the elements that are left of one."""
    text = operator("main", "astype", [tensor("f16", "n")], tensor(wide, "n"), f"dtype = {wide}")
    function = relax_mlir.compile(text, "wasm32")["main"]
    for count in (len(HALVES), len(HALVES) - 1, 3):
        for x in (HALVES[:count], HALVES[-count:]):
            np.testing.assert_array_equal(function(x), x.astype(wide.replace("f", "float")))
    negative = function(np.array([-0.0], np.float16))
    assert np.signbit(negative).all()
