"""Packs the weights of matmuls into panels, which kernels read fastest.

    %y = "graph.call_tir"(%w, %x) {callee = @matmul}             // %w is a parameter, [n, k]
      ->
    %p = "graph.call_tir"(%w) {callee = @pack_weights}           // [ceil(n / 32), k, 32]
    %y = "graph.call_tir"(%p, %x) {callee = @matmul_packed}

Parameters are the arguments from `graph.num_inputs` on. One, what is computed from them alone, or a
constant is packed if a kernel reads it only as the right side of a matrix product with float32
sums, or of a product of 8-bit integers with 32-bit sums. Constants are packed at once, unless that
takes much more memory; for others, `relax-lift-params` moves the packing to a function that runs
once. With `parameters=false`, only constants are packed: signatures stay.

A kernel that reads single elements of such a weight, such as an embedding lookup, reads them from
the panels too, so that the weight is stored once.

If the kernel multiplies elements that are widened from bf16 on both sides, and k is known, the
panels are of pairs, [ceil(n / 32), ceil(k / 2), 32, 2]: some targets have dot products of pairs,
and others widen them without shuffles, if k is even. Panels of 8-bit integers are of groups of the
size that a lane of the target multiplies, [ceil(n / 32), ceil(k / 4), 32, 4]; if the target needs
unsigned elements, signed ones are biased by 128.

Needs: fused tensor programs, not scheduled. Leaves: the same results.
Source: TVM `AlterOpImpl` with `LiftTransformParams`.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from relax_mlir.analysis.functions import graph_functions, lifted_parameters
from relax_mlir.analysis.liftable import liftable
from relax_mlir.analysis.memory import RESHAPE
from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import CallTirOp, TensorType, annotation_of, static_extent
from relax_mlir.dialects.tir import ZERO_PADDED, PrimFunc, prim_funcs
from relax_mlir.legalize.kernel import (
    PARALLEL,
    REDUCTION,
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
from relax_mlir.rewriting import (
    SymbolNames,
    defining_op,
    erase_unused_makers,
    safe_erase,
    walk_ops,
)
from relax_mlir.schedule.backend import Layouts
from relax_mlir.schedule.backends import backend_of
from relax_mlir.schedule.build.packed_constants import (
    fill_weights,
    known_weights,
    packed_constant,
)
from relax_mlir.schedule.build.packed_weights import (
    ALONE,
    PAIRS,
    Groups,
    biased,
    pack_weights_kernel,
    packed_type,
    panel_element,
)
from relax_mlir.target import Target, native

FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)
LAYOUTS = {(0, 1): "nk", (1, 0): "kn"}
"""Layout by the loops (0 is n, 1 is k) that the right side's dims follow."""


@dataclass(frozen=True)
class PackWeights(Pass):
    """Packs the weights of matmuls into panels, which kernels read fastest."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    parameters: bool = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the calls of every graph function that has weights."""
        layouts = backend_of(self.target).layouts
        if layouts is None:
            return
        packer = _Packer(op, layouts)
        for function in graph_functions(op):
            packer.constants = known_weights(function, packer.reshapes)
            weights, known = set(packer.constants), set(packer.constants)
            if self.parameters:
                weights.update(lifted_parameters(function))
                known = {*weights, *(out for call in liftable(function) for out in call.outs)}
            for call in walk_ops(function, CallTirOp) if known else ():
                packer.rewrite(function, call, known)
            packer.share(weights)
            packer.packed.clear()  # of values that may be erased
            erase_unused_makers(reversed(packer.constants))


@dataclass(frozen=True)
class _Product:
    """The matrix product of a kernel: the operand that is a weight, and its layout.

    In groups of two, both sides are exact in bf16, or they are integers.
    """

    operand: int
    layout: str
    groups: Groups


