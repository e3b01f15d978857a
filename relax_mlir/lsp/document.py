"""A version of a text, with what is known of it; each change makes another one."""

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from relax_mlir.lsp.analysis import Analysis, SymbolFacts, ValueTypes
from relax_mlir.lsp.syntax import Definition, Syntax
from relax_mlir.lsp.text import MAX_LENGTH, Span, Text
from relax_mlir.lsp.tokens import Token


@dataclass
class Document:
    """A text, the analysis of it, and that of an earlier version while there is no other."""

    text: Text
    analysis: Analysis | None = None
    earlier: "Document | None" = None
    _syntaxes: dict[int, Syntax] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(text: str, encoding: str = "utf-16") -> "Document":
        """A document that has not been analysed."""
        return Document(Text(text, encoding))

    def changed(self, text: str) -> "Document":
        """The next version, which remembers the last one whose types are known."""
        known = self if self.analysis is not None and self.analysis.values else self.earlier
        if known is not None:
            known.earlier = None
        return Document(Text(text, self.text.encoding), earlier=known)

    @cached_property
    def chunks(self) -> list[Span]:
        """The modules in the text; none if it is too long."""
        return self.text.chunks() if len(self.text.text) <= MAX_LENGTH else []

    def syntax_at(self, offset: int) -> Syntax:
        """The syntax of the module that an offset is in."""
        index = bisect_left(self.chunks, offset, key=lambda chunk: chunk.end)
        return self._syntax(index) if index < len(self.chunks) else Syntax([], [])

    def _syntax(self, index: int) -> Syntax:
        if index not in self._syntaxes:
            self._syntaxes[index] = Syntax.of(self.text.text, self.chunks[index])
        return self._syntaxes[index]

    def syntaxes(self) -> list[Syntax]:
        """The syntax of each module."""
        return [self._syntax(index) for index in range(len(self.chunks))]

    def token_at(self, offset: int) -> Token | None:
        """The token that an offset is in, or that ends there if none begins."""
        syntax = self.syntax_at(offset)
        result = None
        for token in (*syntax.tokens, *syntax.comments):
            if token.start <= offset <= token.end and (result is None or token.start == offset):
                result = token if result is None or token.kind != "mark" else result
        return result

    def types_of(self, definition: Definition, index: int = 0) -> ValueTypes | None:
        """The types of a value, from this version or by its name from an earlier one."""
        syntax = self.syntax_at(definition.token.start)
        if self.analysis is not None:
            types = self.analysis.values.get(_key(syntax, definition), ())
            at = definition.index + index if definition.is_result else 0
            if at < len(types):
                return types[at]
        if self.earlier is None:
            return None
        function = syntax.function_name(definition.token.start)
        for each in self.earlier.syntaxes():
            for known in each.values.get(definition.token.name, ()):
                if each.function_name(known.token.start) == function:
                    return self.earlier.types_of(known, index)
        return None

    def symbol_facts(self, function: str, symbol: str) -> SymbolFacts | None:
        """What is known of a symbol in a function, from this version or an earlier one."""
        for version in (self, self.earlier):
            if version is not None and version.analysis is not None:
                if (function, symbol) in version.analysis.symbols:
                    return version.analysis.symbols[function, symbol]
        return None


def _key(syntax: Syntax, definition: Definition) -> int:
    """The offset of MLIR's location of a value: the operation's name, or the argument."""
    if not definition.is_result or definition.statement.op >= len(syntax.tokens):
        return definition.token.start
    return syntax.tokens[definition.statement.op].start
