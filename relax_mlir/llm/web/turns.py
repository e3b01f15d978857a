"""Chat templates as the texts between messages, which need no Jinja.

    {"start": {"system": text, "user": text}, "between": {"user": {"assistant": text}, ...},
     "end": text, "trim": bool}

A conversation is an optional system message, then questions and answers in turn, up to a question:
start, contents with the text between their roles, end. `trim` says that contents are stripped.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from relax_mlir.errors import ModelError
from relax_mlir.llm.tokenization.chat import ChatTemplate, Message

_MARKS = ("Qsystem7Q", "Quser1Q", "Qanswer2Q", "Quser3Q", "Qanswer4Q", "Quser5Q")
_ROLES = ("system", "user", "assistant", "user", "assistant", "user")


def describe_template(template: ChatTemplate, where: str) -> dict[str, Any]:
    """The texts of a template; raises ModelError if they depend on more than the roles.

    A template that refuses system messages has no text for them.
    """
    turns: dict[str, Any] = {"start": {}, "between": {}, "end": "", "trim": False}
    _learn(turns, template, _messages(_MARKS[1:], "user"))
    try:
        _learn(turns, template, _messages(_MARKS, "system"))
    except ModelError:
        turns["start"].pop("system", None)
    turns["trim"] = " x " not in template.render([{"role": "user", "content": " x "}])
    for count in (1, 2, 3, 5):
        for first in turns["start"]:
            contents = [f" {index}\n" * (1 + index % 2) for index in range(count)]
            messages = _messages(contents, first)
            if messages[-1]["role"] != "user":
                continue
            if render(turns, messages) != template.render(messages):
                raise ModelError(
                    f"{where}: the chat template is not of messages between fixed texts; accepted "
                    "are templates in which only roles decide on what is between contents"
                )
    return turns


def render(turns: dict[str, Any], messages: Sequence[Message]) -> str:
    """The prompt, as `web/llm.js` makes it."""
    contents = [each["content"].strip() if turns["trim"] else each["content"] for each in messages]
    roles = [each["role"] for each in messages]
    text = turns["start"][roles[0]] + contents[0]
    for (role, following), content in zip(itertools.pairwise(roles), contents[1:], strict=True):
        text += turns["between"][role][following] + content
    return text + turns["end"]


def _messages(contents: Sequence[str], first: str) -> list[dict[str, str]]:
    roles = _ROLES if first == "system" else _ROLES[1:]
    pairs = zip(roles, contents, strict=False)
    return [{"role": role, "content": content} for role, content in pairs]


def _learn(turns: dict[str, Any], template: ChatTemplate, messages: Sequence[Message]) -> None:
    """Reads the texts around the marks of a conversation."""
    rest = template.render(messages)
    before = None
    for message in messages:
        text, mark, rest = rest.partition(message["content"])
        if not mark:
            raise ModelError("the chat template leaves out messages")
        if before is None:
            turns["start"][message["role"]] = text
        else:
            turns["between"].setdefault(before, {})[message["role"]] = text
        before = message["role"]
    turns["end"] = rest
