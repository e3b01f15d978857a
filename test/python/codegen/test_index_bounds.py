"""Bounds of indices, against what random kernels compute with integers of 32 and 64 bits."""

import random
from collections.abc import Callable

import pytest

from relax_mlir.bindings import gpu, ir
from relax_mlir.codegen.gpu.index_bounds import LIMIT, Bound, IndexBounds
from relax_mlir.dialects import make_context
from relax_mlir.rewriting import walk_ops

THREADS, STEPS = 64, 9
KERNEL = """
gpu.module @kernels {{
  gpu.func @main({}) kernel attributes {{known_block_size = array<i32: 64, 1, 1>}} {{
    %thread = gpu.thread_id x
    {}
    gpu.return
  }}
}}
"""
_CONSTANTS = (0, 1, 2, 3, 7, 8, 63, 64, 1000, 1 << 20, -1, -2, -5, -64)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


Function = Callable[[int, int], int | None]
SIGNED: dict[str, Function] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": lambda a, b: min(a, b),
    "maxsi": lambda a, b: max(a, b),
    "divsi": lambda a, b: _truncated(a, b) if b else None,
    "floordivsi": lambda a, b: a // b if b else None,
    "ceildivsi": lambda a, b: -(-a // b) if b else None,
    "remsi": lambda a, b: a - _truncated(a, b) * b if b else None,
    "shrsi": lambda a, b: a >> b if 0 <= b < 32 else None,
    "shli": lambda a, b: a << b if 0 <= b < 32 else None,
    "xori": lambda a, b: a ^ b,
}
UNSIGNED: dict[str, Function] = {
    "divui": lambda a, b: a // b if b else None,
    "ceildivui": lambda a, b: -(-a // b) if b else None,
    "remui": lambda a, b: a % b if b else None,
    "shrui": lambda a, b: a >> b if b < 32 else None,
    "minui": lambda a, b: min(a, b),
    "maxui": lambda a, b: max(a, b),
}
Step = tuple[str, int, int]


def wrapped(x: int, bits: int) -> int:
    """What is left of an integer, which has a sign."""
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def applied(name: str, a: int, b: int, bits: int) -> int | None:
    """What an op computes; None if that is not defined."""
    mask = (1 << bits) - 1 if name in UNSIGNED else -1
    result = {**SIGNED, **UNSIGNED}[name](a & mask, b & mask)
    return None if result is None else wrapped(result, bits)


def computed(inputs: list[int], steps: list[Step], bits: int) -> list[int] | None:
    """All values of a kernel with indices of so many bits; None if one is not defined."""
    values = list(inputs)
    for name, a, b in steps:
        result = applied(name, values[a], values[b], bits)
        if result is None:
            return None
        values.append(result)
    return values


def text_of(constants: list[int], steps: list[Step], has_scalar: bool = False) -> str:
    """A kernel of a scalar, which is 5 if it takes none."""
    lines = [] if has_scalar else ["%s = arith.constant 5 : index"]
    lines += [f"%v{i} = arith.constant {c} : index" for i, c in enumerate(constants, 2)]
    names = ["%thread", "%s", *(f"%v{i}" for i in range(2, 2 + len(constants) + len(steps)))]
    for i, (name, a, b) in enumerate(steps, 2 + len(constants)):
        lines.append(f"%v{i} = arith.{name} {names[a]}, {names[b]} : index")
    return KERNEL.format("%s: index" if has_scalar else "", "\n    ".join(lines))


def known(bound: Bound | None, scalar: int) -> int | None:
    """A bound as an integer, for a scalar that a launch passes."""
    if bound is None or isinstance(bound, int):
        return bound
    if bound[0] in "pn":
        return max(0, scalar if bound[0] == "p" else -scalar)
    a, b = (known(part, scalar) for part in bound[1:])
    assert a is not None
    assert b is not None
    return {"+": a + b, "*": a * b, "/": a // max(b, 1), "max": max(a, b)}[bound[0]]


def check(bounds: IndexBounds, values: list[int], scalar: int) -> None:
    """Values are within their ranges."""
    kernel = bounds.kernel.operation.regions[0].blocks[0]
    results = [x for op in kernel.operations for x in op.operation.results]
    for x, value in zip([results[0], *kernel.arguments, *results[1:]], values, strict=True):
        below, above = (known(b, scalar) for b in (bounds.range(x).below, bounds.range(x).above))
        assert below is None or -below <= value, (str(x), below, value)
        assert above is None or value <= above, (str(x), above, value)


@pytest.mark.parametrize("has_scalar", [False, True])
def test_values_of_random_kernels(has_scalar: bool) -> None:
    """They are within bounds that hold; where all are small, 32 bits are enough for each."""
    chance, fits = random.Random(), 0
    names = [*SIGNED] * 2 + [*UNSIGNED]
    with make_context(), ir.Location.unknown():
        for _ in range(200):
            constants = chance.sample(_CONSTANTS, 4)
            inputs = list(range(2 + len(constants)))
            steps = [
                (chance.choice(names), *(chance.choice([*inputs, *range(6, 6 + i)]) for _ in "ab"))
                for i in range(STEPS)
            ]
            module = ir.Module.parse(text_of(constants, steps, has_scalar))
            (kernel,) = walk_ops(module.operation, gpu.GPUFuncOp)
            bounds = IndexBounds(kernel)
            fit = bounds.fit
            for thread in (0, 1, 8, THREADS - 1):
                scalar = chance.choice([0, 1, 5, 64, 4096]) if has_scalar else 5
                given = [thread, scalar, *constants]
                values = computed(given, steps, 64)
                if values is None or any(abs(x) >= LIMIT * LIMIT for x in values):
                    continue
                if all(values[x] >= 0 for name, *sides in steps if name in UNSIGNED for x in sides):
                    check(bounds, values, scalar)
                if fit:
                    fits += 1
                    assert computed(given, steps, 32) == values, str(module)
    assert has_scalar or fits > 50


def test_division_of_something_negative() -> None:
    """One less than zero divided by eight, rounded down, is not zero."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text_of([1, 8, 1 << 30], [
            ("subi", 0, 2), ("floordivsi", 5, 3), ("muli", 6, 4), ("muli", 7, 4),
        ]))  # fmt: skip
        (kernel,) = walk_ops(module.operation, gpu.GPUFuncOp)
        bounds = IndexBounds(kernel)
        *_, last, _ = kernel.operation.regions[0].blocks[0].operations
        assert bounds.range(last.operation.results[0]).below == 1 << 60
        assert not bounds.fit
