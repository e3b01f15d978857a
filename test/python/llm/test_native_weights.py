"""Models whose matrices stay quantised: exact with f32 activations, close with 8-bit ones."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import reference_llama
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.dialects.graph.quantized import SCHEMES
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.formats.encoding import to_blocks
from relax_mlir.llm.formats.quantization import DECODED, FORMATS

KINDS = ("Q8_0", "Q4_0", "Q4_1", "F16", "F32", "Q5_0", "Q5_1")
TAKES_TURNS = pytest.mark.usefixtures("llvm_turns")
TOKENS = np.random.default_rng(0).integers(0, CONFIG.vocab_size, 21, dtype=np.int32)


def expected(path: Path, config=CONFIG) -> np.ndarray:
    """Logits in float64 from the exact values of the file's weights."""
    weights = open_checkpoint(str(path)).weights
    return reference_llama.logits(config, weights.load_f32, TOKENS, np.float64)


def nbytes(model: LanguageModel) -> int:
    """Bytes of a model's parameters."""
    return sum(parameter.nbytes for parameter in model.parameters)


@TAKES_TURNS
@pytest.mark.rotate(3)
@pytest.mark.parametrize("kind", KINDS)
def test_one_format(tmp_path: Path, kind: str) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(), kind)
    model = load(str(path), weights="native", activations="f32")
    np.testing.assert_allclose(model.logits(TOKENS), expected(path), rtol=1e-4, atol=1e-4)


@TAKES_TURNS
def test_formats_of_joined_matrices_may_differ(tmp_path: Path) -> None:
    """Queries, keys and values are one product where they can be, else their results are joined."""
    weights = random_weights()
    kinds = {name: KINDS[i % len(KINDS)] for i, name in enumerate(weights)}
    path = write_gguf(tmp_path / "tiny.gguf", weights, kinds)
    model = load(str(path), weights="native", activations="f32")
    np.testing.assert_allclose(model.logits(TOKENS), expected(path), rtol=1e-4, atol=1e-4)


@TAKES_TURNS
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "Q5_0"])
def test_embeddings_may_be_the_head(tmp_path: Path, kind: str) -> None:
    config = dataclasses.replace(CONFIG, tie_embeddings=True)
    path = write_gguf(tmp_path / "tied.gguf", random_weights(config), kind, config)
    model = load(str(path), weights="native", activations="f32")
    exact = expected(path, config)
    np.testing.assert_allclose(model.logits(TOKENS), exact, rtol=1e-4, atol=1e-4)
    stored = open_checkpoint(str(path)).weights.file.tensors.values()
    assert nbytes(model) < 1.1 * sum(tensor.num_bytes for tensor in stored)


def test_formats_that_are_held_as_float32() -> None:
    matrices = {format.lower() for format in FORMATS} - {"f32", "bf16", *SCHEMES}
    assert matrices == {format.lower() for format in DECODED}


@TAKES_TURNS
@pytest.mark.parametrize("kind", ["F16", "Q2_K", "Q3_K", "MXFP4"])
def test_they_are_told(tmp_path: Path, kind: str) -> None:
    config = dataclasses.replace(
        CONFIG, hidden_size=256, intermediate_size=256, head_dim=64, num_heads=4
    )
    path = write_gguf(tmp_path / "told.gguf", random_weights(config), kind, config)
    with pytest.warns(UserWarning, match=f"16 of 16 matrices are in {kind}, and stored as float32"):
        model = load(str(path), weights="native")
    exact = expected(path, config)
    np.testing.assert_allclose(model.logits(TOKENS), exact, rtol=1e-4, atol=1e-4 * np.ptp(exact))


@TAKES_TURNS
def test_bfloat16_stays(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "half.gguf", random_weights(), "BF16")
    model = load(str(path), weights="native", activations="f32")
    np.testing.assert_allclose(model.logits(TOKENS), expected(path), rtol=1e-4, atol=1e-4)
    assert nbytes(model) < 1.1 * path.stat().st_size


@TAKES_TURNS
@pytest.mark.rotate(3)
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1"])
def test_rounded_activations_are_close(tmp_path: Path, kind: str) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(), kind)
    exact = expected(path)
    logits = load(str(path), weights="native").logits(TOKENS)
    error = np.linalg.norm(logits - exact) / np.linalg.norm(exact)
    assert 1e-4 < error < 2e-2  # rounding to 8 bits shows, and is all that shows


