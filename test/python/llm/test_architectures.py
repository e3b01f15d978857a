"""Every architecture against logits of `transformers`, which `architecture_logits.py` wrote."""

import numpy as np
import pytest
from architecture_cases import CASES, TOKENS, expected, write

from relax_mlir.llm import load
from relax_mlir.llm.architectures.registry import ARCHITECTURES

TOLERANCE = 1e-3
"""Of the logits' spread, as the largest difference."""


def difference(logits: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, as a share of the spread."""
    return float(np.abs(logits - wanted).max() / np.ptp(wanted))


@pytest.mark.rotate(6)
@pytest.mark.parametrize("name", CASES)
def test_logits(tmp_path, name):
    model, wanted = load(str(write(tmp_path, name)), weights="f32"), expected()[name]
    assert difference(model.logits(TOKENS), wanted) < TOLERANCE
    if name == "phi3-longrope-long":
        return  # its first tokens are rotated by short factors, as with caches of transformers
    session = model.session()
    parts = [session.append(TOKENS[:5], rows=5).copy()]
    parts += [session.append([int(token)]).copy() for token in TOKENS[5:12]]
    parts.append(session.append(TOKENS[12:], rows=len(TOKENS) - 12))
    assert difference(np.concatenate(parts), wanted) < TOLERANCE


def test_every_architecture_has_a_case():
    names = {case["architectures"][0] for case in CASES.values()}
    assert names == {architecture.hugging_face[0] for architecture in ARCHITECTURES}
    assert expected().keys() == CASES.keys()
