"""Answers within a grammar: tokens that would leave it are masked, by the package `llguidance`.

Source: llguidance; llama.cpp `grammars/README.md` (GBNF); JSON Schema, draft 2020-12.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


class Grammars:
    """Grammars over the tokens of a model; `end_ids` end a text."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, end_ids: Collection[int]) -> None:
        llguidance = _package()
        self._vocab_size = vocab_size
        try:
            self._tokenizer = llguidance.LLTokenizer(
                tokenizer.inner.to_str(), n_vocab=vocab_size, eos_token=sorted(end_ids) or None
            )
        except Exception as error:  # the package raises what its Rust code does
            raise UsageError(f"the tokenizer cannot be used with grammars: {error}") from error

    def gbnf(self, text: str) -> "Grammar":
        """The texts of a grammar in GBNF, or in llguidance's dialect of Lark.

        Raises UsageError if it is wrong.
        """
        return self._grammar(*_of_gbnf(text))

    def json(self, schema: str | Mapping[str, Any]) -> "Grammar":
        """JSON texts of a schema, which is a mapping or its JSON.

        Raises UsageError if it is wrong.
        """
        return self._grammar(*_of_schema(schema))

    def _grammar(self, grammar: str, what: str) -> "Grammar":
        return Grammar(_matcher(self._tokenizer, grammar, what), self._vocab_size)


def check_grammar(kind: str, text: str) -> None:
    """Compiles a grammar, of kind "gbnf" or "json" for a schema, for a text of bytes.

    Raises UsageError if it is wrong.
    """
    grammar, what = _of_gbnf(text) if kind == "gbnf" else _of_schema(text)
    _matcher(_package().LLTokenizer("byte"), grammar, what)


def _package() -> Any:
    try:
        import llguidance
    except ImportError:
        raise UsageError("grammars need a package: pip install llguidance") from None
    return llguidance


def _of_gbnf(text: str) -> tuple[str, str]:
    """The package's form of a grammar, and what it is called."""
    matcher = _package().LLMatcher
    from llguidance.gbnf_to_lark import any_to_lark

    try:
        return matcher.grammar_from_lark(any_to_lark(text)), "the grammar"
    except Exception as error:  # its parser raises Exception itself
        raise UsageError(f"the grammar is wrong: {error}") from error


def _of_schema(schema: str | Mapping[str, Any]) -> tuple[str, str]:
    try:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        if not isinstance(json.loads(text), dict | bool):
            raise ValueError("expects an object")
        return _package().LLMatcher.grammar_from_json_schema(text), "the JSON schema"
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the JSON schema is wrong: {error}") from error


def _matcher(tokenizer: Any, grammar: str, what: str) -> Any:
    matcher = _package().LLMatcher(tokenizer, grammar, log_level=0)
    if matcher.is_error():
        raise UsageError(f"{what} is wrong: {matcher.get_error().splitlines()[0]}")
    return matcher


class Grammar:
    """The state of one answer within a grammar."""

    def __init__(self, matcher: Any, vocab_size: int) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size

    def copy(self) -> "Grammar":
        """The state of another answer, which has the same text so far."""
        return Grammar(self._matcher.deep_copy(), self._vocab_size)

    @property
    def is_complete(self) -> bool:
        """Whether nothing can follow."""
        return bool(self._matcher.is_stopped())

    def masked(self, logits: np.ndarray) -> np.ndarray:
        """The logits, with -inf for tokens that cannot follow."""
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = np.unpackbits(mask, bitorder="little", count=self._vocab_size)
        return np.where(allowed, logits, logits.dtype.type(-np.inf))

    def accept(self, token: int) -> None:
        """Adds a token; raises ExecutionError if the grammar's parser gives up."""
        if not self._matcher.consume_token(token):
            raise ExecutionError(f"the grammar's parser failed: {self._matcher.get_error()}")
