"""Complex tensors and Fourier transforms of exported programs give what PyTorch gives."""

import re
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import fft
from torch.export import Dim, export

import relax_mlir
import relax_mlir.frontends.torch as frontend
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.frontends.torch.dynamo import relax
from relax_mlir.frontends.torch.registry import find
from relax_mlir.frontends.torch.types import as_array
from relax_mlir.testing.imported import interpreted

C64, C128 = torch.complex64, torch.complex128


class Model(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


def assert_alike(got, wanted, message=""):
    """Compares a result with a tensor; complex ones have both parts along a last dim."""
    expected = as_array(wanted)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), message
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    bound = 1e-11 if expected.dtype == np.float64 else 2e-5
    np.testing.assert_allclose(got, expected, rtol=bound, atol=bound * scale, err_msg=message)


def compared(function, example, dims, others, compiles=False):
    """Compares a function, exported for an example, with PyTorch at other sizes."""
    shapes = {"values": dims}
    imported = from_exported_program(export(Model(function), example, dynamic_shapes=shapes))
    main = relax_mlir.compile(imported, opt_level=1)["main"] if compiles else interpreted(imported)
    for values in (example, *others):
        got, wanted = main(*map(as_array, values)), function(*values)
        got, wanted = (r if isinstance(r, tuple) else (r,) for r in (got, wanted))
        for position, (a, b) in enumerate(zip(got, wanted, strict=True)):
            assert_alike(np.asarray(a), b, f"{position} of {[x.shape for x in values]}")


def assigned(z, key, values):
    """A tensor with other elements at indices."""
    z = z.clone()
    z[key] = values
    return z


