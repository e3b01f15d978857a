"""Modules of graph functions as text, compiled for a level of Arm and run on its emulated CPU."""

from functools import cache

from emulated import Emulated

from relax_mlir.compiler import compile_to_file

# Each level and the emulated CPU that has it and, if there is one, nothing above it.
LEVELS = {"aarch64": "base", "aarch64-v8.2": "max"}


@cache
def emulated(text: str, target: str, opt_level: int = 2) -> Emulated:
    """A module, compiled once for all tests."""
    return Emulated(compile_to_file(text, target, opt_level), LEVELS[target])


def tensor(element: str, *dims: int | str) -> str:
    """The type of a tensor; a dim that is text is an expression."""
    sizes = "".join("?x" if isinstance(dim, str) else f"{dim}x" for dim in dims)
    shape = ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims)
    symbolic = any(isinstance(dim, str) for dim in dims)
    return f"tensor<{sizes}{element}{f', #graph.shape<[{shape}]>' if symbolic else ''}>"


def operator(
    name: str, op: str, operands: list[str], result: str, attributes: str = "", weights: int = 0
) -> str:
    """A function of that name that applies one operator; the last operands may be weights."""
    named = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(operands))
    values = ", ".join(f"%{i}" for i in range(len(operands)))
    note = f" attributes {{graph.num_inputs = {len(operands) - weights} : i64}}" if weights else ""
    return f"""func.func @{name}({named}) -> {result}{note} {{
  %r = "graph.{op}"({values}) {{{attributes}}} : ({", ".join(operands)}) -> {result}
  return %r : {result}
}}
"""
