"""Reads a tensor program: copies it, without encodings and named ops, into stages."""

from functools import cached_property

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import run_upstream
from relax_mlir.rewriting import alone

from .program import Program, read_program

_PREPARE = (
    "builtin.module(convert-tensor-to-linalg,convert-elementwise-to-linalg,"
    "func.func(linalg-generalize-named-ops),canonicalize,cse,"
    "func.func(linalg-generalize-named-ops))"
)


class Unscheduled(PrimFunc):
    """A tensor program that several rules may read, prepared once for all."""

    @cached_property
    def prepared(self) -> ir.Module:
        """The program in a module of its own, without encodings and named ops."""
        module = alone(self.op)
        strip_encodings(module)
        run_upstream(_PREPARE, module.operation)
        return module


def read_kernel(prim_func: PrimFunc) -> tuple[ir.Module, Program]:
    """A copy of the tensor program without encodings, in a module of its own, and its stages."""
    known = prim_func if isinstance(prim_func, Unscheduled) else Unscheduled(prim_func.op)
    module = alone(known.prepared.body.operations[0])
    return module, read_program(module.body.operations[0], prim_func)


def strip_encodings(module: ir.Module) -> None:
    """Removes the encodings of all tensor types; casts between them become no-ops."""
    function = module.body.operations[0]

    def visit(op: ir.Operation) -> ir.WalkResult:
        arguments = [a for region in op.regions for block in region.blocks for a in block.arguments]
        for value in [*op.results, *arguments]:
            value.set_type(_plain(value.type))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    kind = function.type
    plain = ir.FunctionType.get([_plain(t) for t in kind.inputs], [_plain(t) for t in kind.results])
    function.operation.attributes["function_type"] = ir.TypeAttr.get(plain)


def _plain(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    kind = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get(kind.shape, kind.element_type)