class _Packer:
    """Packs weights of one module, each once, and rewrites kernels, each once."""

    def __init__(self, module: ir.Operation, layouts: Layouts) -> None:
        self.block = module.regions[0].blocks[0]
        self.columns = layouts.panel_columns
        self.kernels = {kernel.name: kernel for kernel in prim_funcs(module)}
        self.names = SymbolNames(self.block)
        self.products = {name: find_product(k, layouts) for name, k in self.kernels.items()}
        self.packed_kernels: dict[tuple[str, _Product], str] = {}
        self.packing: dict[tuple[ir.Type, str, Groups], str] = {}
        self.packed: dict[tuple[ir.Value, str, Groups], ir.Value | None] = {}
        self.constants: Mapping[ir.Value, ir.Attribute] = {}
        self.reshapes = {name for name, k in self.kernels.items() if RESHAPE in k.op.attributes}

    def rewrite(self, function: func.FuncOp, call: CallTirOp, weights: Set[ir.Value]) -> None:
        """Replaces a call that multiplies with one of the weights by one of the packed kernel."""
        product = self.products.get(call.callee_name)
        if product is None or call.ins[product.operand] not in weights:
            return
        packed = self._packed(function, call.ins[product.operand], product)
        if packed is None:
            return
        name = self._packed_kernel(call.callee_name, product)
        replace_call(call, name, product.operand, packed)

    def share(self, weights: Set[ir.Value]) -> None:
        """Makes lookups read panels, unless another kernel needs the plain weight."""
        first: dict[ir.Value, tuple[str, Groups, ir.Value]] = {}
        for (weight, layout, groups), panels in self.packed.items():
            if weight in weights and panels is not None:
                first.setdefault(weight, (layout, groups, panels))
        for weight, (layout, groups, panels) in first.items():
            calls = [use.owner.opview for use in weight.uses]
            readers = [op for op in calls if _callee(op) not in self.packing.values()]
            if all(map(self._looks_up, readers, [weight] * len(readers))):
                for call in readers:
                    operand = call.ins.index(weight)
                    product = _Product(operand, layout, groups)
                    name = self._packed_kernel(call.callee_name, product, look_up_packed)
                    replace_call(call, name, operand, panels)

    def _looks_up(self, call: ir.OpView, weight: ir.Value) -> bool:
        """Whether a call reads only single elements of a weight."""
        if not isinstance(call, CallTirOp) or call.ins.count(weight) != 1:
            return False
        if call.callee_name not in self.kernels:
            return False  # a packed kernel, whose left side is the weight too
        argument = self.kernels[call.callee_name].ins[call.ins.index(weight)]
        reads = [use.owner.opview for use in argument.uses]
        extents = ir.RankedTensorType(argument.type)
        return not any(map(extents.is_dynamic_dim, range(extents.rank))) and all(
            isinstance(op, tensor.ExtractOp | tensor.DimOp) for op in reads
        )

    def _packed(
        self, function: func.FuncOp, weight: ir.Value, product: _Product
    ) -> ir.Value | None:
        """The panels of a weight; None for a constant that would become much larger."""
        key = (weight, product.layout, product.groups)
        if key not in self.packed:
            panels = packed_type(
                TensorType.of(weight), self.columns, product.layout, product.groups
            )
            if weight in self.constants:
                fill = partial(fill_weights, layout=product.layout, groups=product.groups)
                self.packed[key] = packed_constant(weight, self.constants[weight], panels, fill)
            else:
                self.packed[key] = self._packed_at_run_time(function, weight, product, panels)
        return self.packed[key]

    def _packed_at_run_time(
        self, function: func.FuncOp, weight: ir.Value, product: _Product, panels: TensorType
    ) -> ir.Value:
        layout, groups = product.layout, product.groups
        kind = (weight.type, layout, groups)
        if kind not in self.packing:
            name = self.names.fresh("pack_weights")
            with function.location:
                annotation = TensorType.of(weight)
                pack_weights_kernel(name, annotation, self.columns, self.block, layout, groups)
            self.packing[kind] = name
        with _where_known(weight, function), function.location:
            return CallTirOp.build(self.packing[kind], [weight], [panels]).outs[0]

    def _packed_kernel(self, name: str, product: _Product, read: Callable | None = None) -> str:
        key = (name, product)
        if key not in self.packed_kernels:
            fresh = self.names.fresh(f"{name}_packed")
            original = self.kernels[name].op
            with ir.InsertionPoint(original):
                clone = original.operation.clone().opview
            clone.attributes["sym_name"] = ir.StringAttr.get(fresh)
            with clone.location:
                (read or read_packed)(PrimFunc(clone), product, self.columns)
            self.packed_kernels[key] = fresh
        return self.packed_kernels[key]


