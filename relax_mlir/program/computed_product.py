"""Finds products with a right side that the body of the contraction computes, as a decoder does.

    C[b.., m, n] = initial + sum over k of f(A[b.., m, k]) * g(b.., k, n)

g is arithmetic on indices and on elements of inputs, at any indices: two values of four bits
in a byte, times the scale of their group, for example.

Needs: the computation fused into the contraction (`relax-fuse-tir`).
"""

from dataclasses import dataclass
from math import prod

from relax_mlir.analysis.affine import dims_of
from relax_mlir.dialects.graph import element_bits

from .access import root_of
from .body_part import BodyPart
from .contraction import (
    FLOATS,
    Factor,
    block_arguments,
    constant_of,
    factor_of,
    loop_of,
    loops_of,
    row_loops,
    sides_of,
)
from .program import Argument, Constant, Program, Splat, Stage, Tensor


@dataclass(frozen=True)
class ComputedProduct:
    """A contraction whose right side is computed; see `Contraction`."""

    stage: Stage
    lhs: Factor
    right: BodyPart
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: int
    initial: float
    packed: bool = False
    counts_pairs: bool = False

    @property
    def before(self) -> tuple[Stage, ...]:
        """The stages that elements of the left side go through."""
        return self.lhs.casts

    @property
    def along_depth(self) -> bool:
        """Whether the largest tensor of the right side is contiguous along k, not columns."""
        _, loops = self._largest
        return self.depth in loops and not loops & {*self.columns}

    @property
    def bits(self) -> int:
        """The width of an element of the largest tensor of the right side."""
        tensor, _ = self._largest
        return element_bits(tensor.element) if tensor is not None else 64

    @property
    def _largest(self) -> tuple[Tensor | None, frozenset[int]]:
        """The largest tensor that is read along k or columns, and loops of its last index."""

        def size(access: tuple[Tensor, frozenset[int]]) -> int:
            return prod(extent or 1 for extent in access[0].shape)

        own = {self.depth, *self.columns}
        accesses = [access for access in self.right.accesses() if access[1] & own]
        return max(accesses, key=size, default=(None, frozenset()))


def find_computed(program: Program) -> ComputedProduct | None:
    """The one contraction of a program that computes its right side, if that is its only one."""
    product = None
    if any(
        not isinstance(i, Stage) and i.operation.name == "tensor.extract" for i in program.items
    ):
        return None
    for stage in program.stages:
        if stage.window is not None or (stage.gathers and not stage.has_reduction):
            return None
        if stage.has_reduction:
            product = _match(stage) if product is None else None
            if product is None:
                return None
    return product


def _match(stage: Stage) -> ComputedProduct | None:
    """The stage as a product with a computed side, or None."""
    if len(stage.inits) != 1 or stage.block is None:
        return None
    sides = sides_of(stage)
    if sides is None or not isinstance(stage.results[0].element, FLOATS):
        return None
    for left, value in (sides, sides[::-1]):
        reads, right = block_arguments(left, stage.body), BodyPart.of(stage, value)
        if reads is None or len(reads) != 1 or right is None:
            continue
        if not right.is_computed or not _reads_inputs(right):
            continue
        (read,) = reads
        lhs = factor_of(stage, read, left) if read < len(stage.reads) else None
        product = _assign(stage, lhs, right) if lhs is not None else None
        if product is not None:
            return product
    return None


def _reads_inputs(right: BodyPart) -> bool:
    """Whether a side is computed of inputs, which no stage writes."""
    return all(_is_input(root_of(tensor)) for tensor, _ in right.accesses())


def _is_input(tensor: Tensor) -> bool:
    if isinstance(tensor, Argument):
        return tensor.out is None
    return isinstance(tensor, Constant | Splat)


def _assign(stage: Stage, lhs: Factor, right: BodyPart) -> ComputedProduct | None:
    """Gives the loops their roles; None if they have others."""
    initial, outputs = constant_of(stage.inits[0].tensor), loops_of(stage.inits[0].indices)
    if initial is None or outputs is None or len(set(outputs)) != len(outputs):
        return None
    reduced = [loop for loop, reduces in enumerate(stage.reduces) if reduces]
    depth = [loop for loop in reduced if stage.extents[loop] != 1] or reduced[-1:]
    last = ([loop for loop in outputs if stage.extents[loop] != 1] or outputs)[-1:]
    if len(depth) != 1 or lhs.position(depth[0]) is None:
        return None
    if not last or last[0] in lhs.dims or last[0] not in right.loops:
        return None
    own = lhs.dims - right.loops
    rows = row_loops(stage, lhs, [loop for loop in outputs if loop in own], outputs)
    roles = {*rows, *last, *reduced}
    batch = tuple(loop for loop in range(len(stage.reduces)) if loop not in roles)
    plain = {*rows, depth[0]}
    if any(loop_of(e) is None and dims_of(e) & plain for e in lhs.indices):
        return None
    return ComputedProduct(stage, lhs, right, batch, rows, (*last,), depth[0], initial)
