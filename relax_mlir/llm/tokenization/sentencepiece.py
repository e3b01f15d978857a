"""SentencePiece's tokenizers: from a text to pieces of the best scores.

BPE merges adjacent pieces into the piece of the highest score, as long as there is one; that is BPE
whose merges are ordered by the score of their outcome. A unigram model takes the pieces with the
greatest sum of scores. Characters that are no piece are written as bytes, if there are pieces of
those.

Source: SentencePiece `bpe_model.cc`, `unigram_model.cc`; llama.cpp `llama-vocab.cpp`,
`llm_tokenizer_spm`, `llm_tokenizer_ugm`.
"""

from collections.abc import Mapping, Sequence

import tokenizers
from gguf.constants import TokenType
from tokenizers import AddedToken, decoders, models, normalizers

from relax_mlir.errors import ModelError
from relax_mlir.llm.tokenization.pieces import UNIGRAM, Pieces
from relax_mlir.llm.tokenization.text_rules import SPACE

NO_PIECES = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.BYTE)
"""Types of tokens that no merge makes."""
LONGEST_PIECE = 64
"""In characters; longer ones, which are rare, would make tables quadratic."""


class Segmenter:
    """Texts to ids, by the pieces of `model`; in a frame they are between `before` and `after`."""

    def __init__(
        self, pieces: Pieces, model: models.Model, before: Sequence[int], after: Sequence[int]
    ) -> None:
        self._before, self._after = list(before), list(after)
        self._rules = pieces.rules
        self._controls = _Splitter({text: id for id, text in pieces.of_kind(TokenType.CONTROL)})
        self._symbols = _Splitter({text: id for id, text in pieces.of_kind(TokenType.USER_DEFINED)})
        self._is_unigram = pieces.model == UNIGRAM
        self._model = _matching(pieces) if self._is_unigram else model
        bytes = {text: id for id, text in pieces.of_kind(TokenType.BYTE)}
        self._bytes = [bytes[name] for i in range(256) if (name := f"<0x{i:02X}>") in bytes]
        self._unknown = next((id for id, _ in pieces.of_kind(TokenType.UNKNOWN)), None)

    def ids(self, text: str, framed: bool) -> list[int]:
        """The ids of a text; those of control tokens for the texts of these."""
        ids: list[int] = []
        for part, id in self._controls.split(text):
            ids += self._of_sentence(part, not ids) if id is None else [id]
        return [*self._before, *ids, *self._after] if framed else ids

    def _of_sentence(self, text: str, begins: bool) -> list[int]:
        spelt = self._rules.apply(text, self._symbols.split, begins)
        if self._is_unigram:
            return self._of_pieces(spelt)
        ids: list[int] = []
        for part, id in self._symbols.split(spelt):
            ids += [token.id for token in self._model.tokenize(part)] if id is None else [id]
        return ids

    def _of_pieces(self, spelt: str) -> list[int]:
        """Those of a unigram model: unknown characters in a row are one token, or bytes."""
        ids: list[int] = []
        for token in self._model.tokenize(spelt):
            if token.id == self._unknown and len(self._bytes) == 256:
                ids += [self._bytes[byte] for byte in token.value.encode()]
            else:
                ids.append(token.id)
        return ids


class _Splitter:
    """Finds tokens in texts: the longest one that begins first, in linear time."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = {text: id for text, id in ids.items() if text}
        self._inner = tokenizers.Tokenizer(models.WordLevel({"": 0}, unk_token=""))
        self._inner.add_special_tokens(
            [AddedToken(text, special=True, normalized=False) for text in self._ids]
        )

    def split(self, text: str) -> list[tuple[str, int | None]]:
        """The parts of a text, with the ids of those that are tokens."""
        if not self._ids:
            return [(text, None)] if text else []
        encoding = self._inner.encode(text)
        return [
            (text[begin:end], self._ids.get(token))
            for token, (begin, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        ]


def sentencepiece(pieces: Pieces) -> tokenizers.Tokenizer:
    """The vocabulary, and how it is decoded; `Segmenter` encodes. Raises ModelError."""
    vocab = {token: id for id, token in enumerate(pieces.tokens)}
    unknown = next((token for _, token in pieces.of_kind(TokenType.UNKNOWN)), None)
    if pieces.model == UNIGRAM:
        model: models.Model = _unigram(pieces, pieces.tokens)
    else:
        known = {t: id for t, id in vocab.items() if pieces.kinds[id] not in NO_PIECES}
        model = models.BPE(
            vocab,
            _merges(known, pieces.scores),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    inner = tokenizers.Tokenizer(model)
    replaced = normalizers.Replace(" ", SPACE)
    before = [normalizers.Prepend(SPACE)] if pieces.rules.prefix else []
    inner.normalizer = normalizers.Sequence([*before, replaced])
    # One space, also where all are removed from texts: streams are decoded from any token on.
    strip = decoders.Strip(" ", int(pieces.rules.prefix or pieces.rules.trims), 0)
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), strip]
    inner.decoder = decoders.Sequence(steps)
    return inner


def _merges(pieces: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, by its score, then by their ids."""
    pairs = [
        (-scores[id], pieces[piece[:cut]], pieces[piece[cut:]], piece[:cut], piece[cut:])
        for piece, id in pieces.items()
        if len(piece) <= LONGEST_PIECE
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
    return [(left, right) for *_, left, right in sorted(pairs)]


def _matching(pieces: Pieces) -> models.Unigram:
    """The model that texts are matched with: others than pieces have a name with a space.

    No text that it is given has one.
    """
    names = [
        token if kind in (TokenType.NORMAL, TokenType.USER_DEFINED) else f"{token} {i}"
        for i, (token, kind) in enumerate(zip(pieces.tokens, pieces.kinds, strict=True))
    ]
    return _unigram(pieces, names)


def _unigram(pieces: Pieces, names: Sequence[str]) -> models.Unigram:
    unknown = next((id for id, _ in pieces.of_kind(TokenType.UNKNOWN)), None)
    if unknown is None:
        raise ModelError(f"{pieces.where}: has no unknown token, which a unigram model needs")
    normal = [
        s for s, kind in zip(pieces.scores, pieces.kinds, strict=True) if kind == TokenType.NORMAL
    ]
    least, greatest = min(normal, default=0.0), max(normal, default=0.0)

    def score(id: int) -> float:
        # Scores of others must not be the least, from which that of unknown characters follows.
        if pieces.kinds[id] == TokenType.USER_DEFINED:
            return max(len(pieces.tokens[id].encode()) * greatest - 0.1, least)
        return pieces.scores[id] if pieces.kinds[id] == TokenType.NORMAL else greatest

    return models.Unigram([(name, score(i)) for i, name in enumerate(names)], unknown)
