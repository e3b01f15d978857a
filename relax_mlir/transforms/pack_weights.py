"""Turns the weights of matmuls into panels, the layout that kernels read fastest.

    %y = "graph.call_tir"(%w, %x) {callee = @matmul}             // %w is a parameter, [n, k]
      ->
    %p = "graph.call_tir"(%w) {callee = @pack_weights}           // [ceil(n / 32), k, 32]
    %y = "graph.call_tir"(%p, %x) {callee = @matmul_packed}

Parameters are the arguments from `graph.num_inputs` on. A weight is packed where a kernel reads
it as the right side of a matrix product with float32 sums only. `relax-lift-params` then has the
packing done once, ahead of the calls.

Where the target multiplies pairs of bf16 numbers, and the kernel multiplies numbers widened from
bf16 on both sides, the panels are of pairs, [ceil(n / 32), k / 2, 32, 2], if k is known and even.

Needs: fused tensor programs, not scheduled. Leaves: the same results.
Source: TVM `AlterOpImpl` with `LiftTransformParams`.
"""

from dataclasses import dataclass

from relax_mlir.analysis.functions import NUM_INPUTS, graph_functions
from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import CallTirOp, TensorType, annotation_of
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.legalize.kernel import (
    PARALLEL,
    REDUCTION,
    affine_map,
    dim,
    elementwise,
    empty,
    fill,
    generic,
    scalar,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import safe_erase, walk_ops
from relax_mlir.schedule.cpu.multiply_add import has_pairs
from relax_mlir.schedule.pack_weights import pack_weights_kernel, packed_type, panel_columns
from relax_mlir.target import Target

FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)
LAYOUTS = {(1, 2): "nk", (2, 1): "kn"}
"""Layout by the loops (0 is m, 1 is n, 2 is k) that the right side's dims follow."""


