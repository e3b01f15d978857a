"""Text without the functions that cannot be parsed, so that the others are checked."""

import re
from collections.abc import Sequence

from relax_mlir.diagnostics import Diagnostic
from relax_mlir.lsp.syntax import Statement, Syntax, body_of
from relax_mlir.lsp.text import MAX_LENGTH, Span, Text

_PRINTED = re.compile(r"[^\n]")


class Source:
    """The text of a module; `missing` are the functions that are neither defined nor declared."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.missing: list[str] = []

    def leave_out(self, errors: Sequence[Diagnostic]) -> bool:
        """Leaves out the function that causes the first error; False if there is none.

        If the error is in its body, a declaration stays. All lines stay where they are.
        """
        located = [each for each in errors if each.file == "-" and each.line]
        if not located or len(self.text) > MAX_LENGTH:
            return False
        offset = Text(self.text).offset_in_mlir(located[0].line, located[0].column)
        syntax = Syntax.of(self.text, Span(0, len(self.text)))
        open_before = [each for each in syntax.unclosed if each.start <= offset]
        function = open_before[0] if open_before else syntax.function_at(offset)
        if function is None:
            return False
        body = body_of(syntax, function)
        if body < function.last and syntax.tokens[body].start <= offset:
            self._declare(syntax, function, body)
        else:
            self.missing.append(syntax.function_name(function.start))
            self._blank(function.start, function.end)
        return True

    def _declare(self, syntax: Syntax, function: Statement, body: int) -> None:
        """Makes a definition a declaration: no body, no names of arguments, private."""
        self._blank(syntax.tokens[body].start, function.end)
        for definitions in syntax.values.values():
            for value in definitions:
                if value.statement is function and not value.is_result:
                    if value.token.start < syntax.tokens[body].start:
                        colon = syntax.tokens[value.position + 1]
                        self._blank(value.token.start, colon.end)
        visibility = syntax.tokens[function.op + 1]
        end = visibility.end if visibility.text == "public" else visibility.start
        if visibility.text != "private":
            self.text = f"{self.text[: visibility.start]}private {self.text[end:]}"

    def _blank(self, start: int, end: int) -> None:
        """Replaces all but line ends by spaces."""
        self.text = self.text[:start] + _PRINTED.sub(" ", self.text[start:end]) + self.text[end:]
