"""Folders with `tokenizer.model` alone, against ids of the package `sentencepiece`.

`sentencepiece_models.py` wrote the models, and ids of hostile texts.
"""

import base64
import json
import random
import time

import numpy as np
import pytest
from sentencepiece_models import MODELS, OUTPUT, texts
from tiny_models import random_weights, write_hf

from relax_mlir.errors import ModelError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.tokenization.text_rules import LONGEST_TEXT, CharacterTable
from relax_mlir.llm.tokenization.tokenizer import Tokenizer
from relax_mlir.tools.relax_llm import main

STORED = json.loads(OUTPUT.read_text())
VOCABULARY = 485
CONFIG_ENTRIES = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2}


def write_folder(folder, name, **config):
    """A tiny model with the tokenizer `name`, and entries of `tokenizer_config.json`."""
    sizes = dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), VOCABULARY)
    weights = {
        key: array[[0] * sizes[key]] if key in sizes else array
        for key, array in random_weights().items()
    }
    write_hf(folder, weights, **CONFIG_ENTRIES)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(base64.b64decode(STORED[name]["model"]))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def check_ids(tokenizer, name):
    pairs = list(zip(texts(120, seed=len(name)), STORED[name]["ids"], strict=True))
    for (text, ids), decoded in zip(pairs, STORED[name]["decoded"], strict=True):
        assert tokenizer.encode(text, add_special_tokens=False) == ids, text
        decoded, found = decoded.replace(" \u2047 ", tokenizer.decode([0])), tokenizer.decode(ids)
        if "normalization_rule_tsv" in MODELS[name]:  # which removes spaces, in another place
            decoded, found = decoded.lstrip(" "), found.lstrip(" ")
        assert found == decoded, text
        stream = tokenizer.stream()
        assert "".join(map(stream.push, ids)) + stream.flush() == tokenizer.decode(ids)


@pytest.mark.parametrize("name", MODELS)
def test_ids_and_texts(tmp_path, name):
    check_ids(Tokenizer.from_hugging_face(write_folder(tmp_path, name)), name)


@pytest.mark.parametrize("name", ["unigram", "unigram-bytes", "bpe"])
def test_converted(tmp_path, name):
    folder, file = write_folder(tmp_path / "m", name), tmp_path / "m.gguf"
    assert main(["convert", str(folder), "-o", str(file), "--weights", "f32"]) == 0
    checkpoint = open_checkpoint(str(file))
    check_ids(checkpoint.tokenizer, name)
    own = Tokenizer.from_hugging_face(folder)
    assert checkpoint.tokenizer.encode("the") == own.encode("the")
    assert (checkpoint.tokenizer.bos_token, checkpoint.tokenizer.eos_token) == ("<s>", "</s>")
    assert checkpoint.config.eos_ids == {2}


def test_rules_that_files_of_bpe_cannot_state(tmp_path):
    folder = write_folder(tmp_path / "m", "bpe-rules")
    with pytest.raises(ModelError, match="replaces characters, which GGUF files with BPE"):
        convert(str(folder), tmp_path / "m.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_control_tokens_come_from_their_texts_alone(tmp_path):
    """Not from what rules make of a text, and not from pieces that spell them."""
    tokenizer = Tokenizer.from_hugging_face(write_folder(tmp_path, "unigram"))
    control = tokenizer.id_of("<ctl>")
    assert tokenizer.encode("a<ctl>b", add_special_tokens=False).count(control) == 1
    for text in ("\uff1cctl\uff1e", "\uff1c/s\uff1e", "<c tl>"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert not {control, 1, 2} & set(ids), text


def test_frame_and_added_tokens(tmp_path):
    count = MODELS["bpe"]["vocab_size"]
    added = {str(count): {"content": "<|user|>", "special": True}, "2": {"content": "</s>"}}
    config = {"added_tokens_decoder": added, "add_eos_token": True, "eos_token": "<|user|>"}
    tokenizer = Tokenizer.from_hugging_face(write_folder(tmp_path, "bpe", **config))
    inner = tokenizer.encode("ab", add_special_tokens=False)
    assert tokenizer.encode("ab") == [1, *inner, count]
    assert tokenizer.encode("ab<|user|>ab", add_special_tokens=False) == [*inner, count, *inner]
    assert tokenizer.decode([*inner, count]) == "ab"
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<|x|>": count}))
    assert Tokenizer.from_hugging_face(tmp_path).encode("<|x|>") == [1, count]


@pytest.mark.parametrize(("legacy", "count"), [(True, 2), (False, 1)])
def test_space_after_control_tokens(tmp_path, legacy, count):
    folder = write_folder(tmp_path, "unigram", legacy=legacy)
    tokenizer = Tokenizer.from_hugging_face(folder)
    ids = tokenizer.encode("the<ctl>the", add_special_tokens=False)
    assert ids.count(tokenizer.id_of("\u2581the")) == count


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tokenizer_class": "XLMRobertaTokenizer"}, "'XLMRobertaTokenizer'; with 'tokenizer.mo"),
        ({"bos_token": "<none>"}, "'bos_token' is '<none>', which is no token"),
        ({"added_tokens_decoder": {"x": {"content": "a"}}}, "has 'x'; expects ids"),
        ({"added_tokens_decoder": {"999999": {"content": "a"}}}, "adds a token 999999, after 480"),
        ({"added_tokens_decoder": {"7": {"content": "no"}}}, "adds 'no' as token 7, which is '<0x"),
        ({"added_tokens_decoder": {"480": {"content": "<s>"}}}, "lists a token twice"),
        ({"added_tokens_decoder": {"480": {}}}, "'content' is missing"),
        ({"added_tokens_decoder": [1]}, "expects an object"),
    ],
)
def test_configurations_that_are_refused(tmp_path, config, message):
    folder = write_folder(tmp_path, "bpe", **config)
    with pytest.raises(ModelError, match=message):
        Tokenizer.from_hugging_face(folder)


