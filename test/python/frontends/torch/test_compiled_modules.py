"""Modules that are compiled by export: trees of tensors, state, custom operators."""

import numpy as np
import pytest
import torch
from torch.export import Dim, export

import relax_mlir.frontends.torch as frontend
from relax_mlir.decompositions.emit import multiply
from relax_mlir.errors import UsageError
from relax_mlir.testing.imported import interpreted


class Counter(torch.nn.Module):
    """Counts calls, doubles its input in place, and returns a tree."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x, y, *, flag=True):
        self.count.add_(1)
        x.mul_(2)
        with torch.no_grad():
            z = self.layer(x) + y
        return {"z": z + self.count, "n": x.shape[0], "nothing": None}


def test_state_is_updated():
    model = Counter()
    n = Dim("n")
    dims = {"x": {0: n}, "y": {0: n}, "flag": None}
    ones = torch.ones(3, 2)
    compiled = frontend.compile(model, (ones, ones.clone()), {"flag": True}, dims, opt_level=1)
    for x in (torch.ones(5, 2), torch.ones(2, 5).t()):  # contiguous or not
        y, before, start = torch.randn(5, 2), x.clone(), model.count.clone()
        got = compiled(x, y, flag=True)
        assert (model.count - start).item() == 1
        torch.testing.assert_close(x, before * 2)
        wanted = model.layer(x) + y + model.count
        assert (got["n"], got["nothing"]) == (5, None)
        torch.testing.assert_close(got["z"], wanted.detach())
    with pytest.raises(UsageError, match="compiled for flag = True, but got False"):
        compiled(ones, ones, flag=False)
    with pytest.raises(UsageError, match="keywords"):
        compiled(ones, ones)


def test_state_of_an_imported_program():
    program = export(Counter(), (torch.ones(3, 2), torch.ones(3, 2)))
    imported = frontend.from_exported_program(program)
    assert imported.inputs == ("x", "y", "count")
    assert imported.outputs[-2:] == ("count", "x")
    assert list(imported.state) == ["count"]
    main, (x, y) = interpreted(imported), np.ones((2, 3, 2), np.float32)
    main(x, y, imported.state["count"])
    np.testing.assert_array_equal(x, np.full((3, 2), 2))
    np.testing.assert_array_equal(imported.state["count"], [1])


@torch.library.custom_op("relax_mlir_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x, factor):
    return torch.empty_like(x)


def test_custom_operators():
    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled(x, 2.5) + 1

    own = {"relax_mlir_test::scaled": lambda call, x, factor: multiply(x, factor)}
    program = export(Model(), (torch.ones(3),))
    main = interpreted(frontend.from_exported_program(program, operators=own))
    np.testing.assert_array_equal(main(np.ones(3, np.float32)), [3.5] * 3)
