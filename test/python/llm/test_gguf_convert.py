"""A GGUF file converted to another format is the same model, up to rounding."""

import numpy as np
import pytest
from tiny_models import random_weights, write_gguf

from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.formats.gguf_convert import converted_file


@pytest.mark.parametrize(("format", "tolerance"), [("f32", 0), ("bf16", 2**-8)])
def test_same_model(tmp_path, monkeypatch, format, tolerance):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    stored = write_gguf(tmp_path / "tiny.gguf", random_weights(), "Q4_1")
    converted = converted_file(stored, format)
    a, b = open_checkpoint(str(stored)), open_checkpoint(str(converted))
    assert a.config == b.config
    assert a.weights.names == b.weights.names
    for name in a.weights.names:
        expected, found = a.weights.load_f32(name), b.weights.load_f32(name)
        is_vector = expected.ndim == 1
        assert b.weights.raw(name).format == ("F32" if is_vector else format.upper())
        np.testing.assert_allclose(found, expected, rtol=0 if is_vector else tolerance, atol=0)
    text = "hello world 12"
    assert a.tokenizer.encode(text) == b.tokenizer.encode(text)
    assert converted_file(stored, format) == converted
