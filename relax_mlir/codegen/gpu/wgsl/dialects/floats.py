"""Arithmetic of floats: of 16 bits in f32, rounded; of 64 bits by integers."""

from collections.abc import Callable, Sequence
from functools import partial

from relax_mlir.bindings import ir

from ..emitter import Emitter
from ..kinds import Kind

_Expression = Callable[..., str]
_SUMS = ("addf", "subf")
_ZEROS = ("f32(0.0)", "f32(-0.0)")


def _function(name: str) -> _Expression:
    return lambda *x: f"{name}({', '.join(x)})"


def _infix(sign: str) -> _Expression:
    return lambda a, b: f"{a} {sign} {b}"


# Of f32, and the names of those of f64.
_SINGLE: dict[str, _Expression] = {
    "addf": _infix("+"), "subf": _infix("-"), "mulf": _infix("*"), "divf": _infix("/"),
    "remf": _function("f32_rem"), "negf": lambda x: f"-({x})",
    "maximumf": _function("f32_maximum"), "minimumf": _function("f32_minimum"),
    "maxnumf": _function("f32_maxnum"), "minnumf": _function("f32_minnum"),
    "absf": _function("f32_abs"), "copysign": _function("f32_copysign"),
    "fma": _function("f32_fma"),
    "ceil": _function("ceil"), "floor": _function("floor"), "trunc": _function("trunc"),
    "roundeven": _function("round"), "sqrt": _function("sqrt"), "rsqrt": "1.0 / sqrt({})".format,
}  # fmt: skip
_DOUBLE = {
    "addf": "f64_add", "subf": "f64_sub", "mulf": "f64_mul", "divf": "f64_div", "remf": "f64_rem",
    "negf": "f64_neg", "maximumf": "f64_maximum", "minimumf": "f64_minimum",
    "maxnumf": "f64_maxnum", "minnumf": "f64_minnum", "absf": "f64_abs",
    "copysign": "f64_copysign", "fma": "f64_fma", "ceil": "f64_ceil", "floor": "f64_floor",
    "trunc": "f64_trunc", "roundeven": "f64_roundeven", "sqrt": "f64_sqrt",
}  # fmt: skip


def _compute(name: str, emitter: Emitter, op: ir.Operation) -> None:
    kind, operands = emitter.kind(op.results[0]), emitter.operands(op)
    if name == "fma" and kind.name == "f32" and "contract" in str(op.attributes["fastmath"]):
        emitter.let(op.results[0], f"fma({', '.join(operands)})")
        return
    if name in _SUMS and kind.name == "f32":
        pairs = zip(op.operands, operands, strict=True)
        operands = [f"f32_rounded({text})" if _is_sum(x) else text for x, text in pairs]
    if name == "mulf":  # else compilers take a product of NaN and 0 for 0
        operands = [f"f32_rounded({x})" if x in _ZEROS else x for x in operands]
    emitter.let(op.results[0], expression(name, kind, operands))


def _is_sum(x: ir.Value) -> bool:
    """Whether a value is a sum: (x + y) - y has lost digits that expansions count on."""
    owner = x.owner
    return not isinstance(owner, ir.Block) and owner.name in (
        "arith.addf",
        "arith.subf",
        "math.fma",
    )


def expression(name: str, kind: Kind, operands: Sequence[str]) -> str:
    """An op of floats of a kind."""
    if kind.bits == 64:
        if name == "rsqrt":
            return f"f64_div(vec2<u32>(0u, 0x3ff00000u), f64_sqrt({operands[0]}))"
        return f"{_DOUBLE[name]}({', '.join(operands)})"
    if kind.bits == 32:
        return _SINGLE[name](*operands)
    single = (f"{kind.prefix}_to_f32({x})" for x in operands)
    return f"{kind.prefix}_from_f32({_SINGLE[name](*single)})"


_OPS = {name: partial(_compute, name) for name in _SINGLE}
MATH = ("absf", "ceil", "copysign", "floor", "fma", "roundeven", "rsqrt", "sqrt", "trunc")
"""Those that are of the math dialect."""
OPS: dict[str, Callable[[Emitter, ir.Operation], None]] = {
    name: emit for name, emit in _OPS.items() if name not in MATH
}
OPS_OF_MATH = {name: _OPS[name] for name in MATH}
