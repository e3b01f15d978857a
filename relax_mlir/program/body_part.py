"""The part of a stage's body that one of its scalars depends on."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import ir, linalg, tensor

from .access import gathers_of, uses_of
from .program import Operand, Stage, Tensor

_ELEMENTWISE = ("arith.", "math.", "affine.apply", "linalg.index", "tensor.extract")


@dataclass(frozen=True)
class BodyPart:
    """What computes `value`: `operations` of the block, and elements of `reads`."""

    stage: Stage
    value: ir.Value
    operations: tuple[ir.OpView, ...]
    reads: frozenset[int]

    @staticmethod
    def of(stage: Stage, value: ir.Value) -> "BodyPart | None":
        """The part of a scalar; None if it depends on an accumulator or has regions."""
        operations: list[ir.OpView] = []
        reads: set[int] = set()
        values, seen = [value], set()
        while values:
            each = values.pop()
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each.owner, ir.Block):
                if each.owner == stage.body:
                    reads.add(ir.BlockArgument(each).arg_number)
            elif each.owner.operation.block == stage.body:
                if not each.owner.name.startswith(_ELEMENTWISE):
                    return None
                operations.append(each.owner.opview)
                values += each.owner.operands
        if any(read >= len(stage.reads) for read in reads):
            return None
        return BodyPart(stage, value, tuple(operations), frozenset(reads))

    @property
    def gathers(self) -> list[Tensor]:
        """The tensors that it reads by computed indices."""
        extracts = [op for op in self.stage.body.operations if isinstance(op, tensor.ExtractOp)]
        pairs = zip(extracts, self.stage.gathers, strict=True)
        return [source for op, source in pairs if op in self.operations]

    @property
    def is_computed(self) -> bool:
        """Whether it is more than a function of one element at the indices of the loops."""
        indices = any(isinstance(op, linalg.IndexOp | tensor.ExtractOp) for op in self.operations)
        return indices or len(self.reads) > 1

    @property
    def _operands(self) -> list[Operand]:
        return [self.stage.reads[read] for read in sorted(self.reads)]

    @property
    def loops(self) -> frozenset[int]:
        """The loops whose indices it depends on."""
        result = [dims_of(e) for read in self._operands for e in read.indices]
        indices = (op for op in self.operations if isinstance(op, linalg.IndexOp))
        return frozenset().union(*result, (op.attributes["dim"].value for op in indices))

    def accesses(self) -> Iterator[tuple[Tensor, frozenset[int]]]:
        """The tensors that it reads, and the loops that their last index depends on."""
        accesses = [(read.tensor, uses_of(read.indices)) for read in self._operands]
        accesses += [each for each in gathers_of(self.stage) if each[0] in self.gathers]
        for tensor_, uses in accesses:
            yield tensor_, uses[-1].dims if uses else frozenset()
