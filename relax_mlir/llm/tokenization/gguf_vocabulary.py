"""The keys of a GGUF file for the tokenizer of a Hugging Face folder.

Source: GGUF specification, `tokenizer.ggml.*`; llama.cpp `convert_hf_to_gguf.py`.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gguf.constants import TokenType

from relax_mlir.errors import ModelError
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.tokenization.chat import hugging_face_chat_template
from relax_mlir.llm.tokenization.piece_folder import MODEL_FILE, read_piece_folder
from relax_mlir.llm.tokenization.pieces import BPE, ENDS, MODELS, Pieces
from relax_mlir.llm.tokenization.tokenizer import PRE_TOKENIZERS, Tokenizer

UNUSED_SCORE = -10000.0


def vocabulary_of(folder: Path, config: DecoderConfig) -> dict[str, Any]:
    """The keys; raises ModelError for a tokenizer that a GGUF file cannot state."""
    tokenizer = Tokenizer.from_hugging_face(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"{tokenizer.where}: has {tokenizer.vocab_size} tokens, but the model "
            f"{config.vocab_size}"
        )
    state = json.loads(tokenizer.inner.to_str())
    model = state["model"]
    is_byte_level = model.get("type") == "BPE" and not model.get("byte_fallback")
    if is_byte_level:
        keys = _byte_level(tokenizer, state, config.vocab_size)
    elif (folder / MODEL_FILE).exists():
        keys = _of_pieces(tokenizer, folder, config.vocab_size)
    else:
        raise ModelError(
            f"{tokenizer.where}: is no byte-level BPE, and there is no '{MODEL_FILE}' of "
            "SentencePiece; one of them can be converted"
        )
    if (template := hugging_face_chat_template(folder)) is not None:
        keys["tokenizer.chat_template"] = template
    return keys


def _byte_level(tokenizer: Tokenizer, state: dict[str, Any], count: int) -> dict[str, Any]:
    rule, prefix = _rule_of(tokenizer.where, state)
    special = {token["id"]: token["special"] for token in state["added_tokens"]}
    tokens, kinds = _padded([], [], count)
    for token, id in tokenizer.inner.get_vocab(with_added_tokens=True).items():
        tokens[id], kinds[id] = token, int(TokenType.NORMAL)
    for id, is_special in special.items():
        kinds[id] = int(TokenType.CONTROL if is_special else TokenType.USER_DEFINED)
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]]
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": rule,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.add_space_prefix": prefix,
    }
    framed = tokenizer.encode("a")
    for end, text in zip(ENDS, (tokenizer.bos_token, tokenizer.eos_token), strict=True):
        if text is not None and (end_id := tokenizer.id_of(text)) is not None:
            keys[f"tokenizer.ggml.{end}_token_id"] = end_id
            outer = framed[:1] if end == "bos" else framed[-1:]
            keys[f"tokenizer.ggml.add_{end}_token"] = outer == [end_id]
    return keys


def _padded(tokens: Sequence[str], kinds: Sequence[int], count: int) -> tuple[list[str], list[int]]:
    """The texts and types of `count` tokens, of which the last are not used."""
    rest = range(len(tokens), count)
    return [*tokens, *(f"[PAD{i}]" for i in rest)], [*kinds, *(int(TokenType.UNUSED) for _ in rest)]


def _rule_of(where: str, state: dict[str, Any]) -> tuple[str, bool]:
    """The name of the rule that splits text into words, and whether a space comes before it."""
    wanted = state["pre_tokenizer"]
    for rule, build in PRE_TOKENIZERS.items():
        for prefix in (False, True):
            if json.loads(build(prefix).__getstate__()) == wanted:
                return rule, prefix
    known = ", ".join(PRE_TOKENIZERS)
    raise ModelError(
        f"{where}: splits text by a rule that has no name in GGUF files; known are {known}"
    )


def _of_pieces(tokenizer: Tokenizer, folder: Path, count: int) -> dict[str, Any]:
    pieces, adds = read_piece_folder(folder)
    _check_pieces(tokenizer, pieces)
    tokens, kinds = _padded(pieces.tokens, pieces.kinds, count)
    keys: dict[str, Any] = {
        "model": next(name for name, model in MODELS.items() if model == pieces.model),
        "pre": "default",
        "tokens": tokens,
        "scores": [*pieces.scores, *[UNUSED_SCORE] * (count - len(pieces.scores))],
        "token_type": kinds,
        "add_space_prefix": pieces.rules.prefix,
        **{f"{end}_token_id": id for end, id in pieces.ends.items()},
        **{f"add_{end}_token": value for end, value in adds.items()},
    }
    unknown = next((id for id, _ in pieces.of_kind(TokenType.UNKNOWN)), None)
    if unknown is not None:
        keys["unknown_token_id"] = unknown
    if pieces.model != BPE:
        keys["remove_extra_whitespaces"] = pieces.rules.trims
        if pieces.rules.table is not None:
            keys["precompiled_charsmap"] = pieces.rules.table.data
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def _check_pieces(tokenizer: Tokenizer, pieces: Pieces) -> None:
    """Refuses what a file would not state."""
    rules = pieces.rules
    if pieces.model == BPE and (rules.trims or rules.table is not None):
        raise ModelError(
            f"{pieces.where}: removes spaces or replaces characters, which GGUF files with BPE of "
            "SentencePiece cannot state"
        )
    own = {token: id for id, token in enumerate(pieces.tokens)}
    if own != tokenizer.inner.get_vocab(with_added_tokens=True):
        raise ModelError(f"{pieces.where}: has other tokens than {tokenizer.where}")
    if rules.is_first and rules.prefix:
        warnings.warn(
            f"{pieces.where}: puts a space before the first text only; readers of GGUF files do so "
            "after every control token",
            stacklevel=2,
        )
