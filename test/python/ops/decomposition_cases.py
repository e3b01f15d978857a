"""Each decomposition with operands, for what compares compiled code with the interpreter."""

from collections.abc import Iterator
from typing import Any

from decomposed import Decomposition
from harness import FLOATS, Spec, spec
from mathematical_cases import mathematical

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    binary,
    element_of,
    emit,
    maximum,
    minimum,
    scalar,
    vector,
)
from relax_mlir.decompositions.learned import Trees
from relax_mlir.decompositions.recurrent import Quantized
from relax_mlir.dialects import graph


def decompositions(dtype: str) -> Iterator[Decomposition]:
    """Those that take elements of a type."""
    yield from _contractions(dtype)
    yield from _layouts(dtype)
    yield from _pools(dtype)
    yield from _resizes(dtype)
    yield from _patches(dtype)
    yield from _selections(dtype)
    if dtype in FLOATS:
        yield from _activations(dtype)
        yield from _norms(dtype)
        yield from _losses(dtype)
        yield from _convolutions(dtype)
        yield from _recurrent(dtype)
        yield from _random(dtype)
        yield from _signals(dtype)
        yield from _small_floats(dtype)
        yield from _quantisation(dtype)
        yield from _attentions(dtype)
        yield from _elements(dtype)
        yield from _choices(dtype)
    if dtype == "f32":
        yield from _integers()
        yield from mathematical(dtype)
        yield from _sequences(dtype)
        yield _integer_lstm(dtype)


def _contractions(dtype: str) -> Iterator[Decomposition]:
    x, cube, vector = spec(dtype, "n", "m"), spec(dtype, "n", 4, "m"), spec(dtype, "m")

    def general(a, b):
        return d.dot_general(a, b, batch=([2], [0]), contract=([0, 1], [1, 3]))

    yield Decomposition("dot_general", general, [cube, spec(dtype, "m", "n", 3, 4)])
    for position, (equation, specs) in enumerate(
        (
            ("nm,m->n", [x, vector]),
            ("nkm,mk", [cube, spec(dtype, "m", 4)]),
            ("...m,...m->...", [cube, spec(dtype, 4, "m")]),
            ("nn,nm,m->m", [spec(dtype, "n", "n"), x, vector]),
        )
    ):
        yield Decomposition(f"einsum{position}", lambda *v, e=equation: d.einsum(e, *v), specs)
    yield Decomposition("bucketize", lambda v, e: d.bucketize(v, e, True), [x, spec(dtype, 7)])
    yield Decomposition("outer", d.outer, [spec(dtype, "n"), vector])
    yield Decomposition("matmul", d.matmul, [vector, spec(dtype, "m", 3)])
    yield Decomposition("reshape", lambda v: d.reshape(v, ["m", -1, 2]), [cube])
    yield Decomposition("ewise_fma", d.ewise_fma, [x, x, vector])
    yield Decomposition("collapse_sum_to", lambda v: d.collapse_sum_to(v, [1, "m"]), [cube])
    yield Decomposition("collapse_sum_like", d.collapse_sum_like, [cube, spec(dtype, 4, 1)])


