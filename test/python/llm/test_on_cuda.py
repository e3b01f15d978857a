"""The first layers of SmolLM2 on a stand-in for NVIDIA's driver, against the NumPy reference."""

from dataclasses import replace

import numpy as np
import pytest
import reference_llama
from cuda_driver import driver

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.building import build
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.generation.session import Session

LAYERS = 4


@pytest.mark.sweep
def test_a_step_of_four_layers(smollm2: Checkpoint, golden: dict[str, np.ndarray]) -> None:
    """The token that follows one, and its logits; it takes some minutes."""
    driver()
    cut = replace(smollm2, config=replace(smollm2.config, num_layers=LAYERS))
    decoder = build(cut, Settings("f32", "f32", "cuda:sm_80", 2), threads=1, key=None)
    device = decoder.executable.device
    assert device is not None
    parameters = [device.array(each) for each in decoder.parameters]
    session = Session(decoder.executable["main"], cut.config, parameters, 32)
    tokens = golden["chat_tokens"][:1].tolist()
    logits = session.append(tokens)[0]
    expected = reference_llama.logits(cut.config, cut.weights.load_f32, np.array(tokens))[-1]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert logits.argmax() == expected.argmax()
