"""Operators of ONNX Runtime's domain, by their definitions in NumPy."""

import numpy as np
import pytest
from onnx import helper
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import from_onnx

RNG = np.random.default_rng(0)


def imported(op, names, inputs, constants, **attributes):
    """A model of one node."""
    made = node(op, names, "y", **attributes)
    made.domain = "com.microsoft"
    proto = model([made], inputs, ["y"], constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return from_onnx(proto)


@pytest.mark.parametrize("bits", [4, 8])
def test_matrices_of_few_bits(bits):
    k, n, block, blocks = 19, 3, 16, 2
    packed = RNG.integers(0, 256, (n, blocks, block * bits // 8), np.uint8)
    scales = RNG.normal(size=n * blocks).astype(np.float32)
    constants = {"w": packed, "s": scales}
    sizes = {"K": k, "N": n, "bits": bits, "block_size": block}
    main = relax_mlir.compile(imported("MatMulNBits", "x w s", {"x": ["m", k]}, constants, **sizes))
    whole = np.zeros((n, k))
    for row in range(n):
        for i in range(k):
            at, within = divmod(i, block)
            byte = int(packed[row, at, within * bits // 8])
            step = byte if bits == 8 else byte >> 4 * (within % 2) & 15
            whole[row, i] = (step - (1 << (bits - 1))) * float(scales[row * blocks + at])
    for m in (0, 1, 7):
        x = RNG.normal(size=(m, k)).astype(np.float32)
        np.testing.assert_allclose(main["main"](x), x @ whole.T, rtol=1e-4, atol=1e-3)


def test_sums_of_quantised_tensors():
    a, b = RNG.integers(0, 256, (2, 5, 7), np.uint8)
    values = {"s": np.float32(0.5), "t": np.float32(0.25), "u": np.float32(1), "z": np.uint8(131)}
    constants = {"a": a, "b": b, **values}
    main = relax_mlir.compile(imported("QLinearAdd", "a s z b t z u z", {}, constants), opt_level=0)
    steps = (a - 131.0) * 0.5 + (b - 131.0) * 0.25 + 131
    np.testing.assert_array_equal(main["main"](), np.clip(np.round(steps), 0, 255))


@pytest.mark.parametrize("level", [0, 2])
def test_attention_of_heads(level):
    heads, width = 2, 3
    inputs = {name: ["b", length, heads * width] for name, length in zip("qkv", "nmm", strict=True)}
    one = imported("MultiHeadAttention", "q k v", inputs, {}, num_heads=heads)
    main = relax_mlir.compile(one, opt_level=level)["main"]
    for b, n, m in ((1, 1, 1), (2, 3, 5), (1, 7, 2)):
        arrays = [RNG.normal(size=(b, i, heads * width)).astype(np.float32) for i in (n, m, m)]
        q, k, v = (x.astype(np.float64).reshape(b, -1, heads, width) for x in arrays)
        weights = np.exp(np.einsum("bnhd,bmhd->bhnm", q, k) / np.sqrt(width))
        weights /= weights.sum(-1, keepdims=True)
        wanted = np.einsum("bhnm,bmhd->bnhd", weights, v).reshape(b, n, -1)
        np.testing.assert_allclose(main(*arrays), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "names", "attributes", "message"),
    [
        ("MatMulNBits", "x w w - x", {"K": 4, "N": 4, "block_size": 16}, "has groups by index"),
        ("MatMulNBits", "x w w", {"K": 4, "N": 4, "block_size": 16, "bits": 3}, "of 3 bits"),
        ("MatMulNBits", "x w x", {"K": 4, "N": 1, "block_size": 16}, "scales that are computed"),
        ("MultiHeadAttention", "x", {"num_heads": 1}, "packed query"),
        ("MultiHeadAttention", "x x x - w", {"num_heads": 1}, "padding mask"),
        ("QLinearAdd", "w w w w w w w w", {}, "scales that are not of rank 0"),
        ("EmbedLayerNormalization", "x x x x x x x x", {}, "mask of which positions"),
    ],
)
def test_what_is_refused(op, names, attributes, message):
    constants = {"w": np.ones((1, 1, 8), np.uint8)}
    with pytest.raises(ModelError, match=rf"node 0 \({op}\).*{message}"):
        imported(op, names, {"x": [2, 3, 4]}, constants, **attributes)
