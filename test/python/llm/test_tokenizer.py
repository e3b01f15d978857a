"""Tokenizers from both kinds of file, against the `tokenizers` package and known ids."""

import json

import pytest
import tiny_models
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import hf_tokenizer, random_weights, write_gguf, write_hf_tokenizer
from tokenizers import pre_tokenizers

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.tokenization.tokenizer import PRE_TOKENIZERS, Detokenizer, Tokenizer

TEXTS = [
    "",
    " ",
    "hello hello",
    "12 + 345 = 357",
    "we'll  WE'LL\n\n  x\t",
    "naïve 東京 😀👩‍👩‍👧 é",
    "<|begin|>hello<|im_end|>",
]
PLAIN = Tokenizer(hf_tokenizer(), None, None)


@pytest.fixture(scope="module")
def weights():
    return random_weights()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, weights):
    path = write_gguf(tmp_path_factory.mktemp("tiny") / "m.gguf", weights)
    return Tokenizer.from_gguf(GgufFile.open(path))


def from_gguf(tmp_path, weights, **changes):
    return Tokenizer.from_gguf(GgufFile.open(write_gguf(tmp_path / "m.gguf", weights, **changes)))


@pytest.mark.parametrize("text", TEXTS)
def test_both_sources_encode_as_the_package_does(tmp_path, tiny, text):
    write_hf_tokenizer(tmp_path)
    expected = hf_tokenizer().encode(text).ids
    assert tiny.encode(text) == expected
    assert Tokenizer.from_hugging_face(tmp_path).encode(text) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_decoding_gives_the_text_back(tiny, text):
    assert tiny.decode(tiny.encode(text), skip_special_tokens=False) == text


def test_special_tokens(tmp_path, tiny):
    write_hf_tokenizer(tmp_path)
    for tokenizer in (tiny, Tokenizer.from_hugging_face(tmp_path)):
        assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|begin|>", "<|im_end|>")
        assert tokenizer.vocab_size == len(tiny_models.TOKENS)
        assert (tokenizer.id_of("<|im_end|>"), tokenizer.id_of("no such")) == (1, None)
        assert tokenizer.decode([0, *tokenizer.encode("hello"), 1]) == "hello"


def test_begin_and_end_tokens_on_request(tmp_path, weights):
    flags = {"tokenizer__ggml__add_bos_token": True, "tokenizer__ggml__add_eos_token": True}
    tokenizer = from_gguf(tmp_path, weights, **flags)
    inside = tokenizer.encode("hello", add_special_tokens=False)
    assert tokenizer.encode("hello") == [0, *inside, 1]
    assert not {0, 1} & set(inside)


def test_smollm2_known_ids(smollm2, golden):
    """Ids of known texts come from Hugging Face's own tokenizer."""
    for key in ("chat_tokens", "text128_tokens"):
        ids = golden[key].tolist()
        text = smollm2.tokenizer.decode(ids, skip_special_tokens=False)
        assert smollm2.tokenizer.encode(text) == ids
    ids = golden["text128_tokens"].tolist()
    assert smollm2.tokenizer.decode(ids).startswith("The history of compilers begins in the early")
    assert smollm2.tokenizer.decode(golden["greedy32"][37:]) == "The capital of France is Paris."
    assert smollm2.tokenizer.vocab_size == 49152


def test_smollm2_text_survives(smollm2):
    for text in TEXTS:
        ids = smollm2.tokenizer.encode(text)
        assert smollm2.tokenizer.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        ("gpt-2", "it's 2024 a\n\n b", ["it", "'s", "Ġ2024", "Ġa", "ĊĊ", "Ġb"]),
        ("smollm", "it's 2024", ["it", "'s", "Ġ", "2", "0", "2", "4"]),
        ("llama-bpe", "IT'S 20245 a\n\n b", ["IT", "'S", "Ġ", "202", "45", "Ġa", "ĊĊ", "Ġb"]),
        ("qwen2", "IT'S 2024!\n", ["IT", "'S", "Ġ", "2", "0", "2", "4", "!Ċ"]),
    ],
)
def test_word_rules(rule, text, words):
    found = [word for word, _ in PRE_TOKENIZERS[rule](False).pre_tokenize_str(text)]
    assert found == words


