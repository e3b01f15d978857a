"""Perplexity and comparisons against the NumPy forward pass, in float64."""

import json

import numpy as np
import pytest
import reference_llama
from tiny_models import CONFIG, hf_tokenizer, random_weights, write_gguf

from relax_mlir.tools.relax_llm import main

TEXT = "hello 12 world " * 20


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("quality") / "tiny.gguf", random_weights()))


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text(TEXT)
    return str(file)


def expected_rows(ids: list[int], seed: int = 0) -> np.ndarray:
    logits = reference_llama.logits(
        CONFIG, random_weights(seed=seed).__getitem__, np.array(ids), np.float64
    )
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def windows_of(window: int) -> list[list[int]]:
    ids = hf_tokenizer().encode(TEXT).ids
    parts = [ids[i : i + window] for i in range(0, len(ids), window)]
    return [part for part in parts if len(part) > 1]


@pytest.mark.parametrize("window", [2, 13, 64])
def test_perplexity(tiny, text, window, capsys):
    command = [
        "eval",
        "perplexity",
        tiny,
        text,
        "--window",
        str(window),
        "--weights",
        "f32",
        "--json",
    ]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    surprisals = [
        -row[token]
        for ids in windows_of(window)
        for row, token in zip(expected_rows(ids)[:-1], ids[1:], strict=True)
    ]
    assert found["tokens"] == len(surprisals)
    assert found["perplexity"] == pytest.approx(np.exp(np.mean(surprisals)), rel=1e-4)


def test_compare(tiny, text, tmp_path, capsys):
    other = str(write_gguf(tmp_path / "other.gguf", random_weights(seed=1)))
    options = ["--window", "17", "--weights", "f32", "--json"]
    assert main(["eval", "compare", tiny, other, text, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    rows, others = (
        np.concatenate([expected_rows(ids, seed)[:-1] for ids in windows_of(17)]) for seed in (0, 1)
    )
    divergence = (np.exp(others) * (others - rows)).sum(-1).mean()
    assert found["divergence"] == pytest.approx(divergence, rel=1e-4)
    assert found["agreement"] == pytest.approx((rows.argmax(-1) == others.argmax(-1)).mean())
    assert main(["eval", "compare", tiny, tiny, text, "--weights", "f32"]) == 0
    assert "top-1 agreement 100.00 %" in capsys.readouterr().out


def test_wrong_use(tiny, text, tmp_path, capsys):
    short = tmp_path / "short.txt"
    short.write_text("1")
    cases = [
        (
            ["eval", "perplexity", tiny, text, "--window", "1"],
            "window is 1; expects 2 tokens or more",
        ),
        (["eval", "perplexity", tiny, str(short)], "the text has 1 tokens; expects 2 or more"),
        (["eval", "perplexity", tiny, str(tmp_path / "none")], "cannot read"),
    ]
    for command, message in cases:
        assert main(command) == 2
        assert message in capsys.readouterr().err
