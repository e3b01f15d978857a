"""Recipes of layers for random models: windows, normalization, recurrence, quantization."""

from typing import Any

import numpy as np
from model_maker import Maker, recipe

Added = list[str] | None
MICROSOFT = "com.microsoft"


def _windows(m: Maker, dims: tuple[int, ...], pools: str = "") -> dict[str, Any]:
    """Random attributes of windows on spatial dims."""
    count = len(dims)
    size = [m.rng.randint(1, 3) for _ in dims]
    attributes: dict[str, Any] = {"kernel_shape": size}
    attributes |= m.maybe(strides=[m.rng.randint(1, 3) for _ in dims])
    m.grows = True
    if not pools or m.opset > 18 or (pools == "MaxPool" and m.opset > 9):
        attributes |= m.maybe(dilations=[m.rng.randint(1, 2) for _ in dims])
    if m.rng.random() < 0.5:
        most = [each - 1 for each in size] if pools else [2] * count
        attributes["pads"] = [m.rng.randint(0, each) for each in most * 2]
    elif m.rng.random() < 0.6:
        attributes["auto_pad"] = m.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if pools:
            attributes.pop("dilations", None)  # which the runtime leaves out of padding
        if attributes["auto_pad"] != "VALID" and "strides" in attributes:
            pairs = zip(attributes["strides"], size, strict=True)
            attributes["strides"] = [min(pair) for pair in pairs]  # else the runtime's pads are < 0
    windows = (k * d for k, d in zip(size, attributes.get("dilations", [1] * count), strict=True))
    if any(most > extent for most, extent in zip(windows, dims, strict=True)):
        raise ValueError("a window larger than an image")
    return attributes


@recipe("Conv")
def conv(m: Maker, op: str) -> Added:
    rank, group = m.rng.randint(1, 3), m.rng.choice([1, 1, 2, 3])
    spatial = [m.rng.randint(1, 9) for _ in range(rank)]
    width, out = m.rng.randint(1, 3), m.rng.randint(1, 3)
    x = m.new([m.extent(), width * group, *spatial], m.rng.choice(["f4", "f4", "f8"]))
    attributes = _windows(m, tuple(spatial))
    dtype = m.values[x].dtype
    names = [x, m.weight([out * group, width, *attributes["kernel_shape"]], dtype)]
    if m.rng.random() < 0.5:
        names.append(m.weight([out * group], dtype))
    return m.node(op, names, group=group, **attributes)


@recipe("ConvTranspose")
def conv_transpose(m: Maker, op: str) -> Added:
    rank, group = m.rng.randint(1, 2), m.rng.choice([1, 1, 2])
    spatial = [m.rng.randint(1, 6) for _ in range(rank)]
    width, out = m.rng.randint(1, 3), m.rng.randint(1, 3)
    x = m.new([m.extent(), width * group, *spatial])
    attributes = _windows(m, tuple(spatial))
    if "strides" in attributes and m.rng.random() < 0.4:
        attributes["output_padding"] = [m.rng.randint(0, s - 1) for s in attributes["strides"]]
    names = [x, m.weight([width * group, out, *attributes["kernel_shape"]])]
    if m.rng.random() < 0.5:
        names.append(m.weight([out * group]))
    return m.node(op, names, group=group, **attributes)