def _where_known(weight: ir.Value, function: func.FuncOp) -> ir.InsertionPoint:
    """Behind what makes a weight, or at the beginning for a parameter."""
    if isinstance(weight.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(function.entry_block)
    return ir.InsertionPoint.after(weight.owner)


def _callee(op: ir.OpView) -> str:
    return op.callee_name if isinstance(op, CallTirOp) else ""


def replace_call(call: CallTirOp, callee: str, operand: int, packed: ir.Value) -> None:
    """Replaces a call by that of a kernel which takes the weight in panels."""
    ins = call.ins
    ins[operand] = packed
    with ir.InsertionPoint(call), call.location:
        types = [annotation_of(out) for out in call.outs]
        new = CallTirOp.build(callee, ins, types, call.symbol_arguments)
    for old, value in zip(call.outs, new.outs):
        old.replace_all_uses_with(value)
    safe_erase(call)


def find_product(kernel: PrimFunc, layouts: Layouts) -> _Product | None:
    """Returns the kernel's only matrix product if its right side can be packed in such layouts."""
    contractions = [
        op
        for op in walk_ops(kernel.op, linalg.GenericOp)
        if REDUCTION in str(op.attributes["iterator_types"])
    ]
    if len(contractions) != 1:
        return None
    maps = [a.value for a in contractions[0].attributes["indexing_maps"]]
    loops = [loops_ for map_ in maps if (loops_ := _loops(map_)) is not None]
    if len(maps) != 3 or len(loops) != 3 or len(loops[1]) != 2:
        return None
    n = len(loops[2]) - 1
    first, second = loops[1]
    layout = LAYOUTS.get((first - n, second - n))
    rows = tuple(range(n))
    if not n or loops[0] != (*rows, n + 1) or loops[2] != (*rows, n) or layout is None:
        return None
    weight = contractions[0].operands[1]
    initial = contractions[0].operands[2].owner
    zeros = not isinstance(initial, ir.Block) and isinstance(initial.opview, linalg.FillOp)
    if weight not in kernel.ins or len(list(weight.uses)) != 1 or not zeros:
        return None
    dims = TensorType.of(weight).dims or ()
    k = static_extent(dims[layout.index("k")])
    in_pairs = k is not None and k > 0 and (k % 2 == 0 or layouts.multiplies("bf16"))
    groups = _groups(contractions[0], layouts, in_pairs)
    return None if groups is None else _Product(kernel.ins.index(weight), layout, groups)


def _groups(product: linalg.GenericOp, layouts: Layouts, in_pairs: bool) -> Groups | None:
    """The groups in which kernels read the right side; None if it cannot be packed."""
    left, right, total = (ir.ShapedType(value.type).element_type for value in product.operands)
    if isinstance(total, ir.F32Type):
        if not isinstance(left, FLOATS) or not isinstance(right, FLOATS):
            return None
        return PAIRS if in_pairs and _multiplies_bf16(product) else ALONE
    i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
    signs = _multiplies_integers(product)
    if (left, right, total) != (i8, i8, i32) or signs is None:
        return None
    return layouts.int8_groups(*signs)


def _multiplies_integers(product: linalg.GenericOp) -> tuple[bool, bool] | None:
    """Whether left and right are signed, if both are widened for a sum of products."""
    block = product.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1]
    total = defining_op(last.operands[0], arith.AddIOp)
    terms = [x for x in total.operands if x != block.arguments[2]] if total else []
    factors = defining_op(terms[0], arith.MulIOp) if len(terms) == 1 else None
    signs: dict[int, bool] = {}
    for factor in factors.operands if factors else ():
        for kind in (arith.ExtSIOp, arith.ExtUIOp):
            extension = defining_op(factor, kind)
            if extension is not None and extension.operands[0] in block.arguments:
                index_ = ir.BlockArgument(extension.operands[0]).arg_number
                signs[index_] = kind is arith.ExtSIOp
    return (signs[0], signs[1]) if sorted(signs) == [0, 1] else None


def _multiplies_bf16(product: linalg.GenericOp) -> bool:
    """Whether both factors are widened from bf16."""
    block = product.regions[0].blocks[0]
    products = [op for op in block.operations if isinstance(op, arith.MulFOp)]
    return len(products) == 1 and all(map(_is_widened_bf16, products[0].operands))


def _is_widened_bf16(value: ir.Value) -> bool:
    extension = defining_op(value, arith.ExtFOp)
    return extension is not None and isinstance(extension.operands[0].type, ir.BF16Type)


def _loops(map_: ir.AffineMap) -> tuple[int, ...] | None:
    exprs = list(map_.results)
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in exprs):
        return None
    return tuple(ir.AffineDimExpr(expr).position for expr in exprs)


def read_packed(kernel: PrimFunc, product: _Product, columns: int) -> None:
    """Makes a kernel take its weight in panels: the product over panels is collapsed and sliced."""
    argument = kernel.ins[product.operand]
    use = next(iter(argument.uses)).owner.opview
    extents = ir.RankedTensorType(argument.type).shape
    is_odd = product.groups == PAIRS and extents[product.layout.index("k")] % 2 == 1
    _take_packed(kernel, product, columns)
    if is_odd:
        kernel.op.attributes[ZERO_PADDED] = ir.UnitAttr.get()
    with ir.InsertionPoint(use):
        cut = _panel_product(use, argument, columns, product.groups, is_odd)
    use.results[0].replace_all_uses_with(cut)
    safe_erase(use)