def _selections(dtype: str) -> Iterator[Decomposition]:
    x, line = spec(dtype, "n", "m"), spec(dtype, "m")

    def positive(v):
        return binary(graph.GreaterOp, v, 0)

    yield Decomposition("argwhere", lambda v: d.argwhere(positive(v)), [x])
    yield Decomposition("compress", lambda v, c: d.compress(v, positive(c), axis=1), [x, line])
    yield Decomposition("index_by_mask", lambda v: d.index_by_mask(v, positive(v)), [x])
    yield Decomposition("masked_select", lambda v, c: d.masked_select(v, positive(c)), [x, line])
    lines = spec(dtype, "n", "m + 1", 3)
    yield Decomposition("median", lambda v: d.median(v, axes=[1, 2], keepdims=True), [lines])
    if dtype in FLOATS:
        boxes, scores = spec(dtype, 2, "n", 4), spec(dtype, 2, "m", "n")
        for kind in (d.non_max_suppression, d.all_class_non_max_suppression):
            yield Decomposition(
                kind.__name__, lambda *v, k=kind: k(*v, 3, 0.25, 0), [boxes, scores]
            )
        images = [spec(dtype, 2, "m", 9, "n + 1"), spec(dtype, "n", 5)]
        yield Decomposition("roi_align", lambda *v: d.roi_align(*v, (2, 3), scale=4.0), images)
        yield Decomposition("roi_pool", lambda *v: d.roi_pool(*v, (2, 3), scale=4.0), images)
        rows = [spec(dtype, "n", "m", 6), spec("i32", "n"), spec("i32", "n", "m")]
        yield Decomposition("box_nms", d.box_nms, rows)
        anchors = [spec(dtype, "n", 3, "m"), spec(dtype, "n", "4*m"), spec(dtype, 1, "m", 4)]
        yield Decomposition("multibox_transform_loc", d.multibox_transform_loc, anchors)
        yield Decomposition("get_valid_counts", d.get_valid_counts, [spec(dtype, "n", "m", 5)])


def _layouts(dtype: str) -> Iterator[Decomposition]:
    image = spec(dtype, "n", 12, "m", 5)
    for mode in ("DCR", "CRD"):
        yield Decomposition(
            f"depth_to_space_{mode}", lambda v, m=mode: d.depth_to_space(v, 2, m), [image]
        )
        yield Decomposition(
            f"space_to_depth_{mode}",
            lambda v, m=mode: d.space_to_depth(v, 3, m),
            [spec(dtype, 2, "n", "3*m", 6)],
        )
    blocks = [spec(dtype, "n", 3, "m", 5, 4)]
    yield Decomposition(
        "layout_transform", lambda v: d.layout_transform(v, "NCHW4c", "NHWC2c"), blocks
    )
    yield Decomposition("channel_shuffle", lambda v: d.channel_shuffle(v, 3), [image])
    vectors = [spec(dtype, "n"), spec(dtype, "m"), spec(dtype, 3)]
    yield Decomposition("meshgrid", lambda *v: d.meshgrid(*v, indexing="xy"), vectors)


def _pools(dtype: str) -> Iterator[Decomposition]:
    line, image, volume = (
        spec(dtype, 2, "n", *spatial)
        for spatial in (("m + 4",), ("m + 3", 17), (5, "m + 3", "2*m + 3"))
    )
    settings = {"strides": [2], "padding": [1, 0], "ceil_mode": True}
    yield Decomposition("max_pool1", lambda x: d.max_pool(x, [3], **settings), [line])
    settings3 = {"strides": [2, 1, 2], "padding": [1, 0, 1, 0, 1, 1]}
    yield Decomposition("max_pool3", lambda x: d.max_pool(x, [2, 3, 2], **settings3), [volume])
    yield Decomposition("sum_pool", lambda x: d.sum_pool(x, [2, 3]), [image])
    yield Decomposition("global_max_pool", d.global_max_pool, [spec(dtype, 2, "n", 3, 4)])
    yield Decomposition("adaptive_max_pool", lambda x: d.adaptive_max_pool(x, [4, 2]), [image])
    yield Decomposition(
        "adaptive_max_pool_with_indices",
        lambda x: d.adaptive_max_pool_with_indices(x, [4, 2]),
        [image],
    )
    if dtype not in FLOATS:
        return
    yield Decomposition("avg_pool1", lambda x: d.avg_pool(x, [3], **settings), [line])
    settings2 = {"strides": [2, 2], "padding": [1, 1, 1, 1], "ceil_mode": True}
    for include in (False, True):
        yield Decomposition(
            f"avg_pool2_{include}",
            lambda x, i=include: d.avg_pool(x, [3, 2], **settings2, count_include_pad=i),
            [image],
        )
    yield Decomposition("avg_pool3", lambda x: d.avg_pool(x, [2, 3, 2], **settings3), [volume])
    yield Decomposition("adaptive_avg_pool", lambda x: d.adaptive_avg_pool(x, [4, 2]), [image])
    yield Decomposition("global_avg_pool", d.global_avg_pool, [image])
    yield Decomposition("lp_pool", lambda x: d.lp_pool(x, [3, 2], **settings2), [image])
    yield Decomposition("global_lp_pool", d.global_lp_pool, [image])


