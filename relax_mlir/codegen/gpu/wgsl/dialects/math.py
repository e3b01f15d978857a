"""Mathematical functions that remain after others were expanded."""

from collections.abc import Callable
from functools import partial

from relax_mlir.bindings import ir

from ..emitter import Emitter
from .floats import OPS_OF_MATH

_WORD = {"absi": "abs", "ctpop": "countOneBits", "ctlz": "countLeadingZeros",
         "cttz": "countTrailingZeros"}  # fmt: skip
_PAIR = {"absi": "abs", "ctpop": "ctpop", "ctlz": "ctlz", "cttz": "cttz"}


def _bits(name: str, emitter: Emitter, op: ir.Operation) -> None:
    (x,), kind = emitter.operands(op), emitter.kind(op.results[0])
    if kind.name == "i64":
        text = f"i64_{_PAIR[name]}({x})"
    elif kind.bits < 32:
        text = _of_part(name, kind.bits, x)
    else:
        text = f"{_WORD[name]}({x})"
    emitter.let(op.results[0], text)


def _of_part(name: str, bits: int, x: str) -> str:
    """Of an integer that is extended to a word."""
    if name == "absi":
        return f"i32_extend(abs({x}), {bits}u)"
    if name == "cttz":
        return f"countTrailingZeros({x} | {1 << bits})"
    excess = f" - {32 - bits}" if name == "ctlz" else ""
    return f"{_WORD[name]}({x} & {2**bits - 1}){excess}"


def _isnan(emitter: Emitter, op: ir.Operation) -> None:
    (x,), kind = emitter.operands(op), emitter.kind(op.operands[0])
    if kind.bits == 16:
        x = f"{kind.prefix}_to_f32({x})"
    emitter.let(op.results[0], f"{'f64' if kind.bits == 64 else 'f32'}_is_nan({x})")


OPS: dict[str, Callable[[Emitter, ir.Operation], None]] = {
    **OPS_OF_MATH,
    **{name: partial(_bits, name) for name in _WORD},
    "isnan": _isnan,
}
