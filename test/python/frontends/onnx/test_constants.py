"""Constants of models, compiled."""

import numpy as np
import pytest
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

KINDS = ("u1", "u2", "u4", "u8", "i1", "i8", "f2", "f8", "?")


@pytest.mark.parametrize("count", [0, 1, 3, 17])
def test_constants_of_all_types(count):
    values = {f"c_{k}": np.arange(250, 250 + count).astype(np.int64).astype(k) for k in KINDS}
    nodes = [node("Concat", f"{name} {name}", f"y{name}", axis=0) for name in values]
    outputs = [f"y{name}" for name in values]
    main = relax_mlir.compile(from_onnx(model(nodes, {}, outputs, values)), opt_level=0)["main"]
    for got, wanted in zip(main(), values.values(), strict=True):
        np.testing.assert_array_equal(got, np.concatenate([wanted, wanted]), strict=True)