def _activations(dtype: str) -> Iterator[Decomposition]:
    x = spec(dtype, "n", "m")
    for build in (
        *(d.celu, d.elu, d.hardsigmoid, d.hardswish, d.hardtanh, d.leaky_relu, d.log_sigmoid),
        *(d.mish, d.quick_gelu, d.relu6, d.selu, d.softplus, d.softsign, d.swish),
    ):
        yield Decomposition(build.__name__, build, [x], -9, 9)
    yield Decomposition("prelu", d.prelu, [x, spec(dtype, "m")])
    yield Decomposition("clip", lambda v: d.clip(v, -1, 2), [x])
    yield Decomposition("shrink", lambda v: d.shrink(v, 1, 0.25), [x])
    yield Decomposition("thresholded_relu", d.thresholded_relu, [x])
    yield Decomposition("hardmax", d.hardmax, [x])
    halves = spec(dtype, "n", "2*m")
    yield Decomposition("glu", d.glu, [halves])
    yield Decomposition("swiglu", d.swiglu, [halves])


def _norms(dtype: str) -> Iterator[Decomposition]:
    image, vector = spec(dtype, "n", 6, "m", 5), spec(dtype, 6)
    yield Decomposition(
        "batch_norm",
        lambda x, s, b, mean: d.batch_norm(x, s, b, mean, d.softplus(s), epsilon=0.1),
        [image, vector, vector, vector],
    )
    yield Decomposition(
        "group_norm", lambda *v: d.group_norm(v[0], 2, *v[1:], epsilon=0.1), [image, vector, vector]
    )
    yield Decomposition(
        "instance_norm", lambda *v: d.instance_norm(*v, epsilon=0.1), [image, vector, vector]
    )
    yield Decomposition(
        "layer_norm",
        lambda *v: d.layer_norm(*v, epsilon=0.1, axis=2),
        [image, spec(dtype, "m", 5), spec(dtype, 5)],
    )
    yield Decomposition(
        "layer_norm_of_all_dims",
        lambda *v: d.layer_norm(*v, epsilon=0.1),
        [image, spec(dtype, 6, "m", 1), spec(dtype, 5)],
    )
    yield Decomposition("rms_norm", lambda x: d.rms_norm(x, None, epsilon=0.1, axis=2), [image])
    wide_rms = [image, spec(dtype, "m", 5)]
    yield Decomposition("rms_norm_of_all_dims", lambda *v: d.rms_norm(*v, epsilon=0.1), wide_rms)
    yield Decomposition("lp_norm", lambda x: d.lp_norm(x, axis=1), [image])
    yield Decomposition("local_response_norm", lambda x: d.local_response_norm(x, 3), [image])
    yield Decomposition(
        "mean_variance_norm", lambda x: d.mean_variance_norm(x, [2, 3], epsilon=0.1), [image]
    )


def _losses(dtype: str) -> Iterator[Decomposition]:
    x, target = spec(dtype, "n", 10, "m"), spec("i64", "n", "m")
    settings = {"reduction": "none", "ignore_index": 2}
    yield Decomposition("nll_loss", lambda *v: d.nll_loss(*v, **settings), [x, target])
    yield Decomposition(
        "cross_entropy", lambda *v: d.cross_entropy(*v), [x, target, spec(dtype, 10)], 0.5, 2
    )
    yield Decomposition(
        "cross_entropy_with_logits", d.cross_entropy_with_logits, [spec(dtype, "n + 1", "m")] * 2
    )


