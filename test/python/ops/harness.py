"""Builds one operator as a program, legalises it, and runs it on arrays by independent routes.

    add = Program(graph.AddOp, spec("f32", "n", 1), spec("f32", "m"), route="loops")
    add(x, y)                                      # any n and m, one compilation

The route `loops` hands the tensor program to upstream MLIR: bufferization, scalar loops, libm.
The routes `O0` and `O2` are this compiler's own. `check` compares with float64 references.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

import relax_mlir
from relax_mlir.bindings import arith, func, ir, math
from relax_mlir.dialects import graph, make_context
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import replace, walk_ops
from relax_mlir.symbolic import Expr, as_expr

ROUTES = ("loops", "O0", "O2")
NUMPY = {
    "f64": np.dtype("float64"),
    "f32": np.dtype("float32"),
    "f16": np.dtype("float16"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i64": np.dtype("int64"),
    "i32": np.dtype("int32"),
    "i16": np.dtype("int16"),
    "i8": np.dtype("int8"),
    "i1": np.dtype("bool"),
}
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "i8")

# Canonicalization waits for buffers: it takes a copy into an output for a use of the input.
# Temporary buffers are not freed, since that would copy the outputs that are returned.
LOWERING = """builtin.module(
  one-shot-bufferize{bufferize-function-boundaries
                     function-boundary-type-conversion=identity-layout-map},
  canonicalize,cse,
  func.func(convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf,
  math-expand-ops{ops=rsqrt},arith-expand{include-bf16=true},
  convert-math-to-libm,convert-to-llvm,reconcile-unrealized-casts)"""


@dataclass(frozen=True)
class Spec:
    """Annotation of an operand: element type and dims, ints or expressions."""

    dtype: str
    dims: tuple[int | str, ...]


def spec(dtype: str, *dims: int | str) -> Spec:
    """An operand of the given element type and dims."""
    return Spec(dtype, dims)


class Program:
    """An operator, compiled once; calls take arrays in operand order."""

    def __init__(self, op: type, *specs: Spec, route: str, **attributes: Any) -> None:
        """Builds and compiles the op.

        Attributes are Python values, a `dtype` is text. Symbols that no operand dim is are
        passed to calls by name.
        """
        self._op, self._specs, self._writes_back = op, specs, route != "loops"
        bound = {dim for item in specs for dim in item.dims if isinstance(dim, str)}
        named = _symbols(specs, attributes)
        self._free = sorted(named - bound)
        with make_context(), ir.Location.unknown():
            module, self._results = _build(op, specs, self._free, attributes)
            self._run = _Loops(module) if route == "loops" else _Compiled(module, int(route[1]))

    def __call__(self, *arrays: np.ndarray, **symbols: int) -> Any:
        """Runs the program; returns one array, or a tuple of them."""
        values = dict(symbols)
        for item, array in zip(self._specs, arrays, strict=True):
            assert array.dtype == NUMPY[item.dtype], (array.dtype, item)
            for dim, extent in zip(item.dims, array.shape, strict=True):
                values.setdefault(dim, extent) if isinstance(dim, str) else None
        before = [array.copy() for array in arrays]
        results = self._run(list(arrays), [values[name] for name in self._free], values)
        updated = getattr(self._op, "inplace_operands", ())
        for index, (array, old) in enumerate(zip(arrays, before, strict=True)):
            if index in updated and self._writes_back:
                assert array is results[updated.index(index)]
                continue
            assert array.tobytes() == old.tobytes(), "an input was written to"
        for result, (dims, dtype) in zip(results, self._results, strict=True):
            assert result.dtype == NUMPY[dtype]
            assert result.shape == tuple(dim.evaluate(values) for dim in dims)
        return results[0] if len(results) == 1 else tuple(results)


def _symbols(specs: Sequence[Spec], attributes: Mapping[str, Any]) -> set[str]:
    texts = [dim for item in specs for dim in item.dims if isinstance(dim, str)]
    for value in attributes.values():
        if isinstance(value, list | tuple):
            texts += [item for item in value if isinstance(item, str)]
    return {name for text in texts for name in as_expr(text).symbols}


def _build(
    op: type, specs: Sequence[Spec], free: Sequence[str], attributes: Mapping[str, Any]
) -> tuple[ir.Module, list[tuple[tuple[Expr, ...], str]]]:
    """The module `main(operands, [shape of the free symbols])` around the op, and its results."""
    kinds = op.declared_attributes()
    values = {
        name: ir.Type.parse(value) if kinds[name] is ir.TypeAttr else value
        for name, value in attributes.items()
    }
    types = [
        graph.TensorType.make(item.dims, ir.Type.parse(item.dtype)).to_mlir() for item in specs
    ]
    if free:
        types.append(graph.shape_value_type(free))
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", (types, []))
        block = main.add_entry_block()
    with ir.InsertionPoint(block):
        built = op.build(*list(block.arguments)[: len(specs)], **values)
        func.ReturnOp(list(built.results))
    built.check()
    outs = [value.type for value in built.results]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, outs))
    attributes = [{} for _ in types]
    for result, index in enumerate(getattr(op, "inplace_operands", ())):
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), result)
        attributes[index] = {"graph.inout": number}
    main.arg_attrs = [ir.DictAttr.get(entry) for entry in attributes]
    assert module.operation.verify()
    annotations = [graph.TensorType.of(type_) for type_ in outs]
    return module, [(a.dims, str(a.element)) for a in annotations]


class _Compiled:
    """Runs a module through this compiler."""

    def __init__(self, module: ir.Module, opt_level: int) -> None:
        self._main = relax_mlir.compile(str(module), opt_level=opt_level)["main"]

    def __call__(self, arrays: list, free: list[int], _: Mapping[str, int]) -> list[np.ndarray]:
        results = self._main(*arrays, *([np.array(free, np.int64)] if free else []))
        return list(results) if isinstance(results, list | tuple) else [results]


class _Loops:
    """Runs the tensor program of a module's one operator through upstream MLIR and LLVM."""

    def __init__(self, module: ir.Module) -> None:
        Pipeline.parse("relax-legalize-ops").run(module, verify=True)
        calls = [op for op in module.body.operations[0].entry_block if hasattr(op, "callee_name")]
        assert len(calls) == 1
        call, self.module = calls[0], module
        ins = {value.get_name(): index for index, value in enumerate(call.ins)}
        assert len(ins) == len(call.ins)
        inplace = getattr(call, "inplace", [-1] * len(call.outs))
        self._outs = [
            (to, graph.TensorType.of(out)) for to, out in zip(inplace, call.outs, strict=True)
        ]
        self._outs = [(to, type_.dims, str(type_.element)) for to, type_ in self._outs]
        self._sym_args = call.symbol_arguments
        kernel = ir.SymbolTable(module.operation)[call.callee_name]
        module.body.operations[0].erase()
        _lower(module, kernel)
        self._engine = import_module(ir.__package__ + ".execution_engine").ExecutionEngine(
            module, opt_level=0
        )
        self._copy = _MEMREF_COPY(_memref_copy)
        self._engine.raw_register_runtime("memrefCopy", ctypes.cast(self._copy, ctypes.c_void_p))
        address = self._engine.raw_lookup("_mlir_ciface_kernel")
        assert address, "a function is missing"
        self._entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(
        self, arrays: list[np.ndarray], _: list[int], symbols: Mapping[str, int]
    ) -> list[np.ndarray]:
        outs = []
        for to, dims, dtype in self._outs:
            shape = [dim.evaluate(symbols) for dim in dims]
            # Outputs start as garbage, so that a program that reads or skips them shows.
            fresh = np.full(int(np.prod(shape)) * NUMPY[dtype].itemsize, 0x55, np.uint8)
            fresh = fresh.view(NUMPY[dtype]).reshape(shape)
            outs.append(fresh if to < 0 else arrays[to].copy())
        skipped = {to for to, *_ in self._outs}
        ins = [array for index, array in enumerate(arrays) if index not in skipped]
        indices = [ctypes.c_int64(dim.evaluate(symbols)) for dim in self._sym_args]
        # The returned descriptors come first, side by side: two pointers, offset, sizes, strides.
        words = [3 + 2 * array.ndim for array in outs]
        returned = (ctypes.c_int64 * sum(words))()
        structures = [returned, *map(_descriptor, (*ins, *outs))]
        values = [*map(ctypes.pointer, structures), *indices]
        packed = [ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values]
        self._entry((ctypes.c_void_p * len(packed))(*packed))
        for index, array in enumerate(outs):
            start = sum(words[:index])
            in_place = (returned[start + 1], returned[start + 2]) == (array.ctypes.data, 0)
            assert in_place, "a result is not computed into its output"
        return outs


def _lower(module: ir.Module, kernel: func.FuncOp) -> None:
    """Drops encodings, makes the tensor program public and lowers it to the LLVM dialect."""

    def strip(op: ir.Operation) -> ir.WalkResult:
        blocks = [block for region in op.regions for block in region.blocks]
        for value in [*op.results, *(a for block in blocks for a in block.arguments)]:
            value.set_type(_plain(value.type))
        if "function_type" in op.attributes:
            type_ = op.attributes["function_type"].value
            plain = [list(map(_plain, types)) for types in (type_.inputs, type_.results)]
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*plain))
        return ir.WalkResult.ADVANCE

    module.operation.walk(strip)
    # A program keeps the name of its operator, which may be that of a libm function it calls.
    kernel.attributes["sym_name"] = ir.StringAttr.get("kernel")
    kernel.attributes["sym_visibility"] = ir.StringAttr.get("public")
    kernel.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    for attribute in list(kernel.attributes):
        if attribute.startswith("tir.") or attribute == "arg_attrs":
            del kernel.attributes[attribute]
    for op in walk_ops(module, math.CopySignOp):
        replace(op, _copysign_as_bits(op))
    Pipeline.parse(LOWERING).run(module)


