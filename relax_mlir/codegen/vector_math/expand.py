"""Expands math ops that no machine has instructions for.

    %y = math.exp %x : vector<16xf32>   ->   about fifteen arith and math.fma ops

sqrt, rsqrt, fma, absf, copysign, the roundings, the predicates and the bit counts stay: LLVM has
instructions for them. Vectors of any shape and scalars of f16, bf16, f32 and f64 are expanded;
tensors are not. One fast-math flag is used: `math.exp` and `math.exp2` with `afn` have shorter
expansions (`_APPROXIMATE`), except of f64; `tir.not_positive` makes that of the former shorter
still.

Expressions that lose digits are replaced as a whole: the functions that `tir.function` names, and
reciprocals of 1 + e^-x. So are conversions to half precision that machines round twice.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir
from relax_mlir.codegen.vector_math import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    narrowing,
    power,
    trigonometric,
)
from relax_mlir.codegen.vector_math.composite import replace_composites
from relax_mlir.codegen.vector_math.lanes import Lanes, has_lanes, ops_named
from relax_mlir.dialects.tir import NOT_POSITIVE
from relax_mlir.target import Cpu

Expansion = Callable[..., Lanes | tuple[Lanes, ...]]


@dataclass(frozen=True)
class _Rule:
    """How an op is expanded: by which function, in floats of at least `least_bits`.

    `expand_roughly` computes in f64 too, but is accurate enough for narrower results only.
    `takes_widest` says that it takes the width of the floats that it may use.
    """

    expand: Expansion
    least_bits: int = 64
    expand_roughly: Expansion | None = None
    takes_widest: bool = False


# With the flag `afn`.
_APPROXIMATE: dict[str, Expansion] = {
    "math.exp": exponential.expand_exp_approximately,
    "math.exp2": exponential.expand_exp2_approximately,
}
# Functions in which models spend time have a form for f32; the others compute in f64.
_RULES = {
    "math.exp": _Rule(exponential.expand_exp, 32),
    "math.exp2": _Rule(exponential.expand_exp2, 32),
    "math.expm1": _Rule(exponential.expand_expm1, 32),
    "math.log": _Rule(logarithm.expand_log, 32),
    "math.log2": _Rule(logarithm.expand_log2, 32),
    "math.log10": _Rule(logarithm.expand_log10, 32),
    "math.log1p": _Rule(logarithm.expand_log1p, 32),
    "math.sin": _Rule(trigonometric.expand_sin, 32, takes_widest=True),
    "math.cos": _Rule(trigonometric.expand_cos, 32, takes_widest=True),
    "math.sincos": _Rule(trigonometric.expand_sincos, 32, takes_widest=True),
    "math.tanh": _Rule(hyperbolic.expand_tanh, 32),
    "math.erf": _Rule(error_function.expand_erf, 32),
    "math.tan": _Rule(trigonometric.expand_tan, takes_widest=True),
    "math.asin": _Rule(inverse_trigonometric.expand_asin),
    "math.acos": _Rule(inverse_trigonometric.expand_acos),
    "math.atan": _Rule(inverse_trigonometric.expand_atan),
    "math.atan2": _Rule(inverse_trigonometric.expand_atan2),
    "math.sinh": _Rule(hyperbolic.expand_sinh),
    "math.cosh": _Rule(hyperbolic.expand_cosh),
    "math.asinh": _Rule(hyperbolic.expand_asinh),
    "math.acosh": _Rule(hyperbolic.expand_acosh),
    "math.atanh": _Rule(hyperbolic.expand_atanh),
    "math.erfc": _Rule(error_function.expand_erfc),
    "math.powf": _Rule(power.expand_powf, expand_roughly=power.expand_powf_roughly),
    "math.fpowi": _Rule(power.expand_fpowi),
    "math.cbrt": _Rule(power.expand_cbrt),
}


def _clampf(x: Lanes, low: Lanes, high: Lanes) -> Lanes:
    """`x` clamped to [low, high]; NaN propagates."""
    return x.wrap(arith.minimumf(arith.maximumf(x.value, low.value), high.value))


# Ops that are expanded in their own type.
_OTHERS: dict[str, Callable[..., Lanes]] = {
    "math.ipowi": power.expand_ipowi,
    "math.clampf": _clampf,
}
_NEEDS_TABLE = frozenset({"math.sin", "math.cos", "math.sincos", "math.tan"})


def expand_math(module: ir.Module, cpu: Cpu, widest: int = 64) -> None:
    """Expands every math op that the target has no instruction for, in place.

    With `widest` = 32, no op of f32 is computed in f64: of those that else are, results are within
    4 ulp, of scalars only.

    Results are within 2 ulp of the exact ones, subnormal ones included; NaN propagates,
    overflow is infinity. May add a private constant `rx_two_over_pi` and `scf.if` and
    `scf.for` ops.
    """
    with module.context, ir.Location.unknown():
        replace_composites(module, cpu, widest)
        narrowing.round_once(module, cpu)
        names = _RULES.keys() | _OTHERS.keys()
        ops = [op for op in ops_named(module, names) if has_lanes(op.results[0].type)]
        if widest == 64 and any(op.name in _NEEDS_TABLE for op in ops):
            trigonometric.declare_table(module)
        for op in ops:
            with ir.InsertionPoint(op), op.location:
                _replace(op, cpu, widest)


def _replace(op: ir.Operation, cpu: Cpu, widest: int) -> None:
    """Replaces an op by its expansion."""
    operands = [Lanes(value, cpu) for value in op.operands]
    if op.name in _OTHERS:
        results = [_OTHERS[op.name](*operands)]
    else:
        rule = _RULES[op.name]
        if op.name in _APPROXIMATE and operands[0].width < 64 and _may_approximate(op):
            rule = _Rule(_approximation(op), 32)
        results = _expand_float(rule, operands, widest)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new.value)
    op.erase()


def _approximation(op: ir.Operation) -> Expansion:
    """The shorter expansion of an op that has one."""
    if NOT_POSITIVE in op.attributes:
        return partial(exponential.expand_exp_approximately, may_be_positive=False)
    return _APPROXIMATE[op.name]


def _may_approximate(op: ir.Operation) -> bool:
    """Whether the op has the flag `afn`."""
    return re.search(r"\b(afn|fast)\b", str(op.attributes["fastmath"])) is not None


def _expand_float(rule: _Rule, operands: list[Lanes], widest: int) -> list[Lanes]:
    """Calls the rule in the narrowest float type that it supports and that holds the operands."""
    element = operands[0].element
    single, double = ir.F32Type.get(), ir.F64Type.get()
    type_ = single if max(element.width, min(rule.least_bits, widest)) <= 32 else double
    # Machines convert between half precision and f64 through f32, if at all.
    middle = single if element.width == 16 else element
    widened = [x.converted(middle).converted(type_) if x.is_float else x for x in operands]
    is_rough = type_ == double and element.width < 64 and rule.expand_roughly is not None
    expand = rule.expand_roughly if is_rough and rule.expand_roughly else rule.expand
    results = expand(*widened, widest=widest) if rule.takes_widest else expand(*widened)
    results = results if isinstance(results, tuple) else (results,)
    return [result.converted(middle).converted(element) for result in results]
