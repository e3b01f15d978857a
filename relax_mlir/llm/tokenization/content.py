"""Messages with images, in the form that a chat template takes.

The content of a message is a text, or parts in order: `{"type": "text", "text": "..."}` and
`{"type": "image"}`. Some templates take parts only, others texts only, in which an image is its
token.
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.tokenization.chat import ChatTemplate, Message

_PROBE = "the text of a part"


def takes_parts(chat: ChatTemplate) -> bool:
    """Whether a template writes the text of parts, and not the parts themselves."""
    parts = [{"type": "text", "text": _PROBE}]
    try:
        text = chat.render([{"role": "user", "content": parts}])
    except ModelError:
        return False
    return _PROBE in text and "'type'" not in text


def as_parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a content; raises UsageError for one that is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = [dict(part) for part in content or ()]
    for part in parts:
        kind = part.get("type")
        if kind != "image" and not (kind == "text" and isinstance(part.get("text"), str)):
            raise UsageError(
                f"a message has a part of type {str(kind)[:60]!r}; expects 'text' with 'text', or "
                "'image'"
            )
    return parts


def in_parts(messages: Sequence[Message]) -> list[Message]:
    """The messages with parts as contents."""
    return [{**message, "content": as_parts(message.get("content"))} for message in messages]


def in_texts(messages: Sequence[Message], image: str) -> list[Message]:
    """The messages with texts as contents, in which an `image` stands for one."""
    return [
        {
            **message,
            "content": "".join(
                part["text"] if part["type"] == "text" else image
                for part in as_parts(message.get("content"))
            ),
        }
        for message in messages
    ]


def asked_of(text: str, images: int) -> Message:
    """A question, after the images that it is on."""
    parts: list[dict[str, Any]] = [{"type": "image"}] * images
    parts.append({"type": "text", "text": text})
    return {"role": "user", "content": parts if images else text}