GROUPS = {
    "arithmetic": lambda z, w, x, i: (
        z + w, z - 2j * w, 2 - z, torch.sub(z, w, alpha=1 - 1j), torch.rsub(z, w, alpha=2),
        z * w, z * x, 3 * z, z * (1 + 2j), x * 1j, z / w, z / x, 1 / z, x / z, z / (2 - 1j), -z,
        z**2, z**3, z**-1, z**0.5, z**-0.5, z**-2, z**2.5, z**w, 2**z, (1 + 1j) ** z, x**z, z**0,
        torch.addcmul(z, w, w, value=2j), torch.addcdiv(z, w, w, value=-1), z.lerp(w, 0.3),
        z.lerp(w, x.to(z.dtype)), z + i, z.square(), z.reciprocal(), z.rsqrt(),
    ),
    "functions": lambda z, w, x, i: (
        z.exp(), z.exp2(), z.expm1(), z.log(), z.log2(), z.log10(), z.log1p(), z.sqrt(), z.sin(),
        z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh(), z.asin(), z.acos(), z.atan(), z.asinh(),
        z.acosh(), z.atanh(), z.sigmoid(), F.silu(z), z.sgn(), z.abs(), z.angle(),
    ),
    "parts": lambda z, w, x, i: (
        z.real, z.imag + 1, z.conj(), z.conj().imag, z.mH, z.H @ z, torch.view_as_real(z),
        torch.view_as_complex(torch.stack([x, x], -1)), torch.complex(x, x[:1]),
        torch.polar(x.abs(), x), z.conj_physical(), z.resolve_conj(), z.to(C128), x.to(z.dtype),
        torch.isreal(z), z.view(x.dtype), x.view(z.dtype), z.bool(), (z * 0).bool(),
    ),
    "comparisons": lambda z, w, x, i: (
        z == w, z != z, z == 0, z.real + 0j == x, torch.where(x > 0, z, w),
        torch.where(x > 0, z, 1),
        torch.where(x > 0, x, 2j * z), z.masked_fill(x < 0, 1j), z.masked_fill(x < 0, 3),
        (z / 0).isnan(), (z / 0).isinf(), z.isfinite(), torch.logical_and(z, x), z.logical_not(),
        torch.isclose(z, w),
    ),
    "reductions": lambda z, w, x, i: (
        z.sum(), z.sum(1, keepdim=True), x.sum(0, dtype=z.dtype), z.mean(1), z.prod(1), z.prod(),
        x.prod(0, dtype=z.dtype), z.prod(0, keepdim=True), z.var(1), z.std(),
        z.std(0, correction=0), torch.linalg.vector_norm(z), z.norm(1, dim=1),
        z.norm(3, dim=0), torch.dist(z, w[:1]), torch.dist(z, x, 1), z.cumsum(0), z.cumprod(1),
        z.any(1), (z * 0).all(), z.count_nonzero(0), *torch.var_mean(z, 1), z[:0].prod(0),
    ),
    "shapes": lambda z, w, x, i: (
        z.t(), z.reshape(-1), z.unflatten(1, (2, 3)), z[:, None], z.expand(2, -1, -1), z.flip(0),
        torch.cat([z, w], 0), torch.cat([x, z], 1), torch.stack([z, w], -1), z[:, 1:5:2], z[0],
        *z.split(4, 1), *z.unbind(1)[:2], z.roll(2, 1), z.repeat(2, 1), z.repeat_interleave(2, 1),
        F.pad(z, (1, 2)), F.pad(z, (1, 1), value=2),
        F.pad(z, (0, 1), mode="reflect"), z.unfold(1, 3, 2), z.tril(), z.triu(1),
        z.diagonal(), torch.zeros_like(z), torch.ones_like(z), torch.full_like(z, 1 - 2j),
        torch.full_like(z, 2), z.new_ones(z.shape[0]), torch.zeros_like(z, dtype=x.dtype),
    ),
    "indices": lambda z, w, x, i: (
        z.gather(1, i % 6), z.index_select(1, i[0] % 6), z[i[:, 0] % 2], z[i % 2, i % 6], z[x > 0],
        z.scatter(1, i % 6, 3.0), z.scatter_add(1, i % 6, w), z.index_put((i[:, 0] % 2,), w),
        z.index_add(0, i[:, 0] % 2, w), z.index_add(0, i[:, 0] % 2, w, alpha=2),
        z.select_scatter(w[:, 0], 1, 2), z.select_scatter(x[:, 0], 1, 2), z.nonzero(),
        z.slice_scatter(w[:, :2], 1, 0, 2), assigned(z, (slice(None), 1), x[:, 0]),
        assigned(z, 0, 1j), z.masked_select(x > 0),
        z.scatter(1, i % 6, w, reduce="add"), z.scatter(1, i % 6, 2j, reduce="add"),
        z.put(i[0] % 6, w[0], accumulate=True),
    ),
    "products": lambda z, w, x, i: (
        z @ w.t(), z @ w.mH, z.mv(w[0]), torch.dot(z[0], w[1]), torch.vdot(z[0], w[1]),
        torch.einsum("ij,kj->ik", z, w), torch.einsum("ij,kj,kl->il", z, w, w),
        torch.einsum("ij->j", z), z[:, None] @ w[:, :, None], torch.outer(z[0], w[1]),
        torch.addmm(z[:, :2], z, w[:2].t(), beta=2j, alpha=1 - 1j), F.linear(z, w[:2]),
        torch.addbmm(z[:1], z[:, None, :1], w[:, None]), F.linear(z, w[:2], w[0, :2]),
        torch.baddbmm(z[:, None], z[:, None, :1], w[:, None], beta=0),
        F.conv1d(z[:, None], w[:2, None, :3], w[0, :2], padding=1),
        F.conv_transpose1d(z[:, None], w[None, :2, :3]),
    ),
}  # fmt: skip


def compared_group(name, compiles):
    """Compares a group at three sizes."""

    def values(n):
        z, w = (torch.randn(n, 6, dtype=C64) for _ in range(2))
        return z, w, torch.randn(n, 6), torch.randint(0, 7, (n, 6))

    dims = ({0: Dim("n", min=2)},) * 4
    compared(GROUPS[name], values(4), dims, [values(2), values(7)], compiles)


@pytest.mark.parametrize("name", GROUPS)
def test_operators(name):
    compared_group(name, compiles=False)


@pytest.mark.rotate(8)
@pytest.mark.parametrize("name", GROUPS)
def test_operators_compiled(name):
    compared_group(name, compiles=True)


COMPILES = [False, pytest.param(True, marks=pytest.mark.rotate(4))]


def test_equations():
    def function(a, b):
        return (
            torch.linalg.inv(a), torch.linalg.solve(a, b), torch.linalg.solve(a, b[:, 0]),
            torch.linalg.solve(a, b.mT, left=False), torch.linalg.matrix_exp(a / 4),
        )  # fmt: skip

    def values(n):
        return torch.randn(n, n, dtype=C128) + 2 * torch.eye(n), torch.randn(n, 2, dtype=C128)

    compared(function, values(4), ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}), [values(3)])


