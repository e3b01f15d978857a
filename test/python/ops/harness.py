"""Builds one operator as a program and runs it on arrays by several routes.

    add = Program(graph.AddOp, spec("f32", "n", 1), spec("f32", "m"), route="program")
    add(x, y)                                      # any n and m, built once

The route `operator` interprets the operator, `program` the tensor program that it is legalised to:
both in NumPy, and neither sees how the other computes. `O0` and `O2` compile it. `simt` interprets
the kernels of a device that it becomes, thread by thread, `ptx` interprets their PTX,
`vulkan` runs their SPIR-V by a driver, and `wgsl` their WGSL in Chromium.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from chromium import in_chromium

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import outlining
from relax_mlir.symbolic import Expr, as_expr
from relax_mlir.target import Device
from relax_mlir.testing.ptx import on_ptx

ROUTES = ("operator", "program", "simt", "ptx", "vulkan", "wgsl", "O0", "O2")
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
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "i8")
SMALL_FLOATS = tuple(name for name in NUMPY if name.startswith("f8"))
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")


@dataclass(frozen=True)
class Spec:
    """Annotation of an operand: element type and dims, ints or expressions."""

    dtype: str
    dims: tuple[int | str, ...]


def spec(dtype: str, *dims: int | str) -> Spec:
    """An operand of the given element type and dims."""
    return Spec(dtype, dims)


def _compile(module: ir.Module, opt_level: int) -> Any:
    return relax_mlir.compile(str(module), opt_level=opt_level)["main"]


def _legalised(module: ir.Module) -> Any:
    Pipeline.parse("relax-legalize-ops").run(module, verify=True)
    return relax_mlir.interpret(module)["main"]


def _outline(module: ir.Module, target: str) -> None:
    Pipeline.parse(outlining(target)).run(module, verify=True)


def _threads(module: ir.Module) -> Any:
    _outline(module, "gpu")
    return relax_mlir.interpret(module)["main"]


def _ptx(module: ir.Module) -> Any:
    _outline(module, "cuda:sm_90a")
    return on_ptx(module, Device.parse("cuda:sm_90a"))


def _wgsl(module: ir.Module) -> Any:
    try:
        return in_chromium(module)["main"]
    except CompileError as error:
        if "values of f64, which 'webgpu' does not store" in str(error):
            pytest.skip("WebGPU has no f64")
        raise


_RUN = {
    "simt": _threads,
    "ptx": _ptx,
    "wgsl": _wgsl,
    "operator": lambda module: relax_mlir.interpret(module)["main"],
    "program": _legalised,
    "O0": lambda module: _compile(module, 0),
    "O2": lambda module: _compile(module, 2),
    "vulkan": lambda module: relax_mlir.compile(str(module), "vulkan")["main"],
}
_CONTEXT = make_context()  # to make one takes longer than to build an operator


def run(text: str, route: str) -> Any:
    """The function `main` of a module, by a route."""
    with _CONTEXT, ir.Location.unknown():
        return _RUN[route](ir.Module.parse(text))


class Program:
    """An operator, compiled once; calls take arrays in operand order."""

    def __init__(self, op: type, *specs: Spec, route: str, **attributes: Any) -> None:
        """Builds and compiles the op.

        Attributes are Python values, a `dtype` is text. Symbols that no operand dim is are
        passed to calls by name.
        """
        self._op, self._specs = op, specs
        bound = {dim for item in specs for dim in item.dims if isinstance(dim, str)}
        named = _symbols(specs, attributes)
        self._free = sorted(named - bound)
        with _CONTEXT, ir.Location.unknown():
            module = ir.Module.create()
            self._results = add_function(module, "main", op, specs, self._free, attributes)
            self._main = _RUN[route](module)

    def __call__(self, *arrays: np.ndarray, **symbols: int) -> Any:
        """Runs the program; returns one array, or a tuple of them."""
        values = dict(symbols)
        for item, array in zip(self._specs, arrays, strict=True):
            assert array.dtype == NUMPY[item.dtype], (array.dtype, item)
            for dim, extent in zip(item.dims, array.shape, strict=True):
                values.setdefault(dim, extent) if isinstance(dim, str) else None
        before = [array.copy() for array in arrays]
        free = [values[name] for name in self._free]
        results = self._main(*arrays, *([free] if free else []))
        results = results if isinstance(results, tuple) else (results,)
        updated = getattr(self._op, "inplace_operands", ())
        for index, (array, old) in enumerate(zip(arrays, before, strict=True)):
            if index in updated:
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


def add_function(
    module: ir.Module,
    name: str,
    op: type,
    specs: Sequence[Spec],
    free: Sequence[str],
    attributes: Mapping[str, Any],
) -> list[tuple[tuple[Expr, ...], str]]:
    """Adds `name(operands, [shape of the free symbols])` around an op; returns its results."""
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
    with ir.InsertionPoint(module.body):
        main = func.FuncOp(name, (types, []))
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
    return [(a.dims, str(a.element)) for a in annotations]


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
    """Repeatable integers, the bounds included; truth values for `i1`.

    Of unsigned types, negative ones are the last ones of the type.
    """
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
