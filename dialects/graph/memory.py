"""Explicit memory: storage, tensors in it, views, copies, stores, calls of kernels (paper §4.3)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir

from .annotations import Annotation, annotation_of, compatible, to_mlir
from .dialect import ShapeAttr, StorageType
from .op import GraphOp, IntsAttr, read_attribute
from .slots import SlotOp
from .types import Dim, ShapeError, TensorType, dims_of_attr, shape_attr


class _Allocates(ir.MemoryEffectsOpInterface):
    """An op whose result is a fresh piece of memory."""

    @staticmethod
    def get_effects(op: ir.OpView, effects: Any) -> None:
        effects.append(ir.MemoryEffect.Allocate, op.results[0])


def _require_one(op: GraphOp, name: str) -> None:
    count = len(dims_of_attr(ShapeAttr(op.attributes[name]).dims))
    if count != 1:
        raise ShapeError(f"expects one expression as '{name}', but got {count}")


class AllocStorageOp(GraphOp, name="alloc_storage", traits=[_Allocates]):
    """Takes `size` bytes (one expression) until the call of the function ends.

    It may stand wherever its symbols are known. In the body of a loop it lasts for the round:
    nothing that is carried on or used behind the loop lies in it.

    C1  `size` is one expression
    """

    result: ext.Result[StorageType]
    size: ShapeAttr

    @classmethod
    def build(cls, size: Dim | int | str) -> "AllocStorageOp":
        """Creates the allocation at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[StorageType.get()], attributes={"size": shape_attr([size])}
        ).opview

    def check(self) -> None:
        """Raises ShapeError if the size is no single expression."""
        _require_one(self, "size")  # C1

    @property
    def bytes(self) -> Dim:
        """Size in bytes."""
        return dims_of_attr(ShapeAttr(self.attributes["size"]).dims)[0]


class AllocTensorOp(GraphOp, name="alloc_tensor", traits=[_Allocates]):
    """Allocates a tensor, in a storage at a byte offset once memory is planned.

    Without a storage it is a fresh allocation; one that the function returns stays so, since
    the caller owns it.

    C1  `offset` is one expression
    """

    result: ext.Result[Any]
    storage: ext.Operand[StorageType] | None = None
    offset: ShapeAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls,
        annotation: Annotation,
        storage: ir.Value | None = None,
        offset: Dim | int | str = 0,
    ) -> "AllocTensorOp":
        """Creates the allocation at the insertion point; `offset` is in bytes."""
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=[to_mlir(annotation)],
            operands=[] if storage is None else [storage],
            attributes={"offset": shape_attr([offset])},
        ).opview

    def check(self) -> None:
        """Raises ShapeError if the offset is no single expression."""
        _require_one(self, "offset")  # C1

    @property
    def byte_offset(self) -> Dim:
        """Offset in the storage, in bytes."""
        return dims_of_attr(ShapeAttr(self.attributes["offset"]).dims)[0]


class ViewOp(GraphOp, name="view", traits=[ext.Pure]):
    """The same memory under another shape of as many elements: a reshape that copies nothing.

    Elements may have another type of the same memory format, as a signless integer for an unsigned.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @classmethod
    def build(cls, value: ir.Value, annotation: Annotation) -> "ViewOp":
        """Creates the view at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[to_mlir(annotation)], operands=[value]
        ).opview


class CopyOp(GraphOp, name="copy"):
    """Copies the elements of a tensor into the memory of another one.

    Both may be the same memory, but do not overlap otherwise.

    C1  the two annotations are not provably different
    """

    input: ext.Operand[Any]
    destination: ext.Operand[Any]

    @classmethod
    def build(cls, value: ir.Value, destination: ir.Value) -> "CopyOp":
        """Creates the copy at the insertion point."""
        return ir.Operation.create(cls.OPERATION_NAME, operands=[value, destination]).opview

    def check(self) -> None:
        """Raises ShapeError if the destination cannot hold the tensor."""
        if not compatible(annotation_of(self.input), annotation_of(self.destination)):  # C1
            raise ShapeError(f"copies '{self.input.type}' into '{self.destination.type}'")