def test_a_singular_matrix_has_a_pivot_of_0():
    a = torch.tensor([[[1, 1j], [1j, -1]], [[0, 0], [0, 0]], [[1, 0], [0, 1j]]], dtype=C64)
    compared(lambda a: torch.linalg.inv_ex(a)[1], (a,), ({},), [])


def test_double_precision():
    def function(z, w):
        return z * w, z / w, z.log(), z.sqrt(), z.asin(), z @ w.mH, fft.fft(z), z.abs(), z.prod(0)

    n = Dim("n")
    values = [tuple(torch.randn(n, 5, dtype=C128) for _ in range(2)) for n in (3, 1, 8)]
    compared(function, values[0], ({0: n}, {0: n}), values[1:])


def test_branch_cuts_and_bounds():
    """On the axes, with zeros of both signs, and where squares are no finite floats."""
    axis = [0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 1e-30, 3e30, -3e30]
    a, b = torch.meshgrid(*(torch.tensor(axis) for _ in range(2)), indexing="ij")
    z = torch.complex(a.reshape(-1), b.reshape(-1))

    def function(z):
        return z.log(), z.sqrt(), z.asin(), z.acos(), z.atan(), z.acosh(), z.angle(), z.abs()

    main = interpreted(from_exported_program(export(Model(function), (z,))))
    exact = z.numpy().astype(np.complex128)
    names = "log sqrt arcsin arccos arctan arccosh angle abs".split()
    with np.errstate(all="ignore"):
        for name, got in zip(names, main(as_array(z)), strict=True):
            wanted = getattr(np, name)(exact)
            got = got.view(np.complex64)[:, 0] if wanted.dtype.kind == "c" else got
            is_bounded = np.isfinite(wanted)
            distance = np.abs(got - wanted) / np.maximum(np.abs(wanted), 1e-30)
            assert np.all(distance[is_bounded] < 2e-6), (name, z[distance.argmax()])


def test_powers_of_zero():
    def function(z, w):
        return z**w, z**0, z**0.3, 0**w

    z, w = torch.zeros(4, dtype=C64), torch.tensor([1 + 1j, 0, -1, 0.5])
    compared(function, (z, w), ({}, {}), [])


def transforms(x):
    """Transforms along a dim of 6, and along dims that run time says."""
    z = torch.complex(x, x.flip(0))
    return (
        *(fft.fft(z, norm=norm) for norm in ("backward", "ortho", "forward")),
        *(fft.ifft(z, dim=0, norm=norm) for norm in ("backward", "ortho", "forward")),
        *(fft.rfft(x, dim=0, norm=norm) for norm in ("backward", "ortho", "forward")),
        *(fft.irfft(z, norm=norm) for norm in ("backward", "ortho", "forward")),
        fft.fft(x, n=9), fft.fft(z, n=4, dim=0), fft.rfft(x, n=5), fft.irfft(z, n=7),
        fft.hfft(z, n=6), fft.ihfft(x), fft.fft2(z), fft.ifft2(z, norm="ortho"), fft.rfft2(x),
        fft.irfft2(z, s=(4, 6), norm="forward"), fft.fftn(z, dim=(1, 0)), fft.rfftn(x, s=(4, 5)),
        fft.fftshift(z), fft.ifftshift(x, dim=0), fft.irfft(z, dim=0), fft.hfft(z, dim=0),
        fft.ihfft(x, dim=0), fft.fftn(z), fft.irfftn(z), fft.ifftn(x, dim=(0, 1)),
        fft.rfft(x[:, :1]),
    )  # fmt: skip


@pytest.mark.parametrize("compiles", COMPILES)
def test_transforms(compiles):
    values = [(torch.randn(n, 6),) for n in (8, 5, 13)]
    compared(transforms, values[0], ({0: Dim.AUTO},), values[1:], compiles)


@pytest.mark.parametrize("compiles", COMPILES)
def test_filters_of_long_signals(compiles):
    """A product of spectra, compiled once for all lengths: short ones, powers of 2, primes."""

    def function(x, w):
        n = x.shape[-1]
        return fft.irfft(fft.rfft(x) * fft.rfft(w, n=n), n=n)

    def values(n):
        return torch.randn(2, n), torch.randn(3, 1, 4)

    lengths = (12, 5, 97, 256, 1023)
    dims = ({1: Dim.AUTO}, {})
    compared(function, values(16), dims, [values(n) for n in lengths], compiles)


