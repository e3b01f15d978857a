"""Operators of ONNX Runtime's domain, by their definitions in NumPy."""

import numpy as np
import onnx
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


def grouped(query, key, value, caches, lengths, tables, heads, kv_heads, window):
    """Attention with caches, row by row, in float64: the result and the caches."""
    b, n, _ = query.shape
    size = caches[0].shape[3]
    keys, values = (each.astype(np.float64) for each in caches)
    result = np.zeros(query.shape)
    for i in range(b):
        start = max(lengths[i] + 1 - n, 0)
        rows = [x[i].astype(np.float64).reshape(n, -1, size) for x in (query, key, value)]
        if tables:
            for x in rows[:2]:
                cosine, sine = (t[start : start + n, None] for t in tables)
                a, c = np.split(x.copy(), 2, axis=-1)
                x[...] = np.concatenate([cosine * a - sine * c, sine * a + cosine * c], -1)
        for j in range(n):
            keys[i, :, start + j], values[i, :, start + j] = rows[1][j], rows[2][j]
        for j in range(n):
            first = max(start + j + 1 - window, 0) if window > 0 else 0
            for head in range(heads):
                group = head * kv_heads // heads
                seen = slice(first, start + j + 1)
                scores = keys[i, group, seen] @ rows[0][j, head] / np.sqrt(size)
                weights = np.exp(scores - scores.max())
                own = weights / weights.sum() @ values[i, group, seen]
                result[i, j, head * size : (head + 1) * size] = own
    return result, keys, values


@pytest.mark.parametrize(("rotary", "window"), [(0, -1), (1, -1), (1, 3)])
def test_grouped_attention_with_caches(rotary, window):
    heads, kv_heads, size = 4, 2, 8
    inputs = {"q": ["b", "n", heads * size], "k": ["b", "n", kv_heads * size]}
    inputs |= {"v": ["b", "n", kv_heads * size], "s": ["b"], "t": []}
    inputs |= {name: ["b", kv_heads, "past", size] for name in ("pk", "pv")}
    tables = [f(np.outer(np.arange(32), np.arange(1, 5) / 7)) for f in (np.cos, np.sin)]
    tables = [each.astype(np.float32) for each in tables]
    made = node(
        "GroupQueryAttention", "q k v pk pv s t" + " c i" * rotary, "y nk nv", num_heads=heads,
        kv_num_heads=kv_heads, do_rotary=rotary, local_window_size=window,
    )  # fmt: skip
    made.domain = "com.microsoft"
    kinds = dict.fromkeys(("s", "t"), onnx.TensorProto.INT32)
    constants = {"c": tables[0], "i": tables[1]} if rotary else {}
    proto = model([made], inputs, ["y", "nk", "nv"], constants, kinds)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    for b, n, past, total in ((1, 5, 0, 5), (2, 1, 6, 7), (1, 3, 9, 12), (1, 1, 16, 4)):
        q, k, v = (
            RNG.normal(size=(b, n, count * size)).astype(np.float32)
            for count in (heads, kv_heads, kv_heads)
        )
        caches = RNG.normal(size=(2, b, kv_heads, max(past, total), size)).astype(np.float32)
        caches[:, :, :, past:] = 0
        lengths = np.full(b, total - 1, np.int32)
        old = [each[:, :, :past] for each in caches]
        actual = main(q, k, v, lengths, np.array(total, np.int32), *old)
        wanted = grouped(
            q, k, v, caches, lengths, tables if rotary else None, heads, kv_heads, window
        )
        for one, other in zip(actual, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_recurrent_layers_of_8_bits():
    """The cell of quantised weights is near that of the floats that they stand for."""
    n, batch, features, hidden = 3, 2, 5, 4
    w = RNG.integers(0, 256, (1, features, 4 * hidden), np.uint8)
    r = RNG.integers(0, 256, (1, hidden, 4 * hidden), np.uint8)
    constants = {"w": w, "r": r, "b": RNG.normal(size=(1, 8 * hidden)).astype(np.float32)}
    constants |= {"s": np.full(1, 0.01, np.float32), "z": np.full(1, 128, np.uint8)}
    names = "x w r b - - - - s z s z"
    main = relax_mlir.compile(
        imported(
            "DynamicQuantizeLSTM", names, {"x": ["n", "b", features]}, constants, hidden_size=hidden
        ),
        opt_level=0,
    )["main"]
    x = RNG.normal(size=(n, batch, features)).astype(np.float32)
    own_w, own_r = ((each[0] - 128.0) * 0.01 for each in (w, r))
    bias = constants["b"][0, : 4 * hidden] + constants["b"][0, 4 * hidden :]
    h, c, rows = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
    for step in x:
        i, o, f, g = np.split(step @ own_w + h @ own_r + bias, 4, axis=1)
        i, o, f = (1 / (1 + np.exp(-each)) for each in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        rows.append(h)
    np.testing.assert_allclose(main(x)[:, 0], rows, atol=0.05)
