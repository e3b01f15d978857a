"""Packs the filters of convolutions into panels, which kernels read fastest.

    %y = "graph.call_tir"(%x, %w) {callee = @conv2d}             // %w is a parameter, [o, c, u, v]
      ->
    %p = "graph.call_tir"(%w) {callee = @pack_filters}           // [ceil(o / 32), v, u, c, 32]
    %y = "graph.call_tir"(%x, %p) {callee = @conv2d_packed}

Parameters are the arguments from `graph.num_inputs` on. `relax-lift-params` then moves the packing
to a function that runs once. Constants are packed at once; with `parameters=false`, they alone.
Filters of several groups are not packed.

Needs: fused tensor programs that are not scheduled. Leaves: the same results.
Source: TVM `AlterOpImpl` with `LiftTransformParams`.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions, lifted_parameters
from relax_mlir.analysis.memory import RESHAPE
from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import CallTirOp, TensorType
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.legalize.kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    fill,
    generic,
    index,
    scalar,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, erase_unused_makers, safe_erase, walk_ops
from relax_mlir.schedule.backends import backend_of
from relax_mlir.schedule.build.packed_constants import (
    fill_filters,
    known_weights,
    packed_constant,
)
from relax_mlir.symbolic import as_expr
from relax_mlir.target import Target, native
from relax_mlir.transforms.pack_weights import clone_body, replace_call

LOOPS = 7
"""Loops of a convolution without groups: image, filter, row, column; channel, u, v."""


@dataclass(frozen=True)
class PackFilters(Pass):
    """Packs the filters of convolutions into panels, which kernels read fastest."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    parameters: bool = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the calls of every graph function that has filters."""
        layouts = backend_of(self.target).layouts
        if layouts is None:
            return
        packer = _Packer(op, layouts.panel_columns)
        for function in graph_functions(op):
            packer.constants = known_weights(function, packer.reshapes)
            filters = set(packer.constants)
            if self.parameters:
                filters.update(lifted_parameters(function))
            for call in walk_ops(function, CallTirOp) if filters else ():
                packer.rewrite(function, call, filters)
            packer.packed.clear()  # of values that may be erased
            erase_unused_makers(reversed(packer.constants))


class _Packer:
    """Packs filters of one module, each once, and rewrites kernels, each once."""

    def __init__(self, module: ir.Operation, columns: int) -> None:
        self._block = module.regions[0].blocks[0]
        self._columns = columns
        self._kernels = {kernel.name: kernel for kernel in prim_funcs(module)}
        self._names = SymbolNames(self._block)
        self._filters = {name: find_filters(kernel) for name, kernel in self._kernels.items()}
        self._readers: dict[str, str] = {}
        self._packing: dict[ir.Type, str] = {}
        self.packed: dict[ir.Value, ir.Value | None] = {}
        self.constants: Mapping[ir.Value, ir.Attribute] = {}
        self.reshapes = {name for name, k in self._kernels.items() if RESHAPE in k.op.attributes}

    def rewrite(self, function: func.FuncOp, call: CallTirOp, filters: Set[ir.Value]) -> None:
        """Replaces a call that reads one of the filters by one of the packed kernel."""
        operand = self._filters.get(call.callee_name)
        if operand is None or call.ins[operand] not in filters:
            return
        packed = self._packed_filters(function, call.ins[operand])
        if packed is not None:
            replace_call(call, self._reader(call.callee_name, operand), operand, packed)

    def _packed_filters(self, function: func.FuncOp, filters: ir.Value) -> ir.Value | None:
        """The panels of filters; None for a constant that would become much larger."""
        if filters not in self.packed:
            panels = packed_type(TensorType.of(filters), self._columns)
            if filters in self.constants:
                known = self.constants[filters]
                self.packed[filters] = packed_constant(filters, known, panels, fill_filters)
            else:
                self.packed[filters] = self._packed_at_run_time(function, filters, panels)
        return self.packed[filters]

    def _packed_at_run_time(
        self, function: func.FuncOp, filters: ir.Value, panels: TensorType
    ) -> ir.Value:
        if filters.type not in self._packing:
            name = self._packing[filters.type] = self._names.fresh("pack_filters")
            with function.location:
                pack_filters_kernel(name, TensorType.of(filters), self._columns, self._block)
        with ir.InsertionPoint.at_block_begin(function.entry_block), function.location:
            return CallTirOp.build(self._packing[filters.type], [filters], [panels]).outs[0]

    def _reader(self, name: str, operand: int) -> str:
        if name not in self._readers:
            fresh = self._readers[name] = self._names.fresh(f"{name}_packed")
            original = self._kernels[name].op
            with ir.InsertionPoint(original):
                clone = original.operation.clone().opview
            clone.attributes["sym_name"] = ir.StringAttr.get(fresh)
            with clone.location:
                _read_packed(PrimFunc(clone), operand, self._columns)
        return self._readers[name]


