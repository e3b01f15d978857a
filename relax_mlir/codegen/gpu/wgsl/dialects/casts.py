"""Conversions between types."""

from collections.abc import Callable

from relax_mlir.bindings import ir

from ..emitter import Emitter
from ..kinds import Kind

_Convert = Callable[[Kind, Kind, str], str]


def _op(convert: _Convert) -> Callable[[Emitter, ir.Operation], None]:
    def emit(emitter: Emitter, op: ir.Operation) -> None:
        (x,), (result,) = emitter.operands(op), op.results
        emitter.let(result, convert(emitter.kind(op.operands[0]), emitter.kind(result), x))

    return emit


def _word(kind: Kind, x: str, is_signed: bool) -> str:
    """An integer of up to 32 bits as i32: extended by its sign or by zeros."""
    if kind.name == "i1":
        return f"select(0, {-1 if is_signed else 1}, {x})"
    return x if is_signed or kind.bits == 32 else f"({x} & {2**kind.bits - 1})"


def _pair(kind: Kind, x: str, is_signed: bool) -> str:
    """An integer as i64."""
    if kind.name == "i64":
        return x
    word = _word(kind, x, is_signed)
    return f"i64_from_i32({word})" if is_signed else f"vec2<u32>(bitcast<u32>({word}), 0u)"


def _narrow(kind: Kind, x: str) -> str:
    """The low bits of an i32 as an integer of up to 32 bits."""
    if kind.name == "i1":
        return f"({x} & 1) != 0"
    return x if kind.bits == 32 else f"i32_extend({x}, {kind.bits}u)"


def _extend(is_signed: bool) -> _Convert:
    def convert(source: Kind, target: Kind, x: str) -> str:
        if target.name == "i64":
            return _pair(source, x, is_signed)
        return _word(source, x, is_signed)

    return convert


def _trunc(source: Kind, target: Kind, x: str) -> str:
    return _narrow(target, f"bitcast<i32>({x}.x)" if source.name == "i64" else x)


def _index_cast(is_signed: bool) -> _Convert:
    """To and from indices; what does not fit an index is clamped."""

    def convert(source: Kind, target: Kind, x: str) -> str:
        if source.name == "index":
            return f"i64_from_i32({x})" if target.name == "i64" else _narrow(target, x)
        if source.name == "i64":
            return f"index_from_{'i64' if is_signed else 'u64'}({x})"
        word = _word(source, x, is_signed)
        if is_signed or source.bits < 32:
            return word
        return f"select({word}, 2147483647, {word} < 0)"

    return convert


def to_single(kind: Kind, x: str) -> str:
    """A float as f32."""
    if kind.bits == 64:
        return f"f64_to_f32({x})"
    return x if kind.bits == 32 else f"{kind.prefix}_to_f32({x})"


def from_single(kind: Kind, x: str) -> str:
    """An f32 as another float."""
    return x if kind.name == "f32" else f"{kind.prefix}_from_f32({x})"


def _to_float(is_signed: bool) -> _Convert:
    def convert(source: Kind, target: Kind, x: str) -> str:
        if target.bits == 64:
            return f"f64_from_{'i64' if is_signed else 'u64'}({_pair(source, x, is_signed)})"
        if source.name == "i64":
            single = f"i64_to_f32{'' if is_signed else '_unsigned'}({x})"
        elif source.bits < 32:
            single = f"f32({_word(source, x, is_signed)})"
        else:
            single = f"i32_to_f32({x})" if is_signed else f"u32_to_f32(bitcast<u32>({x}))"
        return from_single(target, single)

    return convert


def _to_integer(is_signed: bool) -> _Convert:
    def convert(source: Kind, target: Kind, x: str) -> str:
        suffix = "" if is_signed else "_unsigned"
        if source.bits == 64:
            pair = f"f64_to_{'i64' if is_signed else 'u64'}({x})"
        elif target.name == "i64":
            pair = f"i64_from_f32{suffix}({to_single(source, x)})"
        else:
            single = to_single(source, x)
            word = f"i32({single})" if is_signed else f"bitcast<i32>(u32({single}))"
            return _narrow(target, word)
        return pair if target.name == "i64" else _narrow(target, f"bitcast<i32>({pair}.x)")

    return convert


def _resize(source: Kind, target: Kind, x: str) -> str:
    """A float as another one."""
    if source.name == target.name:
        return x
    return from_single(target, x if source.bits == 32 else to_single(source, x))


def _bitcast(source: Kind, target: Kind, x: str) -> str:
    if source.value == target.value:
        return x
    if source.bits == 16:
        if source.is_float:
            return f"i32_extend(bitcast<i32>({x}), 16u)"
        return f"bitcast<u32>({x}) & 0xffffu"
    return f"bitcast<{target.value}>({x})"


OPS = {
    "bitcast": _op(_bitcast),
    "extf": _op(_resize),
    "extsi": _op(_extend(True)),
    "extui": _op(_extend(False)),
    "fptosi": _op(_to_integer(True)),
    "fptoui": _op(_to_integer(False)),
    "index_cast": _op(_index_cast(True)),
    "index_castui": _op(_index_cast(False)),
    "sitofp": _op(_to_float(True)),
    "truncf": _op(_resize),
    "trunci": _op(_trunc),
    "uitofp": _op(_to_float(False)),
}
