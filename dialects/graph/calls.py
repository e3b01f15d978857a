"""Calls within the graph level and across levels (paper §3.3)."""

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from relax_mlir.bindings import ext, ir

from .annotations import Annotation, annotation_of, to_mlir
from .dialect import ShapeAttr
from .op import IntsAttr
from .slots import SlotOp
from .types import Dim, ShapeError, TensorType, dims_of_attr, shape_attr

_Inplace = TypeVar("_Inplace", bound="_InplaceCall")

WORKSPACE = "graph.workspace"
"""Sizes, in bytes, of the memory that a library function uses while it runs."""
NUM_WORKSPACES = "graph.num_workspaces"
"""How many results, the last ones, are such memory: what `relax-lift-workspace` makes of sizes."""


class _Call(SlotOp):
    """What calls share: a callee by name."""

    @property
    def callee_name(self) -> str:
        """Name of the function that is called, without `@`."""
        return ir.FlatSymbolRefAttr(self.attributes["callee"]).value

    @property
    def symbol_arguments(self) -> tuple[Dim, ...]:
        """Expressions passed as trailing index arguments."""
        return dims_of_attr(ShapeAttr(self.attributes["sym_args"]).dims)


class CallTirOp(_Call, name="call_tir", traits=[ext.Pure]):
    """Allocates outputs as the result annotations say and runs a tensor program into them.

        %y = "graph.call_tir"(%x, %w) {callee = @matmul, sym_args = #graph.shape<[]>}

    The callee takes the operands, then one tensor per result, then one index per entry of
    `sym_args`, and returns the filled tensors.

    C1  the callee is a function with the attribute `tir.prim_func`
    C2  operands and results agree with the callee's parameters in number, rank, element type
        and, symbols substituted, in every dim that can be compared

    Source: paper §3.3, Figure 5.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls,
        callee: str,
        ins: Sequence[ir.Value],
        out_types: Sequence[Annotation],
        sym_args: Sequence[Dim | int | str] = (),
    ) -> "CallTirOp":
        """Creates the call at the insertion point."""
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "sym_args": shape_attr(sym_args),
        }
        return cls.create(ins, [to_mlir(type_) for type_ in out_types], attributes)


class _InplaceCall(_Call):
    """What calls that update operands share; they declare the attributes themselves."""

    @property
    def inplace(self) -> tuple[int, ...]:
        """Operand of each result, or -1."""
        return tuple(ir.DenseI64ArrayAttr(self.attributes["inplace_indices"]))

    @classmethod
    def build(
        cls: type[_Inplace],
        callee: str,
        ins: Sequence[ir.Value],
        inplace_indices: Sequence[int],
        out_types: Sequence[Annotation] | None = None,
        sym_args: Sequence[Dim | int | str] = (),
    ) -> _Inplace:
        """Creates the call; without `out_types` every result takes its operand's annotation."""
        if out_types is None:
            out_types = [annotation_of(ins[index]) for index in inplace_indices]
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "inplace_indices": ir.DenseI64ArrayAttr.get(list(inplace_indices)),
            "sym_args": shape_attr(sym_args),
        }
        return cls.create(ins, [to_mlir(type_) for type_ in out_types], attributes)


class CallTirInplaceOp(_InplaceCall, name="call_tir_inplace", traits=[ext.Pure]):
    """Runs a tensor program that updates some of its inputs.

    `inplace_indices[i]` is the operand that result i is the updated value of, or -1 for a fresh
    output. Such an operand reaches the callee only as output i. The op is functional: the operand
    keeps its value, and `relax-lower-calls` shares its memory where nobody can tell, else copies.

    C1  the callee is a function with the attribute `tir.prim_func`
    C2  operands and results agree with the callee's parameters
    C3  `inplace_indices` has one entry per result, in range and without repetition
    C4  a result has the annotation of the operand it is computed into

    Source: TVM `relax.call_tir_inplace`.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    inplace_indices: IntsAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)


class CallDpsLibraryOp(_Call, name="call_dps_library", traits=[ext.Pure]):
    """Allocates outputs and calls an external function that a `lib.function` declares.

    The attribute `graph.workspace` has the sizes, in bytes, of workspaces that it is given.

    C1  the callee is declared by a `lib.function` of the module
    C2  operands and results meet the constraints of the declaration
    C3  workspaces have known sizes, and are as many as the declaration's convention takes

    Source: paper §3.3.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)

    build = CallTirOp.__dict__["build"]


