"""`relax-llm chat`: a conversation in a terminal, line by line."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.llm.generation.conversation import Conversation
from relax_mlir.llm.generation.generation import Generation
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.vision.images import read_image
from relax_mlir.passes.names import among
from relax_mlir.tools.files import write_output

COMMANDS = {
    "/image FILE": "show an image with the next question",
    "/reset": "remove all messages but --system",
    "/undo": "remove the last question and its answer",
    "/save FILE": "write the conversation to a file, as JSON",
    "/help": "show this list",
    "/exit": "exit, as Ctrl-D does; Ctrl-C interrupts an answer",
}


class Chat:
    """Reads questions and commands from standard input until it ends."""

    def __init__(
        self, model: LanguageModel, system: str | None, sampling: Mapping[str, Any], quiet: bool
    ) -> None:
        self._conversation = Conversation(model, system)
        self._sampling = sampling
        self._quiet = quiet
        self._images: list[np.ndarray] = []  # of the next question
        self._commands: dict[str, Callable[[str], None]] = {
            "/image": self._show,
            "/reset": lambda _: self._reset(),
            "/undo": lambda _: self._undo(),
            "/save": self._save,
            "/help": lambda _: print(help_text(), file=sys.stderr),
        }

    def run(self) -> int:
        """Runs the conversation; returns an exit status."""
        while (line := _ask()) not in (None, "/exit"):
            try:
                if re.match(r"/[a-z]+(\s|$)", line or ""):
                    self._command(line or "")
                elif line:
                    self._turn(line)
            except UsageError as error:
                print(error, file=sys.stderr)
        return 0

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name not in self._commands:
            known = [*self._commands, "/exit"]
            raise UsageError(f"unknown command '{name}'{among(name, known)}; /help lists them")
        self._commands[name](rest.strip())

    def _turn(self, question: str) -> None:
        """Prints the answer to a question; an interrupt ends it."""
        conversation = self._conversation
        before = conversation.left_out
        answer = conversation.ask(question, images=self._images, **self._sampling)
        self._images = []
        if conversation.left_out > before and not self._quiet:
            count = conversation.left_out
            print(
                f"the context is full: {count} question{'s' * (count > 1)} at the beginning "
                "omitted; /reset starts a new conversation",
                file=sys.stderr,
            )
        pieces: list[str] = []
        try:
            stream(answer, pieces)
        except KeyboardInterrupt:
            print()
        conversation.answered("".join(pieces))
        if not self._quiet:
            print(answer.statistics, file=sys.stderr)

    def _show(self, file: str) -> None:
        if not file:
            raise UsageError("name the file: /image FILE")
        self._conversation.model.check_reads_images()
        self._images.append(read_image(file))

    def _reset(self) -> None:
        self._conversation.reset()
        self._images = []

    def _undo(self) -> None:
        if not self._conversation.undo():
            raise UsageError("there is no question to undo")

    def _save(self, file: str) -> None:
        if not file:
            raise UsageError("name the file: /save FILE")
        messages = list(map(dict, self._conversation.messages))
        write_output(file, json.dumps(messages, indent=2, ensure_ascii=False) + "\n")


def help_text() -> str:
    """The list of commands."""
    return "\n".join(f"{command:12}{text}" for command, text in COMMANDS.items())


def stream(answer: Generation, pieces: list[str] | None = None) -> None:
    """Prints the pieces as they arrive, and collects them."""
    for piece in answer:
        print(piece, end="", flush=True)
        if pieces is not None:
            pieces.append(piece)
    print()


def _ask() -> str | None:
    """A line of input; None at its end or when interrupted."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None
