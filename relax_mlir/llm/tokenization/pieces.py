"""The pieces of a SentencePiece model, from a GGUF file or from `tokenizer.model`.

Source: SentencePiece `sentencepiece_model.proto`; GGUF specification, `tokenizer.ggml.*`; llama.cpp
`llama-vocab.cpp`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gguf.constants import TokenType

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted, read_model_file
from relax_mlir.llm.formats.protobuf import DamagedMessage, fields_of
from relax_mlir.llm.tokenization.text_rules import CharacterTable, TextRules

UNIGRAM, BPE = 1, 2
ENDS = ("bos", "eos")
MODELS = {"t5": UNIGRAM, "llama": BPE}
"""By `tokenizer.ggml.model` of GGUF files."""
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of ModelProto
_MODEL_TYPE, _IS_SUFFIX = 3, 24  # of TrainerSpec
_ENDS = {"bos": 41, "eos": 42}
_TABLE, _PREFIX, _TRIMS, _ESCAPES = 2, 3, 4, 5  # of NormalizerSpec


@dataclass(frozen=True, eq=False)
class Pieces:
    """Texts with their scores and types, by id; `ends` are the ids of "bos" and "eos", if any.

    Types are those of `TokenType`.
    """

    where: str
    model: int
    tokens: Sequence[str]
    scores: Sequence[float]
    kinds: Sequence[int]
    rules: TextRules
    ends: Mapping[str, int]

    def __post_init__(self) -> None:
        count = len(self.tokens)
        if not len(self.scores) == len(self.kinds) == count:
            raise ModelError(f"{self.where}: has no score and type for each of its {count} tokens")
        if len(set(self.tokens)) != count:
            raise ModelError(f"{self.where}: has a vocabulary that lists a token twice")
        for end, id in self.ends.items():
            if id >= count:
                raise ModelError(f"{self.where}: '{end}' is token {id}; the last is {count - 1}")

    def of_kind(self, kind: int) -> Iterator[tuple[int, str]]:
        """The ids and texts of one type."""
        return ((i, self.tokens[i]) for i, other in enumerate(self.kinds) if other == kind)


def pieces_of_gguf(fields: Fields, model: int) -> Pieces:
    """Those of the metadata of a GGUF file; raises ModelError."""
    key = "tokenizer.ggml"
    tokens = fields.texts(f"{key}.tokens")
    scores = fields.values.get(f"{key}.scores")
    if not isinstance(scores, list) or not all(map(_is_score, scores)):
        raise fields.refuse(f"has no score and type for each of its {len(tokens)} tokens")
    table = fields.values.get(f"{key}.precompiled_charsmap") if model == UNIGRAM else None
    rules = TextRules(
        fields.flag(f"{key}.add_space_prefix", True),
        model == UNIGRAM and fields.flag(f"{key}.remove_extra_whitespaces", False),
        None if not table else CharacterTable(_as_bytes(table, fields), fields.where),
    )
    kinds = fields.ids(f"{key}.token_type")
    stated = {end: fields.id(f"{key}.{end}_token_id") for end in ENDS}
    ends = {end: id for end, id in stated.items() if id is not None}
    return Pieces(fields.where, model, tokens, scores, kinds, rules, ends)


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) < float("inf")


def _as_bytes(values: object, fields: Fields) -> bytes:
    """The bytes of an array of integers of 8 bits, with a sign or without."""
    if not isinstance(values, list) or not all(
        isinstance(x, int) and -128 <= x < 256 for x in values
    ):
        raise fields.refuse("has a table of characters that is no array of bytes")
    return bytes(x & 255 for x in values)


def pieces_of_file(path: Path) -> Pieces:
    """Those of `tokenizer.model`; raises ModelError if it is damaged or not supported."""
    try:
        return _pieces(path, read_model_file(path))
    except (DamagedMessage, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: is no model of SentencePiece: {error}") from error


def _pieces(path: Path, data: bytes) -> Pieces:
    tokens: list[str] = []
    scores: list[float] = []
    kinds: list[int] = []
    trainer: dict[int, int] = {}
    normalizer: dict[int, int | bytes] = {}
    for id, value in fields_of(data):
        if id == _PIECES:
            piece = dict(fields_of(_message(value)))
            tokens.append(_message(piece.get(1, b"")).decode())
            scores.append(_float(piece.get(2, 0.0)))
            kinds.append(_integer(piece.get(3, TokenType.NORMAL)))
        elif id == _TRAINER:
            message = fields_of(_message(value))
            trainer.update({id: x for id, x in message if isinstance(x, int)})
        elif id == _NORMALIZER:
            message = fields_of(_message(value))
            normalizer.update({id: x for id, x in message if not isinstance(x, float)})
    model = trainer.get(_MODEL_TYPE, UNIGRAM)
    if model not in MODELS.values():
        raise ModelError(f"{path}: has type {model}; supported are 1 (unigram) and 2 (BPE)")
    if trainer.get(_IS_SUFFIX) or not normalizer.get(_ESCAPES, 1):
        raise ModelError(f"{path}: writes spaces after words, or not as U+2581; not supported")
    table = _message(normalizer.get(_TABLE, b""))
    rules = TextRules(
        bool(normalizer.get(_PREFIX, 1)),
        bool(normalizer.get(_TRIMS, 1)),
        CharacterTable(table, str(path)) if table else None,
    )
    if not tokens:
        raise ModelError(f"{path}: has no pieces")
    ids = {end: trainer.get(_ENDS[end], default) for default, end in enumerate(ENDS, 1)}
    # A model without one has -1, as 64 bits without a sign.
    ends = {end: id for end, id in ids.items() if id < 1 << 31}
    return Pieces(str(path), model, tokens, scores, kinds, rules, ends)


def _message(value: int | float | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise DamagedMessage(f"{quoted(value)} where bytes belong")
    return value


def _float(value: int | float | bytes) -> float:
    if not isinstance(value, float) or not _is_score(value):
        raise DamagedMessage(f"the score {quoted(value)}")
    return value


def _integer(value: int | float | bytes) -> int:
    if not isinstance(value, int) or not TokenType.NORMAL <= value <= TokenType.BYTE:
        raise DamagedMessage(f"the type {quoted(value)} of a piece")
    return value