def find_filters(kernel: PrimFunc) -> int | None:
    """The operand of the filters of a kernel's only reduction, if they can be packed."""
    reductions = [
        op
        for op in walk_ops(kernel.op, linalg.GenericOp)
        if REDUCTION in str(op.attributes["iterator_types"])
    ]
    if len(reductions) != 1:
        return None
    convolution = reductions[0]
    maps = [attribute.value for attribute in convolution.attributes["indexing_maps"]]
    if len(maps) != 3 or maps[0].n_dims != LOOPS:
        return None
    wanted = [affine_map(LOOPS, [1, 4, 5, 6]), affine_map(LOOPS, [0, 1, 2, 3])]
    windows = not isinstance(maps[0].results[2], ir.AffineDimExpr)
    if maps[1:] != wanted or not windows or not _zeros(convolution.operands[2]):
        return None
    filters = convolution.operands[1]
    if filters not in kernel.ins or len(list(filters.uses)) != 1:
        return None
    sums = ir.ShapedType(convolution.operands[2].type).element_type
    return kernel.ins.index(filters) if isinstance(sums, ir.F32Type) else None


def _zeros(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, linalg.FillOp)


def packed_type(filters: TensorType, columns: int) -> TensorType:
    """The type of packed filters, from that of filters [o, c, u, v]."""
    assert filters.dims is not None, filters
    o, c, u, v = filters.dims
    panels = None if o is None else (o + (columns - 1)) // columns
    return TensorType((panels, v, u, c, as_expr(columns)), filters.element)


def pack_filters_kernel(
    name: str, filters: TensorType, columns: int, block: ir.Block
) -> func.FuncOp:
    """Adds the tensor program that packs filters to `block`, the body of a module.

    Columns past the last filter are zero.
    """
    kernel = KernelBuilder(name, [filters], [packed_type(filters, columns)], block)
    with kernel.insertion_point:
        source, out = kernel.ins[0], kernel.outs[0]
        count = dim(source, 0)

        def element(_: ir.Value) -> ir.Value:
            panel, v, u, c, column = (linalg.IndexOp(i).result for i in range(5))
            first = arith.MulIOp(panel, index(columns)).result
            channel = arith.AddIOp(first, column).result
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, channel, count).result
            channel = arith.MinUIOp(channel, arith.SubIOp(count, index(1)).result).result
            value = tensor.ExtractOp(source, [channel, c, u, v]).result
            return arith.SelectOp(inside, value, scalar(filters.element, 0)).result

        result = generic([], [out], [affine_map(5, range(5))], [PARALLEL] * 5, element)
        return kernel.finish(*result)


def _read_packed(kernel: PrimFunc, operand: int, columns: int) -> None:
    """Makes a kernel take its filters in panels: the sums over panels are collapsed and sliced."""
    argument = kernel.ins[operand]
    use = next(iter(argument.uses)).owner.opview
    argument.set_type(packed_type(TensorType.of(argument), columns).to_mlir())
    inputs = [value.type for value in kernel.arguments]
    signature = ir.FunctionType.get(inputs, list(kernel.op.type.results))
    kernel.op.attributes["function_type"] = ir.TypeAttr.get(signature)
    with ir.InsertionPoint(use):
        cut = _panel_sums(use, argument, columns)
    use.results[0].replace_all_uses_with(cut)
    safe_erase(use)


def _panel_sums(use: linalg.GenericOp, packed: ir.Value, columns: int) -> ir.Value:
    """The sums over windows and panels as [n, o, y, x], into the output of `use`."""
    image, _, initial = use.operands
    f32, dynamic = ir.F32Type.get(), ir.ShapedType.get_dynamic_size()
    n, o, y, x = ir.RankedTensorType(initial.type).shape
    panels = ir.RankedTensorType(packed.type).shape[0]
    sizes = [dim(initial, i) if e == dynamic else e for i, e in enumerate((n, o, y, x))]
    count = dim(packed, 0) if panels == dynamic else panels
    blocks = fill(scalar(f32, 0), empty([sizes[0], count, columns, *sizes[2:]], f32))
    window = use.attributes["indexing_maps"][0].value
    # Loops from the filter on are shifted by one: the panel loop comes before them.
    loops = [ir.AffineExpr.get_dim(i if i < 1 else i + 1) for i in range(LOOPS)]
    shifted = ir.AffineMap.get(LOOPS + 1, 0, loops)
    maps = [
        affine_map(LOOPS + 1, [e.compose(shifted) for e in window.results]),
        affine_map(LOOPS + 1, [1, 7, 6, 5, 2]),
        affine_map(LOOPS + 1, [0, 1, 2, 3, 4]),
    ]
    iterators = [PARALLEL] * 5 + [REDUCTION] * 3
    summed = generic([image, packed], [blocks], maps, iterators, clone_body(use))[0]
    width = dynamic if panels == dynamic else panels * columns
    flat_type = ir.RankedTensorType.get([n, width, y, x], f32)
    flat = tensor.CollapseShapeOp(flat_type, summed, [[0], [1, 2], [3], [4]]).result
    values = [size for size in sizes if isinstance(size, ir.Value)]
    part = tensor.ExtractSliceOp(
        initial.type, flat, [], values, [], [0] * 4, [n, o, y, x], [1] * 4
    ).result
    return elementwise([part], initial.owner.opview.operands[1], lambda value: value)
