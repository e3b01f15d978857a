"""Operators of exported programs give what PyTorch gives, also at sizes of no example."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

import relax_mlir
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.testing.imported import interpreted


def assigned(x, key, values):
    """A tensor with other elements at indices."""
    x = x.clone()
    x[key] = values
    return x


GROUPS = {
    "elementwise": lambda x, y, i: (
        x.abs().sqrt(), x.exp() + 1, x - 2 * y, torch.rsub(x, y, alpha=3), x / (y * y + 1),
        x.clamp(-0.5, 0.5), x.clamp(min=y), torch.where(x > y, x, 0.5), x.pow(2), (x * x) ** 1.5,
        x.masked_fill(x < 0, -1), F.gelu(x), F.silu(x), F.elu(x), F.softplus(x), F.hardswish(x),
        F.mish(x), F.leaky_relu(x), torch.erf(x), torch.sign(x), x.round(), torch.atan2(x, y),
        torch.fmod(x, y), torch.remainder(x, y), torch.div(x, y, rounding_mode="floor"),
        torch.nan_to_num(x / 0), torch.maximum(x, y), x.isfinite(), x.logical_not(), x.exp2(),
    ),
    "integers": lambda x, y, i: (
        i + 1, i // 3, i % 3, i * x, i / 2, i.float() - 0.5, i == 2, i & 3, i << 1, ~i, i > x, -i,
        torch.div(i - 3, 2, rounding_mode="trunc"), i.to(torch.uint8), (i > 1) | (i == 0), i ** 2,
    ),
    "reductions": lambda x, y, i: (
        x.sum(), x.sum(0), x.mean((0, 1), keepdim=True), x.amax(1), x.max(1)[0], x.max(1)[1],
        x.argmin(0), x.argmax(), x.var(1), x.std(1, correction=0),
        x.var(1, correction=0.5), x.std(0, correction=2.5), x.logsumexp(1), x.cumsum(0),
        x.norm(dim=1), x.prod(1), (x > 0).any(1), (x > -9).all(), i.sum(), x.softmax(1),
        torch.histc(x, 5, -1, 1),
        x.log_softmax(0), F.layer_norm(x, (6,)), F.normalize(x), i.cumsum(1), x.norm(1, dim=0),
        torch.any(x > 0, dim=()), torch.all(x > 0, dim=()), x[0, 0].var(correction=0),
    ),
    "shapes": lambda x, y, i: (
        x.t(), x.reshape(-1), x.view(x.shape[0], 2, 3), x.unsqueeze(1), x[:, None].squeeze(1),
        x.expand(2, -1, -1), torch.cat([x, y], 0), torch.stack([x, y], -1), x[:, 1:5:2], x[:, -2:],
        x[0], *x.split(4, 1), *x.chunk(3, 1), x.flip(0), x.roll(2, 1), x.repeat(2, 1), x[:, :0],
        F.pad(x, (1, 2)), F.pad(x, (-1, 1), value=3), x.repeat_interleave(2, 1), x.flatten(),
        x.unfold(1, 3, 2), x.tril(), x.triu(1), torch.zeros_like(x), x.new_ones(x.shape[0]),
        torch.arange(x.shape[0]), torch.full((x.shape[0], 2), 1.5), *x.unbind(1)[:2],
        torch.arange(2 * x.shape[0], 0, -2), torch.arange(5, -1, -1, dtype=torch.float32),
    ),
    "indices": lambda x, y, i: (
        x.gather(1, i % 6), x.index_select(1, i[0] % 6), x[:, i[0] % 6], x[i[:, 0] % 2],
        x[i % 2, i % 6], x.scatter(1, i % 6, 9.0), x.scatter_add(1, i % 6, y),
        F.embedding(i % 2, x),
        x.sort(1)[0], x.argsort(1), x.topk(2, 1)[0], x.topk(2, 1, largest=False)[1],
        F.one_hot(i % 5, 5), x.index_put((i[:, 0] % 2,), y), x.index_add(0, i[:, 0] % 2, y),
        x.select_scatter(y[:, 0], 1, 2), x.slice_scatter(y[:, :2], 1, 0, 2), x[x > 0], x.nonzero(),
        x[0, 0].gather(0, i[0, 0] * 0), x[0].gather(0, i[0, 0] % 6),
        x[0].gather(0, i.new_zeros(2, 0)),
    ),
    "scatters": lambda x, y, i: (
        *(x.index_reduce(1, i[0, :3] % 6, y[:, :3], how) for how in ("mean", "prod", "amin")),
        i.index_reduce(0, i[:2, 0] % 2, i[:2], "mean", include_self=False),
        x.scatter_reduce(1, i % 6, y, "amax", include_self=False),
        x.scatter_reduce(1, i % 6, y, "mean", include_self=False),
        x.put(i[0] - 6, y[0]), x.put(i[0], y[0], accumulate=True),
        assigned(x[:, None], (slice(None), slice(None), i[0] % 6), y[0]),
        assigned(x, (slice(None), i[0, :2] % 6), y[:, :2]),
        assigned(x[:, None], (i[:2, 0] % 2, slice(None), i[:2, 1] % 6), y[:2, :1]),
        *F.adaptive_max_pool2d(x[None], (2, 4), return_indices=True),
        *F.adaptive_max_pool1d(x, 5, return_indices=True),
        torch.nextafter(x, y), torch.nextafter(x * 0, y), x.angle(),
    ),
    "polynomials": lambda x, y, i: (
        torch.special.chebyshev_polynomial_w(x, i), torch.special.hermite_polynomial_h(x, 4),
        torch.special.shifted_chebyshev_polynomial_t(x, i - 1),
        torch.special.laguerre_polynomial_l(x, i), torch.special.legendre_polynomial_p(0.5, i),
    ),
    "distinct": lambda x, y, i: (
        *i.unique(return_inverse=True, return_counts=True), i.unique(dim=0),
        *i.unique_consecutive(return_inverse=True, return_counts=True),
        *(i // 5).unique_consecutive(dim=0, return_inverse=True, return_counts=True),
    ),
    "functions": lambda x, y, i: (
        torch.lgamma(x * 3), torch.digamma(x * 3), torch.erfinv(x / 4), torch.i0(x * 9),
        torch.special.i1e(x * 30), torch.fmax(x, y), torch.gcd(i, i.flip(0)), torch.lcm(i, i - 3),
        *torch.frexp(x * 100), torch.ldexp(x, i), torch.round(x, decimals=1),
        torch.special.i0e(x), torch.special.i1(x), torch.fmin(x, y), torch.cdist(x, y, p=1.0),
    ),
    "special": lambda x, y, i: (
        torch.erfc(x), torch.special.erfcx(x), torch.special.log_ndtr(x * 9), torch.erfc(i),
        torch.special.ndtri(x.sigmoid()), torch.polygamma(0, y.abs()), torch.polygamma(3, x),
        torch.special.zeta(x.abs() + 1.5, y.abs()), torch.special.zeta(3, y.abs()),
        torch.igamma(x.abs(), y.abs()), torch.igammac(x.abs() * 9, y.abs() * 9),
        torch.special.bessel_j0(x * 9), torch.special.bessel_j1(x * 9), torch.logcumsumexp(x, 0),
        torch.special.bessel_y0(x.abs()), torch.special.bessel_y1(x.abs() * 9),
        torch.special.modified_bessel_i0(x), torch.special.modified_bessel_i1(x),
        torch.special.modified_bessel_k0(x.abs()), torch.special.modified_bessel_k1(x.abs()),
        torch.special.scaled_modified_bessel_k0(x.abs()), torch.special.airy_ai(x),
        torch.special.scaled_modified_bessel_k1(x.abs()), torch.special.spherical_bessel_j0(x),
    ),
    "orders": lambda x, y, i: (
        x.median(), *x.median(1), *x.nanmedian(0), *x.kthvalue(2, 1), i.mode(1)[0], *x.cummax(0),
        *x.cummin(1), torch.searchsorted(x.sort(1)[0], y), torch.isin(i, i[0]),
        torch.bucketize(0.5, x[0].sort()[0]), torch.searchsorted(x[0].sort()[0], 0.5),
        torch.diagonal_scatter(x[:, :2], x[:2, 0] * 0),
        x.as_strided_scatter(y[:2, :2], (2, 2), (1, 2)),
    ),
    "masks": lambda x, y, i: (
        x[i[:, 0] > 2, 1], x[:, i[0] > 2], x[..., None][i > 1, 0],
        x[..., None][i > 2, i[0, :1] * 0],
        assigned(x, (i[:, 0] > 2, 1), y[0, 0]), assigned(x, i > 2, y[i > 2]),
        x.index_put((i[:, 0] > 2,), y[0], accumulate=True), x[0, 0].nonzero(),
        x[0].masked_scatter(i > 2, y), torch.nonzero_static(x > 0, size=5),
        torch.nonzero_static(x[0] > 0, size=9, fill_value=7),
        torch.tril_indices(4, 6, -1), torch.triu_indices(4, 6, 2), x[0, 0].unfold(0, 1, 1),
    ),
    "runs": lambda x, y, i: (
        torch.repeat_interleave(x, i[0], 1), torch.bincount(i[:, 0]),
        torch.bincount(i[:, 1], x[:, 1], minlength=9),
        *torch.tensor_split(x, i[0, :3].sort()[0] - 3, 1),
        *(
            F.embedding_bag(i[:, 0] % 2, x, torch.tensor([0, 0, 1]), mode=how)
            for how in ("sum", "mean", "max")
        ),
    ),
    "matrices": lambda x, y, i: (
        torch.linalg.det(x[:2, :2]), *torch.linalg.slogdet(x[:2, :2]),
        torch.linalg.solve(x[:2, :2], y[:2]), F.bilinear(x, y, torch.ones(2, 6, 6)),
        torch.addbmm(x[:1], x[:, None], y[:, :, None] * x[:, None]), torch.dist(x, y),
        F.batch_norm(x, None, None, training=True), F.instance_norm(x[None]),
        torch.linalg.solve_triangular(x[:2, :2].tril() + 4, y[:2], upper=False),
    ),
    "products": lambda x, y, i: (
        x @ y.t(), torch.einsum("ij,kj->ik", x, y), F.linear(x, y[:2]),
        x[:, None] @ y[:, :, None],
        F.linear(x, torch.ones(3, 6), torch.ones(3)), torch.addmm(x[:1], x, torch.ones(6, 6)),
    ),
}  # fmt: skip


class Model(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


INTERPRETED = ("functions", "special", "orders", "matrices")
"""Groups of operators whose parts are compiled in other tests."""


def compared(model, example, dims, others, interprets=False):
    """Compares a module, exported for an example, with PyTorch at other sizes."""
    with torch.no_grad():
        program = torch.export.export(
            model.eval(), example, dynamic_shapes=dims and {"values": dims}
        )
        imported = from_exported_program(program)
        main = (
            interpreted(imported)
            if interprets
            else relax_mlir.compile(imported, opt_level=1)["main"]
        )
        for values in (example, *others):
            got = main(*[value.numpy() for value in values])
            wanted = model(*values)
            got, wanted = (r if isinstance(r, tuple) else (r,) for r in (got, wanted))
            for position, (a, b) in enumerate(zip(got, wanted, strict=True)):
                b = b.numpy()
                assert (a.shape, a.dtype) == (b.shape, b.dtype), position
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=str(position))


@pytest.mark.parametrize("name", GROUPS)
def test_operators(name):
    def values(n):
        return torch.randn(n, 6), torch.randn(n, 6), torch.randint(0, 7, (n, 6))

    n = Dim("n", min=2)
    dims = ({0: n}, {0: n}, {0: n})
    others = [values(3), values(9)]
    compared(Model(GROUPS[name]), values(4), dims, others, name in INTERPRETED)


def factors(x, y):
    """Of matrices [n, 6], with at most 6 rows; what is unique of them."""
    return (
        *torch.linalg.lu(x), *torch.linalg.lu_factor_ex(x),
        torch.lu_unpack(*torch.linalg.lu_factor(x))[0],
        torch.linalg.lu_solve(*torch.linalg.lu_factor(x[:2, :2]), y[:2], adjoint=True),
        torch.linalg.lu_solve(*torch.linalg.lu_factor(x[:2, :2]), y[:, :2], left=False),
        *torch.linalg.qr(x), torch.linalg.qr(x, "complete")[0], torch.linalg.qr(x, "r")[1],
        torch.linalg.householder_product(y.t()[:, :2], x[:2, 0]),
        torch.ormqr(y.t()[:, :2], x[:2, 0], x, left=False, transpose=True),
        torch.linalg.eigvalsh(x.t() @ x), torch.linalg.eigh(x[:, :2].t() @ x[:, :2])[1].abs(),
        torch.linalg.svdvals(x), torch.linalg.cond(x[:2, :2] + 4 * torch.eye(2)),
        torch.linalg.svd(x[:2])[0].abs(), torch.linalg.matrix_rank(x), torch.linalg.norm(x, "nuc"),
        torch.linalg.pinv(x[:2]), torch.linalg.pinv(x, rtol=0.5), torch.linalg.pinv(x, atol=0.1),
        torch.matrix_exp(x[:2, :2]), torch.linalg.matrix_power(x[:2, :2], -2),
        *torch.linalg.inv_ex(x[:2, :2] + torch.eye(2)), torch.linalg.cholesky_ex(x[:2, :2] * 0)[1],
    )  # fmt: skip


def test_factors_of_matrices():
    n = Dim("n", min=2, max=6)
    pairs = [(torch.randn(n, 6), torch.randn(n, 6)) for n in (4, 3, 6)]
    compared(Model(factors), pairs[0], ({0: n}, {0: n}), pairs[1:], True)


def test_half_precision():
    def function(x):
        norms = x.norm(dim=1), x.norm(), x.norm(3), x.norm(1), x.norm(float("inf"))
        return *norms, F.rms_norm(x / 1e6, (6,))

    program = torch.export.export(Model(function), (torch.randn(4, 6).half(),))
    x = torch.randn(4, 6).half() * 200 + 1000  # whose squares are no f16
    got = interpreted(from_exported_program(program))(x.numpy())
    for a, b in zip(got, function(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3)


def test_operators_that_pytorch_exports_with_known_dims_only():
    def function(x, y, i):
        weighted = torch.histogram(x, 4, range=(-1.0, 1.0), weight=y.abs(), density=True)
        begins, lengths = torch.tensor([0, 2, 2, 5]), torch.stack([i, 6 - i], 1)
        return (
            *(*torch.histogram(x, 5), *weighted, *torch.histogram(x, y[0].sort()[0])),
            *(
                torch.segment_reduce(x, how, offsets=begins)
                for how in ("sum", "mean", "max", "min", "prod")
            ),
            torch.segment_reduce(x, "mean", lengths=lengths, axis=1),
            torch.segment_reduce(x, "max", lengths=lengths, axis=1, initial=0.5),
            F.embedding(i % 2, x.clone(), max_norm=1.0),
            *(
                F.interpolate(x[None, None], size, mode=mode, antialias=True, align_corners=corners)
                for mode in ("bilinear", "bicubic")
                for size in ((3, 4), (9, 5))
                for corners in (False, True)
            ),
            F.embedding_bag(i % 3, x, torch.tensor([0, 3, 3]), mode="mean", padding_idx=1),
        )

    values = torch.randn(7, 6), torch.randn(7, 6), torch.randint(0, 7, (7,))
    compared(Model(function), values, None, [], True)


def test_views_of_other_memory_are_refused():
    x = torch.randn(9)[2:6]
    model = Model(lambda x: x.as_strided((2, 2), (1, 2), 1))
    program = torch.export.export(model, (x,), dynamic_shapes={"values": ({0: Dim.AUTO},)})
    with pytest.raises(relax_mlir.errors.ModelError, match="is a view of; call clone"):
        from_exported_program(program)


@pytest.mark.parametrize(
    ("function", "values", "message"),
    [
        (torch.bincount, [3, -1], "bincount has an integer that is negative"),
        (lambda n: torch.segment_reduce(n.float(), "sum", lengths=n), [2, 1], "do not add up"),
        (lambda n: torch.segment_reduce(n.float(), "sum", lengths=n), [3, -1], "are negative"),
    ],
)
def test_values_that_pytorch_refuses(function, values, message):
    good = torch.tensor([1, 1])
    main = interpreted(from_exported_program(torch.export.export(Model(function), (good,))))
    main(good.numpy())
    with pytest.raises(relax_mlir.errors.RelaxError, match=message):
        main(np.array(values))


def test_distances_of_pairs():
    for rows in (4, 1):
        x = torch.randn(rows, 3)
        program = torch.export.export(Model(lambda x: (F.pdist(x), F.pdist(x, 1.0))), (x,))
        got = interpreted(from_exported_program(program))(x.numpy())
        for a, b in zip(got, (F.pdist(x), F.pdist(x, 1.0)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_indices_from_the_end():
    def function(x, y):
        n = y.shape[0]
        taken = x[-n:], x[-n - 1 : 1 - n], x[:-n], x[-n], x[1 - n :], x[n - 2 :]
        return *taken, x.select_scatter(x[0] * 0, 0, -n), x.slice_scatter(y, 0, -n)

    def values(n, m):
        return torch.randn(n), torch.randn(m)

    dims = ({0: Dim("n", min=7)}, {0: Dim("m", min=3, max=5)})
    others = [values(*size) for size in ((7, 5), (12, 3))]
    compared(Model(function), values(9, 4), dims, others)


def images(x):
    """Operators of images."""
    weight = torch.linspace(-1, 1, 4 * 3 * 3 * 3).reshape(4, 3, 3, 3)
    y = F.conv2d(x, weight, stride=2, padding=1)
    return (
        y,
        F.conv_transpose2d(y, weight, stride=2),
        F.max_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, 1),
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.interpolate(x, size=(5, 7), mode="nearest"),
        F.pixel_shuffle(y, 2),
        F.group_norm(y, 2),
        F.batch_norm(x, torch.ones(3), torch.full((3,), 2.0)),
        F.pad(x, (1, 1, 2, 2), mode="reflect"),
        F.conv1d(x.flatten(2), weight[:, :, 0], padding="same"),
    )


def test_images():
    b, h = Dim("b"), Dim("h", min=4)
    dims = ({0: b, 2: 2 * h},)
    others = [(torch.randn(1, 3, 8, 10),), (torch.randn(3, 3, 14, 10),)]
    compared(Model(images), (torch.randn(2, 3, 12, 10),), dims, others)


def test_filters_of_any_extents():
    def function(x, w, v, one):
        return (
            F.conv2d(x, w, w[:, 0, 0, 0], stride=(2, 1), padding=1, dilation=(1, 2)),
            F.conv2d(x, w, padding="same"),
            F.conv1d(x[0, :, 0], w[:, :, 0]),
            F.conv3d(x[..., None], w[..., None], padding=(1, 0, 0)),
            F.conv2d(torch.cat([x, x], 1), v, groups=2),
            F.conv_transpose2d(x, one, stride=(3, 2), padding=(1, 0), output_padding=1),
            F.conv_transpose1d(torch.cat([x[:, :, 0]] * 2, 1), v[:, :, 0], dilation=2, groups=2),
        )

    def values(n, c, h, i, j):
        one = torch.randn(c, 2, i, j)
        return torch.randn(n, c, h, 9), torch.randn(4, c, i, j), torch.randn(2 * c, c, i, j), one

    dims = tuple(
        dict.fromkeys(axes, Dim.AUTO) for axes in ((0, 1, 2), (1, 2, 3), range(4), (0, 2, 3))
    )
    others = [values(2, 3, 8, 5, 3)]
    compared(Model(function), values(3, 2, 7, 3, 5), dims, others, True)
    transposed = Model(lambda x, w, v, one: F.conv_transpose2d(x, one, stride=(3, 2)))
    compared(transposed, values(3, 2, 7, 3, 5), dims, others)


def test_sizes_of_symbols():
    def function(x, like):
        _, _, h, w = like.shape
        return (
            F.interpolate(x, (h, w), mode="area"),
            F.scaled_dot_product_attention(x, x, x),
            F.pad(x, (-1, 2, 1, -2), mode="replicate"),
            *torch.native_batch_norm(
                x, None, None, x[0, :, 0, 0], x[0, :, 0, 0] ** 2 + 1, False, 0.1, 1e-5
            ),
        )

    def values(n, c, h, w, size):
        return torch.randn(n, c, h, w), torch.empty(0, 0, *size)

    dims = (dict.fromkeys(range(4), Dim.AUTO), {2: Dim.AUTO, 3: Dim.AUTO})
    others = [values(2, 5, 8, 6, (4, 9)), values(4, 3, 5, 4, (2, 7))]
    compared(Model(function), values(3, 2, 6, 7, (5, 3)), dims, others, True)


def test_attention():
    def function(q, k, mask):
        plain = F.scaled_dot_product_attention(q, k, k)
        masked = F.scaled_dot_product_attention(q, k, k, mask)
        return plain, masked, F.scaled_dot_product_attention(q, q, q, is_causal=True)

    def values(n, m):
        return torch.randn(2, 4, n, 8), torch.randn(2, 4, m, 8), torch.rand(n, m) > 0.3

    n, m = Dim("n"), Dim("m")
    dims = ({2: n}, {2: m}, {0: n, 1: m})
    compared(Model(function), values(3, 5), dims, [values(6, 4), values(2, 9)])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_scales_that_are_no_integers(mode):
    model = Model(lambda x: F.interpolate(x, scale_factor=1.5, mode=mode))
    others = [(torch.randn(2, 3, n, 5),) for n in (4, 7)]
    compared(model, (torch.randn(2, 3, 3, 5),), ({2: Dim("h", min=2)},), others, True)
