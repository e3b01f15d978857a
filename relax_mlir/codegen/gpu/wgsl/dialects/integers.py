"""Arithmetic of integers, which wraps, and of indices, which do not."""

from collections.abc import Callable
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.passes import PassFailure

from ..emitter import Emitter
from ..kinds import Kind

_Binary = Callable[[str, str], str]


def _infix(sign: str) -> _Binary:
    return lambda a, b: f"{a} {sign} {b}"


def _unsigned(sign: str) -> _Binary:
    return lambda a, b: f"bitcast<i32>(bitcast<u32>({a}) {sign} bitcast<u32>({b}))"


def _function(name: str) -> _Binary:
    return lambda a, b: f"{name}({a}, {b})"


def _of_words(function: str) -> _Binary:
    """A function of unsigned words."""
    return lambda a, b: f"bitcast<i32>({function}(bitcast<u32>({a}), bitcast<u32>({b})))"


# Of i32 and indices; those of i64 are functions of the library.
_WORD: dict[str, _Binary] = {
    "addi": _infix("+"), "subi": _infix("-"), "muli": _infix("*"),
    "andi": _infix("&"), "ori": _infix("|"), "xori": _infix("^"),
    "divsi": _infix("/"), "remsi": _infix("%"), "divui": _unsigned("/"), "remui": _unsigned("%"),
    "floordivsi": _function("i32_floordivs"), "ceildivsi": _function("i32_ceildivs"),
    "ceildivui": _of_words("u32_ceildiv"),
    "maxsi": _function("max"), "minsi": _function("min"),
    "maxui": _of_words("max"), "minui": _of_words("min"),
    "shli": lambda a, b: f"{a} << bitcast<u32>({b})",
    "shrsi": lambda a, b: f"{a} >> bitcast<u32>({b})",
    "shrui": lambda a, b: f"bitcast<i32>(bitcast<u32>({a}) >> bitcast<u32>({b}))",
}  # fmt: skip
_PAIR = {
    "addi": "add", "subi": "sub", "muli": "mul", "divsi": "divs", "remsi": "rems",
    "divui": "divu", "remui": "remu", "floordivsi": "floordivs", "ceildivsi": "ceildivs",
    "ceildivui": "ceildivu", "maxsi": "maxs", "minsi": "mins", "maxui": "maxu", "minui": "minu",
    "shli": "shl", "shrsi": "shrs", "shrui": "shru",
}  # fmt: skip
_SHIFTS = ("shli", "shrsi", "shrui")
_BITWISE = ("andi", "ori", "xori")
_UNSIGNED_OPS = ("divui", "remui", "ceildivui", "shrui", "maxui", "minui")
_TRUTH = {
    "andi": "&", "ori": "|", "xori": "!=", "addi": "!=", "subi": "!=", "muli": "&",
    "maxui": "|", "minui": "&", "maxsi": "&", "minsi": "|",
}  # fmt: skip
_SATURATING = {"addi": "index_add", "subi": "index_sub", "muli": "index_mul"}


def _binary(name: str, emitter: Emitter, op: ir.Operation) -> None:
    (a, b), kind = emitter.operands(op), emitter.kind(op.results[0])
    emitter.let(op.results[0], _expression(name, kind, emitter, op, a, b))


def _expression(name: str, kind: Kind, emitter: Emitter, op: ir.Operation, a: str, b: str) -> str:
    if kind.name == "i1":
        if name not in _TRUTH:
            raise PassFailure(op, f"'{op.name}' of truth values has no translation to WGSL")
        return f"{a} {_TRUTH[name]} {b}"
    if kind.name == "i64":
        if name in _BITWISE:
            return _WORD[name](a, b)
        return f"i64_{_PAIR[name]}({a}, {f'{b}.x' if name in _SHIFTS else b})"
    if kind.name == "index":
        return _of_indices(name, emitter, op, a, b)
    if kind.bits < 32:
        if name in _UNSIGNED_OPS:
            a, b = (f"({x} & {2**kind.bits - 1})" for x in (a, b))
        return f"i32_extend({_WORD[name](a, b)}, {kind.bits}u)"
    return _WORD[name](a, b)


def _of_indices(name: str, emitter: Emitter, op: ir.Operation, a: str, b: str) -> str:
    """Sums and products that may not fit are clamped."""
    is_known = emitter.bounds.is_known(op.results[0])
    if is_known or name not in (*_SATURATING, "shli"):
        return _WORD[name](a, b)
    if name == "shli":
        return f"index_mul({a}, 1 << min(bitcast<u32>({b}), 30u))"
    return f"{_SATURATING[name]}({a}, {b})"


OPS: dict[str, Callable[[Emitter, ir.Operation], None]] = {
    name: partial(_binary, name) for name in _WORD
}
