"""Matrix products on emulated CPUs, against float64."""

import re
from itertools import product, starmap

import ml_dtypes
import numpy as np
import pytest
from cpu_modules import LONG, emulated, operator, tensor
from quantized_programs import Matrix, Product, rounded

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline

ROWS = (0, 1, 2, 3, 4, 7, 9, 17, 33, 65)
QUANTIZED = [
    *(("aarch64-v8.2", scheme, "int8") for scheme in ("q8_0", "q4_0", "q4_1", "q4_k", "q6_k")),
    *(("aarch64-v8.6", scheme, "int8") for scheme in ("q8_0", "q4_1")),
    *(("neoverse-v1", scheme, "int8") for scheme in ("q8_0", "q4_0", "q4_k", "q6_k")),
    *((target, "q4_1", "int8") for target in LONG[1:]),
    *(("aarch64", "q4_1", "int8"), ("aarch64", "q5_k", "f32"), ("aarch64-v8.2", "q8_0", "f32")),
    *(("armv7", "q4_1", "int8"), ("armv7", "q8_0", "f32"), ("riscv64", "q4_k", "f32")),
    *(("riscv64", "q8_0", "int8"), ("riscv64-v", "q4_0", "int8"), ("riscv64-v", "q6_k", "f32")),
    *(("wasm32", scheme, "int8") for scheme in ("q8_0", "q4_0", "q4_1", "q4_k", "q6_k")),
    *(("wasm32", "q6_k", "f32"), ("wasm32-relaxed", "q8_0", "int8")),
]
FLOATS = [
    *(("aarch64", "f32", 2), ("aarch64", "f32", 3), ("aarch64", "bf16", 3)),
    *(("aarch64-v8.2", "f32", 3), ("aarch64-v8.2", "bf16", 2), ("aarch64-v8.2", "f16", 3)),
    *(("aarch64-v8.6", "bf16", 2), ("aarch64-v8.6", "bf16", 3), ("neoverse-v1", "f16", 2)),
    *((target, element, 3) for target in LONG for element in ("f32", "bf16")),
    *(("armv7", "f32", 3), ("armv7", "f16", 2), ("riscv64", "f32", 2), ("riscv64", "bf16", 3)),
    *(("riscv64-v", "f32", 3), ("riscv64-v", "f32", 2), ("riscv64-v", "f16", 3)),
    *(("wasm32", "f32", 3), ("wasm32-relaxed", "bf16", 2), ("wasm32", "f16", 3)),
]
SIGNS = list(product(("i8", "ui8"), repeat=2))


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Normal numbers that depend on the shape only."""
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


@pytest.mark.rotate(3)
@pytest.mark.parametrize(("target", "scheme", "activations"), QUANTIZED)
def test_quantized(target: str, scheme: str, activations: str) -> None:
    k = 512 if scheme.endswith("_k") else 96
    exe = emulated(Product(scheme, 48, k, activations).text(), target)
    matrix = Matrix.random(scheme, 48, k)
    for rows in ROWS:
        x = normal(rows, k)
        exact = rounded(x) if activations == "int8" else x.astype(np.float64)
        actual = exe["main"](x, *matrix.operands)
        terms = np.abs(exact) @ np.abs(matrix.values).T
        assert actual.shape == (rows, 48)
        assert (np.abs(actual - exact @ matrix.values.T) <= 1e-6 * terms + 1e-30).all()


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", ["wasm32", "aarch64-v8.2", "aarch64-v8.6", "neoverse-v1"])
def test_integers(target: str) -> None:
    """Plain 8-bit matrices of each sign, the extremes of the types among their elements."""
    narrow = [tensor("i8", "n", 67), tensor("i8", 67, 48)]
    text = operator("narrow", "matmul", narrow, tensor("i8", "n", 48))
    exe = emulated(text + "".join(starmap(integer_product, SIGNS)), target, 3)
    random = np.random.default_rng()
    extremes = {"i8": [-128, -127, -1, 0, 3, 127], "ui8": [0, 1, 127, 128, 255]}
    dtypes = {"i8": np.int8, "ui8": np.uint8}
    for left, right in SIGNS:
        x = random.choice(extremes[left], (65, 67))
        w = random.choice(extremes[right], (67, 48))
        x, w = x.astype(dtypes[left]), w.astype(dtypes[right])
        for rows in ROWS:
            exact = x[:rows].astype(int) @ w.astype(int)
            np.testing.assert_array_equal(exe[f"{left}_{right}"](x[:rows], w), exact)
            packed = exe[f"{left}_{right}_packed_params"](w)
            np.testing.assert_array_equal(exe[f"{left}_{right}_packed"](x[:rows], packed), exact)
            if (left, right) == SIGNS[0]:
                np.testing.assert_array_equal(exe["narrow"](x[:rows], w), exact.astype(np.int8))


def integer_product(left: str, right: str) -> str:
    """Functions that widen two matrices to 32 bits and multiply them; one packs the second."""
    types = [tensor(left, "n", 67), tensor(right, 67, 48)]
    wide, out = [tensor("i32", "n", 67), tensor("i32", 67, 48)], tensor("i32", "n", 48)
    notes = {"": "", "_packed": " attributes {graph.num_inputs = 1 : i64}"}
    functions = [
        f"""func.func @{left}_{right}{end}(%x: {types[0]}, %w: {types[1]}) -> {out}{note} {{
      %l = "graph.astype"(%x) {{dtype = i32}} : ({types[0]}) -> {wide[0]}
      %r = "graph.astype"(%w) {{dtype = i32}} : ({types[1]}) -> {wide[1]}
      %y = "graph.matmul"(%l, %r) : ({wide[0]}, {wide[1]}) -> {out}
      return %y : {out}
    }}
    """
        for end, note in notes.items()
    ]
    return "".join(functions)


@pytest.mark.rotate(8)
@pytest.mark.parametrize(("target", "element", "opt_level"), FLOATS)
def test_floats(target: str, element: str, opt_level: int) -> None:
    """Weights as they lie, and, at level 3, in panels; sizes that end within vectors and tiles."""
    sizes = [(1, 1), (37, 50), (129, 8)]
    text = "".join(
        operator(
            f"product{i}",
            "matmul",
            [tensor(element, "n", k), tensor(element, k, columns)],
            tensor(element, "n", columns),
            weights=1,
        )
        for i, (k, columns) in enumerate(sizes)
    )
    exe = emulated(text, target, opt_level)
    dtype = ml_dtypes.bfloat16 if element == "bf16" else {"f32": "f4", "f16": "f2"}[element]
    tolerance = {"f32": 1e-6, "bf16": 4.1e-3, "f16": 5.2e-4}[element]
    for i, (k, columns) in enumerate(sizes):
        weight = normal(k, columns).astype(dtype)
        packed = [weight]
        if f"product{i}_params" in exe.functions:
            packed = [exe[f"product{i}_params"](weight)]
        wide = weight.astype(np.float64)
        for rows in ROWS:
            x = normal(rows, k).astype(dtype)
            exact = x.astype(np.float64) @ wide
            terms = np.abs(x.astype(np.float64)) @ np.abs(wide)
            actual = exe[f"product{i}"](x, *packed).astype(np.float64)
            limit = tolerance * (np.abs(exact) + 1e-3 * terms) + 1e-6 * terms
            assert (np.abs(actual - exact) <= limit).all(), (k, columns, rows)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", ["aarch64-v8.6", "neoverse-v1"])
def test_sums_of_bf16_pairs(target: str) -> None:
    """The bound of docs/targets.md on rounding to odd; subnormal factors are zero."""
    half, single = (lambda *dims: tensor("bf16", *dims)), (lambda *dims: tensor("f32", *dims))
    text = ""
    for k in (1, 63, 1001):
        x, w, out = ("n", k), (k, 24), ("n", 24)
        text += f"""func.func @main{k}(%x: {half(*x)}, %w: {half(*w)}) -> {single(*out)} {{
          %l = "graph.astype"(%x) {{dtype = f32}} : ({half(*x)}) -> {single(*x)}
          %r = "graph.astype"(%w) {{dtype = f32}} : ({half(*w)}) -> {single(*w)}
          %y = "graph.matmul"(%l, %r) : ({single(*x)}, {single(*w)}) -> {single(*out)}
          return %y : {single(*out)}
        }}
        """
    exe, random = emulated(text, target), np.random.default_rng()
    for k, rows in product((1, 63, 1001), (1, 5, 17)):
        x = random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16)
        w = random.standard_normal((k, 24)).astype(ml_dtypes.bfloat16)
        left, right = x.astype(np.float64), w.astype(np.float64)
        limit = (k / 2 + 1) * 2.0**-23 * (np.abs(left) @ np.abs(right))
        assert (np.abs(exe[f"main{k}"](x, w) - left @ right) <= limit).all()
        tiny = np.full((rows, k), 1e-39, ml_dtypes.bfloat16)
        assert tiny.astype(np.float64).all()
        if k > 1 and rows == 17:  # else single elements are multiplied
            assert not exe[f"main{k}"](tiny, np.full((k, 24), 1e30, ml_dtypes.bfloat16)).any()


def test_columns_in_whole_vectors_are_read_without_masks() -> None:
    """Arm has no instructions for masks; each lane of one would take a branch."""
    operands, result = [tensor("f32", "n", 128), tensor("f32", 128, 64)], tensor("f32", "n", 64)
    passes = pipeline("aarch64", 2)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(operator("main", "matmul", operands, result))
        Pipeline.parse(passes[: passes.index(",relax-lower-calls")] + ")").run(module)
        loads = re.findall(r"vector\.(\w*load) .* : memref<8192xf32>", str(module))
    assert loads.count("load") >= 10 * loads.count("maskedload"), "those left are where rows end"
