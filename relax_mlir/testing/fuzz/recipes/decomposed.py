"""Recipes of decompositions: operators of the standards that several of the dialect's make."""

from typing import Any

from relax_mlir import decompositions
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import EXTENT, FLOATS, NORMAL, Builder, Value, size_of
from .table import recipe


def _note(b: Builder, name: str, built: ir.Value, exact: bool, bound: float) -> Value:
    """Counts a decomposition, and notes its result."""
    b.used.append(name)
    value = b.add(built, exact, bound)
    return b.clamp(value, -8, 8) if value.is_float and bound > 8 else value


def _numeric(b: Builder, rank: int) -> Value:
    element = b.element if b.element != "i1" else "f32"
    return b.take(lambda v: v.rank == rank and v.element == element, [rank], element)


EQUATIONS = ("ij,jk->ik", "ij,kj->ki", "ij,ij->i", "ij,j", "ji->ij", "ij,ik->jk", "...j,...j->...")


@recipe("decomposed", "einsum")
def einsum(b: Builder, op: Any) -> None:
    """Of a tensor and an argument that fits."""
    x = _numeric(b, 2)
    equation = b.random.choice(EQUATIONS)
    first, _, second = equation.partition("->")[0].partition(",")
    dims = dict(zip("ij" if first != "ji" else "ji", x.dims)) | {"k": b.pick_dim()}
    if "..." in equation:
        dims, second = {"i": x.dims[0], "j": x.dims[1]}, "ij"
    operands = [x, *([b.argument([dims[i] for i in second], x.element)] if second else [])]
    built = decompositions.einsum(equation, *(operand.ir for operand in operands))
    bound = x.bound * 5 * size_of(x.dims) if second else x.bound
    _note(b, op, built, not x.is_float or not second, bound)


@recipe("decomposed", "outer")
def outer(b: Builder, op: Any) -> None:
    """Of two vectors."""
    x, y = (_numeric(b, 1) for _ in range(2))
    built = decompositions.outer(x.ir, y.ir)
    _note(b, op, built, x.exact and y.exact, x.bound * y.bound)


@recipe("decomposed", "matmul")
def matmul(b: Builder, op: Any) -> None:
    """Of a matrix and a vector, or the other way round."""
    x = _numeric(b, 2)
    swap = b.chance(0.5)
    y = b.argument([x.dims[0] if swap else x.dims[1]], x.element)
    built = decompositions.matmul(*(v.ir for v in ((y, x) if swap else (x, y))))
    _note(b, op, built, not x.is_float, x.bound * 5 * size_of(x.dims))


@recipe("decomposed", "reshape")
def reshape(b: Builder, op: Any) -> None:
    """To fewer dims, or to others."""
    x = _numeric(b, 2)
    built = decompositions.reshape(x.ir, b.random.choice([[-1], [x.dims[1], -1], [1, -1, 1]]))
    _note(b, op, built, x.exact, x.bound)


@recipe("decomposed", "depth_to_space", "space_to_depth")
def blocks(b: Builder, op: Any) -> None:
    """Of images with channels or sizes that a block divides."""
    block, mode = b.few("blocks", [1, 2, 3], 2), b.random.choice(["DCR", "CRD"])
    batch, rows = b.few("batch", [1, 2, *b.symbols], 1), b.pick_dim()
    channels = const(2 * block * block if op == "depth_to_space" else 3)
    dims = [batch if not isinstance(batch, int) else const(batch), channels]
    dims += [rows * block, const(3 * block)] if op == "space_to_depth" else [rows, const(5)]
    value = b.take(lambda v: v.dims == tuple(dims), [1])
    value = value if value.dims == tuple(dims) else b.argument(dims)
    built = getattr(decompositions, op)(value.ir, block, mode)
    _note(b, op, built, value.exact, value.bound)


