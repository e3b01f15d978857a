"""Caches of fewer bits: what attention reads is what was rounded, and what cannot be is refused."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import reference_llama
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder import caches
from relax_mlir.llm.generation.model import cache_type
from relax_mlir.tools.relax_llm import main

pytestmark = pytest.mark.usefixtures("llvm_turns")

WIDE = replace(CONFIG, hidden_size=192, head_dim=32)
WEIGHTS = random_weights(WIDE)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("caches")
    return str(write_gguf(folder / "wide.gguf", WEIGHTS, config=WIDE))


def _to_bf16(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(x.dtype)


def _to_int8(x: np.ndarray) -> np.ndarray:
    scale = np.abs(x).max(-1, keepdims=True) / 127  # a head is one block here
    return np.round(x / scale) * scale


ROUNDED = {"bf16": _to_bf16, "int8": _to_int8}


def _reference(tokens: np.ndarray, monkeypatch, rounded=lambda x: x) -> np.ndarray:
    attend = reference_llama._attend
    with monkeypatch.context() as patch:
        patch.setattr(reference_llama, "_attend", lambda q, k, v: attend(q, rounded(k), rounded(v)))
        return reference_llama.logits(WIDE, WEIGHTS.__getitem__, tokens, np.float64)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("cache", ROUNDED)
def test_attention_reads_what_was_rounded(path, cache, opt_level, monkeypatch):
    model = llm.load(path, cache=cache, activations="f32", opt_level=opt_level)
    tokens = np.random.default_rng(0).integers(0, WIDE.vocab_size, 41)
    session = model.session(len(tokens))
    pieces = np.split(tokens, [17, 18, 19, 23])
    got = np.concatenate([session.append(piece, rows=len(piece)).copy() for piece in pieces])
    expected = _reference(tokens, monkeypatch, ROUNDED[cache])
    error = np.abs(got - expected).max()
    # Few numbers lie so near to a tie that they are rounded otherwise.
    assert error < 5e-3 * np.abs(expected).max()
    assert error < np.abs(got - _reference(tokens, monkeypatch)).max() / 2


@pytest.mark.parametrize("weights", ["f32", "bf16", "q8_0"])
def test_attention_in_bf16_is_near(path, weights):
    tokens = np.random.default_rng(1).integers(0, WIDE.vocab_size, 40)
    exact, near = (
        llm.load(path, weights=weights, cache=cache).logits(tokens) for cache in ("f32", "bf16")
    )
    assert np.abs(exact - near).max() < 0.05 * np.abs(exact).max()


def test_sizes_of_caches(path):
    bytes_ = {}
    for cache in ("f32", "bf16", "int8"):
        session = llm.load(path, cache=cache).session(64)
        bytes_[cache] = sum(array.nbytes for array in session._caches.arrays)
    numbers = 2 * WIDE.num_layers * WIDE.num_kv_heads * 64 * 32
    assert bytes_ == {"f32": 4 * numbers, "bf16": 2 * numbers, "int8": numbers + numbers // 8}


@pytest.mark.parametrize("cache", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("first_room", [1, 3, 16, 63])
def test_caches_that_grow_keep_what_they_have(path, cache, first_room, monkeypatch):
    model, rng = llm.load(path, cache=cache), np.random.default_rng(first_room)
    tokens = rng.integers(0, WIDE.vocab_size, 64).tolist()
    roomy = model.session(64)
    expected = [roomy.append([token]).copy() for token in tokens]
    assert roomy._caches.room == 64
    monkeypatch.setattr(caches, "FIRST_ROOM", first_room)
    session = model.session(64)
    # Tokens that are forgotten again leave numbers behind in what other caches grow into.
    session.append(tokens[:first_room][::-1])
    session.truncate(0)
    for i, token in enumerate(tokens):
        np.testing.assert_array_equal(session.append([token]), expected[i])
        held = [cache[:, : i + 1] for cache in session._caches.arrays]
        for own, other in zip(held, roomy._caches.arrays, strict=True):
            np.testing.assert_array_equal(own, other[:, : i + 1])
        assert not any(cache[:, max(i + 1, first_room) :].any() for cache in session._caches.arrays)
    assert session._caches.room == session.capacity == 64


def test_caches_grow_to_what_a_prompt_needs(path, monkeypatch):
    monkeypatch.setattr(caches, "FIRST_ROOM", 4)
    model = llm.load(path)
    tokens = np.random.default_rng(5).integers(0, WIDE.vocab_size, 64)
    for capacity, length, room in ((64, 4, 4), (64, 5, 8), (64, 33, 64), (50, 33, 50), (3, 3, 3)):
        session = model.session(capacity)
        found = session.append(tokens[:length], rows=length)
        assert session._caches.room == room
        np.testing.assert_array_equal(found, model.logits(tokens[:length]))


@pytest.mark.parametrize(
    ("weights", "activations", "element"),
    [
        ("f32", "int8", "f32"),
        ("bf16", "int8", "bf16"),
        ("bf16", "f32", "f32"),
        ("q8_0", "int8", "bf16"),
        ("q8_0", "f32", "f32"),
        ("native", "int8", "f32"),
    ],
)
def test_default_caches_are_as_exact_as_the_products(path, weights, activations, element):
    model = llm.load(path, weights=weights, activations=activations)
    caches = [argument for argument in model.executable["main"].arguments if argument.inout]
    assert {argument.dtype for argument in caches} == {element}


@pytest.mark.parametrize(
    ("format", "element"), [("Q8_0", "bf16"), ("BF16", "bf16"), ("F16", "f32")]
)
def test_default_caches_follow_what_the_file_has(tmp_path, format, element):
    file = str(write_gguf(tmp_path / "wide.gguf", WEIGHTS, format, WIDE))
    checkpoint = open_checkpoint(file)
    assert cache_type(None, "native", "int8", checkpoint) == element
    assert cache_type(None, "native", "f32", checkpoint) == "f32"
    assert cache_type("int8", "native", "f32", checkpoint) == "int8"


def test_unknown_caches_are_refused(path, capsys):
    with pytest.raises(UsageError, match="unknown cache 'f16'; accepted are f32, bf16, int8"):
        llm.load(path, cache="f16")
    assert main(["generate", path, "hello", "--cache", "fp8"]) == 2
    assert "unknown cache 'fp8'; accepted are f32, bf16, int8" in capsys.readouterr().err


def test_int8_caches_need_whole_blocks(tmp_path):
    path = str(write_gguf(tmp_path / "narrow.gguf", random_weights()))
    with pytest.raises(UsageError, match="a multiple of 32 features, and this model's have 16"):
        llm.load(path, cache="int8")