@TAKES_TURNS
@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    "kinds", [("Q4_K",), ("Q5_K",), ("Q6_K",), ("Q4_K", "Q6_K", "Q8_0", "Q5_K")]
)
def test_super_blocks(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    config = dataclasses.replace(
        CONFIG, hidden_size=256, intermediate_size=512, head_dim=64, num_heads=4
    )
    weights = random_weights(config)
    formats = {name: kinds[i % len(kinds)] for i, name in enumerate(weights)}
    path = write_gguf(tmp_path / "k.gguf", weights, formats, config)
    exact = expected(path, config)
    model = load(str(path), weights="native", activations="f32")
    np.testing.assert_allclose(model.logits(TOKENS), exact, rtol=1e-4, atol=1e-4 * np.ptp(exact))
    assert nbytes(model) < 1.05 * path.stat().st_size
    logits = load(str(path), weights="native").logits(TOKENS)
    assert np.linalg.norm(logits - exact) < 3e-2 * np.linalg.norm(exact)


@TAKES_TURNS
def test_steps_and_prompts_give_the_same_numbers(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(), "Q4_1")
    model = load(str(path), weights="native")
    session = model.session()
    steps = np.concatenate([session.append([token]).copy() for token in TOKENS])
    np.testing.assert_allclose(steps, model.logits(TOKENS), rtol=0, atol=5e-2)


@pytest.mark.parametrize("weights", ["f32", "native"])
def test_other_activations_are_refused(weights: str) -> None:
    with pytest.raises(UsageError, match="unknown activations 'int4'; accepted are int8, f32"):
        load("smollm2", weights=weights, activations="int4")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return load("smollm2", weights="native")


class TestSmolLM2:
    def test_answer(self):
        # Of the first token's candidates two are 0.08 apart, less than 8-bit rounding moves them.
        model = load("smollm2", weights="native", activations="f32")
        answer = model.generate("What is the capital of France?", max_tokens=16)
        assert "".join(answer) == "The capital of France is Paris."

    def test_takes_no_more_memory_than_the_file(self, model, smollm2):
        stored = smollm2.weights.file.path.stat().st_size
        assert 0.9 * stored < nbytes(model) < 1.01 * stored

    def test_most_tokens_are_those_of_f32(self, model, golden):
        logits = model.logits(golden["text128_tokens"])
        assert (logits.argmax(-1) == golden["text128_argmax"]).mean() > 0.9

    def test_exact_products_give_exact_tokens(self, golden):
        model = load("smollm2", weights="native", activations="f32")
        logits = model.logits(golden["text128_tokens"])
        np.testing.assert_array_equal(logits.argmax(-1), golden["text128_argmax"])
        found = logits[-1, golden["text128_last_ids"]]
        np.testing.assert_allclose(found, golden["text128_last"], rtol=0, atol=5e-3)


@TAKES_TURNS
@pytest.mark.parametrize("scheme", ["q8_0", "q4_0", "q4_1"])
@pytest.mark.parametrize("value", [1e8, -np.inf, np.nan])
def test_weights_that_scales_cannot_hold_are_refused(tmp_path: Path, scheme: str, value) -> None:
    weights = random_weights()
    name = "model.layers.1.mlp.up_proj.weight"
    weights[name][5, 40] = value
    path = str(write_gguf(tmp_path / "tiny.gguf", weights))
    with pytest.raises(
        ModelError, match=rf"weight '{name}' has .* exceeds the range of {scheme.upper()}"
    ):
        load(path, weights=scheme)


@TAKES_TURNS
@pytest.mark.parametrize("scheme", ["q8_0", "q4_0", "q4_1"])
@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q5_0"])
def test_rounded_weights(tmp_path: Path, kind: str, scheme: str) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(), kind)
    stored = open_checkpoint(str(path)).weights

    def rounded(name: str) -> np.ndarray:
        raw = stored.raw(name)
        return (to_blocks(raw, scheme.upper()) if len(raw.shape) == 2 else raw).to_f32()

    exact = reference_llama.logits(CONFIG, rounded, TOKENS, np.float64)
    model = load(str(path), weights=scheme, activations="f32")
    np.testing.assert_allclose(model.logits(TOKENS), exact, rtol=1e-4, atol=1e-4)