@recipe("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def pool(m: Maker, op: str) -> Added:
    spatial = [m.rng.randint(1, 9) for _ in range(m.rng.randint(1, 3))]
    kinds = ["f4", "f4", "i1", "u1"] if op == "MaxPool" and m.opset > 11 else ["f4"]
    x = m.new([m.extent(), m.extent(), *spatial], m.rng.choice(kinds))
    if op.startswith("Global"):
        return m.node(op, [x], **({"p": 2} if op == "GlobalLpPool" else {}))
    attributes = _windows(m, tuple(spatial), op)
    if m.opset > (17 if op == "LpPool" else 10):
        attributes |= m.maybe(ceil_mode=1)
    if op == "AveragePool":
        attributes |= m.maybe(count_include_pad=1)
    if op == "LpPool":
        attributes |= m.maybe(p=m.rng.randint(1, 3))
    outputs = 1
    if op == "MaxPool":
        outputs = m.rng.choice([1, 1, 2])
        attributes |= m.maybe(storage_order=1) if outputs == 2 else {}
    return m.node(op, [x], outputs, **attributes)


@recipe("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization")
@recipe("LRN", "LpNormalization", "MeanVarianceNormalization")
def normalization(m: Maker, op: str) -> Added:
    x = m.any((4, 4) if op in ("LRN", "MeanVarianceNormalization") else (2, 4))
    dims = m.dims(x)
    if op == "LRN":
        return m.node(op, [x], size=m.rng.randint(1, 4), **m.maybe(alpha=0.1, beta=0.5, bias=2.0))
    if op == "LpNormalization":
        return m.node(op, [x], **m.maybe(axis=m.axis(x), p=m.rng.randint(1, 2)))
    if op == "MeanVarianceNormalization":
        if dims[0] * dims[2] * dims[3] < 2 or m.values[x].std((0, 2, 3)).min(initial=1) < 0.1:
            return None  # the runtime's variance of equal elements is below 0
        return m.node(op, [x])
    epsilon = m.maybe(epsilon=0.1)
    if op == "LayerNormalization":
        axis = m.axis(x)
        own = dims[axis if m.rng.random() < 0.7 else m.axis(x) :]  # which broadcast
        names = [x, m.weight(own), *([m.new(own)] if m.rng.random() < 0.5 else [])]
        return m.node(op, names, axis=axis, **epsilon)
    vectors = [m.new([dims[1]]) for _ in range(4)]
    if op == "BatchNormalization":
        m.values[vectors[3]][:] = np.abs(m.values[vectors[3]]) + 1
        return m.node(op, [x, *vectors], **epsilon)
    if op == "InstanceNormalization":
        return m.node(op, [x, *vectors[:2]], **epsilon)
    return m.node(op, [x, *vectors[:2]], num_groups=dims[1] or 1, **epsilon)


@recipe("Resize")
def resize(m: Maker, op: str) -> Added:
    x = m.new([m.rng.randint(1, 2), m.rng.randint(1, 2), m.rng.randint(1, 6), m.rng.randint(1, 6)])
    if m.opset < 11:
        return None
    coordinates = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attributes: dict[str, Any] = {"mode": m.rng.choice(["nearest", "linear", "cubic"])}
    attributes |= m.maybe(coordinate_transformation_mode=m.rng.choice(coordinates))
    if attributes["mode"] == "nearest":
        rounding = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
        attributes |= m.maybe(nearest_mode=m.rng.choice(rounding))
    if attributes["mode"] == "cubic":
        attributes |= m.maybe(exclude_outside=1, cubic_coeff_a=-0.5)
    empty = m.constant(np.zeros(0, np.float32)) if m.opset < 13 else ""
    if m.rng.random() < 0.5:
        scales = [1, 1, *(m.rng.choice([0.375, 0.5, 0.75, 1, 1.5, 2, 2.25, 3]) for _ in range(2))]
        return m.node(op, [x, empty, m.constant(scales, np.float32)], **attributes)
    sizes = [*m.dims(x)[:2], m.rng.randint(1, 9), m.rng.randint(1, 9)]
    return m.node(op, [x, empty, empty, m.constant(sizes, np.int64)], **attributes)


@recipe("GridSample")
def grid_sample(m: Maker, op: str) -> Added:
    n = m.rng.randint(1, 2)
    x = m.new([n, m.rng.randint(1, 3), m.rng.randint(1, 6), m.rng.randint(1, 6)])
    grid = m.input(m.array([n, m.extent(), m.extent(), 2]) / np.float32(7) + np.float32(0.013))
    mode = m.rng.choice(
        ["bilinear", "nearest", "bicubic"] if m.opset < 20 else ["linear", "nearest", "cubic"]
    )
    padding = m.rng.choice(["zeros", "border", "reflection"])
    return m.node(op, [x, grid], mode=mode, padding_mode=padding, **m.maybe(align_corners=1))


@recipe("RNN", "GRU", "LSTM")
def recurrent(m: Maker, op: str) -> Added:
    t, b, width, hidden = (
        m.rng.randint(1, 5),
        m.rng.randint(1, 3),
        m.rng.randint(1, 3),
        m.rng.randint(1, 4),
    )
    direction = m.rng.choice(["forward", "reverse", "bidirectional"])
    d, gates = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    names = [
        m.new([t, b, width]),
        m.new([d, gates * hidden, width]),
        m.new([d, gates * hidden, hidden]),
    ]
    names.append(m.weight([d, 2 * gates * hidden]) if m.rng.random() < 0.6 else "")
    lengths = np.array([m.rng.randint(1, t) for _ in range(b)], np.int32)
    names.append(m.input(lengths) if m.rng.random() < 0.3 else "")
    names.append(m.weight([d, b, hidden]) if m.rng.random() < 0.5 else "")
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": hidden} | m.maybe(clip=1.5)
    if op == "GRU":
        attributes |= m.maybe(linear_before_reset=1)
    if op == "LSTM":
        names.append(m.weight([d, b, hidden]) if m.rng.random() < 0.5 else "")
        names.append(m.weight([d, 3 * hidden]) if m.rng.random() < 0.3 else "")
        attributes |= m.maybe(input_forget=1) if m.rng.random() < 0.3 else {}
    return m.node(op, names, 3 if op == "LSTM" else 2, **attributes)


@recipe("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
def quantize(m: Maker, op: str) -> Added:
    kind = m.rng.choice(["i1", "u1"])
    x = m.any((0, 3), "f4" if op != "DequantizeLinear" else kind)
    if op == "DynamicQuantizeLinear":
        return m.node(op, [x], 3)
    more, dims = {}, []
    if m.rank(x) and m.opset > 12 and m.rng.random() < 0.5:
        more["axis"] = m.axis(x)
        dims = [m.dims(x)[more["axis"]]]
    scale = m.constant(np.abs(m.array(dims)) + 0.25, np.float32)
    dtype = m.values[x].dtype if op == "DequantizeLinear" else kind
    return m.node(op, [x, scale, m.new(dims, dtype)], **more)


@recipe("MatMulInteger", "ConvInteger", "QLinearMatMul")
def integers(m: Maker, op: str) -> Added:
    kinds = m.rng.choice(["u1", "i1"]), m.rng.choice(["u1", "i1"])
    if op == "ConvInteger":
        x, w = m.new([1, 2, 5, 6], "u1"), m.weight([3, 2, 2, 3], "u1")
        return m.node(op, [x, w, *([m.new([], "u1")] if m.rng.random() < 0.6 else [])])
    rows, depth, columns = m.extent(), m.rng.randint(1, 5), m.extent()
    a, b = m.new([rows, depth], kinds[0]), m.new([depth, columns], kinds[1])
    if op == "MatMulInteger":
        return m.node(op, [a, b, m.new([], kinds[0]), m.new([], kinds[1])])
    scale = [m.constant(each, np.float32) for each in (0.5, 0.25, 1.5)]
    zeros = [m.new([], kinds[0]), m.new([], kinds[1]), m.new([], kinds[0])]
    names = [a, scale[0], zeros[0], b, scale[1], zeros[1], scale[2], zeros[2]]
    return m.node(op, names)


@recipe("BiasGelu", "QuickGelu", "QLinearAdd", "QLinearMul")
def fused(m: Maker, op: str) -> Added:
    if op == "QuickGelu":
        return m.node(op, [m.any((1, 3))], domain=MICROSOFT, **m.maybe(alpha=0.5))
    if op == "BiasGelu":
        x = m.any((1, 3))
        return m.node(op, [x, m.new(m.dims(x)[-1:])], domain=MICROSOFT)
    kind = m.rng.choice(["u1", "i1"])
    a = m.new(m.shape(1, 3), kind)
    scales = [m.constant(each, np.float32) for each in (0.75, 0.25, 0.5)]
    zeros = [m.new([], kind) for _ in range(3)]
    names = [a, scales[0], zeros[0], m.like(a), scales[1], zeros[1], scales[2], zeros[2]]
    return m.node(op, names, domain=MICROSOFT)


@recipe("MatMulNBits")
def few_bits(m: Maker, op: str) -> Added:
    x = m.any((2, 3))
    depth, columns, block = m.dims(x)[-1], m.rng.randint(1, 9), 16
    bits, blocks = m.rng.choice([4, 8]), -(-depth // block)
    if not depth:
        return None
    m.fixed.add(x)
    random = np.random.default_rng(m.rng.randint(0, 1 << 30))
    packed = random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8)
    names = [x, m.constant(packed), m.constant(m.array([columns * blocks]) / 8, np.float32)]
    if m.rng.random() < 0.5:
        zeros = random.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8)
        names.append(m.constant(zeros.reshape(-1)))
    sizes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    return m.node(op, names, domain=MICROSOFT, **sizes)


@recipe("EmbedLayerNormalization")
def embeddings(m: Maker, op: str) -> Added:
    b, n, width = m.rng.randint(1, 3), m.rng.randint(1, 5), m.rng.randint(2, 9)
    ids = m.input(np.array([m.rng.randrange(7) for _ in range(b * n)], np.int32).reshape(b, n))
    segments = ids if m.rng.random() < 0.5 else ""
    tables = [m.weight([7, width]), m.weight([8, width])]
    tables += [m.weight([7, width]) if segments else "", m.weight([width]), m.weight([width])]
    return m.node(op, [ids, segments, *tables], 2, domain=MICROSOFT, epsilon=0.1)


@recipe("MultiHeadAttention")
def heads(m: Maker, op: str) -> Added:
    b, n, k, count, width = (m.rng.randint(1, 4) for _ in range(5))
    more = m.maybe(scale=0.3, unidirectional=1) if n == k else {}
    shapes = [[b, n, count * width], [b, k, count * width], [b, k, count * width]]
    names = [m.weight(shape) for shape in shapes]
    if m.rng.random() < 0.5:
        names.append(m.weight([3 * count * width]))
    past = []
    if m.rng.random() < 0.4 and not more:
        names += [""] * (6 - len(names))
        past = [m.weight([b, count, 3, width]) for _ in range(2)]
    return m.node(op, [*names, *past], 3 if past else 1, domain=MICROSOFT, num_heads=count, **more)
