"""A model that is converted to another format is the same, up to rounding."""

import numpy as np
import pytest
from tiny_models import random_weights, write_gguf, write_hf

from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import FORMATS, NARROWER, convert, converted_file
from relax_mlir.tools.relax_llm import main


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


TOLERANCES = {"q8_0": 0.01, "q6_k": 0.03, "q5_1": 0.04, "q5_0": 0.06, "q5_k": 0.05}


@pytest.mark.parametrize("format", FORMATS)
def test_folder(tmp_path, format):
    """Rows of 96 and 160 are no super-blocks: they have the next format."""
    folder = write_hf(tmp_path / "folder", random_weights())
    convert(str(folder), tmp_path / "m.gguf", format)
    a, b = open_checkpoint(str(folder)), open_checkpoint(str(tmp_path / "m.gguf"))
    stored = NARROWER.get(format.upper(), format.upper())
    tolerance = TOLERANCES.get(format, 0.0 if format == "f32" else 0.12)
    for name in a.weights.names:
        expected, found = a.weights.load_f32(name), b.weights.load_f32(name)
        assert b.weights.format(name) == ("F32" if expected.ndim == 1 else stored)
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
    text = "hello world 12<|im_end|>"
    assert a.tokenizer.encode(text) == b.tokenizer.encode(text)
    assert a.config.eos_ids == b.config.eos_ids
    messages = [{"role": "user", "content": "hello"}]
    assert a.chat is not None
    assert b.chat is not None
    assert a.chat.render(messages) == b.chat.render(messages)


@pytest.mark.parametrize("format", ["f16", "q8_0", "q4_k"])
@pytest.mark.parametrize("value", [1e6, np.inf, np.nan])
def test_values_that_no_scale_reaches(tmp_path, capsys, format, value):
    weights = random_weights()
    name = next(name for name, array in weights.items() if array.ndim == 2)
    weights[name][1, 2] = value
    folder, out = write_hf(tmp_path / "folder", weights), tmp_path / "m.gguf"
    assert main(["convert", str(folder), "-o", str(out), "--weights", format]) == 1
    assert f"has a value of {value:g}; expects up to 65504 in " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


def test_command(tmp_path, capsys):
    folder = write_hf(tmp_path / "folder", random_weights())
    out = tmp_path / "m.gguf"
    assert main(["convert", str(folder), "-o", str(out), "--weights", "q8_0"]) == 0
    assert f"{out.stat().st_size} bytes" in capsys.readouterr().out
    again = tmp_path / "n.gguf"
    assert main(["convert", str(out), "-o", str(again)]) == 0
    a, b = open_checkpoint(str(out)).weights, open_checkpoint(str(again)).weights
    assert all((a.raw(name).data == b.raw(name).data).all() for name in a.names)
    assert main(["convert", str(folder), "-o", str(out), "--weights", "q3_x"]) == 2
    assert main(["convert", str(folder), "-o", str(tmp_path / "no" / "m.gguf")]) == 1