@recipe("decomposed", "max_pool", "avg_pool", "lp_pool", "adaptive_avg_pool")
def pool(b: Builder, op: Any) -> None:
    """Of one to three dims, which may be symbols."""
    rank = b.random.randint(1, 3)
    spatial = [const(b.few("image sizes", [5, 7, 8, 9], 2)) for _ in range(rank)]
    if b.symbols and b.chance(0.4):
        spatial[-1] = b.any_symbol() + 3
    dims = [const(b.few("batch", [1, 2], 1)), const(b.few("channels", [1, 2, 3], 1)), *spatial]
    element = b.element if b.element in FLOATS else "f32"
    value = b.argument(dims, element)
    if op == "adaptive_avg_pool":
        sizes = [b.random.choice([1, 2, 3]) for _ in range(rank)]
        _note(b, op, decompositions.adaptive_avg_pool(value.ir, sizes), False, value.bound)
        return
    settings: dict[str, Any] = {
        "strides": [b.few("strides of pools", [1, 2, 3], 2) for _ in range(rank)],
        "padding": [b.random.randint(0, 1) for _ in range(2 * rank)],
        "ceil_mode": b.chance(0.5),
    }
    if op == "avg_pool":
        settings["count_include_pad"] = b.chance(0.5)
    window = [b.few("windows of pools", [2, 3], 2) for _ in range(rank)]
    built = getattr(decompositions, op)(value.ir, window, **settings)
    _note(b, op, built, value.exact and op == "max_pool", value.bound * 27)


@recipe("decomposed", "elu", "hardswish", "leaky_relu", "mish", "softplus", "softsign")
def activation(b: Builder, op: Any) -> None:
    """Of floats, a step in none of them."""
    value = b.floats()
    built = getattr(decompositions, op)(value.ir)
    _note(b, op, built, False, value.bound + 1)


@recipe("decomposed", "batch_norm", "instance_norm", "group_norm")
def norm(b: Builder, op: Any) -> None:
    """Of channels of any spatial dims, with parameters that are arguments."""
    element = b.element if b.element in FLOATS else "f32"
    groups, each = b.few("groups", [1, 2, 3], 1), b.few("channels of groups", [1, 2, 4], 1)
    spatial = b.pick_dims(b.random.randint(1, 2))
    value = b.argument([b.few("batch", [1, 2], 1), groups * each, *spatial], element)
    scale, bias = (b.argument([groups * each], element) for _ in range(2))
    epsilon = b.random.choice([0.25, 0.0625])
    if op == "batch_norm":
        variance = b.clamp(b.argument([groups * each], element), 0.25, 4)
        parameters = scale.ir, bias.ir, bias.ir, variance.ir
        built = decompositions.batch_norm(value.ir, *parameters, epsilon=epsilon)
    elif op == "group_norm":
        built = decompositions.group_norm(value.ir, groups, scale.ir, bias.ir, epsilon=epsilon)
    else:
        built = decompositions.instance_norm(value.ir, scale.ir, bias.ir, epsilon=epsilon)
    _note(b, op, built, False, 100)


@recipe("decomposed", "cross_entropy")
def cross_entropy(b: Builder, op: Any) -> None:
    """Of classes that exist, or are clamped."""
    value = b.floats(lambda v: v.rank in (2, 3), (2, 3))
    target = b.argument([value.dims[0], *value.dims[2:]], "i32")
    reduction = b.random.choice(["none", "mean", "sum"])
    built = decompositions.cross_entropy(value.ir, target.ir, reduction=reduction)
    _note(b, op, built, False, 1e5)


@recipe("decomposed", "conv", "conv_transpose")
def convolution(b: Builder, op: Any) -> None:
    """Of one or three dims, or transposed, with groups."""
    rank = b.random.choice([1, 2, 3] if op == "conv_transpose" else [1, 3])
    groups, each = b.few("groups", [1, 2], 1), b.few("channels of groups", [1, 2, 3], 1)
    spatial = [const(b.few("image sizes", [5, 7, 8, 9], 2)) for _ in range(rank)]
    if b.symbols and b.chance(0.4):
        spatial[-1] = b.any_symbol() + 5
    element = b.element if b.element in FLOATS else "f32"
    value = b.argument([b.few("batch", [1, 2], 1), groups * each, *spatial], element)
    window = [b.few("windows of pools", [2, 3], 2) for _ in range(rank)]
    settings: dict[str, Any] = {
        "strides": [b.few("strides of pools", [1, 2, 3], 2) for _ in range(rank)],
        "padding": [b.random.randint(0, 1) for _ in range(2 * rank)],
        "dilation": [b.random.choice([1, 1, 2]) for _ in range(rank)],
        "groups": groups,
    }
    filters = b.few("filters", [1, 2, 5], 1)
    if op == "conv":
        dims = [filters * groups, each, *window]
    else:
        dims = [groups * each, filters, *window]
    weight = b.argument(dims, element)
    built = getattr(decompositions, op)(value.ir, weight.ir, **settings)
    _note(b, op, built, False, 25 * each * 27)


