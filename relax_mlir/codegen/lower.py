"""Lowers loops, vectors and memrefs to the LLVM dialect, and that to LLVM IR text.

    func, scf, vector, memref, arith, math, llvm  ->  llvm  ->  text

The index type is 64 bits wide everywhere. `memref.alloc` and `memref.dealloc` become calls of
`_mlir_memref_to_llvm_alloc` and `_mlir_memref_to_llvm_free`, the runtime's scratch stack.

Needs: math ops without a machine instruction expanded, parallel loops outlined.
Leaves: ops of the LLVM dialect only; other ops are reported, since the translator crashes on them.
"""

from collections.abc import Callable, Iterator
from math import prod

from relax_mlir.bindings import ir, llvm
from relax_mlir.codegen import aarch64, x86
from relax_mlir.codegen.arm import expand_extrema
from relax_mlir.codegen.masked_loads import split_masked_loads
from relax_mlir.codegen.masked_stores import split_masked_stores
from relax_mlir.codegen.multiply_add import allow_relaxed, replace_fma
from relax_mlir.codegen.widening import widen_halves, widen_in_steps
from relax_mlir.diagnostics import Diagnostic, compile_error, diagnostics_of
from relax_mlir.passes import run_upstream
from relax_mlir.target import KNOWN_VECTOR, WASM, Cpu

# Each pass with what holds after it.
PIPELINE = (
    ("func.func(lower-vector-multi-reduction)", "reductions are of vectors to scalars"),
    ("func.func(lower-vector-mask)", "masks are operands of loads, stores and reductions"),
    ("convert-vector-to-scf{full-unroll}", "transfers are of one dim, unrolled"),
    ("arith-expand{include-bf16=true}", "rounding divisions and bf16 conversions are plain ops"),
    # Not folded into loads: that would delinearise dims that a view collapsed.
    ("expand-strided-metadata", "views are offset and stride arithmetic"),
    ("lower-affine", "affine maps are arithmetic"),
    ("convert-scf-to-cf", "loops are blocks and branches"),
    (
        "convert-vector-to-llvm{vector-contract-lowering=outerproduct}",
        "vectors have one dim; contractions are outer products, these are fused multiply-adds",
    ),
    ("convert-math-to-llvm", "math ops are intrinsics"),
    ("finalize-memref-to-llvm{use-generic-functions=true}", "memrefs are descriptors"),
    ("convert-arith-to-llvm", "arithmetic is LLVM's"),
    ("convert-index-to-llvm", "index arithmetic is LLVM's"),
    ("convert-cf-to-llvm", "branches are LLVM's"),
    ("convert-func-to-llvm", "functions take descriptors as scalars"),
    ("convert-ub-to-llvm", "poison is LLVM's"),
    ("reconcile-unrealized-casts", "no casts between memrefs and descriptors are left"),
)
# Passes that are skipped if the module has none of the ops that they rewrite.
ONLY_FOR = {
    "func.func(lower-vector-multi-reduction)": {"vector.multi_reduction"},
    "func.func(lower-vector-mask)": {"vector.mask"},
    "convert-vector-to-scf{full-unroll}": {"vector.transfer_read", "vector.transfer_write"},
}

_MULTIPLY_ADD = frozenset({"arith.addf", "arith.subf", "arith.mulf", "arith.negf"})
_NO_FLAGS = "#arith.fastmath<none>"
_BRANCHES = frozenset({"llvm.br", "llvm.cond_br"})
_LOOP_ANNOTATION = "llvm.loop_annotation"


def allow_contraction(module: ir.Module) -> None:
    """Lets multiplications and additions of scheduled kernels fuse, in place.

        %p = arith.mulf %a, %b : f32   ->   %p = arith.mulf %a, %b fastmath<contract> : f32

    Ops that have fast-math flags keep them. Run it before math expansions, some of which rely on
    the rounding of each step.
    """
    with module.context:
        for function in _scheduled(module):
            fuse_multiply_adds(function)


