"""Affine quantisation against NumPy's integers."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError


def _i8() -> ir.Type:
    return ir.IntegerType.get_signless(8)


def _codes(shape, dtype="i8", low=-128, high=127):
    random = np.random.default_rng(int(np.prod(shape)) + 5)
    return random.integers(low, high, shape, endpoint=True).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_quantize_and_dequantize(axis, dtype: str) -> None:
    shape, at = (3, 4, 5), axis or 0
    count = () if axis is None else (shape[axis],)
    x = np.concatenate([floats((3, 4, 4), dtype, -90, 90), np.full((3, 4, 1), 3e4, dtype="f4")], 2)
    x = x.astype(NUMPY[dtype])
    scale = np.abs(floats(count, dtype)) + NUMPY[dtype].type(0.25)
    zero = _codes(count, "i8", -20, 20)
    specs = [spec(dtype, "n", 4, 5), spec(dtype, *count), spec("i8", *count)]
    run = Decomposed(lambda v, s, z: d.quantize_linear(v, s, z, element=_i8(), axis=at), *specs)

    def along(value):
        return (
            value if axis is None else np.expand_dims(value, [i for i in range(3) if i != axis % 3])
        )

    quotient = x.astype(np.float32) / along(scale).astype(np.float32)
    wanted = np.clip(np.rint(quotient) + along(zero), -128, 127).astype(np.int8)
    codes = run(x, scale, zero)
    np.testing.assert_array_equal(codes, wanted)
    back = Decomposed(
        lambda c, s, z: d.dequantize_linear(c, s, z, axis=at), spec("i8", "n", 4, 5), *specs[1:]
    )
    values = (wanted.astype(np.int64) - along(zero)) * along(wide(scale))
    found = back(codes, scale, zero)
    assert found.dtype == NUMPY[dtype]
    np.testing.assert_allclose(wide(found), values, rtol=2e-3 if dtype == "f16" else 2e-7)


@pytest.mark.parametrize(
    ("element", "bounds"), [("ui8", None), ("ui16", (0, 255)), ("i16", (0, 255))]
)
def test_unsigned_bytes(element: str, bounds) -> None:
    def build(x, s, z):
        codes = d.quantize_linear(x, s, z, element=ir.Type.parse(element), bounds=bounds)
        return codes, d.dequantize_linear(codes, s, z)

    x = np.array([-131, -130, 0, 2.5, 3.5, 124.5, 400, np.inf, np.nan], np.float32)
    run = Decomposed(build, spec("f32", "n"), spec("f32"), spec(element))
    codes, back = run(x, np.array(1, np.float32), np.array(130, NUMPY[element]))
    assert codes.dtype == NUMPY[element]
    assert codes.tolist()[:8] == [0, 0, 130, 132, 134, 254, 255, 255]
    assert back.tolist()[:8] == [-130, -130, 0, 2, 4, 124, 125, 125]


@pytest.mark.parametrize("signed", [False, True])
def test_dynamic_quantize_linear(signed: bool) -> None:
    run = Decomposed(lambda x: d.dynamic_quantize_linear(x, signed=signed), spec("f32", "n", "m"))
    least = -128 if signed else 0
    for low, high in ((-3, 5), (1, 9), (-7, -2), (0, 0)):
        x = floats((7, 5), "f32", low, high)
        codes, scale, zero = run(x)
        span = max(wide(x).max(), 0) - min(wide(x).min(), 0)
        wanted = span / 255 if span else 1
        np.testing.assert_allclose(scale, wanted, rtol=3e-7)
        point = np.clip(np.rint(least - min(wide(x).min(), 0) / wanted), least, least + 255)
        assert zero == point
        assert codes.dtype == NUMPY["i8" if signed else "ui8"]
        expected = np.clip(np.rint(x / scale) + point, least, least + 255)
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize(
    ("zeros", "kind"),
    [("none", "i8"), ("scalars", "i8"), ("vectors", "i8"), ("none", "ui8"), ("vectors", "ui8")],
)
def test_matmul_integer(zeros: str, kind: str) -> None:
    dims = {"scalars": ((), ()), "vectors": ((5,), (7,))}.get(zeros)
    kinds = kind, "i8"
    specs = [spec(kind, "b", 5, "k"), spec("i8", "k", 7)]
    specs += [spec(k, *shape) for k, shape in zip(kinds, dims or ())]
    run = Decomposed(d.matmul_integer, *specs)
    for b, k in ((1, 1), (2, 33), (3, 0)):
        x, y = _codes((b, 5, k)).view(NUMPY[kind]), _codes((k, 7))
        points = [_codes(shape).view(NUMPY[k]) for k, shape in zip(kinds, dims or ())]
        left, right = (points[0].astype(int), points[1].astype(int)) if points else (0, 0)
        left = left[:, None] if zeros == "vectors" else left
        wanted = (x.astype(int) - left) @ (y.astype(int) - right)
        found = run(x, y, *points)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)


def _convolved(x, w, stride):
    n, _, size = x.shape
    o, _, k = w.shape
    count = (size - k) // stride + 1
    result = np.zeros((n, o, count), np.int64)
    for i in range(count):
        part = x[:, :, i * stride : i * stride + k]
        result[:, :, i] = np.einsum("nck,ock->no", part, w)
    return result


@pytest.mark.parametrize(
    ("dtype", "channels"), [("i8", 3), ("i8", 90), ("i16", 3), ("ui8", 3), ("ui8", 90)]
)
def test_conv_integer(dtype: str, channels: int) -> None:
    run = Decomposed(
        lambda x, w, p, q: d.conv_integer(x, w, p, q, strides=[2], padding=[1, 1]),
        spec(dtype, "n", channels, "t"), spec(dtype, 4, channels, 3), spec(dtype), spec(dtype, 4),
    )  # fmt: skip
    low, high = (-128, 127) if dtype == "i8" else (0, 255)
    x, w = _codes((2, channels, 9), dtype, low, high), _codes((4, channels, 3), dtype, low, high)
    p, q = _codes((), dtype, low, high), _codes((4,), dtype, low, high)
    padded = np.pad(x.astype(int) - p, ((0, 0), (0, 0), (1, 1)))
    found = run(x, w, p, q)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, _convolved(padded, w.astype(int) - q[:, None, None], 2))


def test_qlinear_matmul() -> None:
    one, many = spec("f32"), spec("f32", 7)
    run = Decomposed(
        d.qlinear_matmul,
        spec("i8", 5, "k"), one, spec("i8"), spec("i8", "k", 7), many, spec("i8", 7), one,
        spec("i8"),
    )  # fmt: skip
    a, b = _codes((5, 33)), _codes((33, 7))
    scales = [np.float32(0.0125), np.abs(floats((7,), "f32")) / 100, np.float32(0.25)]
    zeros = [np.int8(3), _codes((7,)), np.int8(-4)]
    product = (a.astype(int) - zeros[0]) @ (b.astype(int) - zeros[1].astype(int))
    factor = (scales[0] * scales[1] / scales[2]).astype(np.float32)
    wanted = np.clip(np.rint(product.astype(np.float32) * factor) + zeros[2], -128, 127)
    arrays = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]]
    found = run(*map(np.asarray, arrays))
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, wanted)


def test_qlinear_conv() -> None:
    one = spec("f32")
    run = Decomposed(
        lambda *v: d.qlinear_conv(*v, strides=[2]),
        spec("i8", "n", 3, "t"), one, spec("i8"), spec("i8", 4, 3, 3), spec("f32", 4),
        spec("i8", 4), one, spec("i8"), spec("i32", 4),
    )  # fmt: skip
    x, w, bias = _codes((2, 3, 9)), _codes((4, 3, 3)), _codes((4,), "i32", -999, 999)
    scales = [np.float32(0.0125), np.abs(floats((4,), "f32")) / 100, np.float32(0.25)]
    zeros = [np.int8(3), _codes((4,)), np.int8(-4)]
    sums = _convolved(x.astype(int) - zeros[0], w.astype(int) - zeros[1][:, None, None], 2)
    sums = (sums + bias[:, None]).astype(np.float32)
    factor = (scales[0] * scales[1] / scales[2]).astype(np.float32)[:, None]
    wanted = np.clip(np.rint(sums * factor) + zeros[2], -128, 127)
    arrays = [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2], bias]
    np.testing.assert_array_equal(run(*map(np.asarray, arrays)), wanted)


X, S, C = spec("f32", 3, 4), spec("f32"), spec("i8", 3, 4)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (lambda x, s: d.quantize_linear(x, s, element=ir.F32Type.get()), [X, S],
         "expects an integer element type"),
        (lambda x, s: d.quantize_linear(x, s, element=_i8()), [C, S], "expects floats, but got i8"),
        (lambda x, s: d.quantize_linear(x, s, element=_i8(), bounds=(0, 255)), [X, S],
         "expects bounds within i8"),
        (lambda x, s: d.quantize_linear(x, s, element=_i8()), [X, spec("f32", 3)],
         "as many parameters as dim 1 of 4, but got 3"),
        (lambda x, s: d.quantize_linear(x, s, element=_i8()), [X, X], "of rank 0 or 1"),
        (d.dequantize_linear, [X, S], "expects integers, but got f32"),
        (d.dynamic_quantize_linear, [C], "expects floats, but got i8"),
        (d.matmul_integer, [X, X], "expects integers, but got f32"),
        (d.conv_integer, [X, X], "expects integers, but got f32"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