class Spectral(torch.nn.Module):
    """A layer of a Fourier neural operator: complex weights of the lowest frequencies."""

    def __init__(self, channels=3, modes=3):
        super().__init__()
        shape = (channels, channels, modes, modes)
        self.low, self.high = (torch.nn.Parameter(torch.randn(shape, dtype=C64)) for _ in range(2))
        self.modes = modes

    def forward(self, x):
        (*lead, height, width), m = x.shape, self.modes
        spectrum, result = fft.rfft2(x), torch.zeros(*lead, height, width // 2 + 1, dtype=C64)
        equation = "bixy,ioxy->boxy"
        result[..., :m, :m] = torch.einsum(equation, spectrum[..., :m, :m], self.low)
        result[..., -m:, :m] = torch.einsum(equation, spectrum[..., -m:, :m], self.high)
        return fft.irfft2(result, s=(height, width)) + x


def test_a_fourier_neural_operator():
    model = Spectral().eval()
    dims = {"x": {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}}
    x = torch.randn(2, 3, 12, 16)
    imported = from_exported_program(export(model, (x,), dynamic_shapes=dims))
    main = interpreted(imported)
    for size in ((2, 12, 16), (3, 9, 11)):
        x = torch.randn(size[0], 3, *size[1:])
        with torch.no_grad():
            assert_alike(main(x.numpy()), model(x))


def test_short_time_transforms():
    window = torch.hann_window(8)

    def function(x):
        settings = {"window": window, "hop_length": 2}
        spectrum = torch.stft(x, 8, return_complex=True, **settings)
        both = torch.stft(x, 8, return_complex=True, onesided=False, center=False, **settings)
        parts = torch.view_as_real(torch.stft(x, 8, return_complex=True, normalized=True))
        return spectrum, spectrum.abs() ** 2, both, parts

    values = [(torch.randn(2, n),) for n in (20, 40, 33)]
    compared(function, values[0], ({1: Dim.AUTO},), values[1:])


def test_signals_of_spectra():
    window = torch.hann_window(8)

    def function(z):
        return torch.istft(z, 8, hop_length=2, window=window)

    x = torch.randn(2, 30)
    z = torch.stft(x, 8, hop_length=2, window=window, return_complex=True)
    compared(function, (z,), ({},), [])


def rotated(x, angles):
    """Queries [batch, length, heads, size], whose pairs of elements are rotated by angles."""
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    factors = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(z * factors[None, :, None]).flatten(3).type_as(x)


class Rotary(torch.nn.Module):
    """Rotary positions as the reference code of Llama 3 writes them, with a table as buffer."""

    def __init__(self, size=8, most=64):
        super().__init__()
        frequencies = 500000.0 ** -(torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(most), frequencies)
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles))

    def forward(self, q, k):
        factors = self.table[: q.shape[1]].view(1, q.shape[1], 1, -1)
        q_, k_ = (torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (q, k))
        results = (torch.view_as_real(z * factors).flatten(3) for z in (q_, k_))
        return tuple(result.type_as(q) for result in results)


@pytest.mark.parametrize("level", [0, 3])
def test_rotary_positions(level):
    model, n = Rotary(), Dim("n", min=1, max=64)
    q = torch.randn(2, 5, 4, 8)
    dims = ({1: n}, {1: n})
    compiled = frontend.compile(model, (q, q[:, :, :2]), dynamic_shapes=dims, opt_level=level)
    for length in (5, 1, 64):
        q, k = torch.randn(2, length, 4, 8), torch.randn(2, length, 2, 8)
        for got, wanted in zip(compiled(q, k), model(q, k), strict=True):
            torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


