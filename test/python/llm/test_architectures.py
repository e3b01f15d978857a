"""Every architecture against logits of `transformers`, which `architecture_logits.py` wrote.

Files of both kinds; GGUF ones are those that llama.cpp computes the same logits of.
"""

import model_formats
import numpy as np
import pytest
from architecture_cases import (
    CASES,
    TOKENS,
    UNSTATED,
    expected,
    in_blocks,
    write,
)
from gguf_digests import DIFFERS, context_of, digest, known

from relax_mlir.errors import ModelError
from relax_mlir.llm import load
from relax_mlir.llm.architectures.registry import ARCHITECTURES, IN_GGUF
from relax_mlir.llm.checkpoints.convert import convert

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


IN_FEW_BITS = sorted(
    CASES.keys() - UNSTATED.keys() - {"phi3-longrope", "phi3-longrope-long", "olmoe"}
)
STATED = [name for name in CASES if UNSTATED.get(name, "max_context") == "max_context"]


@pytest.mark.rotate(6)
@pytest.mark.parametrize("name", STATED)
def test_logits_of_gguf(tmp_path, name):
    file = tmp_path / "model.gguf"
    convert(str(write(tmp_path / "folder", name)), file, "f32")
    assert name in DIFFERS or digest(file) == known()[name]
    tokens = TOKENS[: context_of(file)]
    logits = load(str(file), weights="f32").logits(tokens)
    assert difference(logits, expected()[name][: len(tokens)]) < TOLERANCE


@pytest.mark.usefixtures("llvm_turns")
@pytest.mark.rotate(15)
@pytest.mark.parametrize("format", ["bf16", "q8_0", "q4_1"])
@pytest.mark.parametrize("name", IN_FEW_BITS)
def test_few_bits(tmp_path, name, format):
    """A file's matrices as they are stored have the logits of the same, decoded to float32."""
    file = tmp_path / "model.gguf"
    convert(str(write(tmp_path / "folder", name, in_blocks(name))), file, format)
    stored = load(str(file), activations="f32").logits(TOKENS)
    assert difference(stored, load(str(file), weights="f32").logits(TOKENS)) < TOLERANCE


@pytest.mark.parametrize("name", sorted(UNSTATED.keys() - set(STATED)))
def test_gguf_cannot_state(tmp_path, name):
    folder, file = write(tmp_path / "folder", name), tmp_path / "model.gguf"
    with pytest.raises(ModelError, match=f"has {UNSTATED[name]} .* cannot state: they mean"):
        convert(str(folder), file)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_table_of_formats():
    """The page has what was measured, all of it within the bound that tests have."""
    text = model_formats.PAGE.read_text()
    shown = text.split(model_formats.BEGIN)[1].split(model_formats.END)[0]
    assert shown == model_formats.table(model_formats.results())
    for name, row in model_formats.results().items():
        for column, (worst, *tokens) in row.items():
            assert worst < TOLERANCE, (name, column)
            assert tokens in ([], [model_formats.NEW_TOKENS]), (name, column)


def test_every_architecture_has_a_case():
    names = {case["architectures"][0] for case in CASES.values()}
    assert names == {architecture.hugging_face[0] for architecture in ARCHITECTURES}
    assert expected().keys() == CASES.keys()
    kinds = {a.gguf_of or a.gguf for a in ARCHITECTURES}
    assert kinds == IN_GGUF.keys()
    assert known().keys() | DIFFERS.keys() == set(STATED)
