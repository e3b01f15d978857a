"""Parses expressions and facts.

    expression = ["-"] product {("+" | "-") product}
    product    = factor {("*" | "floordiv" | "//" | "mod" | "%" | "ceildiv") factor}
    factor     = integer | name | ("min" | "max") "(" expression {"," expression} ")"
               | "(" expression ")" | "-" factor
    relation   = expression ("==" | "<=" | "<" | ">=" | ">" | "!=") expression

Operators of one line are left-associative. `a ceildiv b` is `(a + b - 1) floordiv b`.
"""

import re
from functools import lru_cache
from operator import index

from relax_mlir.symbolic.expr import Expr, SymbolicError, const, maximum, minimum, sym

RELATIONS = ("==", "<=", "<", ">=", ">", "!=")
MAX_DEPTH = 64
MAX_DIGITS = 19

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|==|<=|>=|!=|[-+*%(),<>])|(\S))", re.ASCII)
_PRODUCT_OPERATORS = ("*", "floordiv", "//", "mod", "%", "ceildiv")


@lru_cache(maxsize=4096)
def parse(text: str) -> Expr:
    """Parses an expression; `parse(str(e)) == e`.

    Raises SymbolicError, with the text and the column, if it is invalid.
    """
    reader = _Reader(text)
    expr = reader.expression()
    reader.expect_end("an operator")
    return expr


def as_expr(value: Expr | int | str) -> Expr:
    """`value` as an expression; text is parsed."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return parse(value)
    if hasattr(value, "__index__"):
        return const(index(value))
    raise TypeError(f"{type(value).__name__} is not an expression; Expr, int or str is accepted")


def parse_relation(text: str) -> tuple[Expr, str, Expr]:
    """Parses the left side, relation and right side of a fact such as `n <= 2048`."""
    reader = _Reader(text)
    lhs = reader.expression()
    if reader.peek() not in RELATIONS:
        raise reader.error(f"one of {' '.join(RELATIONS)}")
    relation = reader.take()
    rhs = reader.expression()
    reader.expect_end("an operator")
    return lhs, relation, rhs


class _Reader:
    """A cursor over the tokens of one text; each token is its text and its column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            (m.group().strip(), m.start(m.lastindex or 0)) for m in _TOKEN.finditer(text)
        ]
        self.tokens.append(("", len(text)))
        self.position = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.position][0]

    def take(self) -> str:
        token = self.peek()
        if token:
            self.position += 1
        return token

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.error(f"'{token}'")
        self.take()

    def expect_end(self, wanted: str) -> None:
        if self.peek():
            raise self.error(f"{wanted} or the end")

    def error(self, wanted: str) -> SymbolicError:
        token, column = self.tokens[self.position]
        got = f"'{token}'" if token else "the end"
        return SymbolicError(f"'{self.text}': column {column + 1}: {wanted} expected, not {got}")

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SymbolicError(f"expression is nested more than {MAX_DEPTH} deep")
        total = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                total = total + self.product()
            else:
                total = total - self.product()
        self.depth -= 1
        return total

    def product(self) -> Expr:
        result = self.factor()
        while self.peek() in _PRODUCT_OPERATORS:
            operator = self.take()
            factor = self.factor()
            if operator == "*":
                result = result * factor
            elif operator in ("floordiv", "//"):
                result = result // factor
            elif operator in ("mod", "%"):
                result = result % factor
            else:
                result = (result + factor - 1) // factor
        return result

    def factor(self) -> Expr:
        signs = 0
        while self.peek() == "-":
            self.take()
            signs += 1
        value = self.primary()
        return -value if signs % 2 else value

    def primary(self) -> Expr:
        token = self.peek()
        if token.isdigit():
            if len(token) > MAX_DIGITS:
                raise self.error(f"an integer of at most {MAX_DIGITS} digits")
            self.take()
            return const(int(token))
        if token in ("min", "max"):
            return self.extremum()
        if token == "(":
            self.take()
            inner = self.expression()
            self.expect(")")
            return inner
        if not (token[:1].isalpha() or token[:1] == "_") or token in _PRODUCT_OPERATORS:
            raise self.error("an expression")
        self.take()
        return sym(token)

    def extremum(self) -> Expr:
        combine = minimum if self.take() == "min" else maximum
        self.expect("(")
        operands = [self.expression()]
        while self.peek() == ",":
            self.take()
            operands.append(self.expression())
        self.expect(")")
        return combine(*operands)
