"""Loop nests on tensors, whole arrays at a time.

A body runs once, on arrays with one dim for each loop. Commutative reductions are computed
afterwards by NumPy; for others, reduction loops run sequentially.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.interpreter.elements import round_to, widen
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.nests import Box, Nest, plain_dims

__all__ = ["read"]

SUMS = {
    arith.AddFOp: np.add,
    arith.MulFOp: np.multiply,
    arith.AddIOp: np.add,
    arith.MulIOp: np.multiply,
}
EXTREMES = {
    arith.MaximumFOp: np.maximum,
    arith.MinimumFOp: np.minimum,
    arith.MaxNumFOp: np.fmax,
    arith.MinNumFOp: np.fmin,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
}


def index(frame: Frame, op: linalg.IndexOp) -> Any:
    """The index of a loop."""
    return frame.loops[op.attributes["dim"].value]


def any_op(frame: Frame, op: ir.OpView, *operands: Any) -> list[np.ndarray]:
    """Any op with maps and a body: `linalg.generic`, and named ops."""
    maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
    nest = Nest.of(maps, operands, len(op.operation.results))
    results = [np.array(out) for out in operands[len(nest.in_maps) :]]
    if 0 in nest.box.extents:
        return results
    block = op.regions[0].blocks[0]
    if (factors := _factors(nest, block)) is not None:
        elements = [str(argument.type) for argument in block.arguments]
        _add_products(nest, factors, [widen(*x) for x in zip(operands, elements)], results)
        return results
    combined = _combined(nest, block)
    for box in nest.box.parts():
        part = _Part(frame, nest.over(box), block, operands[: len(nest.in_maps)], results)
        if any(len(inner.operation.regions) for inner in block.operations):
            part.run_one_by_one()
        elif combined is not None:
            part.reduce(combined)
        else:
            part.run_in_order()
    return results


class _Combined(NamedTuple):
    """A result of a body that combines an element with the accumulator, in any order."""

    ufunc: np.ufunc
    element: ir.Value


def _combined(nest: Nest, block: ir.Block) -> list[_Combined] | None:
    """How each result is combined; None if the body uses an accumulator otherwise."""
    outs = list(block.arguments)[len(nest.in_maps) :]
    all_plain = all(plain_dims(map_) is not None for map_ in nest.out_maps)
    if not nest.reductions or len(outs) != nest.num_outs or not all_plain:
        return None
    combined = []
    operations = list(block.operations)
    for out, yielded in zip(outs, operations[-1].operands, strict=True):
        uses = list(out.uses)
        op = uses[0].owner.opview if len(uses) == 1 else None
        if op is None or yielded.owner != op.operation or len(list(yielded.uses)) != 1:
            return None
        table = EXTREMES if str(out.type) in ("f16", "bf16", "i1") else SUMS | EXTREMES
        if type(op) not in table:
            return None
        combined.append(_Combined(table[type(op)], op.lhs if op.rhs == out else op.rhs))
    return combined


class _Part(NamedTuple):
    """Some iterations of a nest, and the arrays that they read and write."""

    frame: Frame
    nest: Nest
    block: ir.Block
    ins: Sequence[Any]
    results: list[np.ndarray]

    def _body(self, box: Box, single: bool = False) -> tuple[Frame, list[Any]]:
        """Runs the body on all iterations at once; also returns the frame with all values."""
        inner = self.frame.nested()
        inner.loops = box.indices
        operands = zip((*self.ins, *self.results), self.nest.maps, strict=True)
        values = [box.read(x, map_) for x, map_ in operands]
        if single:
            inner.loops = [i.item() for i in inner.loops]
            values = [x.reshape(())[()] if isinstance(x, np.ndarray) else x for x in values]
        return inner, inner.run(self.block, values[: len(self.block.arguments)])

    def _run(self, box: Box, single: bool = False) -> None:
        yielded = self._body(box, single)[1]
        for result, map_, values in zip(self.results, self.nest.out_maps, yielded, strict=True):
            box.write(result, map_, values)

    def run_one_by_one(self) -> None:
        """Runs the body iteration by iteration, on single elements."""
        box = self.nest.box
        for at in product(*map(range, box.begin, box.end)):
            self._run(Box(at, tuple(i + 1 for i in at)), single=True)

    def run_in_order(self) -> None:
        """Runs the reduction loops sequentially, and the others at once."""
        box, loops = self.nest.box, self.nest.reductions
        for at in product(*(range(box.begin[i], box.end[i]) for i in loops)):
            part = box
            for axis, value in zip(loops, at, strict=True):
                part = part.between(axis, value, value + 1)
            self._run(part)

    def reduce(self, combined: Sequence[_Combined]) -> None:
        """Runs the body once, and combines the elements afterwards."""
        box, axes = self.nest.box, tuple(self.nest.reductions)
        inner, _ = self._body(box)
        for result, map_, (ufunc, value) in zip(
            self.results, self.nest.out_maps, combined, strict=True
        ):
            element = str(value.type)
            values = np.broadcast_to(widen(inner.values[value], element), box.extents)
            reduced = ufunc.reduce(values, axes, dtype=values.dtype, keepdims=True)
            before = widen(_with_rank(box.read(result, map_), len(box.begin)), element)
            box.write(result, map_, round_to(ufunc(before, reduced), element))


def _with_rank(x: np.ndarray, rank: int) -> np.ndarray:
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def _factors(nest: Nest, block: ir.Block) -> tuple[int, int] | None:
    """The inputs of a sum of products whose maps are projections of the loops; None otherwise."""
    total = list(block.arguments)[-1]
    if len(nest.in_maps) != 2 or nest.num_outs != 1 or str(total.type) in ("f16", "bf16", "i1"):
        return None
    added = _owner(list(block.operations)[-1].operands[0])
    if not isinstance(added, arith.AddFOp | arith.AddIOp) or total not in (added.lhs, added.rhs):
        return None
    multiplied = _owner(added.lhs if added.rhs == total else added.rhs)
    if not isinstance(multiplied, arith.MulFOp | arith.MulIOp):
        return None
    first, second = (_argument(side) for side in (multiplied.lhs, multiplied.rhs))
    loops = {dim for map_ in nest.in_maps for dim in plain_dims(map_) or ()}
    all_plain = all(plain_dims(map_) is not None for map_ in nest.maps)
    if {first, second} != {0, 1} or not all_plain or len(loops) < nest.maps[0].n_dims:
        return None
    return first, second


def _owner(value: ir.Value) -> Any:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def _argument(value: ir.Value) -> int:
    """The block argument that a value is, or is widened from; -1 if none."""
    op = _owner(value)
    if isinstance(op, arith.ExtFOp | arith.ExtSIOp):
        value = op.operation.operands[0]
    return value.arg_number if isinstance(value, ir.BlockArgument) else -1


def _add_products(
    nest: Nest, factors: tuple[int, int], operands: Sequence[Any], results: list[np.ndarray]
) -> None:
    """Adds sums of products to the result, in its own type."""
    total = results[0]
    subscripts: list[Any] = []
    for index in factors:
        subscripts.append(operands[index].astype(total.dtype))
        subscripts.append(plain_dims(nest.maps[index]))
    subscripts.append(plain_dims(nest.maps[-1]))
    total[...] = total + np.einsum(*subscripts, optimize=True)
