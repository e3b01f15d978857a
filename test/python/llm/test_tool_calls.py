"""Calls of tools in texts: however a text comes, nothing is lost of one without calls."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_mlir.llm.serving.endpoints.tools import CallReader, call_schema, calls_in

PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|tool_call|>", "<|/tool_call|>"),
        *('{"name": "f", "arguments": {}}', '{"name": "g", "parameters": {"a": [1]}}', "[", "]"),
        *(", ", "<function=f>", "<parameter=a>", "</parameter>", "</function>", "f(a=1)", "{", "}"),
        *(" ", "\n", "text", '"', "f(**x)", "f({1: 2})", "f(a=b'')", "f(a={(1, 2): 3})", "NaN"),
    ]
)


@given(st.lists(PIECES, max_size=8), st.data())
def test_texts_come_through(pieces, data):
    text = "".join(pieces)
    reader, seen, start = CallReader({"f"}), "", 0
    while start < len(text):
        end = data.draw(st.integers(start + 1, len(text)))
        seen += reader.push(text[start:end])
        start = end
    rest, calls = reader.finish()
    assert not (rest and calls)
    if not calls:
        assert seen + rest == text
    else:
        assert text.startswith(seen)
    for call in calls:
        assert call.name == "f"
        assert isinstance(json.loads(call.arguments), dict)
    whole = CallReader({"f"})
    first = whole.push(text)
    assert len(whole.finish()[1]) == len(calls)
    assert text.startswith(first)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"type": "function", "function": {"name": "f", "parameters": {"a": 1}}}', {"a": 1}),
        ('<|python_tag|>{"name": "f", "parameters": {}}', {}),
        ('<|tool_call|>[{"name": "f", "arguments": {"a": null}}]<|/tool_call|>', {"a": None}),
        (
            '[f(a=-1.5, b=[True, None], c={"d": "e"})]',
            {"a": -1.5, "b": [True, None], "c": {"d": "e"}},
        ),
        (
            "<tool_call><function=f><parameter=a>\n1\n</parameter><parameter=b>\nx\ny\n</parameter>"
            "</function></tool_call>",
            {"a": 1, "b": "x\ny"},
        ),
    ],
)
def test_forms(text, arguments):
    (call,) = calls_in(text, {"f"})
    assert (call.name, json.loads(call.arguments)) == ("f", arguments)
    assert list(calls_in(text, {"g"})) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "[]",
        "{}",
        "[f(1)]",
        "[f(a=g())]",
        "[" * 5000,
        "[f(a=" + "-" * 9000 + "1)]",
        "[f(a={1})]",
    ],
)
def test_no_calls(text):
    assert list(calls_in(text, {"f"})) == []


def test_schemas_refer_to_their_own_parts():
    inner = {"$defs": {"x": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}
    tools = {name: {"function": {"name": name, "parameters": inner}} for name in "fg"}
    schema = call_schema(tools)
    for index in range(2):
        reference = schema["anyOf"][index]["properties"]["arguments"]["properties"]["a"]["$ref"]
        found = schema
        for key in reference.removeprefix("#/").split("/"):
            found = found[int(key)] if isinstance(found, list) else found[key]
        assert found == {"type": "integer"}
    assert inner["properties"]["a"]["$ref"] == "#/$defs/x"
