"""Instructions that compute values from values."""

from collections.abc import Callable
from typing import Any

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads

Decoder = Callable[[Instruction, Operands], Step]


def kind_of(instruction: Instruction) -> Kind:
    """The last type that an instruction names."""
    if not instruction.kinds:
        raise PtxFault(f"a type is not known: {instruction.text}")
    return KINDS[instruction.kinds[-1]]


def computed(
    instruction: Instruction,
    operands: Operands,
    function: Callable[..., Any],
    result: Kind | None = None,
    sources: tuple[Kind, ...] = (),
    may_be_larger: bool = False,
) -> Step:
    """Writes what a function computes of the operands, which are of the instruction's type.

    `sources` are the types of operands that differ, `result` that of the result. Registers have
    the sizes of these types, or may be larger.
    """
    kind = kind_of(instruction)
    target, *texts = instruction.operands
    kinds = sources or (kind,) * len(texts)
    readers = [
        operands.reader(text, k, may_be_larger) for text, k in zip(texts, kinds, strict=True)
    ]
    write = operands.writer(target, result or kind)
    if len(readers) == 1:
        (only,) = readers
        return lambda threads: write(threads, function(only(threads)))
    if len(readers) == 2:
        first, second = readers
        return lambda threads: write(threads, function(first(threads), second(threads)))

    def step(threads: Threads) -> None:
        write(threads, function(*(read(threads) for read in readers)))

    return step


def plain(function: Callable[..., Any]) -> Decoder:
    """Decodes an instruction that computes the same function for any type."""
    return lambda instruction, operands: computed(instruction, operands, function)


def mixed(function: Callable[..., Any]) -> Decoder:
    """Decodes arithmetic of a type, or of smaller floats with a last operand that is larger."""

    def decode(instruction: Instruction, operands: Operands) -> Step:
        if len(instruction.kinds) < 2:
            return computed(instruction, operands, function)
        result, narrow = (KINDS[name] for name in instruction.kinds)
        sources = (*(narrow,) * (len(instruction.operands) - 2), result)

        def widened(*values: Any) -> Any:
            return function(*(x.astype(result.dtype) for x in values))

        return computed(instruction, operands, widened, result, sources)

    return decode
