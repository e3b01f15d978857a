"""Calls of tools in the text of an answer, in the forms that models are trained on.

    <tool_call>{"name": ..., "arguments": {...}}</tool_call>        Hermes, Qwen 2.5 and 3, SmolLM 3
    <tool_call><function=...><parameter=key>value</parameter>       Qwen 3 Coder
    [TOOL_CALLS] [{"name": ..., "arguments": {...}}]                Mistral
    <|tool_call|>[{"name": ..., "arguments": {...}}]                Granite, Phi 4
    {"name": ..., "parameters": {...}}                              Llama 3.1
    [name(key="value"), ...]                                        Llama 3.2 and 4

Special tokens have no text, so the openers of the third and fourth form may be absent. What is
none of these, or calls a tool that was not offered, is text.
"""

import ast
import json
import re
import secrets
import string
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from relax_mlir.llm.serving import json_text
from relax_mlir.llm.tokenization.stopping import StopTexts

OPENERS = ("<tool_call>", "[TOOL_CALLS]", "<|tool_call|>", "<|python_tag|>")
TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
FUNCTION = re.compile(r"\s*<function=([^>]*)>(.*?)(?:</function>\s*|$)", re.DOTALL)
PARAMETER = re.compile(r"<parameter=([^>]*)>\n?(.*?)\n?</parameter>", re.DOTALL)
CLOSER = "<|/tool_call|>"
LONGEST_PYTHON = 10_000
"""In characters: Python's parser may take much memory for a long text."""


def new_id() -> str:
    """The id of a call: 9 letters and digits, as Mistral's templates demand."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))


@dataclass(frozen=True)
class Call:
    """A call of a tool; `arguments` are JSON."""

    name: str
    arguments: str
    id: str = field(default_factory=new_id)

    @property
    def object(self) -> dict[str, Any]:
        """OpenAI's object."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


class CallReader:
    """Parts an answer, as it comes, into text and calls of the tools `names`.

    Once the answer may be a call it is withheld until it ends.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._text = ""
        self._pushed = self._passed = 0
        self._openers = StopTexts(OPENERS)

    def push(self, piece: str) -> str:
        """The text of this piece, and of pieces withheld so far, that is certainly no call."""
        self._text += piece
        if self._text.lstrip()[:1] in ("", "{", "["):
            return ""
        new, self._pushed = self._text[self._pushed :], len(self._text)
        text = self._openers.push(new)
        self._passed += len(text)
        return text

    def finish(self) -> tuple[str, list[Call]]:
        """The rest of the text, and the calls."""
        rest = self._text[self._passed :]
        calls = list(calls_in(rest, self._names))
        return ("" if calls else rest), calls


def calls_in(text: str, names: Collection[str]) -> Iterator[Call]:
    """The calls that a text is made of; none if it is anything else."""
    tagged = TAGGED.findall(text)
    if tagged:
        parts = [value for part in tagged for value in _json_values(part) or _tag_values(part)]
    else:
        for opener in OPENERS:
            text = text.replace(opener, "", 1)
        text = text.strip().removesuffix(CLOSER).strip()
        parts = _json_values(text) or _python_values(text)
    calls = [_call(part) for part in parts]
    if all(call is not None and call.name in names for call in calls):
        yield from (call for call in calls if call is not None)


def _json_values(text: str) -> list[Any]:
    """The objects of a JSON text: one, or an array of them."""
    try:
        value = json_text.load(text.strip().encode("utf-8", "replace"))
    except ValueError:
        return []
    return value if isinstance(value, list) else [value]


def _tag_values(text: str) -> list[Any]:
    """The object for a call whose parts are tags; values are JSON, or else texts."""
    function = FUNCTION.fullmatch(text)
    if function is None:
        return []
    arguments = {}
    for name, value in PARAMETER.findall(function[2]):
        try:
            arguments[name] = json_text.load(value.encode("utf-8", "replace"))
        except ValueError:
            arguments[name] = value
    return [{"name": function[1], "arguments": arguments}]


def _call(value: Any) -> Call | None:
    """The call that an object is, if it is one."""
    if not isinstance(value, dict):
        return None
    if isinstance(inner := value.get("function"), dict):
        value = inner
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = next(iter(_json_values(arguments)), None)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def _python_values(text: str) -> list[Any]:
    """The objects for a Python list of calls with literal arguments by name."""
    if not text.startswith("[") or len(text) > LONGEST_PYTHON:
        return []
    try:
        parsed = ast.parse(text, mode="eval").body
        if not isinstance(parsed, ast.List):
            return []
        return [_python_call(call) for call in parsed.elts]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return []


def _python_call(call: ast.expr) -> dict[str, Any]:
    if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
        raise ValueError("no call by name")
    if any(word.arg is None for word in call.keywords):
        raise ValueError("arguments without names")
    arguments = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    # Literals of Python that JSON lacks, such as sets, are no arguments.
    json_text.load(json.dumps(arguments, allow_nan=False).encode())
    return {"name": call.func.id, "arguments": arguments}


def call_schema(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON schema of a call of one of the tools, for answers that have to be one."""
    schemas = []
    for index, (name, tool) in enumerate(tools.items()):
        parameters = tool["function"].get("parameters") or {"type": "object"}
        root = f"#/anyOf/{index}/properties/arguments"
        schemas.append(_schema(name, _rebased(parameters, root)))
    return {"anyOf": schemas}


def _rebased(schema: Any, root: str) -> Any:
    """A schema whose references within itself hold where it is `root` of another one."""
    if isinstance(schema, list):
        return [_rebased(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rebased = {key: _rebased(value, root) for key, value in schema.items()}
    if isinstance(target := schema.get("$ref"), str) and target.startswith("#"):
        rebased["$ref"] = root + target[1:]
    return rebased


def _schema(name: str, arguments: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
