"""Fixtures of the language-model tests; helper modules lie beside this file."""

import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the helpers, under every import mode of pytest

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint, open_checkpoint  # noqa: E402


@pytest.fixture(scope="session")
def smollm2() -> Checkpoint:
    """SmolLM2-135M-Instruct, downloaded on first use."""
    return open_checkpoint("smollm2")


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    """Tokens, argmaxes and some logits of SmolLM2 from Hugging Face transformers in float32."""
    with np.load(HERE / "Inputs" / "smollm2_golden.npz") as file:
        return dict(file)
