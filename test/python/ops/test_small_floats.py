"""Floats of few bits: every code, and every value of half precision, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, spec, wide

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, emit, less
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError
from relax_mlir.errors import ExecutionError

TYPES = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
LARGEST = {name: float(ml_dtypes.finfo(kind).max) for name, kind in TYPES.items()}


def _values(codes, kind):
    return codes.view(np.uint8).view(TYPES[kind]).astype(np.float64)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_code(kind: str, dtype: str) -> None:
    codes = np.arange(16 if kind.startswith("f4") else 256).astype(np.uint8).view(np.int8)
    run = Decomposed(lambda x: d.decode_float(x, kind, ir.Type.parse(dtype)), spec("i8", "n"))
    found = run(codes)
    assert found.dtype == NUMPY[dtype]
    np.testing.assert_array_equal(wide(found), _values(codes, kind))
    signs = np.signbit(wide(found)) | np.isnan(wide(found))
    np.testing.assert_array_equal(signs, np.signbit(_values(codes, kind)) | np.isnan(wide(found)))
    back = Decomposed(lambda x: d.encode_float(x, kind), spec(dtype, "n"))
    again = back(found)
    numbers = np.isfinite(wide(found))
    np.testing.assert_array_equal(again[numbers], codes[numbers])


def _tricky(dtype):
    """All values of 16 bits, or those half way between, and next to it, of more digits."""
    if dtype in ("f16", "bf16"):
        return np.arange(1 << 16).astype(np.uint16).view(NUMPY[dtype])
    exact = np.concatenate([_values(np.arange(128).astype(np.int8), kind) for kind in TYPES])
    exact = np.unique(exact[np.isfinite(exact)]).astype(NUMPY[dtype])
    middle = (exact[1:] + exact[:-1]) / 2
    points = np.concatenate([exact, middle, exact * 1.5, [1e30, np.inf, np.nan, 1e-40, 5e-324]])
    points = points.astype(NUMPY[dtype])
    near = [np.nextafter(points, side.astype(NUMPY[dtype])) for side in np.array([-np.inf, np.inf])]
    both = np.concatenate([points, *near])
    return np.concatenate([both, -both])


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_nearest_values(kind: str, saturate: bool, dtype: str) -> None:
    x = _tricky(dtype)
    run = Decomposed(lambda v: d.encode_float(v, kind, saturate=saturate), spec(dtype, "n"))
    found = _values(run(x), kind)
    values = wide(x)
    largest = LARGEST[kind]
    codes = np.unique(_values(np.arange(8 if kind.startswith("f4") else 128).astype(np.int8), kind))
    codes = codes[np.isfinite(codes)]
    step = codes[-1] - codes[-2]
    size = np.abs(values)
    beyond = size >= largest + step / 2 if codes.size % 2 == 0 else size > largest + step / 2
    inside = ~np.isnan(values) & ~beyond
    at = np.clip(np.searchsorted(codes, size), 1, codes.size - 1)
    low, high = codes[at - 1], codes[at]
    with np.errstate(invalid="ignore"):
        nearer_high = (high - size < size - low) | ((high - size == size - low) & (at % 2 == 0))
    wanted = np.copysign(np.where(nearer_high, high, low), values)
    np.testing.assert_array_equal(found[inside], wanted[inside])
    greatest = np.copysign(largest, values[beyond])
    if saturate or kind == "f4E2M1FN":
        np.testing.assert_array_equal(found[beyond], greatest)
    elif kind == "f8E5M2":
        np.testing.assert_array_equal(found[beyond], greatest * np.inf)
    else:
        assert np.isnan(found[beyond]).all()
    nan = found[np.isnan(values)]
    assert (nan == 6).all() if kind == "f4E2M1FN" else np.isnan(nan).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # signalling NaN
@pytest.mark.parametrize("level", [0, 2])
def test_element_types(level: int) -> None:
    """Conversions from f32 and all of f16, and back, interpreted and compiled, by ml_dtypes."""
    kinds, functions = [kind for kind in TYPES if kind.startswith("f8")], {}

    def cast(element, **options):
        return lambda x: d.cast_float8(x, ir.Type.parse(element), **options)

    for kind in kinds:
        for dtype in ("f32", "f16"):
            functions[f"{kind}_{dtype}"] = cast(kind), [spec(dtype, "n")]
            functions[f"{kind}_{dtype}_as_is"] = cast(kind, saturate=False), [spec(dtype, "n")]
        functions[f"{kind}_back"] = cast("f32"), [spec(kind, "n")]
    text = module_of(functions)
    module = relax_mlir.compile(text, opt_level=level) if level else relax_mlir.interpret(text)
    codes = np.arange(256, dtype=np.uint8)
    for kind in kinds:
        own, largest = NUMPY[kind], LARGEST[kind]
        values = module[f"{kind}_back"](codes.view(own))
        np.testing.assert_array_equal(values, codes.view(own).astype(np.float32))
        for dtype in ("f32", "f16"):
            x = np.concatenate([_tricky(dtype), _tricky("f16").astype(NUMPY[dtype])])
            with np.errstate(all="ignore"):
                meant = x.astype(own)
            found = module[f"{kind}_{dtype}_as_is"](x)
            assert found.dtype == own
            np.testing.assert_array_equal(wide(found), wide(meant))
            beyond = ~np.isnan(x) & ~np.isfinite(wide(meant))
            wanted = np.where(beyond, np.copysign(largest, wide(x)), wide(meant))
            np.testing.assert_array_equal(wide(module[f"{kind}_{dtype}"](x)), wanted)


@pytest.mark.parametrize("level", [0, 2])
def test_what_moves_elements_keeps_infinities(level: int) -> None:
    """Only a conversion from another type makes them the greatest number."""
    text = module_of({
        "same": (lambda x: emit(graph.AstypeOp, x, dtype=ir.Type.parse("f8E5M2")),
                 [spec("f8E5M2", "n")]),
        "put": (lambda x, at, y: emit(graph.ScatterElementsOp, x, at, y, axis=0, reduction="none"),
                [spec("f8E5M2", "n"), spec("i64", "n"), spec("f8E5M2", "n")]),
    })  # fmt: skip
    module = relax_mlir.compile(text, opt_level=level) if level else relax_mlir.interpret(text)
    codes = np.arange(256, dtype=np.uint8).view(NUMPY["f8E5M2"])
    np.testing.assert_array_equal(wide(module["same"](codes)), wide(codes))
    found = module["put"](np.zeros_like(codes), np.arange(256)[::-1].copy(), codes)
    np.testing.assert_array_equal(wide(found), wide(codes)[::-1])


def test_quantised_to_float8() -> None:
    def build(x, scale):
        codes = d.quantize_linear(x, scale, element=ir.Type.parse("f8E4M3FN"))
        return codes, d.dequantize_linear(codes, scale)

    x, scale = np.linspace(-900, 900, 333, dtype=np.float32), np.float32(1.5)
    codes, back = Decomposed(build, spec("f32", "n"), spec("f32"))(x, np.array(scale))
    wanted = np.clip(x / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(codes.view(np.uint8), wanted.view(np.uint8))
    np.testing.assert_array_equal(back, wanted.astype(np.float32) * scale)


@pytest.mark.parametrize(
    ("build", "dtype", "message"),
    [
        (lambda x: d.encode_float(x, "f8E3M4"), "f32", "expects one of f8E4M3FN"),
        (lambda x: d.encode_float(x, "f8E5M2"), "i32", "expects floats, but got i32"),
        (lambda x: d.decode_float(x, "f8E5M2", ir.F32Type.get()), "i16", "expects codes of i8"),
        (lambda x: d.decode_float(x, "f8E5M2", ir.Type.parse("i8")), "i8", "expects a float"),
        (lambda x: add(x, x), "f8E5M2", "expects a number element type, but got f8E5M2"),
        (lambda x: less(x, x), "f8E5M2", "compares no elements of f8E5M2: convert them to f32"),
    ],
)
def test_what_is_refused(build, dtype: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec(dtype, "n")])})


def test_results_in_given_memory() -> None:
    """Code writes their bits as integers, but the caller's tensor is one of floats."""
    exe = relax_mlir.compile("""
    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>)
        -> tensor<?xf8E5M2, #graph.shape<["n"]>> {
      %0 = "graph.astype"(%x) {dtype = f8E5M2}
        : (tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf8E5M2, #graph.shape<["n"]>>
      return %0 : tensor<?xf8E5M2, #graph.shape<["n"]>>
    }""")
    x = np.array([0.25, -3.0, 57344.0, 0.0], np.float32)
    out = np.zeros(4, ml_dtypes.float8_e5m2)
    exe["main"].bind(x, results=[out]).run()
    np.testing.assert_array_equal(out.astype(np.float32), x)
    with pytest.raises(ExecutionError, match=r"result 0: .*float8_e5m2 is expected"):
        exe["main"].bind(x, results=[np.zeros(4, np.int8)]).run()
