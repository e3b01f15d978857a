"""`torch.compile` with the backend "relax": one compilation for all sizes, PyTorch for the rest."""

import warnings

import pytest
import torch
from torch._dynamo.utils import counters

from relax_mlir.frontends.torch.dynamo import relax


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def layers():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    ).eval()


def test_one_compilation_for_all_sizes():
    model = layers()
    counters.clear()
    compiled = torch.compile(model, backend=relax, dynamic=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # no graph is left to PyTorch
        for n in (3, 5, 9):
            x = torch.randn(n, 8)
            torch.testing.assert_close(compiled(x), model(x))
    assert counters["stats"]["unique_graphs"] == 1


def test_gradients_are_of_pytorch():
    model = layers()
    x = torch.randn(3, 8, requires_grad=True)
    with pytest.warns(UserWarning, match="PyTorch runs a graph: it needs gradients"):
        torch.compile(model, backend=relax)(x).sum().backward()
    found = x.grad.clone()
    x.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(found, x.grad)


@pytest.mark.filterwarnings("ignore:PyTorch runs a graph")
def test_training_steps_are_of_pytorch():
    """Gradients, running statistics and random numbers; what is compiled sees the new weights."""
    torch.manual_seed(3)
    own, other = (trained_layers() for _ in range(2))
    other.load_state_dict(own.state_dict())
    compiled = torch.compile(own, backend=relax, dynamic=True)
    steps = [torch.optim.SGD(each.parameters(), 0.1) for each in (own, other)]
    for n in (3, 5, 7):
        x = torch.randn(n, 8)
        for model, function, step in zip((own, other), (compiled, other), steps, strict=True):
            model.train()
            torch.manual_seed(n)
            step.zero_grad()
            function(x).square().sum().backward()
            step.step()
            model.eval()
        gradients = zip(own.parameters(), other.parameters(), strict=True)
        for mine, its in gradients:
            torch.testing.assert_close(mine.grad, its.grad)
        torch.testing.assert_close(own.state_dict(), other.state_dict())
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), other(x))


def trained_layers():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.3), torch.nn.GELU()
    )


def test_sizes_are_results():
    def function(x):
        return x * 2, x.shape[0] + 1

    compiled = torch.compile(function, backend=relax, dynamic=True)
    with torch.no_grad():
        for n in (3, 6):
            doubled, size = compiled(torch.ones(n))
            assert (doubled.sum(), size) == (2 * n, n + 1)


@pytest.mark.usefixtures("ours")
@torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
def test_what_is_computed_from_sizes_or_elements_is_a_result():
    def function(x):
        n = x.shape[0]
        return x * 2, n > 4, n * 0.5, x.sum().item() + 1, x.nonzero().shape[0], 7

    compiled = strict(function)
    for x in (torch.tensor([3, 0, 4]), torch.arange(6)):
        got, wanted = compiled(x), function(x)
        assert list(map(type, got)) == list(map(type, wanted))
        torch.testing.assert_close(got[0], wanted[0])
        assert got[1:] == wanted[1:]


def test_what_is_not_supported_is_run_by_pytorch():
    compiled = torch.compile(lambda x: torch.linalg.ldl_factor(x).LD + 1, backend=relax)
    x = torch.eye(4) + torch.ones(4, 4)
    with torch.no_grad(), pytest.warns(UserWarning, match="ldl_factor"):
        torch.testing.assert_close(compiled(x), torch.linalg.ldl_factor(x).LD + 1)


def strict(function, options=None):
    """A compiled function of which no graph is left to PyTorch."""
    return torch.compile(function, backend=relax, dynamic=True, fullgraph=True, options=options)


@pytest.fixture
def ours():
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.mark.usefixtures("ours")
def test_weights_that_are_constants_may_change():
    model, x = layers(), torch.randn(3, 8)
    compiled = strict(model, {"freeze": True})
    for _ in range(6):
        torch.testing.assert_close(compiled(x), model(x))
        model[0].weight.mul_(0.5)


@pytest.mark.usefixtures("ours")
def test_layers_for_inference():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 1).eval()
    compiled = strict(model)
    for n in (3, 5):
        x = torch.randn(n, n + 4, 16)
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.usefixtures("ours")
def test_numbers_are_inputs():
    compiled = strict(lambda x, k, s: x * k + s)
    for k, s in ((3, 1.5), (5, 2.5), (-2, 0.5)):
        torch.testing.assert_close(compiled(torch.ones(2), k, s), torch.ones(2) * k + s)


@pytest.mark.usefixtures("ours")
def test_constants_of_the_function():
    def function(x):
        none = torch.tensor([], dtype=x.dtype)
        return torch.cat([none, x * torch.tensor([2.0, 3.0, 5.0]) + torch.tensor(0.5)[None]], -1)

    compiled = strict(function)
    for n in (2, 5):
        x = torch.randn(n, 3)
        torch.testing.assert_close(compiled(x), function(x))


def test_unknown_options():
    with pytest.raises(Exception, match="unknown option 'frozen'"), torch.no_grad():
        strict(lambda x: x + 1, {"frozen": True})(torch.ones(2))