def _convolutions(dtype: str) -> Iterator[Decomposition]:
    line, image = spec(dtype, 2, 4, "n + 3"), spec(dtype, 1, 4, "n + 3", "m + 3")
    settings: dict[str, Any] = {"strides": [2], "padding": [1, 0], "groups": 2}
    yield Decomposition("conv1", lambda *v: d.conv(*v, **settings), [line, spec(dtype, 6, 2, 3)])
    long: dict[str, Any] = {"strides": [16], "padding": [3, 17], "groups": 2}
    frames = [spec(dtype, 2, 4, "17*n + 9"), spec(dtype, 6, 2, 32)]
    yield Decomposition("conv1_of_frames", lambda *v: d.conv(*v, **long), frames)
    depthwise = [image, spec(dtype, 8, 1, 3, 3), spec(dtype, 8)]
    yield Decomposition("conv2", lambda *v: d.conv(*v, groups=4), depthwise)
    volume = spec(dtype, 1, 3, 5, "n + 3", 6)
    yield Decomposition(
        "conv3",
        lambda *v: d.conv(*v, strides=[2, 1, 1], padding=[1, 0, 1, 0, 1, 1]),
        [volume, spec(dtype, 5, 3, 2, 3, 3)],
    )
    yield Decomposition(
        "conv_transpose1",
        lambda *v: d.conv_transpose(*v, strides=[3], padding=[1, 2], output_padding=[1]),
        [line, spec(dtype, 4, 5, 7)],
    )
    yield Decomposition(
        "conv_transpose2",
        lambda *v: d.conv_transpose(*v, strides=[2, 2], padding=[1, 1, 0, 0], groups=2),
        [image, spec(dtype, 4, 3, 3, 4), spec(dtype, 6)],
    )
    yield Decomposition(
        "conv_transpose3",
        lambda *v: d.conv_transpose(*v, strides=[1, 2, 1], dilation=[2, 1, 1]),
        [volume, spec(dtype, 3, 2, 2, 2, 3)],
    )


def _resizes(dtype: str) -> Iterator[Decomposition]:
    image = spec(dtype, 2, "n", "m + 1", 5)
    halves = {"coordinates": "asymmetric", "nearest": "floor"}
    yield Decomposition("resize", lambda x: d.resize(x, [2, 3], sizes=[7, 3], **halves), [image])
    if dtype not in FLOATS:
        return
    for mode, coordinates in (("linear", "align_corners"), ("cubic", "half_pixel")):
        settings = {"mode": mode, "coordinates": coordinates}
        yield Decomposition(
            f"resize_{mode}",
            lambda x, s=settings: d.resize(x, [2, 3], scales=[2.0, 0.6], **s),
            [image],
        )
    grid, maps = spec(dtype, 2, "m", 3, 2), spec(dtype, 2, 2, 3)
    yield Decomposition(
        "grid_sample", lambda *v: d.grid_sample(*v, padding="reflection"), [image, grid], -1.4, 1.4
    )
    yield Decomposition("affine_grid", lambda v: d.affine_grid(v, [3, 5]), [maps])


def _recurrent(dtype: str) -> Iterator[Decomposition]:
    def operands(gates: int, *others: Spec) -> list[Spec]:
        x, w = spec(dtype, "m", "n", 5), spec(dtype, 2, gates * 7, 5)
        return [x, w, spec(dtype, 2, gates * 7, 7), *others]

    def both(x, w, r, bias, lengths):
        return d.lstm(x, w, r, bias=bias, sequence_lens=lengths, direction="bidirectional")

    two = {"direction": "bidirectional"}
    yield Decomposition("rnn", lambda *v: d.rnn(*v, **two), operands(1), -0.5, 0.5)
    yield Decomposition("gru", lambda *v: d.gru(*v, **two), operands(3), -0.5, 0.5)
    others = spec(dtype, 2, 56), spec("i32", "n")
    yield Decomposition("lstm", both, operands(4, *others), -0.5, 0.5)


