"""Patterns: descriptions of values of a graph function by the ops that compute them.

    is_op("add")(is_op("matmul")(wildcard("x"), wildcard("w")), is_const("bias"))

A pattern is data: `matching.py` finds values that it describes, `text.py` reads and prints it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import Dim, Graph
from relax_mlir.dialects.graph.types import UNKNOWN, as_dims
from relax_mlir.errors import UsageError
from relax_mlir.passes.names import among

ANY_LEADING = "..."
"""Begins the first dim of a shape: any leading dims, `...m` with a variable for their product."""
ELEMENTS: tuple[str, ...] = (
    *("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "index"),
    *("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"),
)


@dataclass(frozen=True)
class Pattern:
    """Describes a value; the methods and operators make a pattern of it that says more."""

    def __or__(self, other: "Pattern") -> "Pattern":
        """What either describes; the left one is tried first."""
        return Either(self, other)

    def __and__(self, other: "Pattern") -> "Pattern":
        """What both describe."""
        return Both(self, other)

    def __invert__(self) -> "Pattern":
        """What this does not describe."""
        return Not(self)

    def __xor__(self, user: "Pattern") -> "Pattern":
        """What `user` describes, if an operand of its op is described by this."""
        return Used(self, user, only=False)

    def __rshift__(self, user: "Pattern") -> "Pattern":
        """As `^`, if no other op uses that operand."""
        return Used(self, user, only=True)

    def named(self, name: str) -> "Pattern":
        """Captures the value; what has the same name elsewhere must be the same value."""
        return Capture(name, self)

    def has_attr(self, **attributes: Any) -> "Pattern":
        """Says attributes of the op, as Python values; others may have any value."""
        return HasAttributes(self, tuple(sorted(attributes.items())))

    def has_dtype(self, element: str) -> "Pattern":
        """Says the element type: "f32"."""
        return HasType(self, element, None)

    def has_shape(self, dims: Sequence[int | str]) -> "Pattern":
        """Says the rank and dims: `["n", 64, "2*n", "_"]`.

        Names are variables of the pattern: in one match each is one expression, which all dims are
        proved to agree with. "_" is any dim. `...` at the beginning is any dims, `...m` names their
        product.
        """
        return HasType(self, None, tuple(map(str, dims)))

    def where(self, check: Callable[[ir.Value], bool]) -> "Pattern":
        """Requires that `check` holds for the value."""
        return Where(self, check)

    def __str__(self) -> str:
        raise TypeError(f"{type(self).__name__} does not implement __str__")


@dataclass(frozen=True)
class Wildcard(Pattern):
    """Any value."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True)
class Constant(Pattern):
    """The result of an `arith.constant`."""

    def __str__(self) -> str:
        return "const"


@dataclass(frozen=True)
class Argument(Pattern):
    """An argument of the function."""

    def __str__(self) -> str:
        return "argument"


@dataclass(frozen=True)
class Op(Pattern):
    """A result of an op whose operands are described; any operands, if `operands` is None.

    A call of the pattern gives the operands: `is_op("exp")(x)`.
    """

    name: str
    operands: tuple[Pattern, ...] | None = None
    index: int | None = None

    def __call__(self, *operands: Pattern) -> "Op":
        """The same op, of these operands."""
        return replace(self, operands=operands)

    def result(self, index: int) -> "Op":
        """The same op, of which the value is that result."""
        return replace(self, index=index)

    def __str__(self) -> str:
        operands = "" if self.operands is None else f"({', '.join(map(str, self.operands))})"
        index = "" if self.index is None else f"#{self.index}"
        return self.name.removeprefix("graph.") + operands + index


@dataclass(frozen=True)
class Capture(Pattern):
    """A value that is given a name."""

    name: str
    pattern: Pattern

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise UsageError(f"'{self.name}' is not a name for a value; letters and digits are")

    def __str__(self) -> str:
        inner = "" if isinstance(self.pattern, Wildcard) else f" = {grouped(self.pattern)}"
        return f"%{self.name}{inner}"


@dataclass(frozen=True)
class HasAttributes(Pattern):
    """A result of an op with some attributes."""

    pattern: Pattern
    attributes: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        pairs = (f"{name} = {_printed(value)}" for name, value in self.attributes)
        return f"{grouped(self.pattern)}{{{', '.join(pairs)}}}"