@recipe("decomposed", "resize")
def resize(b: Builder, op: Any) -> None:
    """Of floats, one axis or two, by sizes or scales."""
    value = b.floats(lambda v: all(d.value is None or d.value for d in v.dims) and v.rank > 1)
    if value.rank < 2:
        value = b.argument(b.pick_dims(2), value.element)
    axes = sorted(b.random.sample(range(value.rank), b.random.randint(1, 2)))
    settings: dict[str, Any] = {
        "mode": b.random.choice(["nearest", "linear", "cubic"]),
        "coordinates": b.random.choice(["half_pixel", "align_corners", "asymmetric"]),
    }
    if b.chance(0.5):
        settings["sizes"] = [b.few("sizes", [1, 3, 5, 8], 2) for _ in axes]
    else:
        settings["scales"] = [b.few("scales", [0.5, 1.25, 2.0], 2) for _ in axes]
    built = decompositions.resize(value.ir, axes, **settings)
    exact = value.exact and settings["mode"] == "nearest"
    _note(b, op, built, exact, 4 * value.bound)


@recipe("decomposed", "grid_sample")
def grid_sample(b: Builder, op: Any) -> None:
    """Of images, between whose elements nothing jumps."""
    element = b.element if b.element in ("f32", "f64") else "f32"
    batch, sizes = b.few("batch", [1, 2], 1), b.few("image sizes", [5, 7, 8, 9], 2)
    value = b.argument([batch, b.few("channels", [1, 2, 3], 1), sizes, 5], element)
    grid = b.clamp(b.argument([batch, b.pick_dim(), 3, 2], element), -1.5, 1.5)
    built = decompositions.grid_sample(
        value.ir, grid.ir, padding=b.random.choice(["border", "zeros"])
    )
    _note(b, op, built, False, value.bound * 4)


@recipe("decomposed", "rnn", "gru", "lstm")
def recurrent(b: Builder, op: Any) -> None:
    """Of few steps or of a symbol's, with small weights: errors do not grow from step to step."""
    element = b.element if b.element in FLOATS else "f32"
    features, hidden = b.few("features", [1, 3, 8], 1), b.few("hidden", [1, 4, 7], 1)
    direction = b.random.choice(["forward", "reverse", "bidirectional"])
    count, rows = 1 + (direction == "bidirectional"), {"rnn": 1, "gru": 3, "lstm": 4}[op] * hidden
    batch = b.few("batch", [1, 2, *b.symbols], 1)
    x = b.argument([b.pick_dim(), batch, features], element)
    weights = [
        b.clamp(b.argument([count, rows, size], element), -0.5, 0.5) for size in (features, hidden)
    ]
    settings: dict[str, Any] = {"direction": direction}
    if b.chance(0.5):
        settings["bias"] = b.argument([count, 2 * rows], element).ir
    if b.chance(0.5):
        settings["sequence_lens"] = b.argument([batch], "i32").ir
    if op == "gru" and b.chance(0.5):
        settings["linear_before_reset"] = True
    built = getattr(decompositions, op)(x.ir, *(w.ir for w in weights), **settings)
    _note(b, op, b.random.choice(built), False, 1)


@recipe("decomposed", "random_uniform", "dropout", "multinomial")
def random(b: Builder, op: Any) -> None:
    """What is drawn is the same at all levels, but for the logarithms that classes are drawn by."""
    state = b.argument([2], "i64")
    if op == "random_uniform":
        element = b.element if b.element in FLOATS else "f32"
        dims = b.pick_dims(b.random.randint(1, 3))
        built, _ = decompositions.random_uniform(state.ir, dims, ir.Type.parse(element))
        _note(b, op, built, True, 1)
    elif op == "dropout":
        value = b.floats()
        built, *_ = decompositions.dropout(state.ir, value.ir, b.random.choice([0.25, 0.5]))
        _note(b, op, built, False, 2 * value.bound)
    else:
        logits = b.argument([b.pick_dim(), b.few("classes", [1, 5, 33], 1)], "f32")
        _, after = decompositions.multinomial(state.ir, logits.ir, 1)
        b.used.append(op)
        b.add(after, True, 2.0**63)


