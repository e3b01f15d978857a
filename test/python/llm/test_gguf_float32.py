"""A GGUF file decoded to float32 is the same model."""

import numpy as np
from tiny_models import random_weights, write_gguf

from relax_mlir.llm.checkpoint import open_checkpoint
from relax_mlir.llm.gguf_float32 import float32_file


def test_same_model_in_float32(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    stored = write_gguf(tmp_path / "tiny.gguf", random_weights(), "Q4_1")
    decoded = float32_file(stored)
    a, b = open_checkpoint(str(stored)), open_checkpoint(str(decoded))
    assert a.config == b.config
    assert a.weights.names == b.weights.names
    for name in a.weights.names:
        assert b.weights.raw(name).format == "F32"
        np.testing.assert_array_equal(a.weights.load_f32(name), b.weights.load_f32(name))
    text = "hello world 12"
    assert a.tokenizer.encode(text) == b.tokenizer.encode(text)
    assert float32_file(stored) == decoded
