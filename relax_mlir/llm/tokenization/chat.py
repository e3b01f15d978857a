"""Chat templates: from a list of messages to the prompt text that a model was trained on.

Templates come with models from anywhere, so they run in Jinja's sandbox and cannot modify their
arguments. They see the variables of Hugging Face's `apply_chat_template`: `messages`,
`add_generation_prompt`, `bos_token`, `eos_token`, `tools`, `raise_exception`, `strftime_now`.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import in_short, read_model_file
from relax_mlir.llm.tokenization.isolated import call_isolated

Message = Mapping[str, Any]
"""A role and a content; answers may have `tool_calls`, and what a tool said its `tool_call_id`."""
MAX_TEMPLATE_BYTES = 1 << 20


class ChatTemplate:
    """A compiled template; `bos_token` and `eos_token` are the texts it may insert."""

    def __init__(
        self,
        source: str,
        bos_token: str | None = None,
        eos_token: str | None = None,
        where: str = "",
    ) -> None:
        """Compiles `source`; raises ModelError if it is not a Jinja template.

        `where` is its file or folder, for messages.
        """
        self._source = source
        self._what = f"{where}: the chat template" if where else "the chat template"
        self._tokens = {"bos_token": bos_token or "", "eos_token": eos_token or ""}
        call_isolated(self._what, self._check)

    @property
    def takes_tools(self) -> bool:
        """Whether the template tells the model of tools."""
        return "tools" in self._source

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """The prompt for `messages`: objects with `role` and `content`.

        `tools` are what the model may call, as JSON schemas of functions in OpenAI's form.

        With `add_generation_prompt` it ends where the assistant's answer begins. The text contains
        the special tokens, so encode it with `add_special_tokens=False`. Raises ModelError if the
        template refuses the messages, or exceeds the limits of time or memory.
        """
        return call_isolated(
            self._what, lambda: self._render(messages, add_generation_prompt, tools)
        )

    def _check(self) -> str:
        self._compile()
        return ""

    def _compile(self) -> jinja2.Template:
        """Runs in the child only: Jinja evaluates constant expressions during compilation."""
        try:
            return _environment().from_string(self._source)
        except MemoryError:
            raise ModelError(f"{self._what} takes too much memory") from None
        except Exception as error:
            raise ModelError(f"{self._what} cannot be read: {in_short(error)}") from error

    def _render(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool,
        tools: Sequence[Mapping[str, Any]] | None,
    ) -> str:
        template = self._compile()
        try:
            return template.render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                tools=tools,
                **self._tokens,
            )
        except MemoryError:
            raise ModelError(f"{self._what} takes too much memory") from None
        except Exception as error:
            message = f"{self._what} refuses the messages: {in_short(error)}"
            raise ModelError(message) from error


def gguf_chat_template(file: GgufFile) -> str | None:
    """The source of the chat template in `file`, if it has one."""
    return _source(Fields(str(file.path), file.metadata), "tokenizer.chat_template")


def hugging_face_chat_template(folder: Path) -> str | None:
    """The source of the chat template in `folder`, if it has one.

    It is in `chat_template.jinja`, `chat_template.json` or `tokenizer_config.json`; of several the
    one named "default" is used.
    """
    path = folder / "chat_template.jinja"
    if path.exists():
        return read_model_file(path, MAX_TEMPLATE_BYTES).decode("utf-8", errors="replace")
    config = Fields.read_json(folder / "chat_template.json", optional=True)
    if config.values.get("chat_template") is None:
        config = Fields.read_json(folder / "tokenizer_config.json", optional=True)
    several = config.values.get("chat_template")
    if not isinstance(several, list):
        return _source(config, "chat_template")
    for entry in several:
        if isinstance(entry, dict) and entry.get("name") == "default":
            return _source(Fields(config.where, entry), "template")
    return None


def _source(fields: Fields, key: str) -> str | None:
    return None if fields.values.get(key) is None else fields.text(key)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _GenerationBlock],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _now
    return environment


class _GenerationBlock(Extension):
    """`{% generation %}` and `{% endgeneration %}`, which enclose an answer.

    They serve training, and do not change the text.
    """

    tags = frozenset({"generation"})  # type: ignore[assignment]  # which Jinja does not change

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        """Parses a block, which has its own scope."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Unescaped JSON: Jinja's own filter escapes it for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