@recipe("decomposed", "fft", "rfft", "stft")
def fourier(b: Builder, op: Any) -> None:
    """Of lines of few elements, or of a symbol's."""
    element = b.element if b.element in FLOATS else "f32"
    length = b.few("signals", [1, 5, 16, 131, 150, *b.symbols], 2)
    batch = b.few("batch", [1, 2, *b.symbols], 1)
    if op == "stft":
        x = b.argument([batch, b.pick_dim() + 16, 1], element)
        window = b.clamp(b.argument([16], element), -1, 1)
        built = decompositions.stft(x.ir, b.few("steps", [1, 3, 8], 1), window.ir)
    elif op == "rfft":
        x = b.argument([batch, length], element)
        built = decompositions.rfft(x.ir)
    else:
        x = b.argument([batch, length, 2], element)
        built = decompositions.fft(x.ir, inverse=b.chance(0.5))
    _note(b, op, built, False, x.bound * EXTENT * 4)


@recipe("decomposed", "solve", "triangular_solve", "cholesky", "det")
def solvers(b: Builder, op: Any) -> None:
    """Of matrices near the identity: pivots are on the diagonal whatever is rounded."""
    element = b.element if b.element in ("f32", "f64") else "f32"
    batch, n = b.few("batch", [1, 2, *b.symbols], 1), b.few("matrices", [1, 2, 5, *b.symbols], 1)
    noise = b.clamp(b.argument([batch, n, n], element), -1 / 256, 1 / 256)
    eye = b.emit(graph.EyeOp, [], True, 1, shape=[n, n], k=0, dtype=ir.Type.parse(element))
    a = b.emit(graph.AddOp, [noise, eye], False, 2)
    if op in ("cholesky", "det"):
        _note(b, op, getattr(decompositions, op)(a.ir), False, 4)
        return
    right = b.argument([batch, n, b.pick_dim()], element)
    _note(b, op, getattr(decompositions, op)(a.ir, right.ir), False, 4 * right.bound)


@recipe("decomposed", "lu_factor", "qr", "eigh", "svd", "matrix_exp")
def factorizations(b: Builder, op: Any) -> None:
    """Of any matrices, where results are unique: products of factors, and eigenvalues."""
    element = b.element if b.element in ("f32", "f64") else "f32"
    batch, n = b.few("batch", [1, 2, *b.symbols], 1), b.few("matrices", [1, 2, 5, *b.symbols], 1)
    m = n if op in ("eigh", "matrix_exp") else b.pick_dim()
    bound = 1 / EXTENT if op == "matrix_exp" else 1
    a = b.clamp(b.argument([batch, n, m], element), -bound, bound)
    if op == "eigh":
        built = decompositions.eigvalsh(a.ir)
    elif op == "matrix_exp":
        built = decompositions.matrix_exp(a.ir)
    elif op == "lu_factor":
        p, lower, upper = decompositions.lu_unpack(*decompositions.lu_factor(a.ir))
        built = decompositions.matmul(p, decompositions.matmul(lower, upper))
    elif op == "qr":
        built = decompositions.matmul(*decompositions.qr(a.ir))
    else:
        built = decompositions.svdvals(a.ir)
    _note(b, op, built, False, 2 * EXTENT)


@recipe("decomposed", "erfc", "bessel_j0", "modified_bessel_k1", "igamma", "logcumsumexp")
def special(b: Builder, op: Any) -> None:
    """Of floats where functions are not steep."""
    value = b.floats()
    if op == "logcumsumexp":
        value = value if value.rank else b.argument(b.pick_dims(2), value.element)
        axis = b.random.randrange(value.rank)
        _note(b, op, decompositions.logcumsumexp(value.ir, axis=axis), False, value.bound + 9)
        return
    low = 0.25 if op in ("modified_bessel_k1", "igamma") else -8
    near = b.clamp(value, low, 8)
    operands = [near.ir, near.ir] if op == "igamma" else [near.ir]
    _note(b, op, getattr(decompositions, op)(*operands), False, 4)


@recipe("decomposed", "unfold", "fold", "max_pool_with_indices")
def patches(b: Builder, op: Any) -> None:
    """Of one or two dims, which may be symbols."""
    rank = b.random.randint(1, 2)
    window = [b.few("windows of pools", [2, 3], 2) for _ in range(rank)]
    settings: dict[str, Any] = {
        "strides": [b.few("strides of pools", [1, 2, 3], 2) for _ in range(rank)],
        "padding": [b.random.randint(0, 1) for _ in range(2 * rank)],
    }
    spatial = [const(b.few("image sizes", [5, 7, 8, 9], 2)) for _ in range(rank)]
    if b.symbols and b.chance(0.4):
        spatial[-1] = b.any_symbol() + 3
    dims = [const(b.few("batch", [1, 2], 1)), const(b.few("channels", [1, 2, 3], 1)), *spatial]
    value = b.argument(dims, b.element if b.element != "i1" else "f32")
    if op == "max_pool_with_indices":
        built, indices = decompositions.max_pool_with_indices(value.ir, window, **settings)
        b.add(indices, True, 2.0**63)
        _note(b, op, built, True, value.bound)
        return
    built = decompositions.unfold(value.ir, window, **settings)
    if op == "fold":
        built = decompositions.fold(built, spatial, window, **settings)
    _note(b, op, built, op == "unfold", value.bound * 9)


