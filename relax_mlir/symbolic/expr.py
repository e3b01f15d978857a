"""Integer expressions over named symbols, in canonical form.

An expression is a polynomial with integer coefficients whose atoms are symbols and the operations
`floordiv`, `mod`, `min` and `max`. Symbols are non-negative integers, like dims; divisors are
positive. Every constructor simplifies, and a simplification holds for all such values, so equal
normal forms are equal expressions, with the same text and hash.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import gcd
from operator import index
from typing import TypeVar

from relax_mlir.errors import CompileError
from relax_mlir.symbolic.atoms import Atom, Monomial, Terms, operand_text, sum_text, term_order
from relax_mlir.symbolic.intervals import Interval, interval_of

T = TypeVar("T")

MAX_TERMS = 4096
MAX_DEGREE = 1024
MAX_TEXT = 1 << 14
"""Characters of an operation, whose operands may hold one another again and again."""
KEYWORDS = frozenset(("floordiv", "mod", "ceildiv", "min", "max"))


class SymbolicError(CompileError):
    """An expression or fact that cannot be parsed or evaluated."""


class DivisorError(SymbolicError):
    """A divisor that is not positive."""


class Expr:
    """An immutable integer expression in canonical form.

    `terms` pairs each product of atoms with its coefficient: highest degree first, the
    constant last. An expression without symbols equals, and hashes like, its integer.
    """

    __slots__ = ("_hash", "_range", "_symbols", "_text", "terms")

    terms: Terms

    def __init__(self, terms: Iterable[tuple[Monomial, int]] = ()) -> None:
        collected: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            collected[monomial] = collected.get(monomial, 0) + coefficient
        if len(collected) > MAX_TERMS:
            raise SymbolicError(f"expression has {len(collected)} terms, more than {MAX_TERMS}")
        nonzero = [term for term in collected.items() if term[1]]
        if len(nonzero) > 1:
            nonzero.sort(key=term_order)
        self.terms = tuple(nonzero)
        self._hash: int | None = None
        self._range: Interval | None = None
        self._symbols: frozenset[str] | None = None
        self._text: str | None = None

    @property
    def value(self) -> int | None:
        """The value of a constant, or None if it depends on a symbol."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def constant(self) -> int:
        """The coefficient of the empty product: 1 in `n + 1`."""
        if self.terms and not self.terms[-1][0]:
            return self.terms[-1][1]
        return 0

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that the expression depends on."""
        if self._symbols is None:
            self._symbols = frozenset().union(
                *(atom.symbols for monomial, _ in self.terms for atom in monomial)
            )
        return self._symbols

    @property
    def range(self) -> Interval:
        """An interval of all values for non-negative symbols."""
        if self._range is None:
            self._range = interval_of(self, {})
        return self._range

    def substitute(self, values: "Mapping[str, Expr | int]") -> "Expr":
        """Replaces symbols simultaneously; other symbols stay."""
        if self.symbols.isdisjoint(values):
            return self
        return _map_atoms(self, lambda atom: _substitute_atom(atom, values))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value for an assignment of the symbols.

        Raises SymbolicError if a symbol has no value or a divisor is not positive.
        """
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= _evaluate_atom(atom, values)
            total += coefficient
        return total

    def lower(
        self,
        *,
        const: Callable[[int], T],
        symbol: Callable[[str], T],
        add: Callable[[T, T], T],
        mul: Callable[[T, T], T],
        floordiv: Callable[[T, T], T],
        mod: Callable[[T, T], T],
        min: Callable[[T, T], T],
        max: Callable[[T, T], T],
    ) -> T:
        """Folds the expression bottom-up; each distinct atom is folded once.

        `n - 2` is folded as `n + (-2)`. Operations are binary, sums and products lean left.
        """
        binary = {"floordiv": floordiv, "mod": mod, "min": min, "max": max}
        made: dict[Atom, T] = {}

        def fold_atom(atom: Atom) -> T:
            if atom not in made:
                if atom.kind == "symbol":
                    made[atom] = symbol(atom.text)
                else:
                    made[atom] = _fold([fold(o) for o in atom.operands], binary[atom.kind])
            return made[atom]

        def fold(expr: Expr) -> T:
            summands = []
            for monomial, coefficient in expr.terms:
                factors = [fold_atom(atom) for atom in monomial]
                if coefficient != 1 or not factors:
                    factors.append(const(coefficient))
                summands.append(_fold(factors, mul))
            return _fold(summands, add) if summands else const(0)

        return fold(self)

    def __add__(self, other: "Expr | int") -> "Expr":
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        return Expr((*self.terms, *_lift(other).terms))

    __radd__ = __add__

    def __neg__(self) -> "Expr":
        return self * -1

    def __sub__(self, other: "Expr | int") -> "Expr":
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        return self + _lift(other) * -1

    def __rsub__(self, other: int) -> "Expr":
        return self * -1 + other

    def __mul__(self, other: "Expr | int") -> "Expr":
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        right = _lift(other)
        if len(self.terms) * len(right.terms) > MAX_TERMS:
            raise SymbolicError(f"product has more than {MAX_TERMS} terms")
        if self.terms and right.terms and len(self.terms[0][0] + right.terms[0][0]) > MAX_DEGREE:
            raise SymbolicError(f"product is of a degree over {MAX_DEGREE}")
        return Expr(
            (tuple(sorted(a + b)) if a and b else a or b, c * d)
            for a, c in self.terms
            for b, d in right.terms
        )

    __rmul__ = __mul__

    def __floordiv__(self, other: "Expr | int") -> "Expr":
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        return _floordiv(self, _lift(other))

    def __rfloordiv__(self, other: int) -> "Expr":
        return _floordiv(_lift(other), self)

    def __mod__(self, other: "Expr | int") -> "Expr":
        if not isinstance(other, (Expr, int)):
            return NotImplemented
        return _mod(self, _lift(other))

    def __rmod__(self, other: int) -> "Expr":
        return _mod(_lift(other), self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Expr):
            return hash(self) == hash(other) and self.terms == other.terms
        if isinstance(other, int):
            return self.value == other
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            value = self.value
            self._hash = hash(self.terms) if value is None else hash(value)
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = sum_text(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"

    def __reduce__(self) -> tuple:
        # Hashes of texts differ between processes, so the cached one must not be pickled.
        return Expr, (self.terms,)


@lru_cache(maxsize=1024)
def const(value: int) -> Expr:
    """The constant expression `value`."""
    return Expr((((), index(value)),))


@lru_cache(maxsize=1024)
def sym(name: str) -> Expr:
    """The symbol `name`, a non-negative integer."""
    if not (name.isascii() and name.isidentifier()) or name in KEYWORDS:
        raise SymbolicError(
            f"'{name}' is not a symbol name: it needs ASCII letters, digits and '_', "
            f"no digit first, and none of {', '.join(sorted(KEYWORDS))}"
        )
    return single(Atom("symbol", name))


def _lift(value: Expr | int) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        return const(value)
    raise TypeError(f"{type(value).__name__} is not an expression; Expr or int is accepted")


@lru_cache(maxsize=4096)
def single(atom: Atom) -> Expr:
    """The expression of one atom."""
    return Expr((((atom,), 1),))


def _operation(kind: str, text: str, operands: tuple[Expr, ...]) -> Expr:
    if len(text) > MAX_TEXT:
        raise SymbolicError(f"expression is longer than {MAX_TEXT} characters")
    return single(Atom(kind, text, operands))


def minimum(*operands: Expr | int) -> Expr:
    """The least of one or more expressions."""
    return _extremum("min", [_lift(operand) for operand in operands])


def maximum(*operands: Expr | int) -> Expr:
    """The greatest of one or more expressions."""
    return _extremum("max", [_lift(operand) for operand in operands])


def product(factors: Iterable[Expr]) -> Expr:
    """The product of expressions; 1 of none."""
    scale, total = 1, None
    for factor in factors:
        value = factor.value
        if value is not None:
            scale *= value
        else:
            total = factor if total is None else total * factor
    if total is None:
        return const(scale)
    return total if scale == 1 else total * scale


def apply(kind: str, operands: Iterable[Expr]) -> Expr:
    """The operation `kind` of an atom, simplified."""
    if kind == "floordiv":
        return _floordiv(*operands)
    if kind == "mod":
        return _mod(*operands)
    return _extremum(kind, operands)


def rewrite(expr: Expr, rule: Callable[[Atom], Expr]) -> Expr:
    """Replaces every operation in `expr`, innermost first, by `rule`."""
    return _map_atoms(expr, lambda atom: _rewrite_atom(atom, rule))


def _rewrite_atom(atom: Atom, rule: Callable[[Atom], Expr]) -> Expr:
    if atom.kind == "symbol":
        return single(atom)
    operands = tuple(rewrite(operand, rule) for operand in atom.operands)
    if operands == atom.operands:
        return rule(atom)
    return _map_atoms(
        apply(atom.kind, operands), lambda new: single(new) if new.kind == "symbol" else rule(new)
    )


def _map_atoms(expr: Expr, change: Callable[[Atom], Expr]) -> Expr:
    pairs: list[tuple[Monomial, int]] = []
    unchanged = True
    for term in expr.terms:
        factors = [change(atom) for atom in term[0]]
        if all(factor is single(atom) for factor, atom in zip(factors, term[0], strict=True)):
            pairs.append(term)
            continue
        unchanged = False
        pairs.extend((product(factors) * term[1]).terms)
    return expr if unchanged else Expr(pairs)


def _substitute_atom(atom: Atom, values: Mapping[str, Expr | int]) -> Expr:
    if atom.kind == "symbol":
        value = values.get(atom.text)
        return single(atom) if value is None else _lift(value)
    if atom.symbols.isdisjoint(values):
        return single(atom)
    return apply(atom.kind, [operand.substitute(values) for operand in atom.operands])


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        if atom.text not in values:
            raise SymbolicError(f"symbol '{atom.text}' has no value")
        return values[atom.text]
    operands = [operand.evaluate(values) for operand in atom.operands]
    if atom.kind == "min":
        return min(operands)
    if atom.kind == "max":
        return max(operands)
    if operands[1] <= 0:
        raise DivisorError(f"divisor of '{atom.text}' is {operands[1]}, not positive")
    if atom.kind == "floordiv":
        return operands[0] // operands[1]
    return operands[0] % operands[1]


def _fold(values: list[T], combine: Callable[[T, T], T]) -> T:
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


# Division. A divisor is positive, and every rule is an identity of floor division.


@lru_cache(maxsize=4096)
def _floordiv(lhs: Expr, rhs: Expr) -> Expr:
    _check_divisor(lhs, rhs, "floordiv")
    whole, rest = _divide(lhs, rhs)
    if not rest.terms:
        return whole
    numerator, divisor, _, _ = _cancel(rest, rhs)
    if divisor.value == 1:
        return whole + numerator
    if divisor != rhs:
        return whole + _floordiv(numerator, divisor)
    inner = single_atom(numerator)
    if inner and inner.kind == "floordiv":
        # (x floordiv y + c) floordiv z = (x + c*y) floordiv (y*z)
        x, y = inner.operands
        return whole + _floordiv(x + y * numerator.constant, y * divisor)
    quotient = _constant_quotient(numerator, divisor)
    if quotient is not None:
        return whole + quotient
    text = f"{operand_text(numerator.terms)} floordiv {operand_text(divisor.terms)}"
    return whole + _operation("floordiv", text, (numerator, divisor))


@lru_cache(maxsize=4096)
def _mod(lhs: Expr, rhs: Expr) -> Expr:
    _check_divisor(lhs, rhs, "mod")
    _, rest = _divide(_drop_inner_mod(lhs, rhs), rhs)
    if not rest.terms:
        return rest
    numerator, divisor, factor, offset = _cancel(rest, rhs)
    if divisor.value == 1:
        return offset
    if divisor != rhs:
        # (f*x + c) mod f*y = f*(x mod y) + c for 0 <= c < f
        return factor * _mod(numerator, divisor) + offset
    quotient = _constant_quotient(numerator, divisor)
    if quotient is not None:
        return numerator - divisor * quotient
    text = f"{operand_text(numerator.terms)} mod {operand_text(divisor.terms)}"
    return _operation("mod", text, (numerator, divisor))


def _check_divisor(lhs: Expr, rhs: Expr, word: str) -> None:
    if rhs.value is not None and rhs.value <= 0:
        raise DivisorError(
            f"'{operand_text(lhs.terms)} {word} {operand_text(rhs.terms)}' divides by {rhs}; "
            "a divisor is positive"
        )


def _divide(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """`(q, r)` with `lhs = q*rhs + r`; coefficients of `r` are reduced where that is defined."""
    if len(rhs.terms) > 1:
        return _divide_long(lhs, rhs)
    ((base, step),) = rhs.terms
    whole, rest = [], []
    for monomial, coefficient in lhs.terms:
        quotient = _without(monomial, base)
        if quotient is None:
            rest.append((monomial, coefficient))
            continue
        whole.append((quotient, coefficient // step))
        rest.append((monomial, coefficient % step))
    return Expr(whole), Expr(rest)


def _divide_long(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Long division by a sum; it is used only if the remainder is constant."""
    (base, step), whole, rest = rhs.terms[0], const(0), lhs
    for _ in range(16):
        if rest.value is not None:
            return whole, rest
        monomial, coefficient = rest.terms[0]
        quotient = _without(monomial, base)
        if quotient is None or coefficient % step:
            break
        factor = Expr(((quotient, coefficient // step),))
        whole, rest = whole + factor, rest - factor * rhs
    return const(0), lhs


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    left = list(monomial)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _cancel(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """`(x, y, f, c)` with `lhs = f*x + c`, `rhs = f*y` and `0 <= c < f`, `f` positive."""
    factor = gcd(*(c for m, c in lhs.terms if m), *(c for _, c in rhs.terms))
    rest = lhs.constant % factor
    x = _exact_quotient(lhs - rest, factor)
    y = _exact_quotient(rhs, factor)
    if rest or not x.terms:
        return x, y, const(factor), const(rest)
    common = [
        atom
        for atom in dict.fromkeys(y.terms[0][0])
        # A non-negative factor of a positive product is positive.
        if (single(atom).range[0] or 0) >= 0 and single(atom).range[0] is not None
        if all(atom in monomial for monomial, _ in (*x.terms, *y.terms))
    ]
    if not common:
        return x, y, const(factor), const(0)
    x, y, more, offset = _cancel(_drop_factor(x, common[0]), _drop_factor(y, common[0]))
    shared = Expr((((common[0],), factor),))
    return x, y, shared * more, shared * offset


def _exact_quotient(expr: Expr, divisor: int) -> Expr:
    if divisor == 1:
        return expr
    return Expr((monomial, c // divisor) for monomial, c in expr.terms)


def _drop_factor(expr: Expr, factor: Atom) -> Expr:
    positions = [(monomial, monomial.index(factor), c) for monomial, c in expr.terms]
    return Expr((monomial[:at] + monomial[at + 1 :], c) for monomial, at, c in positions)


def _drop_inner_mod(lhs: Expr, rhs: Expr) -> Expr:
    """`lhs` with `c*(x mod y)` replaced by `c*x` where `rhs` divides `c*y`."""
    for monomial, coefficient in lhs.terms:
        if len(monomial) != 1 or monomial[0].kind != "mod":
            continue
        x, y = monomial[0].operands
        if not _divide_exactly(y * coefficient, rhs):
            continue
        return _drop_inner_mod(lhs + (x - single(monomial[0])) * coefficient, rhs)
    return lhs


def _divide_exactly(lhs: Expr, rhs: Expr) -> bool:
    return not _divide(lhs, rhs)[1].terms


def _constant_quotient(lhs: Expr, rhs: Expr) -> int | None:
    """`lhs floordiv rhs` if ranges alone decide it."""
    low, high = lhs.range
    if rhs.value is not None:
        if low is not None and high is not None and low // rhs.value == high // rhs.value:
            return low // rhs.value
        return None
    if low is None or low < 0:
        return None
    inner = single_atom(lhs)
    if inner and inner.kind == "mod" and not lhs.constant and inner.operands[1] == rhs:
        return 0
    gap = (rhs - lhs).range[0]
    return 0 if gap is not None and gap > 0 else None


def single_atom(expr: Expr) -> Atom | None:
    """The atom of `atom + constant`, if `expr` is that."""
    varying = [term for term in expr.terms if term[0]]
    if len(varying) == 1 and varying[0][1] == 1 and len(varying[0][0]) == 1:
        return varying[0][0][0]
    return None


# Minimum and maximum.


def _extremum(kind: str, operands: Iterable[Expr]) -> Expr:
    flat: dict[Expr, None] = {}
    for operand in operands:
        atom = single_atom(operand)
        if atom and atom.kind == kind:
            flat.update(dict.fromkeys(inner + operand.constant for inner in atom.operands))
        else:
            flat[operand] = None
    if not flat:
        raise SymbolicError(f"'{kind}' of no operands")
    remaining = _undominated(kind, list(flat))
    if len(remaining) == 1:
        return remaining[0]
    shared = _shared_terms(remaining)
    factor = gcd(*(c for operand in remaining for _, c in (operand - shared).terms))
    if shared.terms or factor > 1:
        reduced = [_exact_quotient(operand - shared, factor) for operand in remaining]
        return shared + _extremum(kind, reduced) * factor
    remaining.sort(key=lambda operand: (operand.value is not None, str(operand)))
    return _operation(kind, f"{kind}({', '.join(map(str, remaining))})", tuple(remaining))


def _shared_terms(operands: list[Expr]) -> Expr:
    """The terms that all operands share, coefficient included."""
    shared = set(operands[0].terms)
    for operand in operands[1:]:
        shared.intersection_update(operand.terms)
    return Expr(shared)


def _undominated(kind: str, operands: list[Expr]) -> list[Expr]:
    """The operands that no other operand dominates for all values of the symbols."""
    remaining: list[Expr] = []
    for operand in operands:
        if any(_dominates(kind, other, operand) for other in remaining):
            continue
        remaining = [other for other in remaining if not _dominates(kind, operand, other)]
        remaining.append(operand)
    return remaining


def _dominates(kind: str, lhs: Expr, rhs: Expr) -> bool:
    gap = (rhs - lhs if kind == "min" else lhs - rhs).range[0]
    return gap is not None and gap >= 0
