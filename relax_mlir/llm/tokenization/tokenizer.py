"""Text to token ids and back, from a Hugging Face folder or from the metadata of a GGUF file.

A GGUF file has the vocabulary and the merges of a byte-level BPE tokenizer, but only the *name* of
the rule that splits text into words before merging; `PRE_TOKENIZERS` defines the names. Of
SentencePiece's models it has all, see `sentencepiece.py`.

Source: `tokenizers` package; GGUF specification, `tokenizer.ggml.*`; llama.cpp `llama-vocab.cpp`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers
from gguf.constants import TokenType
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import in_short, quoted, read_model_file
from relax_mlir.llm.tokenization.piece_folder import MODEL_FILE, read_piece_folder
from relax_mlir.llm.tokenization.pieces import ENDS, MODELS, Pieces, pieces_of_gguf
from relax_mlir.llm.tokenization.sentencepiece import Segmenter, sentencepiece

REPLACEMENT = "\ufffd"  # what an incomplete UTF-8 sequence decodes to

# Contractions, words, runs of at most {digits} digits, punctuation, line ends, spaces.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,{digits}}}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Tokenizer:
    """Encodes text and decodes ids. `bos_token`, `eos_token`: their texts, for chat templates."""

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        bos_token: str | None,
        eos_token: str | None,
        where: str = "the tokenizer",
        segmenter: Segmenter | None = None,
    ) -> None:
        """`inner` encodes too, unless there is a `segmenter`."""
        self.inner = inner
        self._segmenter = segmenter
        self.where = where
        self.bos_token = bos_token
        self.eos_token = eos_token

    @staticmethod
    def from_gguf(file: GgufFile) -> "Tokenizer":
        """Builds the tokenizer that the metadata of `file` describes.

        Raises ModelError if there is none, or if its kind is not supported.
        """
        fields = Fields(str(file.path), file.metadata)
        model = fields.text("tokenizer.ggml.model")
        tokens = fields.texts("tokenizer.ggml.tokens")
        kinds = fields.ids("tokenizer.ggml.token_type")
        if model in MODELS:
            adds = {"bos": model == "llama", "eos": model == "t5"}
            adds = {k: fields.flag(f"tokenizer.ggml.add_{k}_token", v) for k, v in adds.items()}
            return _of_pieces(pieces_of_gguf(fields, MODELS[model]), adds)
        if model != "gpt2":
            known = "'gpt2', 'llama' and 't5' are supported"
            raise fields.refuse(f"has a tokenizer of kind {quoted(model)}; {known}")
        inner, adds_bos = _byte_level(fields, tokens)
        added = [
            AddedToken(token, special=kind == TokenType.CONTROL, normalized=False)
            for token, kind in zip(tokens, kinds, strict=False)
            if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
        ]
        inner.add_tokens(added)
        bos, eos = (_token(fields, f"tokenizer.ggml.{key}_token_id", tokens) for key in ENDS)
        add_bos = fields.flag("tokenizer.ggml.add_bos_token", adds_bos)
        add_eos = fields.flag("tokenizer.ggml.add_eos_token", False)
        _set_frame(inner, bos if add_bos else None, eos if add_eos else None)
        return Tokenizer(inner, bos, eos, fields.where)

    @staticmethod
    def from_hugging_face(folder: Path) -> "Tokenizer":
        """Reads `tokenizer.json` of `folder`, and the files that name its special tokens, if any.

        Without it, reads SentencePiece's `tokenizer.model`.

        Raises ModelError if a file is missing or damaged.
        """
        path = folder / "tokenizer.json"
        if not path.exists() and (folder / MODEL_FILE).exists():
            return _of_pieces(*read_piece_folder(folder))
        if not path.exists():
            raise ModelError(f"{folder}: has neither 'tokenizer.json' nor '{MODEL_FILE}'")
        data = read_model_file(path)
        with _refused(f"{path}: cannot be read"):
            inner = tokenizers.Tokenizer.from_buffer(data)
        inner.no_truncation()
        inner.no_padding()
        # Older folders name special tokens only in a separate file.
        files = ("tokenizer_config.json", "special_tokens_map.json")
        configs = [Fields.read_json(folder / file, optional=True) for file in files]
        bos, eos = (_first_text(configs, f"{key}_token") for key in ENDS)
        return Tokenizer(inner, bos, eos, str(path))

    @property
    def vocab_size(self) -> int:
        """The count of ids; a model may have more rows, for alignment."""
        return self.inner.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """The ids of `text`; the texts of special tokens in it become those tokens.

        `add_special_tokens` adds those that the model expects around every text (often the begin
        token); the output of a chat template has them already. Bytes that the vocabulary lacks are
        dropped (SmolLM2: some control characters). Raises UsageError if `text` is not valid
        Unicode.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the text cannot be encoded: {error}") from error
        with _refused(f"{self.where}: the text cannot be encoded"):
            if self._segmenter is not None:
                return self._segmenter.ids(text, add_special_tokens)
            return self.inner.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of `ids`; bytes that are not valid UTF-8 become U+FFFD."""
        with _refused(f"{self.where}: {len(ids)} tokens cannot be decoded"):
            return self.inner.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def id_of(self, token: str) -> int | None:
        """The id of the token with this text in the vocabulary's notation."""
        return self.inner.token_to_id(token)

    def special_id(self, token: str) -> int | None:
        """The id of the token with this text if texts are decoded without it, else None."""
        id = self.id_of(token)
        return None if id is None or self.decode([id]) else id

    def stream(self, *, skip_special_tokens: bool = True) -> "Detokenizer":
        """A streaming decoder, which takes one id at a time."""
        return Detokenizer(lambda ids: self.decode(ids, skip_special_tokens=skip_special_tokens))


