"""Matrices that subgroups multiply: cooperative matrices, which are in memory of the group.

    gpu.subgroup_mma_compute %a, %b, %c      ->      OpCooperativeMatrixMulAddKHR

Source: Khronos, SPV_KHR_cooperative_matrix.
"""

from relax_mlir.bindings import gpu, ir
from relax_mlir.rewriting import walk_ops

from .assembler import BUILT_IN, INPUT
from .emitter import Emitter, Rule, result_type
from .matrix_type import MatrixType
from .memory import element_pointer, shared_access
from .opcodes import Op

_SUBGROUP_ID = 40
_ALL_SIGNED = 1 | 2 | 4 | 8


def _subgroup(emitter: Emitter, op: ir.OpView) -> None:
    """The index of the subgroup in its group."""
    name, word = op.operation.name, emitter.out.integer(32)
    if name not in emitter.indices:
        emitter.out.require("GroupNonUniform")
        emitter.indices[name] = emitter.out.variable(INPUT, word)
        emitter.out.decorate(emitter.indices[name], BUILT_IN, _SUBGROUP_ID)
    emitter.define(op, emitter.add(Op.Load, word, emitter.indices[name]))


def _constant(emitter: Emitter, op: ir.OpView) -> None:
    """A matrix of the same elements."""
    type_ = emitter.type(result_type(op))
    emitter.define(op, emitter.add(Op.CompositeConstruct, type_, *emitter.operands(op)))


def _load(emitter: Emitter, op: ir.OpView) -> None:
    buffer, index = op.operation.operands
    pointer, _ = element_pointer(emitter, op, buffer, emitter.values[index])
    words = [pointer, *_layout(emitter, op), *shared_access(emitter, buffer)]
    type_ = emitter.type(result_type(op))
    emitter.define(op, emitter.add(Op.CooperativeMatrixLoadKHR, type_, *words))


def _store(emitter: Emitter, op: ir.OpView) -> None:
    value, buffer, index = op.operation.operands
    pointer, _ = element_pointer(emitter, op, buffer, emitter.values[index])
    words = [pointer, emitter.values[value], *_layout(emitter, op)]
    emitter.plain(Op.CooperativeMatrixStoreKHR, *words, *shared_access(emitter, buffer))


def _layout(emitter: Emitter, op: ir.OpView) -> tuple[int, int]:
    """Which index is the outer one, 0 being that of rows, and how far apart outer ones are."""
    attributes = op.operation.attributes
    lead = ir.IntegerAttr(attributes["leadDimension"]).value
    return emitter.integer(int("transpose" in attributes)), emitter.integer(lead)


def _multiply_add(emitter: Emitter, op: ir.OpView) -> None:
    kind = MatrixType.of(result_type(op))
    signed = [_ALL_SIGNED] if kind and isinstance(kind.element, ir.IntegerType) else []
    words = [emitter.type(result_type(op)), *emitter.operands(op), *signed]
    emitter.define(op, emitter.add(Op.CooperativeMatrixMulAddKHR, *words))


def has_matrices(function: gpu.GPUFuncOp) -> bool:
    """Whether subgroups multiply matrices."""
    return bool(walk_ops(function.operation, gpu.SubgroupMmaComputeOp))


COOPERATIVE: dict[str, Rule] = {
    gpu.SubgroupIdOp.OPERATION_NAME: _subgroup,
    gpu.SubgroupMmaConstantMatrixOp.OPERATION_NAME: _constant,
    gpu.SubgroupMmaLoadMatrixOp.OPERATION_NAME: _load,
    gpu.SubgroupMmaStoreMatrixOp.OPERATION_NAME: _store,
    gpu.SubgroupMmaComputeOp.OPERATION_NAME: _multiply_add,
}