def fuse_multiply_adds(function: ir.Operation) -> None:
    """`allow_contraction` of one function, in the current context."""
    contract = ir.Attribute.parse("#arith.fastmath<contract>")

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in _MULTIPLY_ADD and str(op.attributes["fastmath"]) == _NO_FLAGS:
            op.attributes["fastmath"] = contract
        return ir.WalkResult.ADVANCE

    function.walk(visit)


def lower_to_llvm(module: ir.Module, cpu: Cpu) -> None:
    """Lowers a module to the LLVM dialect for a target, in place.

    Buffers of functions marked `tir.scheduled` are taken not to overlap one another where one of
    them is written. Raises CompileError, located, if an op has no lowering.
    """
    with module.context, ir.Location.unknown():
        data_pointers = {
            ir.StringAttr(function.attributes["sym_name"]).value: _data_pointers(function)
            for function in _scheduled(module)
        }
        if (cpu.arch == "x86_64" and not cpu.has("fma")) or cpu.arch == WASM:
            replace_fma(module)
        if cpu.arch == "x86_64":
            x86.use_instructions(module, cpu)
        if cpu.arch == "aarch64":
            aarch64.use_instructions(module, cpu)
        names = _names(module.operation)
        if "arith.extf" in names:
            widen_in_steps(module)
            if cpu.arch == WASM:
                widen_halves(module)
        if cpu.arch == WASM and "vector.maskedload" in names:
            split_masked_loads(module)
        if "vector.maskedstore" in names:
            split_masked_stores(module, cpu)
        try:
            module.operation.verify()
            for text, _ in PIPELINE:
                if ONLY_FOR.get(text, names) & names:
                    run_upstream(f"builtin.module({text})", module.operation)
        except ir.MLIRError as error:
            raise compile_error(diagnostics_of(error)) from None
        _check_lowered(module, annotate_loop)
        if cpu.arch == "armv7":
            expand_extrema(module)
        if cpu.has("relaxed-simd"):
            allow_relaxed(module)
        scale = _vector_scale(module, cpu)
        for function in module.body.operations:
            if function.operation.name == "llvm.func" and len(function.regions[0].blocks):
                _set_attributes(function.operation, cpu, data_pointers)
                if scale is not None and not _reads_scale(function.operation):
                    function.operation.attributes["vscale_range"] = scale


def to_llvm_ir(module: ir.Module, is_checked: bool = False) -> str:
    """The LLVM IR text of a module of the LLVM dialect; CompileError if it has any other op.

    `is_checked` says that it comes from `lower_to_llvm`, which checks this.
    """
    if not is_checked:
        _check_lowered(module)
    return llvm.translate_module_to_llvmir(module.operation)


def _names(root: ir.Operation) -> set[str]:
    """The names of an op and of those in it."""
    names: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(op.name)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return names


def annotate_loop(op: ir.Operation) -> None:
    """Turns a loop annotation, which `convert-scf-to-cf` leaves on branches, into LLVM's."""
    if _LOOP_ANNOTATION in op.attributes:
        op.attributes["loop_annotation"] = op.attributes[_LOOP_ANNOTATION]
        del op.attributes[_LOOP_ANNOTATION]


def _check_lowered(module: ir.Module, then: Callable[[ir.Operation], None] | None = None) -> None:
    """Raises a CompileError that names each op outside the LLVM dialect once.

    Calls `then` on each branch.
    """
    left: dict[str, Diagnostic] = {}
    plain = {"builtin.module"}

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name in plain:
            return ir.WalkResult.ADVANCE
        if name.startswith("llvm."):
            if name not in _BRANCHES:
                plain.add(name)
            elif then:
                then(op)
            return ir.WalkResult.ADVANCE
        message = (
            f"'{name}' op has no lowering to LLVM; code generation takes func, scf, cf, arith, "
            "math, vector, memref and llvm ops on vectors, memrefs and scalars"
        )
        left.setdefault(name, Diagnostic.at(op.location, "error", message))
        return ir.WalkResult.SKIP  # nested ops are left because this one is

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    # A remaining cast belongs to another remaining op, if there is one.
    cast = left.pop("builtin.unrealized_conversion_cast", None)
    if left:
        raise compile_error(tuple(left.values()))
    if cast:
        raise compile_error((cast,))


