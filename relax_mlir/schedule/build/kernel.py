"""The scheduled function while it is emitted: scalars, extents and memory of a tensor program."""

from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.program.placement import Placement, Spot
from relax_mlir.program.program import (
    Argument,
    Computed,
    Constant,
    Empty,
    MixedIndex,
    Reshape,
    Slice,
    Splat,
    Stage,
    Tensor,
    Window,
    all_known,
)

from . import loops
from .lanes import Uniform, scalar
from .loops import Index
from .memory import View, load, row_major, storage_type
from .vectors import Vectors


@dataclass
class Kernel:
    """The state of emission; `scalars` maps scalars of the old function to those of the new one.

    Views and extents are emitted at the top of the function before the loops that use them:
    `prepare` first, then `view`.
    """

    placement: Placement
    vectors: Vectors
    buffers: list[ir.Value]
    symbols: dict[str, ir.Value]
    constants: ir.InsertionPoint
    scalars: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _sizes: dict[Tensor, tuple[Index, ...]] = field(default_factory=dict)
    _views: dict[Spot, View] = field(default_factory=dict)
    _derived: dict[Tensor, View | None] = field(default_factory=dict)
    _windows: dict[Stage, View] = field(default_factory=dict)
    _splats: dict[Tensor, Uniform] = field(default_factory=dict)
    _scratch: list[ir.Value] = field(default_factory=list)

    def sizes(self, tensor: Tensor) -> tuple[Index, ...]:
        """The extents of a tensor."""
        if tensor not in self._sizes:
            sizes = self._compute_sizes(tensor)
            pairs = zip(tensor.shape, sizes, strict=True)
            self._sizes[tensor] = tuple(own if s is None else s for s, own in pairs)
        return self._sizes[tensor]

    def _compute_sizes(self, tensor: Tensor) -> tuple[Index, ...]:
        if (known := all_known(tensor.shape)) is not None:
            return tuple(known)
        if isinstance(tensor, Argument):
            return tuple(self._argument_size(tensor, i) for i in range(len(tensor.shape)))
        if isinstance(tensor, Empty):
            return tuple(self.map_index(size) for size in tensor.sizes)
        if isinstance(tensor, Splat):
            assert tensor.like is not None, "a splat with unknown extents fills a tensor"
            return self.sizes(tensor.like)
        if isinstance(tensor, Computed):
            return self.sizes(self._dest(tensor))
        if isinstance(tensor, Slice):
            all_sizes = enumerate(tensor.window.sizes)
            return tuple(self.map_index(s) for i, s in all_sizes if i not in tensor.window.dropped)
        assert isinstance(tensor, Reshape), "the extents of a constant are known"
        if tensor.sizes is not None:
            return tuple(self.map_index(size) for size in tensor.sizes)
        source = self.sizes(tensor.source)
        return tuple(loops.mul(*(source[i] for i in group)) for group in tensor.groups)

    def _dest(self, tensor: Computed) -> Tensor:
        dest = tensor.stage.inits[tensor.index].tensor
        is_copy = isinstance(dest, Empty) and len(dest.sizes) != len(dest.shape)
        return tensor.stage.reads[0].tensor if is_copy else dest

    def _argument_size(self, tensor: Argument, dim: int) -> Index:
        if (known := tensor.shape[dim]) is not None:
            return known
        name = self.placement.program.dim_names[tensor.position][dim]
        if name not in self.symbols or not name:
            size = memref.dim(self.buffers[tensor.position], loops.value(dim))
            if not name:
                return size
            self.symbols[name] = size
        return self.symbols[name]

    def map_index(self, index: MixedIndex) -> Index:
        """The index in the new function for one of the old function."""
        if isinstance(index, int):
            return index
        owner = index.owner
        if not isinstance(owner, ir.Block) and isinstance(owner.opview, arith.ConstantOp):
            return ir.IntegerAttr(owner.attributes["value"]).value
        return self.scalars[index]

    def extent(self, stage: Stage, loop: int) -> Index:
        """The iteration count of a loop."""
        if (known := stage.extents[loop]) is not None:
            return known
        for operand in [*stage.reads, *stage.inits]:
            for position, expression in enumerate(operand.indices):
                if isinstance(expression, ir.AffineDimExpr) and expression.position == loop:
                    if isinstance(operand.tensor, Empty) and not operand.tensor.sizes:
                        continue
                    return self.sizes(operand.tensor)[position]
        raise AssertionError(f"no operand of {stage.op.operation.name} shows loop {loop}")

    def splat(self, tensor: Splat) -> Uniform:
        """The scalar of a splat."""
        if tensor not in self._splats:
            scalar = tensor.scalar
            if isinstance(scalar, ir.Attribute):
                value = arith.constant(tensor.element, scalar)
            else:
                value = self.scalars.get(scalar, scalar)
            self._splats[tensor] = Uniform(value)
        return self._splats[tensor]

    def scratch(self, tensor: Computed) -> None:
        """Gives a computed tensor its own buffer for the rest of the kernel."""
        self.placement.spots.setdefault(tensor, Spot(tensor))

    def prepare(self, tensor: Tensor) -> View | None:
        """Emits the view of a tensor that is in memory, or the scalar of a splat."""
        if isinstance(tensor, Splat):
            self.splat(tensor)
            return None
        if isinstance(tensor, Slice | Reshape):
            if tensor not in self._derived:
                self._derived[tensor] = self._derive(tensor)
            return self._derived[tensor]
        spot = Spot(tensor) if isinstance(tensor, Constant) else self.placement.spot(tensor)
        return None if spot is None else self._view(spot)

    def view(self, tensor: Tensor) -> View | None:
        """The view that `prepare` emitted for a tensor, or None if it has no memory."""
        if isinstance(tensor, Slice | Reshape):
            return self._derived.get(tensor)
        spot = Spot(tensor) if isinstance(tensor, Constant) else self.placement.spot(tensor)
        return None if spot is None else self._views.get(spot)

    def memory(self, tensor: Tensor) -> View:
        """The view of a tensor that is in memory."""
        view = self.view(tensor)
        assert view is not None, "the tensor has no memory"
        return view

    def prepare_window(self, stage: Stage) -> None:
        """Emits the view that an insertion writes."""
        whole = self.prepare(stage.results[0])
        assert whole is not None, "an insertion writes to memory"
        assert stage.window is not None
        self._windows[stage] = self._through(whole, stage.window)

    def window_view(self, stage: Stage) -> View:
        """The view that an insertion writes, once prepared."""
        return self._windows[stage]

    def _derive(self, tensor: Slice | Reshape) -> View | None:
        sizes = self.sizes(tensor)
        source = self.prepare(tensor.source)
        if isinstance(tensor, Slice):
            return None if source is None else self._through(source, tensor.window)
        if isinstance(tensor.source, Computed):
            self.sizes(tensor.source)
        if source is None:
            return None
        joins = source.expand if tensor.expands else source.collapse
        return joins(tensor.groups, sizes)

    def _view(self, spot: Spot) -> View:
        if spot not in self._views:
            self._views[spot] = self._make_view(spot)
        return self._views[spot]

    def _make_view(self, spot: Spot) -> View:
        if not spot.path:
            return self._whole(spot.owner)
        outer = self._view(Spot(spot.owner, spot.path[:-1]))
        step = spot.path[-1]
        if isinstance(step, Window):
            return self._through(outer, step)
        # The spot is that of the reshaped tensor; the view of its source is the inverse reshape.
        sizes = self.sizes(step.source)
        if step.expands:
            view = outer.collapse(step.groups, sizes)
            assert view is not None, "placement excludes collapsed dims of windows"
            return view
        return outer.expand(step.groups, sizes)

    def _through(self, view: View, window: Window) -> View:
        parts = [[self.map_index(x) for x in part] for part in
                   (window.offsets, window.sizes, window.strides)]  # fmt: skip
        return view.slice(*parts).drop(window.dropped)

    def _whole(self, tensor: Tensor) -> View:
        sizes = self.sizes(tensor)
        if isinstance(tensor, Argument):
            return View.of(self.buffers[tensor.position], tensor.element, sizes)
        if isinstance(tensor, Constant):
            return View.of(self._constant(tensor), tensor.element, sizes)
        buffer = self.allocate(loops.mul(*sizes), tensor.element)
        self._scratch.append(buffer)
        return View(buffer, tensor.element, 0, sizes, row_major(sizes))

    def allocate(self, count: Index, element: ir.Type) -> ir.Value:
        """A 1-D scratch buffer; the caller frees it."""
        return loops.flat_buffer(count, storage_type(element))

    def _constant(self, tensor: Constant) -> ir.Value:
        shape = all_known(tensor.shape)
        assert shape is not None, "the extents of a constant are known"
        kind = ir.MemRefType.get(shape, storage_type(tensor.element))
        value = tensor.value
        if storage_type(tensor.element) != tensor.element:
            elements = [
                ir.IntegerAttr.get(kind.element_type, int(x)) for x in ir.DenseElementsAttr(value)
            ]
            value_type = ir.RankedTensorType.get(shape, kind.element_type)
            value = ir.DenseElementsAttr.get(elements, value_type)
        with self.constants:
            count = len(list(self.constants.block.operations))
            name = f"{self.placement.program.op.name.value}_constant_{count}"
            memref.GlobalOp(
                ir.StringAttr.get(name), ir.TypeAttr.get(kind), initial_value=value,
                constant=True, sym_visibility=ir.StringAttr.get("private"),
            )  # fmt: skip
        return memref.get_global(kind, name)

    def run_scalar(self, op: ir.OpView) -> None:
        """Emits a scalar op of the old function."""
        name = op.operation.name
        if name == "tensor.dim":
            tensor = self.placement.program.tensors[op.operands[0]]
            dim = self.map_index(op.operands[1])
            assert isinstance(dim, int), "a tensor program asks for known dims"
            size = self.sizes(tensor)[dim]
            self.scalars[op.results[0]] = loops.value(size)
        elif name == "tensor.extract":
            tensor = self.placement.program.tensors[op.operands[0]]
            if isinstance(tensor, Splat):
                self.scalars[op.results[0]] = loops.value(self.splat(tensor).value)
                return
            view = self.prepare(tensor)
            assert view is not None, "scalars are read from memory"
            indices = [Uniform(self.map_index(x)) for x in list(op.operands)[1:]]
            self.scalars[op.results[0]] = scalar(load(view, indices, 1))
        else:
            operands = [self.scalars.get(value, value) for value in op.operands]
            attributes = {key: op.attributes[key] for key in op.attributes}
            kinds = [result.type for result in op.results]
            created = ir.Operation.create(name, kinds, operands, attributes, loc=op.location)
            self.scalars.update(zip(op.results, created.results, strict=True))

    def finish(self) -> None:
        """Frees the scratch buffers."""
        for buffer in reversed(self._scratch):
            memref.dealloc(buffer)