def _random(dtype: str) -> Iterator[Decomposition]:
    state, x, column = spec("i64", 2), spec(dtype, "n", "m"), spec(dtype, "n", 1)
    for name, build in (("uniform", d.random_uniform), ("normal", d.random_normal)):
        yield Decomposition(
            f"random_{name}",
            lambda s, v, f=build: f(s, ["n", "m"], ir.RankedTensorType(v.type).element_type),
            [state, x],
        )
    signless = ir.IntegerType.get_signless
    yield Decomposition(
        "random_bits", lambda s, v: d.random_bits(s, ["n"], signless(32)), [state, x]
    )
    yield Decomposition(
        "random_integers", lambda s, v: d.random_integers(s, ["n"], signless(8), -3, 99), [state, x]
    )
    yield Decomposition("bernoulli", d.bernoulli, [state, x], 0, 1)
    yield Decomposition("dropout", lambda s, v: d.dropout(s, v, 0.3), [state, x])
    yield Decomposition("multinomial", lambda s, v: d.multinomial(s, v, 3), [state, x])
    own = [x, column, spec("i64", "n", 1)]
    yield Decomposition("multinomial_from_uniform", d.multinomial_from_uniform, own, 0, 1)


def _small_floats(dtype: str) -> Iterator[Decomposition]:
    x = spec(dtype, "n", "m")
    for kind in ("f8E4M3FN", "f8E5M2FNUZ"):
        yield Decomposition(f"encode_float_{kind}", lambda v, k=kind: d.encode_float(v, k), [x])
    f8 = ir.Float8E5M2Type
    yield Decomposition("cast_float8", lambda v: d.cast_float8(v, f8.get(), saturate=False), [x])
    yield Decomposition(
        "decode_float",
        lambda c, v: d.decode_float(c, "f8E4M3FNUZ", ir.RankedTensorType(v.type).element_type),
        [spec("i8", "n", "m"), x],
    )


def _signals(dtype: str) -> Iterator[Decomposition]:
    pairs = spec(dtype, "n", 3, 2)

    def pairs_of(*dims: int | str) -> list[Spec]:
        return [spec(dtype, *dims, 2)]

    for length in (60, 131, 256):
        yield Decomposition(f"fft{length}", d.fft, pairs_of("n", length))
    yield Decomposition("fft_n", lambda x: d.fft(x, axis=0, inverse=True), pairs_of("n", 3))
    yield Decomposition("rfft", lambda x: d.rfft(x, axis=0), [spec(dtype, 1024, "n")])
    yield Decomposition("irfft", lambda x: d.irfft(x, 24, axis=1), pairs_of("n", 13, 2))
    yield Decomposition("dft", lambda x: d.dft(x, 20, onesided=True), [spec(dtype, "n", "m", 1)])
    yield Decomposition(
        "stft", lambda x, w: d.stft(x, 3, w), [spec(dtype, "n", "m + 16", 1), spec(dtype, 16)]
    )
    for build in (d.complex_abs, d.complex_conj, d.complex_exp):
        yield Decomposition(build.__name__, build, [pairs])
    yield Decomposition("complex_multiply", d.complex_multiply, [pairs, *pairs_of(3)])
    for window in (d.hann_window, d.hamming_window, d.blackman_window):
        yield Decomposition(
            window.__name__,
            lambda v, f=window: f("n", ir.F32Type.get(), periodic=False),
            [spec(dtype, "n")],
        )
    yield Decomposition(
        "mel_weight_matrix",
        lambda v: d.mel_weight_matrix(5, 64, 8000, 20, 4000, ir.F32Type.get()),
        [spec(dtype, "n")],
    )


def _patches(dtype: str) -> Iterator[Decomposition]:
    image, columns = spec(dtype, 2, "n", "m + 3", 7), spec(dtype, "n", 12, "2*m")
    settings = {"strides": [2, 1], "padding": [1, 0, 0, 1], "dilation": [1, 2]}
    yield Decomposition("unfold", lambda x: d.unfold(x, [3, 2], **settings), [image])
    yield Decomposition("fold", lambda x: d.fold(x, ["m + 1", 3], [2, 2]), [columns])
    yield Decomposition(
        "max_pool_with_indices", lambda x: d.max_pool_with_indices(x, [3, 2], **settings), [image]
    )
    positions = spec("i64", "n", 2, "m", 3)
    yield Decomposition(
        "max_unpool",
        lambda x, i: d.max_unpool(x, i, [2, 4]),
        [spec(dtype, "n", 2, "m", 3), positions],
    )
    yield Decomposition(
        "bitcast", lambda v: d.bitcast(v, ir.IntegerType.get_signless(8)), [spec(dtype, "n", "m")]
    )
    lengths = spec("i64", "m")
    yield Decomposition("reverse_sequence", d.reverse_sequence, [spec(dtype, "n", "m", 3), lengths])
    if dtype in FLOATS:
        yield Decomposition(
            "deform_conv2d",
            lambda x, o, w: d.deform_conv2d(x, o, w, padding=[1, 1, 1, 1], offset_groups=2),
            [spec(dtype, 2, 4, "m", 5), spec(dtype, 2, 36, "m", 5), spec(dtype, 3, 4, 3, 3)],
        )