def _scheduled(module: ir.Module) -> Iterator[ir.Operation]:
    for op in module.body.operations:
        if "tir.scheduled" in op.operation.attributes:
            yield op.operation


def _data_pointers(function: ir.Operation) -> list[int]:
    """The positions, in the lowered signature, of the pointers by which kernels access memory.

    A memref of rank r is passed as 3 + 2r scalars: allocated and aligned pointer, offset, sizes,
    strides. Source: MLIR, LLVM IR target, default calling convention for ranked memrefs.
    """
    positions, at = [], 0
    for type in ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs:
        if isinstance(type, ir.MemRefType):
            positions.append(at + 1)
            at += 3 + 2 * type.rank
        else:
            at += 1
    return positions


def _vector_scale(module: ir.Module, cpu: Cpu) -> ir.Attribute | None:
    """What LLVM may assume of scalable vectors, in units of 16 bytes of SVE, or of 8 of RVV.

    None if it need not, because the target has no such vectors or no op makes a long one.
    """
    if not cpu.vector_length:
        return None
    is_long = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal is_long
        is_long = is_long or any(_bytes(result.type) > KNOWN_VECTOR for result in op.results)
        return ir.WalkResult.INTERRUPT if is_long else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not is_long:
        return None
    unit, has_more = (8, True) if cpu.arch == "riscv64" else (16, False)
    least = cpu.vector_length // unit
    most = 0 if has_more else least
    return ir.Attribute.parse(
        f"#llvm.vscale_range<minRange = {least} : i32, maxRange = {most} : i32>"
    )


def _reads_scale(function: ir.Operation) -> bool:
    """Whether a function asks for the length of vectors: LLVM must not answer by the assumption."""
    return "llvm.intr.vscale" in _names(function)


def _bytes(kind: ir.Type) -> int:
    """The bytes of a vector, 0 of another type."""
    if not isinstance(kind, ir.VectorType):
        return 0
    bits = getattr(ir.VectorType(kind).element_type, "width", 64)
    return prod(ir.VectorType(kind).shape) * bits // 8


def _set_attributes(function: ir.Operation, cpu: Cpu, data_pointers: dict[str, list[int]]) -> None:
    """Adds what LLVM cannot know: no exceptions, vector widths, alignment, disjoint buffers."""
    bits = ir.StringAttr.get(str(8 * cpu.vector_bytes))
    attributes: list[ir.Attribute] = [ir.StringAttr.get("nounwind")]
    if cpu.arch == "x86_64":
        attributes += [
            ir.ArrayAttr.get([ir.StringAttr.get(name), bits])
            for name in ("prefer-vector-width", "min-legal-vector-width")
        ]
        # LLVM spills vectors to a stack that is aligned to 16 bytes only: some cross cache lines.
        alignment = ir.StringAttr.get(str(cpu.vector_bytes))
        attributes.append(ir.ArrayAttr.get([ir.StringAttr.get("alignstack"), alignment]))
    given = function.attributes["passthrough"] if "passthrough" in function.attributes else ()
    function.attributes["passthrough"] = ir.ArrayAttr.get([*given, *attributes])
    positions = data_pointers.get(ir.StringAttr(function.attributes["sym_name"]).value)
    if positions:
        noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        none = ir.DictAttr.get({})
        count = len(function.regions[0].blocks[0].arguments)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [noalias if i in positions else none for i in range(count)]
        )
