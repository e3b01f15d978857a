"""Models of `transformers` under both ways to compile them: by export, and by `torch.compile`."""

import pytest

pytest.importorskip("transformers")

from transformer_models import MODELS, TOLERANCE, by_export, by_torch_compile


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("run", [by_export, by_torch_compile])
def test_models(run, name):
    assert max(run(name)) < TOLERANCE
