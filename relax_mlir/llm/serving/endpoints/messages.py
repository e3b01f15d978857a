"""Messages and tools of a chat, from OpenAI's form to what chat templates take.

Templates know messages with `role`, `content` and `tool_calls`, whose arguments are objects, and
the OpenAI form of tools; see `apply_chat_template` of transformers.
"""

import re
from typing import Any

from relax_mlir.llm.serving import json_text
from relax_mlir.llm.serving.endpoints.image_urls import MOST_IMAGES, image_of
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

ROLES = ("system", "developer", "user", "assistant", "tool")
FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")
IGNORED = ("annotations", "audio", "function_call", "reasoning_content", "parsed")
"""What client libraries repeat of an answer; the model does not see it."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MOST_TOOLS = 128


def messages_of(body: Body, reads_images: bool = False) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The messages of a body, for a chat template, and the files of their images; raises ApiError.

    With images, contents have parts of the types `text` and `image`.
    """
    images: list[bytes] | None = [] if reads_images else None
    messages = [_message(message, images) for message in body.tables("messages")]
    if not messages:
        raise body.refuse("messages", "an array of one message or more")
    return messages, images or []


def _message(message: Body, images: list[bytes] | None) -> dict[str, Any]:
    message.only((*FIELDS, *IGNORED))
    role = message.choice("role", ROLES, "")
    # Models know the role by its older name.
    result: dict[str, Any] = {"role": "system" if role == "developer" else role}
    calls = [_call(call) for call in message.tables("tool_calls")]
    if calls and role != "assistant":
        raise message.refuse("tool_calls", "none but in messages of the assistant")
    takes = images if role == "user" else None
    result["content"] = _content(message, role == "assistant", takes)
    if calls:
        result["tool_calls"] = calls
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            result[name] = message.text(name)
    return result


def _content(
    message: Body, is_optional: bool, images: list[bytes] | None
) -> str | list[dict[str, Any]]:
    """A string, or the texts of an array of parts, by lines; parts, if there are images too."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None and is_optional:
        return ""
    if not isinstance(content, list):
        raise message.refuse("content", "a string or an array of parts")
    parts: list[dict[str, Any]] = []
    for part in message.tables("content"):
        kind = part.text("type")
        if kind == "image_url" and images is not None:
            if len(images) == MOST_IMAGES:
                raise refused(f"there are more than {MOST_IMAGES} images", "messages")
            images.append(image_of(part))
            parts.append({"type": "image"})
        elif kind in ("text", "refusal"):
            parts.append({"type": "text", "text": part.text(kind)})
        else:
            more = "" if images is None else " or image_url"
            raise part.refuse("type", f"text{more}, as the model takes nothing else")
    if any(part["type"] == "image" for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts)


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
