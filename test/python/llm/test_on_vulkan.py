"""SmolLM2 by Vulkan: the tokens that Hugging Face transformers generates, on any device."""

import numpy as np
import pytest
import vulkan

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.building import build
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.generation.session import Session


@pytest.mark.sweep
def test_a_greedy_answer(smollm2: Checkpoint, golden: dict[str, np.ndarray]) -> None:
    """The whole prompt in one call, then token by token; it takes some minutes."""
    vulkan.require()
    decoder = build(smollm2, Settings("f32", "f32", "vulkan", 2), threads=1, key=None)
    device = decoder.executable.device
    assert device is not None
    parameters = [device.array(each) for each in decoder.parameters]
    prompt, expected = np.split(golden["greedy32"], [len(golden["chat_tokens"])])
    session = Session(decoder.executable["main"], smollm2.config, parameters, 64)
    logits = session.append(prompt.tolist(), rows=len(prompt))
    np.testing.assert_array_equal(logits.argmax(-1), golden["chat_argmax"])
    last = logits[-1, golden["chat_last_ids"]]
    np.testing.assert_allclose(last, golden["chat_last"], rtol=0, atol=1e-3)
    tokens = [int(logits[-1].argmax())]
    while len(tokens) < len(expected):
        tokens.append(int(session.append([tokens[-1]])[-1].argmax()))
    assert tokens == expected.tolist()
