"""Poolings whose padding depends on dims."""

import numpy as np
import onnx
import pytest
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "i1"])
def test_maxima_are_not_of_padding(dtype):
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [node("MaxPool", "x", "y", kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER")]
    proto = model(nodes, {"x": [1, 1, "n"]}, ["y"], kinds={"x": kind}, opset=12)
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    for n in (1, 2, 5, 8):
        x = np.arange(n).astype(dtype)
        x = x if dtype == "u1" else -x - 1
        count = -(-n // 2)
        before = max((count - 1) * 2 + 3 - n, 0) // 2
        starts = (2 * i - before for i in range(count))
        wanted = [x[max(start, 0) : start + 3].max() for start in starts]
        np.testing.assert_array_equal(main(x[None, None]), [[wanted]])
