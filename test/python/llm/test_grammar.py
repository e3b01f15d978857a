"""Answers within grammars: each one is in the language, whatever the model prefers."""

import json
import re

import pytest
from tiny_models import random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.generation.drafts import PromptLookup

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "hello"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> LanguageModel:
    path = write_gguf(tmp_path_factory.mktemp("grammar") / "tiny.gguf", random_weights())
    return load(str(path), weights="f32")


def generated(model: LanguageModel, **options: object) -> tuple[str, str | None]:
    answer = model.generate("hello", raw=True, max_tokens=40, **options)
    return "".join(answer), answer.stop_reason


@pytest.mark.parametrize("seed", range(6))
def test_gbnf(tiny, seed):
    grammar = 'root ::= ("1" | "2" digit){2,4} "hello"\ndigit ::= [5-7]'
    options = {"grammar": grammar, "temperature": 2.0, "seed": seed}
    text, reason = generated(tiny, **options)
    assert re.fullmatch("(1|2[5-7]){2,4}hello", text)
    assert reason == "end"
    assert generated(tiny, draft=PromptLookup(), **options)[0] == text


@pytest.mark.parametrize("temperature", [0.0, 3.0])
@pytest.mark.parametrize("schema", [SCHEMA, json.dumps(SCHEMA)])
def test_json_schema(tiny, schema, temperature):
    # Whitespace is free, so the bias keeps an answer of a random model short.
    ids = {tiny.tokenizer.id_of(text): -99.0 for text in ("Ġ", "Ċ", "ĉ", "č")}
    text, reason = generated(
        tiny, json_schema=schema, temperature=temperature, seed=1, logit_bias=ids
    )
    value = json.loads(text)
    assert reason == "end"
    assert set(value) == {"a", "b"}
    assert value["a"] in (True, False)
    assert value["b"] in ("x", "hello")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grammar": "root ::= ("}, "the grammar is wrong: Expected"),
        ({"grammar": "root ::= other"}, "the grammar is wrong: Rule 'other' not found"),
        ({"grammar": ""}, "the grammar is wrong: No 'root' rule found"),
        ({"json_schema": {"type": "bogus"}}, "the JSON schema is wrong: Invalid type: bogus"),
        ({"json_schema": "{"}, "the JSON schema is wrong: Expecting property name"),
        ({"json_schema": "3"}, "the JSON schema is wrong: expects an object"),
        ({"json_schema": "{}", "grammar": 'root ::= "1"'}, "exclude each other"),
    ],
)
def test_wrong_grammars(tiny, options, message):
    with pytest.raises(UsageError, match=message):
        tiny.generate("hello", **options)