@dataclass(frozen=True)
class PackWeights(Pass):
    """Turns the weights of matmuls into panels, the layout that kernels read fastest."""

    target: str = "native"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the calls of every graph function that has parameters."""
        target = Target.parse(self.target)
        packer = _Packer(op, panel_columns(target), has_pairs(target))
        for function in graph_functions(op):
            if NUM_INPUTS not in function.attributes:
                continue
            parameters = function.arguments[function.attributes[NUM_INPUTS].value :]
            known = {value: index for index, value in enumerate(parameters)}
            for call in walk_ops(function, CallTirOp):
                packer.rewrite(function, call, known)


@dataclass(frozen=True)
class _Product:
    """The matrix product of a kernel: the operand that is a weight, and its layout.

    With `pairs`, both sides are numbers that bf16 holds, and k is even.
    """

    operand: int
    layout: str
    pairs: bool


class _Packer:
    """Packs weights of one module, each once, and rewrites kernels, each once."""

    def __init__(self, module: ir.Operation, columns: int, has_pairs: bool) -> None:
        self.block = module.regions[0].blocks[0]
        self.columns = columns
        self.kernels = {kernel.name: kernel for kernel in prim_funcs(module)}
        self.names = {
            op.attributes["sym_name"].value
            for op in self.block.operations
            if "sym_name" in op.attributes
        }
        self.products = {name: find_product(k, has_pairs) for name, k in self.kernels.items()}
        self.packed_kernels: dict[str, str] = {}
        self.packing: dict[tuple[ir.Type, str, bool], str] = {}
        self.packed: dict[tuple[ir.Value, str, bool], ir.Value] = {}

    def rewrite(
        self, function: func.FuncOp, call: CallTirOp, parameters: dict[ir.Value, int]
    ) -> None:
        """Replaces a call whose weight is a parameter by one of the packed kernel."""
        product = self.products.get(call.callee_name)
        if product is None or call.ins[product.operand] not in parameters:
            return
        ins = call.ins
        ins[product.operand] = self._packed(function, ins[product.operand], product)
        with ir.InsertionPoint(call), call.location:
            types = [annotation_of(out) for out in call.outs]
            name = self._packed_kernel(call.callee_name, product)
            new = CallTirOp.build(name, ins, types, call.symbol_arguments)
        for old, value in zip(call.outs, new.outs):
            old.replace_all_uses_with(value)
        safe_erase(call)

    def _packed(self, function: func.FuncOp, weight: ir.Value, product: _Product) -> ir.Value:
        layout, pairs = product.layout, product.pairs
        key = (weight, layout, pairs)
        if key not in self.packed:
            annotation = TensorType.of(weight)
            kind = (weight.type, layout, pairs)
            if kind not in self.packing:
                name = self._fresh("pack_weights")
                with function.location:
                    pack_weights_kernel(name, annotation, self.columns, self.block, layout, pairs)
                self.packing[kind] = name
            result = packed_type(annotation, self.columns, layout, pairs)
            with ir.InsertionPoint.at_block_begin(function.entry_block), function.location:
                call = CallTirOp.build(self.packing[kind], [weight], [result])
            self.packed[key] = call.outs[0]
        return self.packed[key]

    def _packed_kernel(self, name: str, product: _Product) -> str:
        if name not in self.packed_kernels:
            fresh = self._fresh(f"{name}_packed")
            original = self.kernels[name].op
            with ir.InsertionPoint(original):
                clone = original.operation.clone().opview
            clone.attributes["sym_name"] = ir.StringAttr.get(fresh)
            with clone.location:
                read_packed(PrimFunc(clone), product, self.columns)
            self.packed_kernels[name] = fresh
        return self.packed_kernels[name]

    def _fresh(self, base: str) -> str:
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name


def find_product(kernel: PrimFunc, has_pairs: bool) -> _Product | None:
    """Returns the kernel's only matrix product if its right side can be packed.

    `has_pairs` says that the target multiplies pairs of bf16 numbers.
    """
    contractions = [
        op
        for op in walk_ops(kernel.op, linalg.GenericOp)
        if REDUCTION in str(op.attributes["iterator_types"])
    ]
    if len(contractions) != 1:
        return None
    maps = [a.value for a in contractions[0].attributes["indexing_maps"]]
    loops = [_loops(map_) for map_ in maps]
    if len(loops) != 3 or loops[0] != (0, 2) or loops[2] != (0, 1) or loops[1] not in LAYOUTS:
        return None
    weight = contractions[0].operands[1]
    initial = contractions[0].operands[2].owner
    zeros = not isinstance(initial, ir.Block) and isinstance(initial.opview, linalg.FillOp)
    if weight not in kernel.ins or len(list(weight.uses)) != 1 or not zeros:
        return None
    types = [ir.ShapedType(value.type).element_type for value in contractions[0].operands]
    if not isinstance(types[2], ir.F32Type) or not all(isinstance(t, FLOATS) for t in types):
        return None
    layout = LAYOUTS[loops[1]]
    k = TensorType.of(weight).dims[layout.index("k")]
    even = k is not None and k.value is not None and k.value % 2 == 0 and k.value > 0
    pairs = has_pairs and even and _multiplies_bf16(contractions[0])
    return _Product(kernel.ins.index(weight), layout, pairs)


def _multiplies_bf16(product: linalg.GenericOp) -> bool:
    """Whether both factors that are multiplied are widened from bf16."""
    block = product.regions[0].blocks[0]
    products = [op for op in block.operations if isinstance(op, arith.MulFOp)]
    return len(products) == 1 and all(map(_is_widened_bf16, products[0].operands))


def _is_widened_bf16(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, arith.ExtFOp):
        return False
    return isinstance(value.owner.operands[0].type, ir.BF16Type)


def _loops(map_: ir.AffineMap) -> tuple[int, ...] | None:
    exprs = list(map_.results)
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in exprs):
        return None
    return tuple(ir.AffineDimExpr(expr).position for expr in exprs)


def read_packed(kernel: PrimFunc, product: _Product, columns: int) -> None:
    """Makes a kernel take its weight in panels: the product over panels is flattened and cut."""
    argument = kernel.ins[product.operand]
    annotation = packed_type(TensorType.of(argument), columns, product.layout, product.pairs)
    use = next(iter(argument.uses)).owner.opview
    argument.set_type(annotation.to_mlir())
    inputs = [value.type for value in kernel.arguments]
    results = list(kernel.op.type.results)
    signature = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    kernel.op.attributes["function_type"] = signature
    with ir.InsertionPoint(use):
        cut = _panel_product(use, argument, columns, product.pairs)
    use.results[0].replace_all_uses_with(cut)
    safe_erase(use)


def _panel_product(use: linalg.GenericOp, packed: ir.Value, columns: int, pairs: bool) -> ir.Value:
    """lhs [m, k] times panels [p, k, columns] as [m, n], into the tensor that `use` filled.

    With `pairs`, the panels are [p, k / 2, columns, 2].
    """
    lhs, _, initial = use.operands
    f32 = ir.F32Type.get()
    dynamic = ir.ShapedType.get_dynamic_size()
    m, n = ir.RankedTensorType(initial.type).shape
    panels = ir.RankedTensorType(packed.type).shape[0]
    rows = dim(lhs, 0) if m == dynamic else m
    width = dim(initial, 1) if n == dynamic else n
    blocks = empty([rows, dim(packed, 0) if panels == dynamic else panels, columns], f32)
    loops = 5 if pairs else 4
    k = ir.AffineExpr.get_dim(3) * 2 + ir.AffineExpr.get_dim(4) if pairs else 3
    at = [1, 3, 2, 4] if pairs else [1, 3, 2]
    maps = [affine_map(loops, [0, k]), affine_map(loops, at), affine_map(loops, [0, 1, 2])]
    iterators = [PARALLEL] * 3 + [REDUCTION] * (loops - 3)
    zeros = fill(scalar(f32, 0), blocks)
    body = _clone_body(use)
    summed = generic([lhs, packed], [zeros], maps, iterators, body)[0]
    flat_width = dynamic if panels == dynamic else panels * columns
    flat_type = ir.RankedTensorType.get([m, flat_width], f32)
    flat = tensor.CollapseShapeOp(flat_type, summed, [[0], [1, 2]]).result
    sizes = [size for size in (rows, width) if isinstance(size, ir.Value)]
    part = tensor.ExtractSliceOp(initial.type, flat, [], sizes, [], [0, 0], [m, n], [1, 1]).result
    destination = initial.owner.opview.operands[1]
    return elementwise([part], destination, lambda x: x)


def _clone_body(use: linalg.GenericOp):
    """The scalar program of a generic, as a function that repeats it on other values."""

    def body(*values: ir.Value) -> list[ir.Value]:
        block = use.regions[0].blocks[0]
        known = dict(zip(block.arguments, values))
        *steps, terminator = list(block.operations)
        for step in steps:
            copy = step.operation.clone()
            for index, operand in enumerate(step.operands):
                copy.operands[index] = known.get(operand, operand)
            known.update(zip(step.results, copy.results))
        return [known[value] for value in terminator.operands]

    return body
