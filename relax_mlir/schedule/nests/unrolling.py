"""Innermost scalar loops with branches, of which LLVM is told to unroll some rounds.

Schedules unroll loops of vectors, so LLVM only unrolls what is marked. Loops without branches may
become vectors there; these do not, and a jump for each round is much of a short one. Loops that
carry a value wait for that, and are often of a few rounds.
"""

from relax_mlir.bindings import func, ir, scf
from relax_mlir.rewriting import walk, walk_ops

_ROUNDS = 4
_MAX_OPS = 24
"""The longest rounds, in ops, of which a jump is a large part."""
_LOOPS = ("scf.for", "scf.while", "scf.parallel")


def mark_unrolled(function: func.FuncOp) -> None:
    """Marks the loops of a kernel that are worth it."""
    for loop in walk_ops(function, scf.ForOp):
        *inside, _ = walk(loop)
        branches = any(isinstance(op.opview, scf.IfOp) for op in inside)
        is_innermost = not any(op.name in _LOOPS for op in inside)
        if branches and is_innermost and not len(loop.results) and len(inside) <= _MAX_OPS:
            text = f"#llvm.loop_annotation<unroll = <disable = false, count = {_ROUNDS} : i32>>"
            loop.attributes["loop_annotation"] = ir.Attribute.parse(text, loop.context)