def _copysign_as_bits(op: math.CopySignOp) -> ir.Value:
    """Upstream has no lowering of it beside those to libm."""
    type_ = op.result.type
    bits = ir.IntegerType.get_signless(ir.FloatType(type_).width)
    with ir.InsertionPoint(op), op.location:
        sign = arith.ConstantOp(bits, ir.IntegerAttr.get(bits, -(2 ** (bits.width - 1)))).result
        rest = arith.XOrIOp(sign, arith.ConstantOp(bits, -1).result).result
        magnitude, other = (arith.BitcastOp(bits, value).result for value in op.operands)
        parts = arith.AndIOp(magnitude, rest).result, arith.AndIOp(other, sign).result
        return arith.BitcastOp(type_, arith.OrIOp(*parts).result).result


def _plain(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    return ir.RankedTensorType.get(type_.shape, type_.element_type)


def _descriptor(array: np.ndarray) -> ctypes.Structure:
    """The memref descriptor of a contiguous array."""
    rank = array.ndim
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p)]
    fields.append(("offset", ctypes.c_int64))
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    assert array.flags.c_contiguous
    kind = type("Descriptor", (ctypes.Structure,), {"_fields_": fields})
    values: list[Any] = [array.ctypes.data, array.ctypes.data, 0]
    if rank:
        strides = [stride // array.itemsize for stride in array.strides]
        values += [(ctypes.c_int64 * rank)(*array.shape), (ctypes.c_int64 * rank)(*strides)]
    return kind(*values)


class _Unranked(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("descriptor", ctypes.c_void_p))


_MEMREF_COPY = ctypes.CFUNCTYPE(
    None, ctypes.c_int64, ctypes.POINTER(_Unranked), ctypes.POINTER(_Unranked)
)


def _memref_copy(size: int, source: Any, target: Any) -> None:
    """The runtime function that upstream's lowering of a strided `memref.copy` calls."""
    _bytes_of(target[0], size)[...] = _bytes_of(source[0], size)


def _bytes_of(memref: _Unranked, size: int) -> np.ndarray:
    rank = memref.rank
    words = (ctypes.c_int64 * (3 + 2 * rank)).from_address(memref.descriptor)
    shape, strides = list(words[3 : 3 + rank]), [s * size for s in words[3 + rank :]]
    span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + size
    if 0 in shape:
        return np.empty([*shape, size], np.uint8)
    data = (ctypes.c_uint8 * span).from_address(words[1] + words[2] * size)
    raw = np.frombuffer(data, np.uint8)
    return np.lib.stride_tricks.as_strided(raw, [*shape, size], [*strides, 1])


def assert_close(actual: np.ndarray, expected: np.ndarray, ulps: float = 2) -> None:
    """Compares with a float64 reference, in units of the last place of the actual dtype.

    NaN stands only against NaN, an infinity against itself; integers and truth values are equal.
    """
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    if actual.dtype.kind in "ib":
        np.testing.assert_array_equal(actual, expected)
        return
    dtype = actual.dtype
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        distance = np.abs(actual.astype(np.float64) - rounded.astype(np.float64))
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    wrong = ~(same | (distance <= ulps * unit))
    if wrong.any():
        at = tuple(int(index[0]) for index in np.nonzero(wrong)) if wrong.ndim else ()
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} {dtype} elements differ; at {at}:"
            f" got {actual[at]}, expected {rounded[at]}"
        )