def refusal(folder, given):
    """Why a tokenizer is refused, if it is, or texts of it are."""
    try:
        tokenizer = Tokenizer.from_hugging_face(folder)
        for text in given:
            tokenizer.decode(tokenizer.encode(text))
    except ModelError as error:
        return str(error)
    return None


def test_damaged_files(tmp_path):
    """Cut short or changed: refused by name, or a tokenizer of other pieces."""
    for name in ("unigram", "bpe"):
        folder = write_folder(tmp_path / name, name)
        path, generator = folder / "tokenizer.model", random.Random(1)
        data, refused = path.read_bytes(), 0
        for i in range(60):
            changed = bytearray(data if i % 3 else data[: generator.randrange(len(data))])
            for _ in range(generator.choice([0, 1, 4, 30])):
                # The ends of the file are not pieces.
                end = generator.choice([len(changed), 60, 400])
                at = generator.randrange(max(len(changed), 1))
                at = max(0, len(changed) - 1 - at % end) if i % 2 else at % end
                if at < len(changed):
                    changed[at] = generator.choice(
                        [0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)]
                    )
            path.write_bytes(changed)
            begin = time.monotonic()
            message = refusal(folder, texts(5, seed=i))
            assert time.monotonic() - begin < 2
            if message is not None:
                refused += 1
                assert str(path) in message
                assert message.isprintable()
        assert 5 < refused < 60


def test_long_texts(tmp_path):
    for name in MODELS:
        tokenizer = Tokenizer.from_hugging_face(write_folder(tmp_path / name, name))
        for text in ("the memory of a tensor  \u00bd" * 4000, "\u65e5" * 100_000, " " * 100_000):
            begin = time.monotonic()
            ids = tokenizer.encode(text)
            assert ids or not text.strip()
            assert time.monotonic() - begin < 5


@pytest.mark.parametrize("length", [1, LONGEST_TEXT, LONGEST_TEXT + 1, 15 << 20])
def test_long_replacements(length):
    """One for each character would fill all memory."""
    units = np.zeros(512, "<u4")
    units[0], units[256 ^ ord("a")] = 256 << 10, ord("a") | 0x100 | 1 << 10
    trie = units.tobytes()
    data = len(trie).to_bytes(4, "little") + trie + b"x" * length + b"\0"
    table = CharacterTable(data, "the file")
    if length <= LONGEST_TEXT:
        assert "".join(table.replaced("baab")) == f"b{'x' * length * 2}b"
        return
    with pytest.raises(ModelError, match=f"a text at byte 0 of {length + 1} does not end"):
        "".join(table.replaced("baab"))


def test_gguf_files(tmp_path):
    """Tables of characters as other programs write them, and damaged ones."""
    folder, file = write_folder(tmp_path / "m", "unigram"), tmp_path / "m.gguf"
    convert(str(folder), file, "f32")
    opened = GgufFile.open(file)
    key = "tokenizer.ggml.precompiled_charsmap"
    table = opened.metadata[key]
    signed = [x - 256 if x > 127 else x for x in table]
    for changes in ({key: signed}, {"tokenizer.ggml.add_eos_token": None}):
        metadata = {**opened.metadata, **changes}
        tokenizer = Tokenizer.from_gguf(GgufFile(file, metadata, {}, opened.buffer))
        check_ids(tokenizer, "unigram")
    assert tokenizer.encode("the")[-1] == 2  # as llama.cpp does unless the file says otherwise
    trie = 4 + int.from_bytes(bytes(table[:4]), "little")
    for value, message in (
        ([1, 2], "damaged table of characters: 2 bytes"),
        (table[:trie], "damaged table of characters: a text at byte"),
        ([300], "no array of bytes"),
        ("x", "no array of bytes"),
    ):
        metadata = {**opened.metadata, key: value}
        with pytest.raises(ModelError, match=message):
            Tokenizer.from_gguf(GgufFile(file, metadata, {}, opened.buffer)).encode("\uff21")