class Filter(torch.nn.Module):
    """A complex parameter, a complex state, and an input that is changed."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, dtype=C64))
        self.register_buffer("total", torch.zeros(3, dtype=C64))
        self.register_buffer("turned", torch.randn(3, dtype=C64).conj())

    def forward(self, z, scale):
        with torch.no_grad():
            self.total.add_(z.sum(0))
            z.mul_(scale)
            return {"z": z + self.weight * self.turned, "sum": z.sum(), "none": z[:0]}


def test_compiled_modules_take_complex_tensors():
    model, n = Filter(), Dim("n")
    example = torch.randn(4, 3, dtype=C64), torch.tensor(2 - 1j)
    dims = {"z": {0: n}, "scale": None}
    compiled = frontend.compile(model, example, dynamic_shapes=dims, opt_level=1)
    assert str(compiled.executable["main"]).startswith("main(inout z: f32[")
    inputs = [
        torch.randn(2, 3, dtype=C64),
        torch.randn(3, 5, dtype=C64).t(),  # not contiguous
        torch.randn(4, 3, dtype=C64).conj(),  # with conjugates to be resolved
        torch.randn(0, 3, dtype=C64),
    ]
    for z in inputs:
        before, start = z.clone(), model.total.clone()
        got = compiled(z, torch.tensor(1 + 2j))
        scaled = before * (1 + 2j)
        torch.testing.assert_close(z, scaled)
        torch.testing.assert_close(model.total - start, before.sum(0), rtol=1e-4, atol=1e-5)
        wanted = scaled + (model.weight * model.turned).detach()
        torch.testing.assert_close(got["z"], wanted, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(got["sum"], scaled.sum(), rtol=1e-5, atol=1e-5)
        assert (got["none"].shape, got["none"].dtype) == ((0, 3), C64)
    for own, other in ((torch.ones(2, 3), example[1]), (example[0], torch.ones(2))):
        with pytest.raises(UsageError, match=r"is complex, but got a tensor of torch\.float32"):
            compiled(own, other)


def test_branches_and_loops():
    def function(z, x):
        chosen = torch.cond(
            x.sum() > 0, lambda z: (z * 1j, z.abs()), lambda z: (z / 2, z.angle()), (z,)
        )
        _, power = torch._higher_order_ops.while_loop(
            lambda i, z: i < 3, lambda i, z: (i + 1, z * z), (torch.tensor(0), z)
        )
        total, rows = torch._higher_order_ops.scan(
            lambda a, b: (a + b, a * b), torch.zeros(2, dtype=C64), z, dim=0
        )
        return *chosen, power, total, rows

    values = [(torch.randn(n, 2, dtype=C64), sign * torch.ones(2)) for n, sign in ((3, 1), (5, -1))]
    compared(function, values[0], ({0: Dim("n", min=2)}, {}), values[1:])


def test_graphs_of_dynamo():
    def function(z, x):
        return (z * x).conj().real, z.conj()

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=relax, dynamic=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # no graph is left to PyTorch
        for n in (3, 6):
            z, x = torch.randn(n, 5, dtype=C64), torch.randn(n, 5)
            for got, wanted in zip(compiled(z, x), function(z, x), strict=True):
                torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


def test_custom_operators_take_pairs():
    pairs = []

    def product(call, a, b):
        pairs.append((a, b))
        return find("aten::mul.Tensor", True)(call, a, b)

    program = export(Model(lambda z: z * z.conj()), (torch.randn(3, dtype=C64),))
    main = interpreted(from_exported_program(program, operators={"aten::mul.Tensor": product}))
    z = torch.randn(3, dtype=C64)
    assert_alike(main(as_array(z)), z * z.conj())
    assert [type(each).__name__ for each in pairs[0]] == ["Pair", "Pair"]


@pytest.mark.parametrize(
    ("function", "example", "message"),
    [
        (
            lambda z: torch.linalg.qr(z)[0], torch.ones(2, 2, dtype=C64),
            "not supported: aten::linalg_qr of complex tensors (node 'linalg_qr')",
        ),
        (
            lambda z: z.cumsum(0).logcumsumexp(0), torch.ones(2, dtype=C64),
            "not supported: aten::logcumsumexp",
        ),
        (
            lambda z: z.scatter(0, torch.tensor([1]), 2, reduce="multiply"),
            torch.ones(2, dtype=C64),
            r"node 'scatter' \(aten::scatter.value_reduce.*by 'multiply'; supported is add",
        ),
        (lambda z: z.to(torch.complex32), torch.ones(2, dtype=C64), "elements of complex32"),
        (
            lambda z: z.view(torch.float64), torch.ones(2, dtype=C64),
            r"node 'view' \(aten::view.dtype.*views elements of torch.complex64 as torch.float64",
        ),
    ],
)  # fmt: skip
def test_refused(function, example, message):
    program = export(Model(function), (example,))
    pattern = message if message.startswith("node ") else re.escape(message)
    with pytest.raises(ModelError, match=pattern):
        from_exported_program(program)
