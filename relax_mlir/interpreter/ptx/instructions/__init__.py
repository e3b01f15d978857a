"""What instructions do, by family: a module has a function that decodes each of its names.

def selp(instruction, operands) -> Step
"""

from collections.abc import Callable

from relax_mlir.interpreter.ptx.kinds import PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step

from . import (
    access,
    arithmetic,
    bits,
    bulk,
    compare,
    convert,
    copies,
    matrices,
    moves,
    warpgroups,
    warps,
)

_FAMILIES = (
    *(access, arithmetic, bits, bulk, compare, convert),
    *(copies, matrices, moves, warpgroups, warps),
)
_NAMES: dict[str, Callable[[Instruction, Operands], Step]] = {
    name: decode for family in _FAMILIES for name, decode in family.DECODERS.items()
}


_UNKNOWN = frozenset({"sat", "cc", "relu", "ftz", "rz", "rm", "rp", "f16x2", "bf16x2", "f32x2"})
"""Modifiers of arithmetic that code for devices here does not use."""
_PAIRS = frozenset({"f16x2", "bf16x2"})
"""Those that conversions take."""


def step_of(instruction: Instruction, operands: Operands) -> Step:
    """What an instruction does to the threads that run; raises PtxFault if it is not known."""
    decode = _NAMES.get(instruction.name)
    if decode is None:
        raise PtxFault(f"an instruction is not known: {instruction.text}")
    unknown = _UNKNOWN - _PAIRS if instruction.name == "cvt" else _UNKNOWN
    if unknown.intersection(instruction.modifiers):
        raise PtxFault(f"a modifier is not known: {instruction.text}")
    return decode(instruction, operands)