class KeepOp(GraphOp, name="keep", traits=[_Allocates]):
    """Copies a tensor to memory that lasts until the op runs again.

    For what a loop carries whose dims change from round to round: the memory grows as it has to,
    and is kept between calls. The operand may lie in that memory itself.

    C1  the result is of the operand's type
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @classmethod
    def build(cls, value: ir.Value) -> "KeepOp":
        """Creates the copy at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME, results=[value.type], operands=[value]
        ).opview

    def check(self) -> None:
        """Raises ShapeError if the result is no copy of the operand."""
        if self.input.type != self.result.type:  # C1
            raise ShapeError(f"keeps '{self.input.type}' as '{self.result.type}'")


class StoreOp(GraphOp, name="store"):
    """Writes a scalar to one element of a tensor.

    What `tensor.insert` and `tensor.from_elements` become. An index outside of the tensor ends the
    call with an error.

    C1  the destination is a tensor of the scalar's type, with one index for each dim
    """

    value: ext.Operand[Any]
    destination: ext.Operand[Any]
    indices: Sequence[ext.Operand[ir.IndexType]]

    @classmethod
    def build(
        cls, value: ir.Value, destination: ir.Value, indices: Sequence[ir.Value] = ()
    ) -> "StoreOp":
        """Creates the store at the insertion point."""
        return ir.Operation.create(
            cls.OPERATION_NAME,
            operands=[value, destination, *indices],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(indices)])},
        ).opview

    def check(self) -> None:
        """Raises ShapeError if the scalar cannot be an element at those indices."""
        value, destination, *indices = self.operation.operands
        annotation = annotation_of(destination)
        if (
            not isinstance(annotation, TensorType)
            or annotation.element != value.type
            or annotation.rank != len(indices)
        ):  # C1
            raise ShapeError(
                f"stores '{value.type}' at {len(indices)} indices of '{destination.type}'"
            )


class CallDpsOp(SlotOp, name="call_dps"):
    """Calls a kernel or library function in destination-passing style: writes its last tensors.

    What `call_tir`, `call_tir_inplace`, `call_dps_library` and `call` become once allocation is
    explicit: inputs, then outputs, then one index per entry of `sym_args`. `updates` are the
    outputs, by number, whose old contents the callee may need: it changes those, and fills others.

    C1  no more outputs than operands
    C2  `updates` has numbers of outputs, each once
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)
    num_outs: ir.IntegerAttr = ext.attribute(kw_only=True)
    sym_args: ShapeAttr = ext.attribute(kw_only=True)
    updates: IntsAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(
        cls,
        callee: str,
        ins: Sequence[ir.Value],
        outs: Sequence[ir.Value],
        sym_args: Sequence[Dim | int | str] = (),
        updates: Sequence[int] = (),
    ) -> "CallDpsOp":
        """Creates the call at the insertion point."""
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(callee),
            "num_outs": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(outs)),
            "sym_args": shape_attr(sym_args),
            "updates": ir.DenseI64ArrayAttr.get(list(updates)),
        }
        return cls.create([*ins, *outs], [], attributes)

    def check(self) -> None:
        """Raises ShapeError if an output is named that there is not."""
        count, updates = self.attributes["num_outs"].value, self._updates
        if not 0 <= count <= len(self.ins):  # C1
            raise ShapeError(f"has 'num_outs' {count} of {len(self.ins)} operands")
        if len(set(updates)) < len(updates) or not set(updates) <= set(range(count)):  # C2
            raise ShapeError(f"has 'updates' {list(updates)} of {count} outputs")

    @property
    def _updates(self) -> Sequence[int]:
        return read_attribute("updates", IntsAttr, self.attributes["updates"])

    @property
    def callee_name(self) -> str:
        """Name of the kernel, without `@`."""
        return ir.FlatSymbolRefAttr(self.attributes["callee"]).value

    @property
    def destinations(self) -> list[ir.Value]:
        """The tensors that are written."""
        return self.ins[len(self.ins) - self.attributes["num_outs"].value :]

    @property
    def updated(self) -> list[ir.Value]:
        """The destinations that are changed."""
        return [self.destinations[number] for number in self._updates]

    @property
    def sources(self) -> list[ir.Value]:
        """The tensors that are read."""
        return self.ins[: len(self.ins) - self.attributes["num_outs"].value]

    @property
    def symbol_arguments(self) -> tuple[Dim, ...]:
        """Expressions passed as trailing index arguments."""
        return dims_of_attr(ShapeAttr(self.attributes["sym_args"]).dims)