class Detokenizer:
    """Turns a stream of ids into a stream of text that never splits a character.

    The texts returned by `push`, and finally by `flush`, concatenate to the text of all ids. Only
    the ids since the last complete character are decoded, together with those of the piece before,
    since a token's text can depend on its neighbour.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._before: list[int] = []
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        """Takes one id; returns the text that it completes, often that of this id alone."""
        self._pending.append(token)
        text = self._new_text()
        if not text or text.endswith(REPLACEMENT):
            return ""
        self._before, self._pending = self._pending, []
        return text

    def flush(self) -> str:
        """Returns the rest, with U+FFFD for an incomplete character, and resets."""
        text = self._new_text()
        self._before, self._pending = [], []
        return text

    def _new_text(self) -> str:
        known = self._decode(self._before)
        return self._decode(self._before + self._pending)[len(known) :]


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Turns errors of the `tokenizers` package, panics included, into a ModelError."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError, ModelError):
        raise
    except BaseException as error:  # it raises Exception itself, and panics are not Exceptions
        raise ModelError(f"{what}: {in_short(error)}") from error


def _of_pieces(pieces: Pieces, adds: Mapping[str, bool]) -> Tokenizer:
    """A tokenizer of SentencePiece; `adds` says which ends are put around texts."""
    with _refused(f"{pieces.where}: has pieces that make no tokenizer"):
        inner = sentencepiece(pieces)
        inner.add_tokens(
            [
                AddedToken(text, special=kind == TokenType.CONTROL, normalized=False)
                for kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
                for _, text in pieces.of_kind(kind)
            ]
        )
    bos, eos = (pieces.tokens[pieces.ends[end]] if end in pieces.ends else None for end in ENDS)
    _set_frame(inner, bos if adds["bos"] else None, eos if adds["eos"] else None)
    before, after = ([pieces.ends[e]] if adds[e] and e in pieces.ends else [] for e in ENDS)
    segmenter = Segmenter(pieces, inner.model, before, after)
    return Tokenizer(inner, bos, eos, pieces.where, segmenter)


def _gpt2_words(prefix: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix)


def _gpt2_words_and_digits(prefix: bool) -> Any:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, _gpt2_words(prefix)])


def _words(digits: int) -> Callable[[bool], Any]:
    def build(prefix: bool) -> Any:
        split = pre_tokenizers.Split(Regex(WORDS.format(digits=digits)), "isolated")
        to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)
        return pre_tokenizers.Sequence([split, to_bytes])

    return build


LLAMA3_NAMES = ("llama-bpe", "llama3", "llama-v3")
PRE_TOKENIZERS: Mapping[str, Callable[[bool], Any]] = {
    "gpt-2": _gpt2_words,
    "smollm": _gpt2_words_and_digits,
    "starcoder": _gpt2_words_and_digits,
    **dict.fromkeys(LLAMA3_NAMES, _words(3)),
    "qwen2": _words(1),
}


def _byte_level(fields: Fields, tokens: list[str]) -> tuple[tokenizers.Tokenizer, bool]:
    """BPE of bytes, and whether texts begin with a token unless the file says otherwise."""
    rule = fields.text("tokenizer.ggml.pre")
    if rule not in PRE_TOKENIZERS:
        raise fields.refuse(
            f"has pre-tokenizer {quoted(rule)}; supported are {', '.join(PRE_TOKENIZERS)}"
        )
    inner = tokenizers.Tokenizer(_bpe_model(fields, tokens, rule))
    prefix = fields.flag("tokenizer.ggml.add_space_prefix", False)
    inner.pre_tokenizer = PRE_TOKENIZERS[rule](prefix)
    if rule == "qwen2":
        inner.normalizer = normalizers.NFC()
    inner.decoder = decoders.ByteLevel()
    return inner, rule in LLAMA3_NAMES


def _bpe_model(fields: Fields, tokens: list[str], rule: str) -> models.BPE:
    vocab = {token: id for id, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        raise fields.refuse("has a vocabulary that lists a token twice")
    pairs = [_pair(merge) for merge in fields.texts("tokenizer.ggml.merges")]
    with _refused(f"{fields.where}: has merges that do not fit the vocabulary"):
        # Llama 3 looks up whole words before it merges.
        return models.BPE(vocab, pairs, ignore_merges=rule in LLAMA3_NAMES)


def _pair(merge: str) -> tuple[str, str]:
    """Splits "left right"; the left part is never empty, so it may be a space."""
    cut = merge.find(" ", 1)
    return merge[:cut], merge[cut + 1 :]


def _token(fields: Fields, key: str, tokens: list[str]) -> str | None:
    id = fields.id(key)
    if id is not None and id >= len(tokens):
        raise fields.refuse(f"'{key}' is {id}; the last token is {len(tokens) - 1}")
    return None if id is None else tokens[id]


def _set_frame(inner: tokenizers.Tokenizer, bos: str | None, eos: str | None) -> None:
    """Makes `encode` put `bos` before and `eos` after every text."""
    frame: Iterable[str] = [token for token in (bos, "$A", eos) if token is not None]
    special = [(token, inner.token_to_id(token)) for token in (bos, eos) if token is not None]
    if special:
        inner.post_processor = processors.TemplateProcessing(frame, special_tokens=special)


def _first_text(configs: Iterable[Fields], key: str) -> str | None:
    """The text of a token in the first of some files that has it."""
    return next(filter(None, (_token_text(config, key) for config in configs)), None)


def _token_text(config: Fields, key: str) -> str | None:
    """The text of a token in a file: a string, or an object with `content`."""
    value = config.values.get(key)
    if isinstance(value, dict):
        return config.table(key).text("content")
    return None if value is None else config.text(key)
