"""Random programs of complex tensors give what PyTorch gives, interpreted and compiled."""

import random

import numpy as np
import pytest
import torch
from torch import fft
from torch.export import Dim, export

import relax_mlir
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.frontends.torch.types import as_array
from relax_mlir.testing.imported import interpreted

WIDTH = 6

STEPS = {
    "add": lambda z, w: z + w.conj(),
    "multiply": lambda z, w: z * w,
    "scale": lambda z, w: (1 - 2j) * z - w.real,
    "divide": lambda z, w: z / (w.abs() + 1),
    "quotient": lambda z, w: w / (z + 3 + z.abs()),
    "exp": lambda z, w: torch.exp(z) + w,
    "sin": lambda z, w: torch.sin(z) * torch.cosh(w),
    "tanh": lambda z, w: torch.tanh(z) - torch.asinh(w),
    "power": lambda z, w: (z.abs() + 1 + 0.5j * z.abs()) ** w,
    "root": lambda z, w: torch.sqrt(2 + z.abs() + w) * torch.log(3 + w.abs() + z),
    "polar": lambda z, w: torch.polar(z.abs(), w.imag),
    "parts": lambda z, w: torch.complex(z.imag, w.real),
    "views": lambda z, w: torch.view_as_complex(torch.view_as_real(z).flip(-1).contiguous()),
    "where": lambda z, w: torch.where(z.real > w.imag, z, w),
    "flip": lambda z, w: z.flip(0) - w.roll(2, 1),
    "halves": lambda z, w: torch.cat([w[:, 3:], z[:, :3].conj()], 1),
    "rows": lambda z, w: z[torch.arange(z.shape[0] - 1, -1, -1)] + w[:1],
    "columns": lambda z, w: z.index_select(1, torch.tensor([5, 0, 3, 3, 1, 2])) * w[:, :1],
    "written": lambda z, w: z.slice_scatter(w.real[:, :2].to(z.dtype), 1, 2, 4),
    "sums": lambda z, w: z - w.cumsum(1) / WIDTH,
    "means": lambda z, w: z - z.mean(1, keepdim=True) + w.prod(1, keepdim=True),
    "norms": lambda z, w: z / (1 + w.norm(dim=1, keepdim=True)),
    "gram": lambda z, w: z @ (w.mH @ z) / (1 + (w.mH @ z).abs().amax()),
    "outer": lambda z, w: torch.einsum("nj,mj->nm", z, w) @ w / 9,
    "fft": lambda z, w: fft.fft(z, norm="ortho") + w,
    "ifft": lambda z, w: fft.ifft(w, dim=0, norm="forward") - z,
    "filter": lambda z, w: fft.irfft(fft.rfft(z.real) * fft.rfft(w.imag), n=WIDTH) * 1j + z,
}


class Program(torch.nn.Module):
    """Random steps, each of two of the values before it; what becomes too great is scaled down."""

    def __init__(self, seed, count=6):
        super().__init__()
        choose = random.Random(seed)
        self.steps = [
            (choose.choice(list(STEPS)), choose.randrange(2 + i), choose.randrange(2 + i))
            for i in range(count)
        ]

    def forward(self, z, w):
        values = [z, w]
        for name, a, b in self.steps:
            result = STEPS[name](values[a], values[b])
            values.append(result / (1 + result.abs() / 4))
        return torch.view_as_real(values[-1]), *values[2:]


def check(seed, level=None):
    """Compares a program with PyTorch at three sizes; unless a level says so it is interpreted."""
    torch.manual_seed(seed)
    program = Program(seed)

    def values(n):
        return tuple(torch.randn(n, WIDTH, dtype=torch.complex128) for _ in range(2))

    shapes = {"z": {0: Dim.AUTO}, "w": {0: Dim.AUTO}}
    imported = from_exported_program(export(program, values(4), dynamic_shapes=shapes))
    if level is None:
        main = interpreted(imported)
    else:
        main = relax_mlir.compile(imported, opt_level=level)["main"]
    for n in (4, 3, 7):
        given = values(n)
        for got, wanted in zip(main(*map(as_array, given)), program(*given), strict=True):
            np.testing.assert_allclose(
                got, as_array(wanted), rtol=1e-9, atol=1e-9, err_msg=str(program.steps)
            )


def test_a_random_program():
    check(0)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1, 60))
def test_random_programs(seed):
    check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("level", range(4))
def test_random_programs_compiled(level):
    check(100 + level, level)
