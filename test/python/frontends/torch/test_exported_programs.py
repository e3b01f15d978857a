"""Exported programs: names, facts, parameters, sizes of data, and what is refused."""

import numpy as np
import pytest
import torch
from torch.export import Dim, export

import relax_mlir
from relax_mlir.errors import ExecutionError, ModelError
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.testing.imported import interpreted


class Encoder(torch.nn.Module):
    """Two layers, a buffer, and a parameter that is used twice."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.table = torch.nn.Embedding(20, 16)
        self.register_buffer("scale", torch.tensor(4.0))

    def forward(self, ids):
        x = self.layers(self.table(ids) * self.scale)
        return x @ self.table.weight.t()


def test_an_encoder():
    torch.manual_seed(0)
    model = Encoder().eval()
    ids = torch.randint(0, 20, (2, 5))
    program = export(model, (ids,), dynamic_shapes=({0: Dim("b", max=16), 1: Dim("n")},))
    imported = from_exported_program(program)
    assert imported.inputs == ("ids",)
    assert "table.weight" in imported.parameters
    main = relax_mlir.compile(imported)["main"]
    for shape in ((2, 5), (3, 9), (1, 2)):
        ids = torch.randint(0, 20, shape)
        with torch.no_grad():
            np.testing.assert_allclose(main(ids.numpy()), model(ids), rtol=1e-4, atol=1e-4)
    with pytest.raises(ExecutionError, match="<= 16"):
        main(np.zeros((17, 2), np.int64))


def test_dims_of_one_as_pytorch_takes_them():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            rows = torch.cat([x, y.expand(x.shape[0], -1)], 1)
            return rows.softmax(1), x @ y.t(), x.sum(0) / x.shape[0]

    given = (torch.rand(3, 5), torch.rand(1, 5))
    dims = ({0: Dim.AUTO, 1: Dim.AUTO}, {1: Dim.AUTO})
    program = export(Model().eval(), given, dynamic_shapes=dims)
    main = relax_mlir.compile(from_exported_program(program))["main"]
    for rows, columns in ((1, 5), (1, 1), (4, 1), (2, 2)):
        given = (torch.rand(rows, columns), torch.rand(1, columns))
        try:
            wanted = program.module()(*given)
        except RuntimeError:
            continue
        for one, other in zip(main(*(each.numpy() for each in given)), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_symbols_have_names():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.reshape(-1, x.shape[2])

    program = export(Model(), (torch.ones(2, 3, 4),), dynamic_shapes=({0: Dim("b"), 1: Dim("n")},))
    names = [str(s) for s in program.range_constraints]
    text = str(from_exported_program(program, symbols=dict(zip(names, ("b", "n")))).module)
    assert '#graph.shape<["b*n", 4]>' in text


def test_sizes_of_data():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.nonzero(x) * 2, x[x > 0].sum()

    program = export(Model(), (torch.ones(5),), dynamic_shapes=({0: Dim("n")},))
    main = relax_mlir.compile(from_exported_program(program))["main"]
    x = torch.tensor([0.0, 3.0, -1.0, 0.0])
    for a, b in zip(main(x.numpy()), Model()(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_not_supported():
    class Unknown(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x)

    with pytest.raises(ModelError, match=r"not supported: aten::linalg_eig \(node "):
        from_exported_program(export(Unknown(), (torch.ones(2, 2),)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.t().as_strided((2, 2), (2, 1)), "not contiguous"),
        (lambda x: x[1:].as_strided((2,), (1,), 0), "an offset and strides of 0 or more"),
    ],
)
def test_what_is_not_supported_of_an_operator(function, message):
    class Model(torch.nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(ModelError, match=message):
        from_exported_program(export(Model(), (torch.ones(3, 4),)))


def test_attention_of_heads_of_unknown_size():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    program = export(Model(), (torch.ones(1, 2, 3, 4),), dynamic_shapes=({3: Dim("d")},))
    main = interpreted(from_exported_program(program))
    x = torch.randn(1, 2, 3, 7)
    np.testing.assert_allclose(main(x.numpy()), Model()(x), rtol=1e-5, atol=1e-5)


def test_assertions_of_elements():
    class Model(torch.nn.Module):
        def forward(self, x):
            torch._assert_async((x > 0).all(), "x {is} positive")
            return x + 1

    main = relax_mlir.compile(from_exported_program(export(Model(), (torch.ones(3),))))["main"]
    np.testing.assert_array_equal(main(np.ones(3, np.float32)), [2, 2, 2])
    with pytest.raises(ExecutionError, match=r"x \{is\} positive"):
        main(np.zeros(3, np.float32))
