"""Names and their definitions in the text of a module, by its tokens.

    func.func @main(%x: !x) -> !x {           a statement; it defines @main, and %x in itself
      %0 = "graph.exp"(%x) : (!x) -> !x       a statement; it defines %0 in the enclosing braces
      ...

Nothing is refused. A statement begins where one looks like it: unclosed brackets end at the next
operation or function, so that an incomplete line does not hide those after it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from relax_mlir.lsp.text import Span
from relax_mlir.lsp.tokens import Token, tokens

_CLOSES = {")": "(", "]": "[", "}": "{"}
_BARE_OPS = ("call", "module", "return")
_MODULES = ("module", "builtin.module")
_FUNCTIONS = ("func.func", "llvm.func", "lib.function")
_LISTS_INDICES = ("scf.parallel", "scf.forall", "affine.parallel")
_VISIBILITIES = ("private", "public", "nested")


@dataclass
class Scope:
    """A part of the text in which a definition is visible: braces, or a statement."""

    start: int
    end: int


@dataclass
class Statement(Scope):
    """An operation; `first` and `last` are the indices of its tokens, `op` is the one of its name.

    The end and `last` are set when the next statement or the closing bracket is read.
    """

    first: int
    op: int
    last: int
    is_incomplete: bool = False
    """Whether a bracket in it is not closed."""

    def __contains__(self, offset: int) -> bool:
        return self.start <= offset <= self.end


@dataclass(frozen=True)
class Definition:
    """A value's definition: the results of a statement from `index` on, or an argument."""

    token: Token
    statement: Statement
    scope: Scope
    is_result: bool
    index: int = 0
    position: int = 0
    """The index of its token."""
    count: int = 1
    """How many results it has: 2 for `%a:2`."""


@dataclass
class Syntax:
    """The tokens of a module without comments, its statements and definitions."""

    tokens: list[Token]
    comments: list[Token]
    statements: list[Statement] = field(default_factory=list)
    values: dict[str, list[Definition]] = field(default_factory=dict)
    functions: dict[str, tuple[Token, Statement]] = field(default_factory=dict)
    names: list[tuple[Statement, str]] = field(default_factory=list)
    """All functions in order, also if another of the name precedes."""
    unclosed: list[Statement] = field(default_factory=list)
    """Functions whose braces are open where the next one begins, or the text ends."""
    aliases: dict[str, tuple[Token, int]] = field(default_factory=dict)
    """The name of each alias, and the index of the token after its '='."""

    @staticmethod
    def of(text: str, span: Span) -> "Syntax":
        """Reads one module of a text."""
        every = list(tokens(text, span.start, span.end))
        comments = [token for token in every if token.kind == "comment"]
        syntax = Syntax([token for token in every if token.kind != "comment"], comments)
        _Reader(syntax, span).read()
        return syntax

    def op_name(self, statement: Statement) -> str:
        """The name of a statement's operation; empty while it is not written."""
        if statement.op >= len(self.tokens):
            return ""
        token = self.tokens[statement.op]
        return token.name if token.kind in ("word", "string") else ""

    def statement_at(self, offset: int) -> Statement | None:
        """The innermost statement that contains an offset."""
        inside = [statement for statement in self.statements if offset in statement]
        return inside[-1] if inside else None

    def function_at(self, offset: int) -> Statement | None:
        """The function that contains an offset."""
        index = bisect_right(self._starts, offset) - 1
        return self.names[index][0] if index >= 0 and offset in self.names[index][0] else None

    def function_name(self, offset: int) -> str:
        """The name of the function that contains an offset, with its @; empty if there is none."""
        index = bisect_right(self._starts, offset) - 1
        return self.names[index][1] if index >= 0 and offset in self.names[index][0] else ""

    @cached_property
    def _starts(self) -> list[int]:
        """Where functions begin."""
        return [function.start for function, _ in self.names]

    @cached_property
    def _by_function(self) -> dict[tuple[int, str], list[Definition]]:
        """The definitions of a name by the index of the function that they are in."""
        groups: dict[tuple[int, str], list[Definition]] = {}
        for name, definitions in self.values.items():
            for each in definitions:
                groups.setdefault((self._function_index(each.token), name), []).append(each)
        return groups

    def _function_index(self, token: Token) -> int:
        index = bisect_right(self._starts, token.start) - 1
        return index if index >= 0 and token.start in self.names[index][0] else -1

    @cached_property
    def lists(self) -> dict[int, str]:
        """What the list that a string or integer is in belongs to: `name = [...]`, `name<[...]`."""
        owners: dict[int, str] = {}
        owner = None
        for at, token in enumerate(self.tokens):
            if token.text == "[" and at > 1:
                is_owned = self.tokens[at - 1].text in ("<", "=")
                owner = self.tokens[at - 2].name if is_owned else None
            elif token.kind not in ("string", "numeral") and token.text not in (",", "-"):
                owner = None
            elif owner is not None:
                owners[at] = owner
        return owners

    def definition(self, token: Token) -> Definition | None:
        """The definition of a value: the innermost visible one, and of these the last before it."""
        known = self._by_function.get((self._function_index(token), token.name), ())
        visible = [each for each in known if each.scope.start <= token.start <= each.scope.end]
        if not visible:
            return None
        return max(
            visible,
            key=lambda each: (
                -(each.scope.end - each.scope.start),
                each.token.start <= token.start,
                each.token.start,
            ),
        )

    def uses(self, definition: Definition) -> Iterator[Token]:
        """The tokens that name a definition, itself included."""
        first = bisect_left(self.tokens, definition.scope.start, key=lambda token: token.start)
        for token in self.tokens[first:]:
            if token.start > definition.scope.end:
                return
            if token.kind == "value" and token.name == definition.token.name:
                if self.definition(token) is definition:
                    yield token