def assert_same_signs(actual: np.ndarray, expected: np.ndarray) -> None:
    """Compares the signs, those of zeros included; NaN has none."""
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


def floats(shape: Sequence[int], dtype: str, low: float = -3, high: float = 3) -> np.ndarray:
    """Repeatable numbers of a float dtype, spread over an interval."""
    count = int(np.prod(shape))
    generator = np.random.default_rng(count * 31 + len(shape))
    return generator.uniform(low, high, shape).astype(NUMPY[dtype])


def integers(shape: Sequence[int], dtype: str, low: int = -9, high: int = 9) -> np.ndarray:
    """Repeatable integers, the bounds included; truth values for `i1`."""
    generator = np.random.default_rng(int(np.prod(shape)) * 37 + len(shape))
    if dtype == "i1":
        return generator.integers(0, 1, shape, endpoint=True).astype(bool)
    return generator.integers(low, high, shape, endpoint=True).astype(NUMPY[dtype])


def numbers(shape: Sequence[int], dtype: str) -> np.ndarray:
    """Repeatable elements of any dtype."""
    return floats(shape, dtype) if dtype in FLOATS else integers(shape, dtype)


def wide(array: np.ndarray) -> np.ndarray:
    """Floats as float64, for a reference; other elements as they are."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


Reference = Callable[..., np.ndarray]
