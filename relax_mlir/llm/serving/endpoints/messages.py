"""Messages and tools of a chat, from OpenAI's form to what chat templates take.

Templates know messages with `role`, `content` and `tool_calls`, whose arguments are objects, and
the OpenAI form of tools; see `apply_chat_template` of transformers.
"""

import re
from typing import Any

from relax_mlir.llm.serving import json_text
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

ROLES = ("system", "developer", "user", "assistant", "tool")
FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")
IGNORED = ("annotations", "audio", "function_call", "reasoning_content", "parsed")
"""What client libraries repeat of an answer; the model does not see it."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MOST_TOOLS = 128


def messages_of(body: Body) -> list[dict[str, Any]]:
    """The messages of a body, for a chat template; raises ApiError."""
    messages = [_message(message) for message in body.tables("messages")]
    if not messages:
        raise body.refuse("messages", "an array of one message or more")
    return messages


def _message(message: Body) -> dict[str, Any]:
    message.only((*FIELDS, *IGNORED))
    role = message.choice("role", ROLES, "")
    # Models know the role by its older name.
    result: dict[str, Any] = {"role": "system" if role == "developer" else role}
    calls = [_call(call) for call in message.tables("tool_calls")]
    if calls and role != "assistant":
        raise message.refuse("tool_calls", "none but in messages of the assistant")
    content = _content(message, is_optional=role == "assistant")
    result["content"] = content
    if calls:
        result["tool_calls"] = calls
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            result[name] = message.text(name)
    return result


def _content(message: Body, is_optional: bool) -> str:
    """A string, or the texts of an array of parts, by lines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None and is_optional:
        return ""
    if not isinstance(content, list):
        raise message.refuse("content", "a string or an array of parts")
    texts = []
    for part in message.tables("content"):
        if part.text("type") not in ("text", "refusal"):
            raise part.refuse("type", "text, as the model takes nothing else")
        texts.append(part.text(part.text("type")))
    return "\n".join(texts)


def _call(call: Body) -> dict[str, Any]:
    call.only(("id", "type", "function", "index"))
    call.choice("type", ("function",), "function")
    function = call.table("function")
    if function is None:
        raise call.refuse("function", "an object")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json_text.load(arguments.encode() or b"{}")
        except ValueError as error:
            raise function.refuse("arguments", f"the JSON of an object: {error}") from None
    if not isinstance(arguments, dict):
        raise function.refuse("arguments", "the JSON of an object")
    called = {"name": function.text("name"), "arguments": arguments}
    return {"id": call.text("id", ""), "type": "function", "function": called}


def tools_of(body: Body) -> dict[str, dict[str, Any]]:
    """The tools of a body by their names, as they are; raises ApiError."""
    tools: dict[str, dict[str, Any]] = {}
    for tool in body.tables("tools"):
        tool.choice("type", ("function",), "")
        function = tool.table("function")
        if function is None:
            raise tool.refuse("function", "an object")
        function.only(("name", "description", "parameters", "strict"))
        name = function.text("name")
        if not TOOL_NAME.fullmatch(name) or name in tools:
            expected = "a name of its own of up to 64 letters, digits, '_', '-' and '.'"
            raise function.refuse("name", expected)
        function.table("parameters")
        function.text("description", "")
        tools[name] = dict(tool.values)
    if len(tools) > MOST_TOOLS:
        raise refused(f"there are {len(tools)} tools; expects {MOST_TOOLS} at most", "tools")
    return tools