def body_of(syntax: Syntax, function: Statement) -> int:
    """The index of the brace that opens a function's body; the end of the function without one."""
    depth = 0
    for at in range(function.first, function.last):
        text = syntax.tokens[at].text
        if text == "{" and depth == 0 and syntax.tokens[at - 1].text != "attributes":
            return at
        depth += (text in "([{") - (text in ")]}")
    return function.last


@dataclass
class _Bracket:
    text: str
    owner: Statement | None
    """The statement that the bracket is in."""
    region: Scope
    is_of_function: bool = False
    """Whether it follows the name of a function, `@f(`."""
    current: Statement | None = None
    """The last statement inside the bracket."""


class _Reader:
    """Reads the tokens of a module into a `Syntax`."""

    def __init__(self, syntax: Syntax, span: Span) -> None:
        self.syntax, self.tokens, self.end = syntax, syntax.tokens, span.end
        self.stack = [_Bracket("{", None, Scope(span.start, span.end))]
        self.label_end = -1

    def read(self) -> None:
        """Visits each token, and closes what is open at the end."""
        position = 0
        while position < len(self.tokens):
            position = self._visit(position)
        while self.stack:
            self._pop_open(len(self.tokens), self.end)

    def _visit(self, at: int) -> int:
        """Reads what begins at an index; returns the index of what follows."""
        token = self.tokens[at]
        if self._starts_alias(at):
            self._unwind(at)
            self.syntax.aliases.setdefault(token.text, (token, at + 2))
            return at + 2
        if (op := self._starts_statement(at)) is not None:
            return self._statement(at, op)
        if token.kind == "block" and self._begins(at):
            return self._label(at)
        if token.kind == "mark":
            self._mark(at, token)
        elif token.kind == "value":
            self._header_value(at)
        return at + 1

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _starts_alias(self, at: int) -> bool:
        token = self.tokens[at]
        return token.is_first and token.kind in ("type", "attribute") and self._text(at + 1) == "="

    def _begins(self, at: int) -> bool:
        """Whether a statement or label may begin here: first in a line, a block or after `{`."""
        opens = at > 0 and self._text(at - 1) == "{"
        return self.tokens[at].is_first or at == self.label_end or opens

    def _starts_statement(self, at: int) -> int | None:
        """The index of the operation's name, if a statement begins here."""
        token = self.tokens[at]
        if token.kind not in ("value", "word", "string") or not self._begins(at):
            return None
        if token.kind == "value":
            op = self._after_results(at)
            if op is None:
                return None
            surely = op < len(self.tokens) and self._names_op(op)
        else:
            op = at
            if not self._names_op(at):
                return None
            surely = token.name in _FUNCTIONS and token.is_first
        inside = self.stack[-1].text == "{"
        return op if inside or (surely and token.is_first) else None

    def _after_results(self, at: int) -> int | None:
        """The index after `%a, %b:2 =`, if that is what begins here."""
        while at < len(self.tokens) and self.tokens[at].kind == "value":
            at += 1
            if self._text(at) == ":":
                at += 2
            if self._text(at) == "=":
                return at + 1
            if self._text(at) != ",":
                return None
            at += 1
        return None

    def _names_op(self, at: int) -> bool:
        token, following = self.tokens[at], self._text(at + 1)
        if token.kind == "string":
            return "." in token.text and following == "("
        if token.kind != "word" or following in ("=", ",", ":"):
            return False
        if following == "}":
            return token.text.endswith(("return", "yield"))
        return "." in token.text or token.text in _BARE_OPS

    def _statement(self, at: int, op: int) -> int:
        """Opens a statement; returns the index after its results."""
        if self.tokens[at].name in _FUNCTIONS and self.tokens[at].is_first:
            self._unwind(at)
        else:
            while self.stack[-1].text != "{":
                self._pop_open(at, self.tokens[at - 1].end)
        bracket = self.stack[-1]
        self._finish(bracket, at)
        start = self.tokens[at].start
        statement = Statement(start, self.end, at, op, len(self.tokens))
        bracket.current = statement
        self.syntax.statements.append(statement)
        self._results(at, op, statement, bracket.region)
        self._symbol(op, statement)
        return max(op, at + 1)

    def _results(self, at: int, op: int, statement: Statement, region: Scope) -> None:
        index = 0
        for position in range(at, op):
            token = self.tokens[position]
            if token.kind == "value":
                text = self._text(position + 2) if self._text(position + 1) == ":" else "1"
                count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
                value = Definition(token, statement, region, True, index, position, count)
                self._define(value)
                index += count

    def _symbol(self, op: int, statement: Statement) -> None:
        """Notes the function that a statement defines, in short or generic form."""
        if self._text(op).strip('"') not in _FUNCTIONS:
            return
        at = op + 1
        while self._text(at) in _VISIBILITIES:
            at += 1
        if at < len(self.tokens) and self.tokens[at].kind == "symbol":
            self._function(self.tokens[at], self.tokens[at].name, statement)
            return
        for at in range(op, min(op + 40, len(self.tokens) - 2)):
            if self._text(at) == "sym_name" and self.tokens[at + 2].kind == "string":
                name = self.tokens[at + 2]
                self._function(name, "@" + name.name, statement)
                return

    def _function(self, token: Token, name: str, statement: Statement) -> None:
        self.syntax.functions.setdefault(name, (token, statement))
        self.syntax.names.append((statement, name))

    def _define(self, definition: Definition) -> None:
        self.syntax.values.setdefault(definition.token.name, []).append(definition)

    def _label(self, at: int) -> int:
        """Reads `^block(%a: f32, %b: f32):`; returns the index after it."""
        while self.stack[-1].text != "{":
            self._pop_open(at, self.tokens[at - 1].end)
        bracket = self.stack[-1]
        self._finish(bracket, at)
        owner = bracket.owner
        depth, index, at = 0, 0, at + 1
        while at < len(self.tokens) and not (depth == 0 and self._text(at) == ":"):
            token = self.tokens[at]
            if token.is_first and (depth == 0 or self._starts_statement(at) is not None):
                break
            depth += (token.text == "(") - (token.text == ")")
            if token.kind == "value" and owner is not None:
                self._define(Definition(token, owner, bracket.region, False, index, at))
                index += 1
            at += 1
        self.label_end = at + 1 if self._text(at) == ":" else at
        return self.label_end

    def _header_value(self, at: int) -> None:
        """Notes a value that a statement defines for its regions: arguments, loop variables."""
        bracket, token = self.stack[-1], self.tokens[at]
        statement = bracket.current if bracket.text == "{" else bracket.owner
        if statement is None:
            return
        following = self._text(at + 1)
        is_argument = following == ":" and bracket.text == "(" and bracket.is_of_function
        is_index = (
            self.syntax.op_name(statement) in _LISTS_INDICES
            and self.tokens[statement.op + 1].start == bracket.region.start
        )
        if following == "=" or is_argument or is_index:
            self._define(Definition(token, statement, statement, False, 0, at))

    def _mark(self, at: int, token: Token) -> None:
        if token.text in "([{":
            outer = self.stack[-1]
            owner = outer.current if outer.text == "{" else outer.owner
            named = at > 0 and self.tokens[at - 1].kind == "symbol"
            self.stack.append(_Bracket(token.text, owner, Scope(token.start, self.end), named))
        elif token.text in _CLOSES:
            self._close(at, token)

    def _close(self, at: int, token: Token) -> None:
        """Closes the bracket that a token matches; one that matches none is ignored."""
        opening = _CLOSES[token.text]
        for depth in range(len(self.stack) - 1, 0, -1):
            if self.stack[depth].text == opening:
                while len(self.stack) > depth:
                    self._pop(at, token.end)
                return
            if self.stack[depth].text == "{":
                return

    def _unwind(self, at: int) -> None:
        """Closes all brackets but those of modules, before a function or an alias."""
        end = self.tokens[at - 1].end if at else 0
        while len(self.stack) > 1:
            owner = self.stack[-1].owner
            if owner is not None and self.syntax.op_name(owner) in _MODULES:
                break
            self._pop_open(at, end)
        self._finish(self.stack[-1], at)

    def _pop_open(self, at: int, end: int) -> None:
        """Ends a bracket that nothing closes."""
        owner = self.stack[-1].owner
        if self.syntax.names and owner is self.syntax.names[-1][0]:
            self.syntax.unclosed.append(owner)
        if owner is not None:
            owner.is_incomplete = True
        self._pop(at, end)

    def _pop(self, at: int, end: int) -> None:
        bracket = self.stack.pop()
        self._finish(bracket, at)
        bracket.region.end = end

    def _finish(self, bracket: _Bracket, at: int) -> None:
        """Ends the statement that is open inside a bracket before the token at an index."""
        if (statement := bracket.current) is not None:
            statement.last = at
            statement.end = max(statement.start, self.tokens[at - 1].end) if at else statement.start
            if statement.is_incomplete:  # what is written next may belong to it
                statement.end = self.tokens[at].start if at < len(self.tokens) else self.end
            bracket.current = None
