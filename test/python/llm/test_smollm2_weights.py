"""The weights of SmolLM2, run by the NumPy reference, give the logits of Hugging Face in float32.

This checks the readers, not the compiler: the forward pass is `reference_llama`.
"""

import numpy as np
import pytest
import reference_llama


@pytest.fixture(scope="module")
def run(smollm2):
    """Logits of a token sequence; the decoded weights are kept between calls."""
    weights = {name: smollm2.weights.load_f32(name) for name in smollm2.weights.names}
    return lambda tokens: reference_llama.logits(smollm2.config, weights.__getitem__, tokens)


@pytest.mark.parametrize("text", ["chat", "text128"])
def test_logits(run, golden, text):
    logits = run(golden[f"{text}_tokens"])
    np.testing.assert_array_equal(logits.argmax(-1), golden[f"{text}_argmax"])
    found = logits[-1, golden[f"{text}_last_ids"]]
    np.testing.assert_allclose(found, golden[f"{text}_last"], rtol=0, atol=5e-3)


def test_greedy_answer(run, golden):
    tokens = golden["greedy32"]
    prompt = len(golden["chat_tokens"])
    chosen = run(tokens[:-1])[prompt - 1 :].argmax(-1)
    np.testing.assert_array_equal(chosen, tokens[prompt:])
