"""Encoders against `transformers`, whose vectors `encoder_vectors.py` wrote."""

import json

import numpy as np
import pytest
from encoder_cases import CASES, LENGTHS, SEQUENCES, TEXTS, expected, write

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.architectures.registry import ENCODERS, of_folder
from relax_mlir.llm.encoders import batches as batching
from relax_mlir.llm.encoders.encoder import load_encoder, open_encoder
from relax_mlir.llm.serving.loading import Loading, load_served
from relax_mlir.llm.serving.sandbox import Sandbox
from relax_mlir.tools.relax_llm import main

TOLERANCE = 1e-5
"""Of the spread, as the largest difference."""


def difference(vectors: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(vectors - wanted).max() / np.ptp(wanted))


@pytest.mark.usefixtures("llvm_turns")
@pytest.mark.rotate(3)
@pytest.mark.parametrize("name", CASES)
def test_vectors(tmp_path, name, monkeypatch):
    encoder, wanted = load_encoder(str(write(tmp_path, name)), weights="f32"), expected()[name]
    vectors, tokens = encoder.embed(SEQUENCES)
    assert tokens == sum(LENGTHS)
    assert difference(vectors, wanted) < TOLERANCE
    for index in (0, 3, 5):
        alone, _ = encoder.embed([SEQUENCES[index]])
        assert difference(alone[0], wanted[index]) < TOLERANCE
    monkeypatch.setattr(batching, "MOST_SLOTS", 33)
    order = np.random.default_rng(1).permutation(len(SEQUENCES))
    shuffled, _ = encoder.embed([SEQUENCES[i] for i in order])
    assert difference(shuffled, wanted[order]) < TOLERANCE
    assert encoder.embed([])[0].shape == (0, wanted.shape[1])


@pytest.fixture(scope="module")
def minilm():
    return load_encoder("minilm", weights="f32")


def test_minilm(minilm):
    vectors, tokens = minilm.embed(TEXTS)
    assert difference(vectors, expected()["minilm"]) < TOLERANCE
    assert tokens == sum(len(minilm.tokenizer.encode(text)) for text in TEXTS)


def test_texts_that_do_not_fit(minilm):
    long = "word " * 400
    with pytest.raises(UsageError, match="text 1 has 402 tokens; expects 1 to 256, or truncation"):
        minilm.embed(["a", long])
    short, tokens = minilm.embed([long], truncate=True)
    assert tokens == 256
    np.testing.assert_array_equal(short, minilm.embed(["word " * 254])[0])
    for text, message in (
        ([], "has 0 tokens"),
        ([1, -1], "has token -1; the vocabulary has 30522"),
        ([30522], "has token 30522"),
    ):
        with pytest.raises(UsageError, match=message):
            minilm.embed([text])
    with pytest.raises(UsageError, match="unknown prompt 'query'; the model has none"):
        minilm.embed(["a"], prompt="query")


@pytest.mark.parametrize("most", [1, 16, 40, 10**6])
def test_batches(monkeypatch, most):
    monkeypatch.setattr(batching, "MOST_SLOTS", most)
    lengths = [*LENGTHS, 3, 3, 9]
    found = list(batching.batches(lengths))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= most


def test_a_server_offers_vectors_alone(minilm):
    """`serve minilm` has an embedder, with the vectors of `embed`."""
    with Sandbox() as sandbox:
        served = load_served("minilm", "minilm", Loading(weights="f32"), sandbox)["minilm"]
    assert served.engine is None
    assert served.embedder is not None
    vectors, tokens = served.embedder.embed(["a", [101, 102]])
    assert tokens == 5
    np.testing.assert_array_equal(vectors, minilm.embed(["a", [101, 102]])[0])


def test_command(tmp_path, capsys):
    assert main(["embed", "minilm", "hello world", "a", "--weights", "f32"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert difference(np.array(rows[0]), expected()["minilm"][0]) < TOLERANCE
    assert main(["embed", "minilm", "a " * 300, "--weights", "f32"]) == 2
    assert "text 0 has 302 tokens" in capsys.readouterr().err
    assert main(["embed", str(tmp_path), "a"]) == 1
    assert main(["embed", "smollm2", "a"]) == 1
    assert "expects a folder with the files of an encoder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"architectures": ["LlamaForCausalLM"]}, "supported are BertModel, Gemma3"),
        ("config.json", {"position_embedding_type": "relative_key"}, "'absolute' is supported"),
        ("config.json", {"max_position_embeddings": 36}, "has shape"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "has pooling cls and max"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": False, "pooling_mode_weightedmean_tokens": True},
            "supported are mean, cls, max, lasttoken",
        ),
        ("1_Pooling/config.json", {"include_prompt": False}, "'include_prompt' is False"),
        ("2_Dense/config.json", {"in_features": 41}, "'in_features' is 41; expects 42"),
        ("2_Dense/config.json", {"out_features": 8}, "has shape"),
        ("2_Dense/config.json", {"bias": False}, "'bias' is False, unlike its weights"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.ReLU"}, "supported are Identity"),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "'max_seq_length' is 0"),
        ("config_sentence_transformers.json", {"prompts": {"a": 1}}, "'a' is 1; expects a string"),
    ],
)
def test_refusals(tmp_path, file, changes, message):
    path = write(tmp_path, "bert-relu") / file
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}))
    with pytest.raises(ModelError, match=message):
        open_encoder(tmp_path)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([("", "LSTM")], "has module 'LSTM'; supported are Transformer"),
        ([("../x", "Transformer")], "'path' is '../x'; expects the name of a folder"),
        ([("", "Transformer"), ("9", "Normalize"), ("1_Pooling", "Pooling")], "in this order"),
        ([("1_Pooling", "Pooling")], "in this order"),
    ],
)
def test_modules(tmp_path, modules, message):
    folder = write(tmp_path, "bert")
    entries = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ModelError, match=message):
        open_encoder(folder)


def test_defaults(tmp_path):
    """A folder of `transformers` alone: the mean, of any length."""
    folder = write(tmp_path, "bert")
    (folder / "modules.json").unlink()
    finish = open_encoder(folder).finish
    assert (finish.config.pooling, finish.config.is_unit, finish.max_tokens) == ("mean", False, 37)


def test_every_encoder_has_a_case():
    assert {e.hugging_face[0] for e in ENCODERS} == {
        c["architectures"][0] for c, *_ in CASES.values()
    }
    assert expected().keys() == {*CASES, "minilm"}


def test_authors_names_of_nomic(tmp_path):
    """Their `config.json` has names of GPT-2's kind."""
    folder = write(tmp_path, "nomic-bert")
    wanted = of_folder(folder, ENCODERS)[1]
    own = {
        **{"n_embd": 42, "n_head": 3, "n_inner": 76, "n_layer": 3, "n_positions": 37},
        **{"vocab_size": 271, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0},
        **{"layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "prenorm": False},
        **{"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "pad_token_id": 0},
    }
    (folder / "config.json").write_text(json.dumps(own))
    assert of_folder(folder, ENCODERS)[1] == wanted
    (folder / "config.json").write_text(json.dumps({**own, "prenorm": True}))
    with pytest.raises(ModelError, match="'prenorm' is True; False is supported"):
        of_folder(folder, ENCODERS)
