"""A process that runs what others write: chat templates, and the compilation of grammars.

It forks for each, with limits of time and memory. It is small, as it has no models: a fork of the
server would copy the page tables of its models, while the engines' threads run.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from relax_mlir.errors import ExecutionError, ModelError, UsageError
from relax_mlir.llm.generation.grammar import check_grammar
from relax_mlir.llm.tokenization import isolated
from relax_mlir.llm.tokenization.chat import ChatTemplate, Message
from relax_mlir.llm.tokenization.isolated import call_isolated

GRAMMAR_SECONDS = 5
"""What a grammar may take to compile; those of real programs take less than one."""
SPARE_SECONDS = 20
TEMPLATES = 64
CHECKS = 256
"""Templates, and grammars that are right, which are remembered."""


class Sandbox:
    """The process, which is started again if it ends. A context: leaving it ends the process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="relax-sandbox-")  # for this user alone
        self._path = str(Path(self._folder.name, "socket"))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self._path)
        self._listener.listen(128)
        self._lock = threading.Lock()
        self._process = self._start()
        self.check = lru_cache(CHECKS)(self._check)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._listener.close()
        self._folder.cleanup()

    def template(self, template: ChatTemplate) -> ChatTemplate:
        """The same template, rendered by the process."""
        return _Remote(self, template)

    def run(self, task: Mapping[str, Any]) -> str:
        """The text that a task gives.

        Raises ModelError if it is refused, and ExecutionError if the process fails.
        """
        with self._lock:
            if self._process.poll() is not None:
                self._process = self._start()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(isolated.SECONDS + SPARE_SECONDS)
            try:
                connection.connect(self._path)
                connection.sendall(json.dumps(task).encode())
                connection.shutdown(socket.SHUT_WR)
                text, refusal = json.loads(_received(connection))
            except (OSError, ValueError) as error:
                raise ExecutionError(f"the process of templates failed: {error}") from error
        if refusal is not None:
            raise ModelError(refusal)
        return str(text)

    def _check(self, kind: str, text: str) -> None:
        """Raises ModelError if a grammar, of kind "gbnf" or "json", is wrong or too large."""
        self.run({"grammar": kind, "text": text})

    def _start(self) -> "subprocess.Popen[bytes]":
        descriptor = self._listener.fileno()
        command = [sys.executable, "-m", __name__, str(descriptor)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=[descriptor], start_new_session=True
        )


class _Remote(ChatTemplate):
    """A template that another process renders."""

    def __init__(self, sandbox: Sandbox, template: ChatTemplate) -> None:
        self._sandbox = sandbox
        self._source, self._tokens = template._source, template._tokens

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """See `ChatTemplate.render`."""
        options = {"add_generation_prompt": add_generation_prompt, "tools": tools}
        arguments = [list(map(dict, messages)), options]
        task = {"template": self._source, "tokens": self._tokens, "arguments": arguments}
        return self._sandbox.run(task)


def _received(connection: socket.socket) -> bytes:
    """All that comes until the other side ends."""
    chunks = []
    while chunk := connection.recv(1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


def main(descriptor: int) -> None:
    """What the process does: answers tasks until its parent is gone."""
    for signal_ in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # which a whole service gets: the parent ends it
        signal.signal(signal_, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    listener = socket.socket(fileno=descriptor)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def _answer(connection: socket.socket) -> None:
    """Does one task; the result is its text or the refusal."""
    with connection:
        try:
            result = [_done(json.loads(_received(connection))), None]
        except ModelError as error:
            result = [None, str(error)]
        connection.sendall(json.dumps(result).encode())


def _done(task: Mapping[str, Any]) -> str:
    if "template" in task:
        messages, options = task["arguments"]
        template = _template(task["template"], **task["tokens"])
        return template.render(messages, **options)
    return call_isolated("the grammar", lambda: _checked(**task), GRAMMAR_SECONDS)


@lru_cache(TEMPLATES)
def _template(source: str, bos_token: str, eos_token: str) -> ChatTemplate:
    return ChatTemplate(source, bos_token, eos_token)


def _checked(grammar: str, text: str) -> str:
    try:
        check_grammar(grammar, text)
    except UsageError as error:
        raise ModelError(str(error)) from error
    return ""


if __name__ == "__main__":
    main(int(sys.argv[1]))