def _printed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_printed, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class HasType(Pattern):
    """A tensor of an element type, or of a shape; None of either may be any."""

    pattern: Pattern
    element: str | None
    shape: tuple[str, ...] | None
    dims: tuple[Dim, ...] = field(init=False, compare=False, repr=False)
    """Those of `shape`; the product that `...` stands for is the first of them, if it is named."""

    def __post_init__(self) -> None:
        if self.element is not None and self.element not in ELEMENTS:
            raise UsageError(
                f"'{self.element}' is not an element type{among(self.element, ELEMENTS)}"
            )
        texts = self.shape or ()
        if self.any_leading:
            leading = texts[0].removeprefix(ANY_LEADING).strip()
            texts = (leading, *texts[1:]) if leading else texts[1:]
        if any(text.startswith(ANY_LEADING) for text in texts):
            raise UsageError(
                f"'{ANY_LEADING}' stands for leading dims, but got {list(self.shape or ())}"
            )
        read = as_dims(UNKNOWN if text == "_" else text for text in texts)
        object.__setattr__(self, "dims", read)

    @property
    def any_leading(self) -> bool:
        """Whether any dims may precede those that are said."""
        return bool(self.shape) and (self.shape or ("",))[0].startswith(ANY_LEADING)

    @property
    def last(self) -> int:
        """How many dims are said one by one."""
        return len(self.shape or ()) - self.any_leading

    def __str__(self) -> str:
        shape = "" if self.shape is None else f"[{', '.join(self.shape)}]"
        return f"{grouped(self.pattern)}: {self.element or ''}{shape}"


@dataclass(frozen=True)
class _Pair(Pattern):
    first: Pattern
    second: Pattern
    sign: ClassVar[str]

    def __str__(self) -> str:
        return f"{grouped(self.first)} {self.sign} {grouped(self.second)}"


class Either(_Pair):
    """What one of two patterns describes."""

    sign = "|"


class Both(_Pair):
    """What two patterns describe."""

    sign = "&"


@dataclass(frozen=True)
class Not(Pattern):
    """What a pattern does not describe; its captures are not available."""

    pattern: Pattern

    def __str__(self) -> str:
        return f"~{grouped(self.pattern)}"


@dataclass(frozen=True)
class Used(Pattern):
    """A value of which an operand is described: a step of a sequence."""

    producer: Pattern
    user: Pattern
    only: bool
    """Whether the producer has no other user."""

    def __str__(self) -> str:
        return f"{grouped(self.producer)} {'>>' if self.only else '^'} {grouped(self.user)}"


@dataclass(frozen=True)
class Where(Pattern):
    """A value for which a function holds; its text cannot be read."""

    pattern: Pattern
    check: Callable[[ir.Value], bool]

    def __str__(self) -> str:
        return f"{grouped(self.pattern)} where {self.check.__name__}"


def grouped(pattern: Pattern) -> str:
    """The text of a pattern as a part of another one: in parentheses, if it has parts itself."""
    is_named = isinstance(pattern, Capture) and not isinstance(pattern.pattern, Wildcard)
    parts = isinstance(pattern, HasType | Either | Both | Used | Where | Not) or is_named
    return f"({pattern})" if parts else str(pattern)


def captures_of(pattern: Pattern) -> frozenset[str]:
    """The names that every match of a pattern gives to values."""
    if isinstance(pattern, Capture):
        return captures_of(pattern.pattern) | {pattern.name}
    if isinstance(pattern, Either):
        return captures_of(pattern.first) & captures_of(pattern.second)
    if isinstance(pattern, Both):
        return captures_of(pattern.first) | captures_of(pattern.second)
    if isinstance(pattern, Used):
        return captures_of(pattern.producer) | captures_of(pattern.user)
    if isinstance(pattern, Op):
        return frozenset().union(*map(captures_of, pattern.operands or ()))
    if isinstance(pattern, HasAttributes | HasType | Where):
        return captures_of(pattern.pattern)
    return frozenset()


def wildcard(name: str | None = None) -> Pattern:
    """Any value; captured, if it is given a name."""
    return _named(Wildcard(), name)


def is_const(name: str | None = None) -> Pattern:
    """The result of an `arith.constant`, small or large."""
    return _named(Constant(), name)


def is_argument(name: str | None = None) -> Pattern:
    """An argument of the function."""
    return _named(Argument(), name)


def _named(pattern: Pattern, name: str | None) -> Pattern:
    return pattern if name is None else pattern.named(name)


def is_op(name: str) -> Op:
    """A result of an op: "matmul" of the graph dialect, or "arith.addf" of another one.

    Raises UsageError if the graph dialect has no such op.
    """
    full = name if "." in name else f"graph.{name}"
    known = [op.OPERATION_NAME for op in Graph.operations]
    if full.startswith("graph.") and full not in known:
        short = [each.removeprefix("graph.") for each in known]
        raise UsageError(f"the graph dialect has no op '{name}'{among(name, short)}")
    return Op(full)


def either_order(op: Op, first: Pattern, second: Pattern) -> Pattern:
    """An op of two operands in this or the other order, as of `add` and `multiply`."""
    return op(first, second) | op(second, first)
