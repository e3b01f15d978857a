"""What is open at a position of a statement: brackets, and the operand that is being written."""

from dataclasses import dataclass

from relax_mlir.lsp.syntax import Statement, Syntax


@dataclass(frozen=True)
class Context:
    """The brackets that are open, as indices of tokens, and the index of the token before."""

    brackets: tuple[int, ...]
    last: int


def context(syntax: Syntax, statement: Statement, offset: int) -> Context:
    """The context of an offset in a statement; a word that ends there is being written."""
    brackets: list[int] = []
    last = statement.op
    for at in range(statement.op + 1, statement.last):
        token = syntax.tokens[at]
        if token.end > offset or (token.kind == "word" and token.end == offset):
            break
        if token.kind == "mark" and token.text in "([{<":
            brackets.append(at)
        elif token.kind == "mark" and token.text in ")]}>" and brackets:
            brackets.pop()
        last = at
    return Context(tuple(brackets), last)


def in_braces(syntax: Syntax, where: Context, depth: int) -> bool:
    """Whether the name of an attribute may begin in braces that are the bracket of a depth."""
    if len(where.brackets) != depth or syntax.tokens[where.brackets[-1]].text != "{":
        return False
    return syntax.tokens[where.last].text in ("{", ",")


def operand_index(syntax: Syntax, statement: Statement, offset: int) -> int | None:
    """Which operand is being written at an offset in `"op"(%a, %b)`; None outside."""
    where = context(syntax, statement, offset)
    if where.brackets != (statement.op + 1,) or syntax.tokens[statement.op + 1].text != "(":
        return None
    return sum(syntax.tokens[at].text == "," for at in range(statement.op + 2, where.last + 1))