def test_llama3_looks_whole_words_up_first(tmp_path, weights):
    """Merges reach "hello"; "wo" is in no merge, so only a look-up finds it."""
    tokens = [*tiny_models.TOKENS, "wo"]
    kinds = [3, 3] + [1] * (len(tokens) - 2)
    changes = {"tokenizer__ggml__tokens": tokens, "tokenizer__ggml__token_type": kinds}
    llama3 = from_gguf(tmp_path, weights, tokenizer__ggml__pre="llama-bpe", **changes)
    assert llama3.encode("wo") == [0, len(tokens) - 1]
    assert len(from_gguf(tmp_path, weights, **changes).encode("wo")) == 2


def test_unsupported_tokenizers_are_refused(tmp_path, weights):
    with pytest.raises(ModelError, match="tokenizer of kind 'bert'; 'gpt2', 'llama' and 't5' are"):
        from_gguf(tmp_path, weights, tokenizer__ggml__model="bert")
    with pytest.raises(ModelError, match="pre-tokenizer 'tekken'; supported are gpt-2, smollm"):
        from_gguf(tmp_path, weights, tokenizer__ggml__pre="tekken")
    with pytest.raises(ModelError, match="lists a token twice"):
        from_gguf(tmp_path, weights, tokenizer__ggml__tokens=["a", "b", "a"])
    with pytest.raises(ModelError, match="merges that do not fit the vocabulary"):
        from_gguf(tmp_path, weights, tokenizer__ggml__merges=["he nowhere"])
    with pytest.raises(ModelError, match=r"'tokenizer\.ggml\.bos_token_id' is 999; the last"):
        from_gguf(tmp_path, weights, tokenizer__ggml__bos_token_id=999)
    for key in ("model", "pre", "tokens", "merges"):
        with pytest.raises(ModelError, match=f"'tokenizer.ggml.{key}' is missing"):
            from_gguf(tmp_path, weights, drop=(f"tokenizer.ggml.{key}",))


def test_damaged_hugging_face_tokenizers_are_refused(tmp_path):
    with pytest.raises(ModelError, match=r"has neither 'tokenizer\.json' nor"):
        Tokenizer.from_hugging_face(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json: cannot be read"):
        Tokenizer.from_hugging_face(tmp_path)
    write_hf_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": 3}))
    with pytest.raises(ModelError, match="'bos_token' is 3; expects a string"):
        Tokenizer.from_hugging_face(tmp_path)


def test_truncation_of_the_file_is_not_taken_over(tmp_path):
    inner = hf_tokenizer()
    inner.enable_truncation(3)
    inner.enable_padding(length=10)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert len(Tokenizer.from_hugging_face(tmp_path).encode("a b c d")) == 7


def test_broken_unicode_is_refused(tiny):
    with pytest.raises(UsageError, match="cannot be encoded"):
        tiny.encode("a\udc80")


def pieces(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*(stream.push(id) for id in ids), stream.flush()]


def test_stream_gives_whole_characters(tiny):
    ids = tiny.encode("é😀!")
    assert pieces(tiny, ids) == ["", "é", "", "", "", "😀", "!", ""]
    assert pieces(tiny, ids[:4]) == ["", "é", "", "", "\ufffd"]


def test_stream_skips_special_tokens(tiny):
    assert pieces(tiny, [0, tiny.id_of("hello"), 1]) == ["", "hello", "", ""]
    stream = tiny.stream(skip_special_tokens=False)
    assert stream.push(1) == "<|im_end|>"


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, len(tiny_models.TOKENS) - 1), max_size=20))
def test_stream_joins_to_the_whole(ids):
    """For all ids, those too that make invalid UTF-8."""
    assert "".join(pieces(PLAIN, ids)) == PLAIN.decode(ids)


def test_stream_of_a_decoder_that_trims(tmp_path):
    """Decoders of the SentencePiece kind drop the space before the first word."""
    words = ["▁one", "▁two", "▁three"]
    stream = Detokenizer(lambda ids: "".join(words[i] for i in ids).replace("▁", " ").lstrip())
    assert [stream.push(i) for i in (0, 1, 2)] == ["one", " two", " three"]
    assert stream.flush() == ""


def test_alphabet_is_complete():
    assert len(tiny_models.ALPHABET) == len(pre_tokenizers.ByteLevel.alphabet()) == 256
