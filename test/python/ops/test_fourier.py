"""Fourier transforms against the sums that they are, and NumPy's in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.decompositions.emit import add
from relax_mlir.decompositions.signal.fourier import radices
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-12, "f32": 3e-6, "f16": 3e-3, "bf16": 3e-2}


def _complex(x):
    return wide(x)[..., 0] + 1j * wide(x)[..., 1]


def _pairs(z):
    return np.stack([z.real, z.imag], -1)


def _assert_near(found, wanted, dtype) -> None:
    assert found.dtype == NUMPY[dtype]
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(wide(found), wanted, rtol=0, atol=TOLERANCE[dtype] * scale)


def _sums(z, sign):
    n = z.shape[-1]
    angles = np.outer(np.arange(n), np.arange(n)) % max(n, 1) * (2 * np.pi / max(n, 1))
    return z @ np.exp(1j * sign * angles)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 16, 60, 127, 128, 131, 257, 400, 509 * 2, 1024])
def test_lengths(n: int, inverse: bool) -> None:
    x = floats((3, n, 2), "f64")
    run = Decomposed(lambda v: d.fft(v, inverse=inverse), spec("f64", "b", n, 2))
    wanted = _sums(_complex(x), 1 if inverse else -1)
    _assert_near(run(x), _pairs(wanted / max(n, 1) if inverse else wanted), "f64")


@pytest.mark.parametrize("inverse", [False, True])
def test_a_length_of_run_time(inverse: bool) -> None:
    run = Decomposed(lambda v: d.fft(v, axis=0, inverse=inverse), spec("f64", "n", "b", 2))
    for n in (1, 2, 5, 17, 33, 256, 257):
        x = floats((n, 2, 2), "f64")
        numpy = np.fft.ifft if inverse else np.fft.fft
        _assert_near(run(x), _pairs(numpy(_complex(x), axis=0)), "f64")
    assert run(np.zeros((0, 3, 2))).shape == (0, 3, 2)


@pytest.mark.parametrize("n", [12, "n"])
def test_inverses_that_are_not_scaled(n) -> None:
    x, z = floats((12, 3), "f64"), floats((12, 3, 2), "f64")
    run = Decomposed(lambda v: d.fft(v, axis=0, inverse=True, scaled=False), spec("f64", n, 3, 2))
    _assert_near(run(z), _pairs(12 * np.fft.ifft(_complex(z), axis=0)), "f64")
    back = Decomposed(
        lambda v, *_: d.irfft(v, n, axis=0, scaled=False), spec("f64", _half(n), 3, 2), *_named(n)
    )
    named = [np.zeros(12, bool)] if n == "n" else []
    _assert_near(back(_pairs(np.fft.rfft(x, axis=0)), *named), 12 * x, "f64")


@pytest.mark.rotate(2)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_lengths_of_run_time_compiled(dtype: str) -> None:
    text = module_of({"main": (lambda v: add(d.fft(v), d.fft(v)), [spec(dtype, "b", "n", 2)])})
    compiled = relax_mlir.compile(text)["main"]
    for b, n in ((1, 0), (0, 300), (1, 127), (1, 128), (1, 129), (2, 1000), (1, 1024), (3, 4099)):
        x = floats((b, n, 2), dtype)
        wanted = 2 * np.fft.fft(_complex(x)) if n else np.zeros((b, n))
        _assert_near(compiled(x), _pairs(wanted), dtype)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("n", [60, 131])
def test_types(dtype: str, n: int) -> None:
    x = floats((2, n, 2), dtype)
    run = Decomposed(d.fft, spec(dtype, 2, n, 2))
    _assert_near(run(x), _pairs(np.fft.fft(_complex(x))), dtype)


def test_longer_lines_take_few_products() -> None:
    assert radices(4096) == (16, 16, 16)
    assert radices(1 << 20) is not None
    assert sum(radices(1 << 20)) <= 256
    assert radices(131) is None
    assert radices(131 * 4) is None


@pytest.mark.parametrize("n", [1, 2, 5, 64, 511, 512, 600, "n"])
def test_real(n) -> None:
    run = Decomposed(lambda v: d.rfft(v, axis=0), spec("f64", n, 3))
    back = Decomposed(lambda v, *_: d.irfft(v, n, axis=0), spec("f64", _half(n), 3, 2), *_named(n))
    for size in (1, 2, 9, 10) if n == "n" else (n,):
        x = floats((size, 3), "f64")
        spectrum = np.fft.rfft(x, axis=0)
        _assert_near(run(x), _pairs(spectrum), "f64")
        named = [np.zeros(size, bool)] if n == "n" else []
        _assert_near(back(_pairs(spectrum), *named), x, "f64")


def _half(n):
    return "n floordiv 2 + 1" if n == "n" else n // 2 + 1


def _named(n):
    return [spec("i1", "n")] if n == "n" else []


def test_irfft_sees_no_imaginary_parts_of_the_ends() -> None:
    x = floats((5, 2), "f64")
    for n in (8, 9):
        run = Decomposed(lambda v, n=n: d.irfft(v, n), spec("f64", 5, 2))
        _assert_near(run(x), np.fft.irfft(_complex(x), n), "f64")


@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [False, True])
def test_dft(length, parts: int, inverse: bool) -> None:
    run = Decomposed(
        lambda v: d.dft(v, length, axis=1, inverse=inverse), spec("f64", "b", 9, 3, parts)
    )
    x = floats((2, 9, 3, parts), "f64")
    z = _complex(x) if parts == 2 else x[..., 0]
    numpy = np.fft.ifft if inverse else np.fft.fft
    _assert_near(run(x), _pairs(numpy(z, length, axis=1)), "f64")


def test_dft_of_half_a_spectrum() -> None:
    x = floats((2, 9, 1), "f64")
    run = Decomposed(lambda v: d.dft(v, 12, onesided=True), spec("f64", "b", "n", 1))
    _assert_near(run(x), _pairs(np.fft.rfft(x[..., 0], 12)), "f64")
    y = floats((2, 5, 2), "f64")
    for length, n in ((None, 8), (7, 7), (6, 6), (14, 14)):
        run = Decomposed(
            lambda v, n=length: d.dft(v, n, onesided=True, inverse=True), spec("f64", "b", 5, 2)
        )
        _assert_near(run(y), np.fft.irfft(_complex(y), n)[..., None], "f64")


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (16, 5), (600, 301)])
def test_stft(size: int, step: int, onesided: bool) -> None:
    window = floats((size,), "f64")
    run = Decomposed(
        lambda x, w: d.stft(x, step, w, onesided=onesided),
        spec("f64", "b", "n", 1), spec("f64", size),
    )  # fmt: skip
    for n in (size, size + step - 1, size + step, size + 3 * step + 1):
        x = floats((2, n, 1), "f64")
        starts = range(0, n - size + 1, step)
        parts = np.stack([x[:, i : i + size, 0] * window for i in starts], 1)
        wanted = np.fft.rfft(parts) if onesided else np.fft.fft(parts)
        _assert_near(run(x, window), _pairs(wanted), "f64")


def test_stft_of_pairs_without_a_window() -> None:
    run = Decomposed(lambda x: d.stft(x, 4, length=6, onesided=False), spec("f64", "b", "n", 2))
    x = floats((2, 17, 2), "f64")
    parts = np.stack([_complex(x)[:, i : i + 6] for i in (0, 4, 8)], 1)
    _assert_near(run(x), _pairs(np.fft.fft(parts)), "f64")


def test_signals_that_are_too_short_are_refused() -> None:
    run = Decomposed(lambda x: d.stft(x, 4, length=6), spec("f64", "b", "n", 1))
    with pytest.raises(Exception, match="requires 6 <= n"):
        run(np.zeros((1, 5, 1)))


def test_complex_elements() -> None:
    x, y = floats((5, 3, 2), "f64"), floats((3, 2), "f64", -2, 2)
    a, b = _complex(x), _complex(y)
    pair = spec("f64", "n", 3, 2)
    product = Decomposed(d.complex_multiply, pair, spec("f64", 3, 2))(x, y)
    _assert_near(product, _pairs(a * b), "f64")
    for build, wanted in (
        (d.complex_conj, _pairs(a.conj())), (d.complex_exp, _pairs(np.exp(a))),
        (d.complex_abs, np.abs(a)),
    ):  # fmt: skip
        _assert_near(Decomposed(build, pair)(x), wanted, "f64")


X = spec("f32", "b", 8, 2)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (d.fft, [spec("f32", "b", 8)], "expects pairs of floats"),
        (d.fft, [spec("i32", "b", 8, 2)], "expects pairs of floats"),
        (lambda x: d.fft(x, axis=2), [X], "along another axis than the last one, but got 2"),
        (d.fft, [spec("f32", 1, (1 << 22) + 1, 2)], "lines of up to 4194304 elements"),
        (d.rfft, [spec("i32", 8)], "expects floats, but got i32"),
        (lambda x: d.irfft(x, 8), [X], "expects 5 pairs, but got 8"),
        (lambda x: d.dft(x, onesided=True), [X], "has pairs"),
        (lambda x: d.dft(x, onesided=True, inverse=True), [spec("f32", 8, 1)], "expects pairs"),
        (d.dft, [spec("f32", 8, 3)], "expects floats of a last dim 1 or 2"),
        (lambda x: d.stft(x, 0, length=2), [spec("f32", 1, 8, 1)], "and a step, but got 0"),
        (lambda x: d.stft(x, 1), [spec("f32", 1, 8, 1)], "expects a window or a length"),
        (lambda x: d.stft(x, 1, length=9), [spec("f32", 1, 8, 1)], "parts of 9 elements"),
        (lambda x: d.stft(x, 1, length=2), [X], "has pairs"),
        (lambda x, w: d.stft(x, 1, w, length=2), [spec("f32", 1, 8, 1), spec("f32", 3)],
         "expects a window of 2 elements"),
        (lambda x, w: d.stft(x, 1, w), [spec("f32", 1, 8, 1), spec("f32", "k")],
         "expects a window of a known length"),
        (d.complex_abs, [spec("f32", 3)], "expects pairs of floats"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
