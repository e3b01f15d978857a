"""SentencePiece's BPE of GGUF files, against ids that the package `sentencepiece` computed.

`Inputs/sentencepiece.json` has a model that it trained on pages of `docs/` with byte fallback, and
its ids of some texts.
"""

import json
from pathlib import Path

import pytest
from tiny_models import random_weights, write_gguf

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.tokenization.tokenizer import Tokenizer

MODEL = json.loads((Path(__file__).parent / "Inputs" / "sentencepiece.json").read_text())
KEYS = {
    "tokenizer__ggml__model": "llama",
    "tokenizer__ggml__tokens": MODEL["tokens"],
    "tokenizer__ggml__scores": MODEL["scores"],
    "tokenizer__ggml__token_type": MODEL["kinds"],
    "tokenizer__ggml__bos_token_id": 1,
    "tokenizer__ggml__eos_token_id": 2,
}


def of_file(tmp_path: Path, **changes: object) -> Tokenizer:
    weights = {"model.norm.weight": random_weights()["model.norm.weight"]}
    path = write_gguf(tmp_path / "m.gguf", weights, **{**KEYS, **changes})
    return Tokenizer.from_gguf(GgufFile.open(path))


def test_ids_and_texts(tmp_path):
    tokenizer = of_file(tmp_path)
    assert len(MODEL["texts"]) > 10
    for text, ids in zip(MODEL["texts"], MODEL["ids"], strict=True):
        assert tokenizer.encode(text, add_special_tokens=False) == ids
        assert tokenizer.encode(text) == [1, *ids]
        stream = tokenizer.stream()
        assert "".join(map(stream.push, ids)) + stream.flush() == tokenizer.decode(ids)
        assert tokenizer.decode(ids) == text.replace("\u2581", " ")
    assert tokenizer.encode("</s>", add_special_tokens=False) == [2]


def test_options(tmp_path):
    changes = {"tokenizer__ggml__add_space_prefix": False, "tokenizer__ggml__add_bos_token": False}
    tokenizer = of_file(tmp_path, **changes)
    assert tokenizer.decode(tokenizer.encode(" a")) == " a"
    assert tokenizer.encode("a") == [MODEL["tokens"].index("a")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer__ggml__scores": MODEL["scores"][:-1]}, "no score and type for each of its"),
        ({"tokenizer__ggml__scores": [float("nan")] * len(MODEL["scores"])}, "no score and type"),
        ({"tokenizer__ggml__token_type": [1, 2]}, "no score and type for each of its"),
        ({"tokenizer__ggml__tokens": ["a"] * len(MODEL["tokens"])}, "lists a token twice"),
    ],
)
def test_refusals(tmp_path, changes, message):
    with pytest.raises(ModelError, match=message):
        of_file(tmp_path, **changes)