def _sequences(dtype: str) -> Iterator[Decomposition]:
    x, weight, past = spec(dtype, "n", 5, "m"), spec(dtype, 5, 1, 4), spec(dtype, "n", 5, 3)
    yield Decomposition(
        "causal_conv", lambda v, w, p: d.causal_conv(v, w, None, p, silu=True), [x, weight, past]
    )
    query, gates = spec(dtype, "n", "m", 16), spec(dtype, "n", "m", 2)
    yield Decomposition(
        "linear_attention",
        lambda q, k, g: d.linear_attention(q, k, k, heads=4, kv_heads=2, decay=g, beta=g),
        [query, spec(dtype, "n", "m", 8), gates],
        -0.7,
        0.2,
    )


def _quantisation(dtype: str) -> Iterator[Decomposition]:
    x, column, zeros = spec(dtype, "n", 4, "m"), spec(dtype, 4), spec("i8", 4)
    yield Decomposition(
        "quantize_linear",
        lambda v, z: d.quantize_linear(v, scalar(0.25, element_of(v)), z, element=element_of(z)),
        [x, zeros],
    )
    yield Decomposition(
        "dequantize_linear", d.dequantize_linear, [spec("i8", "n", 4, "m"), column, zeros]
    )
    if dtype == "f32":  # ranges whose quotients are exact in each order
        yield Decomposition(
            "dynamic_quantize_linear",
            lambda v: d.dynamic_quantize_linear(minimum(maximum(v, 0), 255)),
            [x],
            300,
            400,
        )


def _integers() -> Iterator[Decomposition]:
    a, b, zero = spec("i8", "n", 5, "m"), spec("i8", "m", 7), spec("i8")
    yield Decomposition("matmul_integer", d.matmul_integer, [a, b, zero, spec("i8", 7)])
    x, weight = spec("i8", "n", 3, "m + 2"), spec("i8", 4, 3, 3)
    yield Decomposition("conv_integer", d.conv_integer, [x, weight, zero, spec("i8", 4)])

    def constants():  # factors that are powers of 2: products are exact
        return [scalar(value, ir.F32Type.get()) for value in (0.25, 0.5, 0.125)]

    def matmul(v, w, p, q):
        first, second, third = constants()
        return d.qlinear_matmul(v, first, p, w, second, p, third, q)

    def conv(v, w, p, q):
        first, second, third = constants()
        return d.qlinear_conv(v, first, p, w, second, p, third, q, padding=[1, 1])

    yield Decomposition("qlinear_matmul", matmul, [a, b, zero, zero])
    yield Decomposition("qlinear_conv", conv, [x, weight, zero, zero])


def _attentions(dtype: str) -> Iterator[Decomposition]:
    query, key = spec(dtype, "n", 4, "m", 8), spec(dtype, "n", 2, "m + 2", 8)
    settings: dict[str, Any] = {"causal": True, "window": (4, None)}
    yield Decomposition(
        "attention",
        lambda q, k, m: d.attention(q, k, k, mask=m, **settings)[0],
        [query, key, spec("i1", "m", "m + 1")],
    )
    yield Decomposition(
        "attention_scores",
        lambda q, k: d.attention(q, k, k, softcap=2.0, scores=3),
        [query, key],
    )
    rows, starts = spec(dtype, 1, "n", 2, 8), spec("i64", 3)
    yield Decomposition(
        "attention_var_len",
        lambda x, s: d.attention_var_len(x, x, x, d.clip(s, 0, 0), causal="TopLeft"),
        [rows, starts],
    )
    tables = [spec(dtype, "n", "m", 4)] * 2
    yield Decomposition("rotary_embedding", d.rotary_embedding, [query, *tables])
    cache = spec(dtype, "n", 3, "m + 1", 5), spec(dtype, "n", 3, "m", 5)
    yield Decomposition(
        "tensor_scatter",
        lambda c, u, s: d.tensor_scatter(c, u, s, circular=True),
        [*cache, spec("i64", "n")],
    )