def look_up_packed(kernel: PrimFunc, product: _Product, columns: int) -> None:
    """Makes a kernel read single elements of its weight, whose dims are known, from panels."""
    argument = kernel.ins[product.operand]
    extents = ir.RankedTensorType(argument.type).shape
    reads = [use.owner.opview for use in argument.uses]
    _take_packed(kernel, product, columns)
    for op in reads:
        with ir.InsertionPoint(op):
            if isinstance(op, tensor.DimOp):
                new = index(extents[op.index.owner.opview.literal_value])
            else:
                row, k = (op.indices[product.layout.index(letter)] for letter in "nk")
                new = panel_element(argument, row, k, columns, product.groups)
        op.results[0].replace_all_uses_with(new)
        safe_erase(op)


def _take_packed(kernel: PrimFunc, product: _Product, columns: int) -> None:
    """Changes the type of a kernel's weight to that of its panels."""
    argument = kernel.ins[product.operand]
    annotation = packed_type(TensorType.of(argument), columns, product.layout, product.groups)
    argument.set_type(annotation.to_mlir())
    inputs = [value.type for value in kernel.arguments]
    results = list(kernel.op.type.results)
    signature = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    kernel.op.attributes["function_type"] = signature


def _panel_product(
    use: linalg.GenericOp, packed: ir.Value, columns: int, groups: Groups, is_odd: bool
) -> ir.Value:
    """lhs [.., m, k] times panels [p, k, columns] as [.., m, n], into the output of `use`.

    The panels are [p, ceil(k / size), columns, size] if `groups` have a size above 1.
    """
    lhs, _, initial = use.operands
    element = ir.RankedTensorType(initial.type).element_type
    dynamic = ir.ShapedType.get_dynamic_size()
    *rows, n = ir.RankedTensorType(initial.type).shape
    count = len(rows)
    panels = ir.RankedTensorType(packed.type).shape[0]
    sizes = [dim(lhs, i) if extent == dynamic else extent for i, extent in enumerate(rows)]
    width = dim(initial, count) if n == dynamic else n
    shape = [*sizes, dim(packed, 0) if panels == dynamic else panels, columns]
    blocks = empty(shape, element)
    outer, p, j = list(range(count)), count, count + 1
    maps, loops = _panel_maps(outer, groups, isinstance(element, ir.FloatType) and not is_odd)
    iterators = [PARALLEL] * (count + 2) + [REDUCTION] * (loops - count - 2)
    zeros = fill(scalar(element, 0), blocks)
    repeat = clone_body(use)

    def body(left: ir.Value, right: ir.Value, total: ir.Value) -> list[ir.Value]:
        return repeat(left, biased(right, groups), total)

    summed = generic([lhs, packed], [zeros], maps, iterators, body)[0]
    flat_type = ir.RankedTensorType.get(
        [*rows, dynamic if panels == dynamic else panels * columns], element
    )
    joined = [*([i] for i in outer), [p, j]]
    flat = tensor.CollapseShapeOp(flat_type, summed, joined).result
    dynamic_sizes = [size for size in (*sizes, width) if isinstance(size, ir.Value)]
    zero, unit = [0] * (count + 1), [1] * (count + 1)
    part = tensor.ExtractSliceOp(
        initial.type, flat, [], dynamic_sizes, [], zero, [*rows, n], unit
    ).result
    destination = initial.owner.opview.operands[1]
    return elementwise([part], destination, lambda x: x)


def _panel_maps(
    outer: Sequence[int], groups: Groups, by_group: bool
) -> tuple[list[ir.AffineMap], int]:
    """The maps of a product over panels, and the count of its loops.

    The loops are rows, panel, column and k; or, with `by_group`, group along k and element in it.
    """
    p, j, step, one = range(len(outer), len(outer) + 4)
    size = groups.size
    k = ir.AffineExpr.get_dim(step)
    right: list[ir.AffineExpr | int]
    loops, left, right = one, k, [p, step, j]
    if size > 1 and by_group:
        element = ir.AffineExpr.get_dim(one)
        loops, left, right = one + 1, k * size + element, [p, step, j, one]
    elif size > 1:
        right = [p, ir.AffineExpr.get_floor_div(k, size), j, k % size]
    maps: tuple[Sequence[ir.AffineExpr | int], ...] = ([*outer, left], right, [*outer, p, j])
    return [affine_map(loops, results) for results in maps], loops


def clone_body(use: linalg.GenericOp):
    """The body of a generic, as a function that clones it for other operands."""

    def body(*values: ir.Value) -> list[ir.Value]:
        block = use.regions[0].blocks[0]
        known = dict(zip(block.arguments, values))
        *steps, terminator = list(block.operations)
        for step in steps:
            copy = step.operation.clone()
            for position, operand in enumerate(step.operands):
                copy.operands[position] = known.get(operand, operand)
            known.update(zip(step.results, copy.results))
        return [known[value] for value in terminator.operands]

    return body
