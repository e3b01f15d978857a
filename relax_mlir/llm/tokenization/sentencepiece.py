"""SentencePiece's BPE with byte fallback, from the pieces and scores of a GGUF file.

Adjacent pieces are merged into the piece of the highest score, as long as there is one; what is no
piece then is written as its bytes. That is BPE whose merges are ordered by the score of their
outcome.

Source: SentencePiece `bpe_model.cc`; GGUF specification, `tokenizer.ggml.scores`; llama.cpp
`llama-vocab.cpp`, `llm_tokenizer_spm`.
"""

from collections.abc import Sequence

import tokenizers
from tokenizers import decoders, models, normalizers

from relax_mlir.llm.formats.fields import Fields

SPACE = "\u2581"
UNKNOWN_TOKEN, BYTE_TOKEN = 2, 6
NO_PIECES = (UNKNOWN_TOKEN, 3, BYTE_TOKEN)
"""Types of tokens that no merge makes: unknown, control, byte."""
LONGEST_PIECE = 64
"""In characters; longer ones, which are rare, would make tables quadratic."""


def sentencepiece_bpe(
    fields: Fields, tokens: Sequence[str], kinds: Sequence[int], prefix: bool
) -> tokenizers.Tokenizer:
    """The tokenizer; with `prefix` a space is put before texts. Raises ModelError."""
    scores = fields.values.get("tokenizer.ggml.scores")
    count = len(tokens)
    holds = isinstance(scores, list) and all(isinstance(s, int | float) and s == s for s in scores)
    if not isinstance(scores, list) or not holds or len(scores) != count or len(kinds) != count:
        raise fields.refuse(f"has no score and type for each of its {count} tokens")
    vocab = {token: id for id, token in enumerate(tokens)}
    if len(vocab) != count:
        raise fields.refuse("has a vocabulary that lists a token twice")
    unknown = next(
        (t for t, kind in zip(tokens, kinds, strict=True) if kind == UNKNOWN_TOKEN), None
    )
    pieces = {t: id for t, id in vocab.items() if kinds[id] not in NO_PIECES}
    model = models.BPE(
        vocab, _merges(pieces, scores), unk_token=unknown, fuse_unk=True, byte_fallback=True
    )
    inner = tokenizers.Tokenizer(model)
    replaced = normalizers.Replace(" ", SPACE)
    before = [normalizers.Prepend(SPACE)] if prefix else []
    inner.normalizer = normalizers.Sequence([*before, replaced])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    inner.decoder = decoders.Sequence(steps)
    return inner


def _merges(pieces: dict[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, by its score, then by their ids."""
    pairs = [
        (-scores[id], pieces[piece[:cut]], pieces[piece[cut:]], piece[:cut], piece[cut:])
        for piece, id in pieces.items()
        if len(piece) <= LONGEST_PIECE
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
    return [(left, right) for *_, left, right in sorted(pairs)]
