"""Branches, loops, and sizes that run time computes, in exported programs."""

import numpy as np
import pytest
import torch
from torch._higher_order_ops import map as map_rows
from torch._higher_order_ops import scan, while_loop
from torch.export import Dim, export

import relax_mlir
from relax_mlir.errors import ExecutionError, ModelError
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.testing.imported import interpreted


class Model(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


def imported(function, example):
    dims = tuple({0: Dim.AUTO} if x.dim() else {} for x in example)
    return from_exported_program(export(Model(function), example, dynamic_shapes={"values": dims}))


def check(function, *inputs, compiled=False):
    """Compares a function, exported for the first inputs, with PyTorch for all."""
    model = imported(function, inputs[0])
    main = relax_mlir.compile(model, opt_level=1)["main"] if compiled else interpreted(model)
    for values in inputs:
        got, wanted = main(*(value.numpy() for value in values)), function(*values)
        pair = [each if isinstance(each, tuple) else (each,) for each in (got, wanted)]
        for a, b in zip(*pair, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


def rows(*counts):
    return [(torch.randn(n, 2),) for n in counts]


def branches(x, flag):
    n = x.shape[0]
    return torch.cond(flag, lambda x: x.sin() + n, lambda x: x.cos() - n, (x,))


def doubled(x):
    return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 2), (0, x))


def test_branches_and_loops():
    def both(x, flag):
        return branches(x, flag), *doubled(x)

    inputs = [(torch.randn(n, 2), torch.tensor(flag)) for n, flag in ((3, True), (5, False))]
    check(both, *inputs, compiled=True)


def test_loops_of_tensors():
    start = (torch.tensor(0.0), torch.tensor(0))

    def function(x):
        return while_loop(
            lambda total, i: i < x.shape[0], lambda total, i: (total + 0.75, i + 1), start
        )

    check(function, *rows(3, 5))


def test_scan():
    check(lambda x: scan(lambda c, r: (c + r, c * r), x[0] * 0, x, dim=0), *rows(3, 5))


def test_map():
    check(lambda x: map_rows(lambda r, y: r.sin() + y, x, x[0].clone()), *rows(3, 5))


def test_integers_that_may_be_negative():
    def function(x, i):
        n = i.item()
        return x + n, x * ((n * 2 - 5) // 3), x[n]

    check(function, *[(torch.randn(5), torch.tensor(n)) for n in (2, -4, 0)])
    parts = [(torch.randn(5), torch.tensor(n)) for n in (2, -4, 0, 9, -7)]
    check(lambda x, i: (x[: i.item()], x[i.item() :], x[1 : i.item() : 2]), *parts)
    check(lambda x, y: torch.isin(x, y), (torch.arange(9), torch.arange(5)))  # it compares sizes
    with pytest.raises(ModelError, match=r"may be negative for a size"):
        imported(
            lambda x, i: torch.nn.functional.pad(x, (0, i.item())),
            (torch.randn(5), torch.tensor(2)),
        )


def test_fractions_of_sizes():
    def function(x, i):
        return (
            x * (x.shape[0] / 2),
            x * i.sum().item(),
            x.new_zeros(torch.sym_int(x.shape[0] * 1.5)),
        )

    check(function, *[(torch.randn(n), torch.randn(m)) for n, m in ((3, 2), (4, 7))])


def test_checks_of_sizes():
    def function(x, i):
        n = i.item()
        torch._check(n >= 2)
        torch._check(n <= 7)
        return x.sum() + torch.ones(n)

    model = imported(function, (torch.ones(3), torch.tensor(4)))
    main = interpreted(model)
    np.testing.assert_array_equal(main(np.ones(3, np.float32), np.array(7)), np.full(7, 4))
    for n in (1, 8):
        with pytest.raises(ExecutionError, match="u0"):
            main(np.ones(3, np.float32), np.array(n))


def test_conditions_of_the_export():
    def function(x):
        return x.new_zeros(int(x.shape[0] * 1.5)), x.reshape(2, -1)  # the former is a constant

    main = interpreted(imported(function, (torch.ones(4),)))
    assert [each.shape for each in main(np.ones(4, np.float32))] == [(6,), (2, 2)]
    for n in (5, 6):
        with pytest.raises(ExecutionError, match=r"exported for Eq\(TruncToInt|mod 2 == 0"):
            main(np.ones(n, np.float32))