def _integer_lstm(dtype: str) -> Decomposition:
    def build(x, w, r, scale):
        own = maximum(scale, 0.25)
        weights = Quantized(w, own, None), Quantized(r, own, None)
        return d.dynamic_quantize_lstm(x, *weights)

    specs = [spec(dtype, "n", "m + 1", 3), spec("i8", 1, 3, 8), spec("i8", 1, 2, 8), spec(dtype, 1)]
    return Decomposition("dynamic_quantize_lstm", build, specs)


def _elements(dtype: str) -> Iterator[Decomposition]:
    x = spec(dtype, "n", "m")
    for kind in (d.cbrt, d.round_half_away, d.binarizer):
        yield Decomposition(kind.__name__, kind, [x])
    yield Decomposition("fmod", d.fmod, [x, spec(dtype, "m")])
    yield Decomposition("truncated_divide", d.truncated_divide, [spec("i8", "n")] * 2)
    yield Decomposition("reduce_precision", lambda v: d.reduce_precision(v, 4, 3), [x])
    one, step = spec(dtype, 1), spec("i64", 1)
    yield Decomposition(
        "momentum", lambda *v: d.momentum(*v, alpha=0.5, beta=2), [one, step, x, x, x]
    )
    for kind in (d.adagrad, d.adam):
        state = [x] * (1 + (kind is d.adam))

        def update(r, t, v, g, *s, k=kind):
            return k(r, maximum(t, 0), v, g, *(maximum(each, 0.25) for each in s))

        yield Decomposition(kind.__name__, update, [one, step, x, x, *state])


def _choices(dtype: str) -> Iterator[Decomposition]:
    x = spec(dtype, "n", "m")

    def groups(v, w):
        return d.grouped_mm(v, w, vector([1, 2], ir.IntegerType.get_signless(32)))

    yield Decomposition("grouped_mm", groups, [spec(dtype, "n + 2", 5), spec(dtype, 2, 5, 3)])
    rows = spec(dtype, "n + 1", "m")
    yield Decomposition("histc", lambda v: d.histc(v, 5, -2, 2), [x])
    mask = spec("i1", "n", 1)
    yield Decomposition("masked_scatter", d.masked_scatter, [x, mask, x])
    yield Decomposition("center_crop_pad", lambda v: d.center_crop_pad(v, [3, 4]), [x])
    yield Decomposition("as_strided", lambda v: d.as_strided(v, [2, "m"], [0, 1]), [rows])
    windows = [spec(dtype, "n + 2", "m + 3")]
    yield Decomposition(
        "reduce_window", lambda v: d.reduce_window(v, "minimum", [2, 3], strides=[1, 2]), windows
    )
    yield Decomposition(
        "flex_attention",
        lambda q, k: d.flex_attention(q, k, k, scale=0.5),
        [spec(dtype, 2, 4, "n", 8), spec(dtype, 2, 2, "m", 8)],
    )
    yield Decomposition("array_feature_extractor", d.array_feature_extractor, [x, spec("i64", "n")])

    def labels(v):
        rounded = emit(graph.RoundOp, v)
        return d.label_encoder(rounded, [-1, 0, 2], [1, 2, 3], ir.IntegerType.get_signless(64))

    yield Decomposition("label_encoder", labels, [x])
    trees = Trees([0, 2], [0.5, -1], ["<=", ">"], [1, -1], [-2, -3], [0, 1], [0, 1, 0], [1, 2, 3])
    yield Decomposition(
        "tree_ensemble", lambda v: d.tree_ensemble(v, trees, 2), [spec(dtype, "n", 3)]
    )