@recipe("decomposed", "causal_conv", "linear_attention", "reverse_sequence")
def sequences(b: Builder, op: Any) -> None:
    """Of a batch and a length that may be symbols."""
    element = b.element if b.element in FLOATS else "f32"
    batch, length = b.few("batch", [1, 2, *b.symbols], 1), b.pick_dim()
    if op == "reverse_sequence":
        x = b.argument([length, batch, 3])
        built = decompositions.reverse_sequence(x.ir, b.argument([batch], "i32").ir)
        _note(b, op, built, x.exact, x.bound)
    elif op == "causal_conv":
        channels, k = b.few("channels", [1, 2, 3], 1), b.few("taps", [1, 2, 4], 1)
        x, weight = b.argument([batch, channels, length], element), [channels, 1, k]
        built, _ = decompositions.causal_conv(x.ir, b.argument(weight, element).ir)
        _note(b, op, built, False, x.bound * NORMAL * 4)
    else:
        heads = b.few("heads", [1, 2], 1)
        q, k = (b.clamp(b.argument([batch, length, heads * 4], element), -1, 1) for _ in "qk")
        gate = b.clamp(b.argument([batch, length, heads], element), -2, -0.25)
        built, _ = decompositions.linear_attention(
            q.ir, k.ir, k.ir, heads=heads, kv_heads=heads, decay=gate.ir
        )
        _note(b, op, built, False, 64)


@recipe("decomposed", "encode_float")
def encode_float(b: Builder, op: Any) -> None:
    """Of exact values, and back."""
    kinds = ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f4E2M1FN"]
    value = b.exact(lambda v: v.is_float)
    value = value if value.is_float else b.argument(b.pick_dims(2), "f32")
    kind = b.few("small floats", kinds, 1)
    codes = decompositions.encode_float(value.ir, kind, saturate=b.chance(0.5))
    _note(b, op, codes, True, 128)
    _note(b, op, decompositions.decode_float(codes, kind, ir.F32Type.get()), True, 57344)


@recipe("decomposed", "attention", "rotary_embedding", "tensor_scatter")
def attention(b: Builder, op: Any) -> None:
    """Of heads that share keys, with a mask and all that hides keys."""
    element = b.element if b.element in FLOATS else "f32"
    groups, own = b.few("kv_heads", [1, 2], 1), b.few("groups", [1, 2, 3], 1)
    batch, rows = b.few("batch", [1, 2, *b.symbols], 1), b.pick_dim()
    if op == "tensor_scatter":
        cache = b.argument([batch, rows + 3, groups], element)
        update, start = b.argument([batch, rows, groups], element), b.argument([batch], "i32")
        built = decompositions.tensor_scatter(
            cache.ir, update.ir, start.ir, axis=1, circular=b.chance(0.5)
        )
        _note(b, op, built, True, cache.bound)
        return
    query = b.argument([batch, groups * own, rows, 8], element)
    if op == "rotary_embedding":
        cosines, sines = (b.clamp(b.argument([batch, rows, 4], element), -1, 1) for _ in "cs")
        built = decompositions.rotary_embedding(
            query.ir, cosines.ir, sines.ir, interleaved=b.chance(0.5)
        )
        _note(b, op, built, False, 2 * query.bound)
        return
    keys, values = (b.argument([batch, groups, rows + 1, 8], element) for _ in "kv")
    settings: dict[str, Any] = {"causal": b.chance(0.5)}
    if b.chance(0.5):
        settings["mask"] = b.argument([rows, rows + 1], "i1").ir
    if b.chance(0.3):
        settings["window"] = (b.few("windows", [0, 3], 1), None)
    if b.chance(0.3):
        settings["softcap"] = 2.0
    built, *_ = decompositions.attention(query.ir, keys.ir, values.ir, **settings)
    _note(b, op, built, False, values.bound)
