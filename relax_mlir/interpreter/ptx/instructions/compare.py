"""Comparisons and selections."""

from collections.abc import Callable

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads

from .common import Decoder, computed, kind_of

_TRUTH = KINDS["pred"]
_ORDERED: dict[str, np.ufunc] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal},
    **{"hi": np.greater, "hs": np.greater_equal},
}
_JOINED = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(name: str, is_float: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The function of a name; with `u`, floats that are NaN compare as true."""
    if not is_float:
        return _ORDERED[name]
    if name in ("num", "nan"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "nan")
    unordered = name not in _ORDERED
    compare = _ORDERED[name.removesuffix("u") if unordered else name]

    def compared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        has_nan = np.isnan(a) | np.isnan(b)
        return compare(a, b) | has_nan if unordered else compare(a, b) & ~has_nan

    return compared


def _set_predicate(instruction: Instruction, operands: Operands) -> Step:
    """Compares; joins the result with a predicate, where one is given."""
    kind = kind_of(instruction)
    compare = _comparison(instruction.modifiers[0], kind.is_float)
    targets, first, second, *joined = instruction.operands
    a, b = operands.reader(first, kind), operands.reader(second, kind)
    target, _, opposite = targets.partition("|")
    write = operands.writer(target, _TRUTH)
    write_opposite = operands.writer(opposite or "_", _TRUTH)
    if joined:
        join = _JOINED[next(name for name in instruction.modifiers if name in _JOINED)]
        text = joined[0]
        known = operands.reader(text.lstrip("!"), _TRUTH)

    def step(threads: Threads) -> None:
        result = compare(a(threads), b(threads))
        other = ~result
        if joined:
            predicate = known(threads)
            predicate = ~predicate if text.startswith("!") else predicate
            result, other = join(result, predicate), join(other, predicate)
        write(threads, result)
        write_opposite(threads, other)

    return step


def _select(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    target, first, second, condition = instruction.operands
    a, b = operands.bits_reader(first, kind), operands.bits_reader(second, kind)
    chosen, write = (
        operands.reader(condition, _TRUTH),
        operands.writer(target, _unsigned(kind.name)),
    )
    return lambda threads: write(threads, np.where(chosen(threads), a(threads), b(threads)))


def _unsigned(name: str) -> Kind:
    return KINDS["pred"] if name == "pred" else KINDS[f"b{8 * KINDS[name].bits.itemsize}"]


def _test(instruction: Instruction, operands: Operands) -> Step:
    tests: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
    }
    name = instruction.modifiers[0]
    if name not in tests:
        raise PtxFault(f"a test is not known: {instruction.text}")
    return computed(instruction, operands, tests[name], _TRUTH)


DECODERS: dict[str, Decoder] = {"setp": _set_predicate, "selp": _select, "testp": _test}
