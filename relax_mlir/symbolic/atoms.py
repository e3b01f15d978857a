"""The factors of expressions, and the canonical text of sums of their products."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relax_mlir.symbolic.expr import Expr


class Atom:
    """A symbol, or an operation that a polynomial cannot express.

    `kind` is "symbol", "floordiv", "mod", "min" or "max". `text` determines the atom.
    """

    __slots__ = ("kind", "operands", "symbols", "text")

    def __init__(self, kind: str, text: str, operands: "tuple[Expr, ...]" = ()) -> None:
        self.kind = kind
        self.text = text
        self.operands = operands
        if kind == "symbol":
            self.symbols = frozenset((text,))
        else:
            self.symbols = frozenset().union(*(operand.symbols for operand in operands))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __lt__(self, other: "Atom") -> bool:
        return self.text < other.text

    def __repr__(self) -> str:
        return f"Atom({self.text!r})"


Monomial = tuple[Atom, ...]
Terms = tuple[tuple[Monomial, int], ...]


def term_order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    """Sorts terms by degree, highest first, then by name."""
    return -len(term[0]), [atom.text for atom in term[0]]


def sum_text(terms: Terms) -> str:
    """The canonical text of a sum."""
    if not terms:
        return "0"
    (monomial, coefficient), *others = terms
    text = _term_text(monomial, abs(coefficient))
    if coefficient < 0:
        # A leading minus binds tighter than a division.
        divides = coefficient == -1 and len(monomial) == 1 and _is_division(monomial[0])
        text = f"-({text})" if divides else f"-{text}"
    for monomial, coefficient in others:
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {_term_text(monomial, abs(coefficient))}"
    return text


def _term_text(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    if coefficient == 1 and len(monomial) == 1:
        return monomial[0].text
    factors = [] if coefficient == 1 else [str(coefficient)]
    factors.extend(f"({atom.text})" if _is_division(atom) else atom.text for atom in monomial)
    return "*".join(factors)


def _is_division(atom: Atom) -> bool:
    return atom.kind in ("floordiv", "mod")


def operand_text(terms: Terms) -> str:
    """The text of a sum as an operand of a division."""
    text = sum_text(terms)
    if not terms:
        return text
    (monomial, coefficient), *others = terms
    plain = coefficient > 0 and not others
    if plain and (not monomial or (coefficient == 1 and len(monomial) == 1)):
        return f"({text})" if monomial and _is_division(monomial[0]) else text
    return f"({text})"
