"""SentencePiece models in Hugging Face folders without `tokenizer.json`.

`tokenizer.model` has the pieces; `tokenizer_config.json` and `added_tokens.json` have more tokens,
and what is put around texts.

Source: transformers `LlamaTokenizer`, `GemmaTokenizer`.
"""

from dataclasses import replace
from pathlib import Path

from gguf.constants import TokenType

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.tokenization.pieces import (
    BPE,
    ENDS,
    Pieces,
    pieces_of_file,
)

MODEL_FILE = "tokenizer.model"
CLASSES = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "PreTrainedTokenizer")
"""Values of `tokenizer_class`, also with "Fast": others have other ids for pieces."""


def read_piece_folder(folder: Path) -> tuple[Pieces, dict[str, bool]]:
    """The pieces, and whether "bos" and "eos" are put around texts.

    Raises ModelError if a file is missing, damaged or not supported.
    """
    config = Fields.read_json(folder / "tokenizer_config.json", optional=True)
    kind = config.text("tokenizer_class", CLASSES[0])
    if kind.removesuffix("Fast") not in CLASSES:
        raise config.refuse(
            f"'tokenizer_class' is {quoted(kind)}; with '{MODEL_FILE}' alone, "
            f"{', '.join(CLASSES)} are supported"
        )
    pieces = pieces_of_file(folder / MODEL_FILE)
    rules = replace(
        pieces.rules,
        prefix=config.flag("add_prefix_space", pieces.rules.prefix),
        is_first=not config.flag("legacy", True),
    )
    pieces = _with_added(replace(pieces, rules=rules), folder, config)
    ids = {token: id for id, token in enumerate(pieces.tokens)}
    ends = dict(pieces.ends)
    for end in ENDS:
        text = _text(config, f"{end}_token")
        if text is not None and text not in ids:
            raise config.refuse(f"'{end}_token' is {quoted(text)}, which is no token")
        if text is not None:
            ends[end] = ids[text]
    adds = {"bos": pieces.model == BPE, "eos": False}
    adds = {end: config.flag(f"add_{end}_token", value) for end, value in adds.items()}
    return replace(pieces, ends=ends), adds


def _with_added(pieces: Pieces, folder: Path, config: Fields) -> Pieces:
    """The pieces with the tokens of other files, some of which they have already."""
    listed = Fields.read_json(folder / "added_tokens.json", optional=True)
    added = {listed.count(text, 0): (text, True) for text in listed.values}
    stated = config.table("added_tokens_decoder")
    for key in stated.values:
        token = stated.table(key)
        if not key.isdecimal() or len(key) > 9:
            raise config.refuse(f"'added_tokens_decoder' has {quoted(key)}; expects ids")
        added[int(key)] = (token.text("content"), token.flag("special", False))
    tokens, kinds, scores = list(pieces.tokens), list(pieces.kinds), list(pieces.scores)
    for id, (text, is_special) in sorted(added.items()):
        if id > len(tokens):
            raise config.refuse(f"adds a token {id}, after {len(tokens)} others")
        if id == len(tokens):
            tokens.append(text)
            kinds.append(TokenType.CONTROL if is_special else TokenType.USER_DEFINED)
            scores.append(0.0)
        elif tokens[id] != text:
            raise config.refuse(
                f"adds {quoted(text)} as token {id}, which is {quoted(tokens[id])} in {MODEL_FILE}"
            )
        elif is_special and kinds[id] != TokenType.UNKNOWN:
            kinds[id] = TokenType.CONTROL
    return replace(pieces, tokens=tokens, kinds=kinds, scores=scores)


def _text(config: Fields, key: str) -> str | None:
    """The text of a token: a string, or an object with `content`."""
    value = config.values.get(key)
    if isinstance(value, dict):
        return config.table(key).text("content")
    return None if value is None else config.text(key)
