"""Tensor programs that are interpreted once for the same arguments, whichever module has them.

with recalled(memory):  # for each module
    module["main"](x)

Levels of optimisation share most tensor programs, and what they are called with.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relax_mlir.bindings import func
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.interpreter.dialects import graph
from relax_mlir.interpreter.elements import is_noisy
from relax_mlir.interpreter.frame import Code

MAX_BYTES = 1 << 16
"""The limit of what is remembered of a call: larger calls are few."""

Memory = dict[tuple[Any, ...], list[np.ndarray]]
"""Results by program and arguments."""


@contextmanager
def recalled(memory: Memory) -> Iterator[None]:
    """Has the interpreter look up calls of tensor programs; they have no effects.

    Not in a `noisy` context, where each call has its own results.
    """
    run = graph.run_function
    texts: dict[str, str | None] = {}

    def look_up(code: Code, function: func.FuncOp, operands: Sequence[Any]) -> list[Any]:
        if is_noisy():
            return run(code, function, operands)
        name = function.name.value
        if name not in texts:
            texts[name] = _text(function)
        key = _key(texts[name], operands)
        if key is None:
            return run(code, function, operands)
        if key not in memory:
            memory[key] = [np.copy(x) for x in run(code, function, operands)]
        return [x.copy() for x in memory[key]]

    graph.run_function = look_up
    try:
        yield
    finally:
        graph.run_function = run


def _text(function: func.FuncOp) -> str | None:
    """What the function does, whatever its name; None if it writes to arguments or calls others."""
    text = str(function.operation.get_asm(use_local_scope=True, assume_verified=True))
    text = text.replace(f"@{function.name.value}", "", 1)
    return None if "@" in text or PrimFunc(function).is_scheduled else text


def _key(text: str | None, operands: Sequence[Any]) -> tuple[Any, ...] | None:
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    if text is None or sum(x.nbytes for x in arrays) > MAX_BYTES:
        return None
    return text, *(
        (x.shape, x.dtype.str, x.tobytes()) if isinstance(x, np.ndarray) else x for x in operands
    )
