"""Arithmetic: integers wrap, floats are IEEE's; values of less than a word are extended to one."""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir
from relax_mlir.codegen.gpu.index_bounds import LIMIT

from ..constants import literal
from ..emitter import Emitter
from ..kinds import Kind
from . import casts
from .floats import OPS as FLOATS
from .integers import OPS as INTEGERS

_I = arith.CmpIPredicate
_COMPARED = {
    _I.eq: "==", _I.ne: "!=", _I.slt: "<", _I.sle: "<=", _I.sgt: ">", _I.sge: ">=",
    _I.ult: "<", _I.ule: "<=", _I.ugt: ">", _I.uge: ">=",
}  # fmt: skip
_UNSIGNED = (_I.ult, _I.ule, _I.ugt, _I.uge)


def _constant(emitter: Emitter, op: ir.Operation) -> None:
    (result,) = op.results
    emitter.kind(result)
    value = op.attributes["value"]
    if isinstance(result.type, ir.IndexType):
        # One that does not fit is clamped: it is multiplied by zero or compared, or refused.
        index = ir.IntegerAttr(value).value
        emitter.names[result] = f"i32({max(1 - LIMIT, min(LIMIT - 1, index))})"
    else:
        emitter.names[result] = literal(value)


def _cmpi(emitter: Emitter, op: ir.Operation) -> None:
    (a, b), kind = emitter.operands(op), emitter.kind(op.operands[0])
    predicate = _I(ir.IntegerAttr(op.attributes["predicate"]).value)
    sign = _COMPARED[predicate]
    if kind.name == "i64":
        emitter.let(op.results[0], _compare_pairs(predicate, a, b))
        return
    if kind.name == "i1":
        a, b = (f"select(0, -1, {x})" for x in (a, b))
    if predicate in _UNSIGNED:
        a, b = (f"bitcast<u32>({x})" for x in (a, b))
    emitter.let(op.results[0], f"{a} {sign} {b}")


def _compare_pairs(predicate: arith.CmpIPredicate, a: str, b: str) -> str:
    if predicate in (_I.eq, _I.ne):
        return f"{'!' if predicate == _I.ne else ''}i64_eq({a}, {b})"
    less = "i64_ltu" if predicate in _UNSIGNED else "i64_lts"
    if predicate in (_I.slt, _I.ult):
        return f"{less}({a}, {b})"
    if predicate in (_I.sgt, _I.ugt):
        return f"{less}({b}, {a})"
    is_at_most = predicate in (_I.sle, _I.ule)
    return f"!{less}({b}, {a})" if is_at_most else f"!{less}({a}, {b})"


_F = arith.CmpFPredicate
# By what is less, equal or NaN; "unordered" ones are negations.
_ORDERED: dict[arith.CmpFPredicate, str] = {
    _F.OEQ: "EQ", _F.OGT: "GT", _F.OGE: "GE", _F.OLT: "LT", _F.OLE: "LE", _F.ONE: "!EQ && !NAN",
    _F.UNE: "!EQ", _F.ULE: "!GT", _F.ULT: "!GE", _F.UGE: "!LT", _F.UGT: "!LE",
    _F.UEQ: "EQ || NAN", _F.UNO: "NAN", _F.ORD: "!NAN",
    _F.AlwaysTrue: "true", _F.AlwaysFalse: "false",
}  # fmt: skip


def _cmpf(emitter: Emitter, op: ir.Operation) -> None:
    (a, b), kind = emitter.operands(op), emitter.kind(op.operands[0])
    predicate = _F(ir.IntegerAttr(op.attributes["predicate"]).value)
    if kind.bits == 16:
        a, b = (f"{kind.prefix}_to_f32({x})" for x in (a, b))
    terms = _float_terms(kind, a, b)
    text = _ORDERED[predicate]
    for name, term in terms.items():
        text = text.replace(name, f"({term})")
    emitter.let(op.results[0], text)


def _float_terms(kind: Kind, a: str, b: str) -> dict[str, str]:
    if kind.bits == 64:
        return {
            "NAN": f"f64_is_nan({a}) || f64_is_nan({b})",
            "GE": f"f64_lt({b}, {a}) || f64_eq({a}, {b})",
            "LE": f"f64_lt({a}, {b}) || f64_eq({a}, {b})",
            "GT": f"f64_lt({b}, {a})",
            "LT": f"f64_lt({a}, {b})",
            "EQ": f"f64_eq({a}, {b})",
        }
    compared = {"GE": ">=", "LE": "<=", "GT": ">", "LT": "<"}
    others = {"NAN": f"f32_is_nan({a}) || f32_is_nan({b})", "EQ": f"f32_equal({a}, {b})"}
    return others | {name: f"{a} {sign} {b}" for name, sign in compared.items()}


def _select(emitter: Emitter, op: ir.Operation) -> None:
    condition, yes, no = emitter.operands(op)
    emitter.kind(op.results[0])
    emitter.let(op.results[0], f"select({no}, {yes}, {condition})")


OPS: dict[str, Callable[[Emitter, ir.Operation], None]] = {
    **INTEGERS,
    **FLOATS,
    **casts.OPS,
    "cmpf": _cmpf,
    "cmpi": _cmpi,
    "constant": _constant,
    "select": _select,
}