class CallLibraryOp(_Call, name="call_library"):
    """Calls an external function as `call_dps_library` does, for what it does beside its results.

    Such calls are neither moved nor merged, and stay although nobody uses their results.

    C1  the callee is declared by a `lib.function` of the module
    C2  operands and results meet the constraints of the declaration
    C3  workspaces have known sizes, and are as many as the declaration's convention takes

    Source: TVM `relax.call_packed`, whose callees may have effects.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)

    build = CallTirOp.__dict__["build"]


class CallLibraryInplaceOp(_InplaceCall, name="call_library_inplace", traits=[ext.Pure]):
    """Calls an external function that updates some of its operands and does nothing else.

    Functional as `call_tir_inplace`: a function that updates operand j is given it as result i
    alone, where `inplace_indices[i]` is j, with the contents of j in the memory that it changes.

    C1  the callee is declared by a `lib.function` of the module, with the convention "dlpack"
    C2  `inplace_indices` has one entry per result, in range and without repetition
    C3  a result is a tensor with the annotation of the operand it is computed into
    C4  workspaces have known sizes

    Source: TVM `relax.call_inplace_packed`.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    inplace_indices: IntsAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)


LibraryCall: TypeAlias = CallDpsLibraryOp | CallLibraryOp | CallLibraryInplaceOp


def workspace_of(call: LibraryCall) -> tuple[Dim, ...]:
    """The sizes, in bytes, of workspaces that no result of the call is yet.

    Raises ShapeError if they are no sizes, or unknown.
    """
    if WORKSPACE not in call.attributes:
        return ()
    attribute = call.attributes[WORKSPACE]
    sizes = dims_of_attr(ShapeAttr(attribute).dims) if isinstance(attribute, ShapeAttr) else (None,)
    if None in sizes:
        raise ShapeError(f"expects '{WORKSPACE}' to be a shape of known bytes, but got {attribute}")
    return sizes


def workspace_type(size: Dim) -> TensorType:
    """The annotation of a workspace: bytes."""
    return TensorType((size,), ir.IntegerType.get_unsigned(8))


def num_workspaces(call: LibraryCall) -> int:
    """How many results of the call, the last ones, are workspaces; ShapeError for no such count."""
    if NUM_WORKSPACES not in call.attributes:
        return 0
    attribute, most = call.attributes[NUM_WORKSPACES], len(call.outs)
    if not isinstance(attribute, ir.IntegerAttr) or not 0 <= attribute.value <= most:
        raise ShapeError(f"expects '{NUM_WORKSPACES}' to be up to {most}, but got {attribute}")
    return attribute.value


InplaceCall: TypeAlias = CallTirInplaceOp | CallLibraryInplaceOp


class CallOp(_Call, name="call"):
    """Calls a graph function; results are deduced from its signature alone.

    C1  the callee is a graph function of the module
    C2  operands agree with the parameters; symbols are bound by them
    C3  results agree with the signature's results, symbols substituted

    Source: paper §4.1, Figure 7.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls, callee: str, ins: Sequence[ir.Value], out_types: Sequence[Annotation]
    ) -> "CallOp":
        """Creates the call with the given result annotations."""
        attributes = {"callee": ir.FlatSymbolRefAttr.get(callee)}
        return cls.create(ins, [to_mlir(type_) for type_ in out_types], attributes)
