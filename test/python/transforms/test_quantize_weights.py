"""Weights that `relax-quantize` keeps in few bits: compiled, run, and compared with float64."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from relax_mlir import panels
from relax_mlir.bindings import ir
from relax_mlir.compiler import compile
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import PipelineError
from relax_mlir.executable import Executable, load
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.transforms import quantize

pytestmark = pytest.mark.usefixtures("llvm_turns")

NAMES = quantize.NAMES
SCHEMES = {"q8_32": "q8_0", "q4_32": "q4_0", "q4_32_minimum": "q4_1"}
ACTIVATIONS = ("f32", "int8")
GROUPS = (
    ("q8_64", "int8"), ("q8_128", "f32"), ("q4_64", "f32"), ("q4_128", "int8"),
    ("q4_64_minimum", "f32"), ("q4_128_minimum", "int8"),
)  # fmt: skip

MLP = """
!u = tensor<96x64xf32>
!t = tensor<64x96xf32>
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!h = tensor<?x96xf32, #graph.shape<["n", 96]>>
!y = tensor<?x21xf32, #graph.shape<["n", 21]>>
func.func @main(%x: !x, %up: !u, %b: tensor<96xf32>, %down: tensor<96x21xf32>)
    -> !y attributes {graph.num_inputs = 1 : i64} {
  %t = "graph.permute_dims"(%up) {axes = array<i64: 1, 0>} : (!u) -> !t
  %0 = "graph.matmul"(%x, %t) : (!x, !t) -> !h
  %1 = "graph.add"(%0, %b) : (!h, tensor<96xf32>) -> !h
  %2 = "graph.nn_relu"(%1) : (!h) -> !h
  %3 = "graph.matmul"(%2, %down) : (!h, tensor<96x21xf32>) -> !y
  return %3 : !y
}
"""


def quantized(text: str, scheme: str, options: str = "") -> str:
    """The module with its weights quantised."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        passes = f"relax-infer-shapes,relax-quantize{{scheme={scheme} min-size=1 {options}}}"
        Pipeline.parse(f"builtin.module({passes})").run(module, verify=True)
        return str(module)


def rules(text: str) -> dict[str, str]:
    """The schedule rule of each kernel by its name."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        passes = pipeline("native", 2)
        Pipeline.parse(passes[: passes.index(",relax-lower-calls")] + ")").run(module)
        kernels = [op.attributes for op in (each.operation for each in module.body.operations)]
        return {
            kernel["sym_name"].value: kernel["tir.schedule"].value
            for kernel in kernels
            if "tir.schedule" in kernel
        }


def parameters(executable: Executable, *weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """What `@main` takes, made from the float weights."""
    made = executable["main_quantize"](*weights)
    return executable["main_params"](*made) if "main_params" in executable.functions else made


def rounded(weight: np.ndarray, scheme: str) -> np.ndarray:
    """The values [rows, columns] in float64 that are kept of a weight, groups along its rows."""
    group = int(scheme.split("_")[1])
    groups = np.ascontiguousarray(weight, np.float32).reshape(len(weight), -1, group)
    parts = panels.round_blocks(groups, NAMES[scheme])
    q = parts["data"]
    if scheme.startswith("q4"):
        q = q.reshape(*q.shape[:2], group // 32, 16)
        q = np.concatenate([q & 15, q >> 4], axis=-1).reshape(groups.shape)
    zero = 8 if scheme.startswith("q4") and not scheme.endswith("minimum") else 0
    values = (q.astype(np.float64) - zero) * parts["scale"].astype(np.float64)[..., None]
    if "minimum" in parts:
        values += parts["minimum"].astype(np.float64)[..., None]
    return values.reshape(weight.shape)


def activation(x: np.ndarray, kind: str) -> np.ndarray:
    """What is multiplied, in float64: itself, or rounded to 8 bits by blocks of 32."""
    if kind == "f32":
        return x.astype(np.float64)
    blocks = x.astype(np.float32).reshape(len(x), x.shape[1] // 32, 32)
    low = blocks.min(-1, keepdims=True)
    width = blocks.max(-1, keepdims=True) - low
    factor = np.float32(254) / np.where(width == 0, np.float32(254), width)
    steps = np.rint((blocks - low) * factor).astype(np.float64)
    return (steps * (width / np.float32(254)).astype(np.float64) + low).reshape(x.shape)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("activations", ACTIVATIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_perceptron(scheme: str, activations: str) -> None:
    text = quantized(MLP, scheme, f"activations={activations}")
    found = rules(text)
    products = [name for name in found if "matmul" in name]
    assert len(products) == 2
    assert {found[name] for name in products} == {"quantized_matmul"}
    random = np.random.default_rng(0)
    up, b, down = (random.standard_normal(n, np.float32) for n in ((96, 64), 96, (96, 21)))
    wide_up, wide_down = rounded(up, scheme), rounded(down.T, scheme).T
    for level in (0, 2, 3):
        executable = compile(text, opt_level=level)
        given = parameters(executable, up, b, down)
        for n in (0, 1, 2, 9, 33):
            x = random.standard_normal((n, 64), np.float32)
            hidden = np.maximum(activation(x, activations) @ wide_up.T + b, 0)
            expected = activation(hidden, activations) @ wide_down
            result = executable["main"](x, *given)
            assert result.shape == (n, 21)
            # A hidden number at a tie may round to the neighbour: a step of it times a weight.
            slack = 1e-4 if activations == "f32" else 0.02
            size = np.abs(hidden).max(initial=0) * np.abs(wide_down).max()
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=slack * size)
            exact = np.maximum(x.astype(np.float64) @ up.T + b, 0) @ down
            share = {"q8_32": 0.02, "q4_32": 0.25, "q4_32_minimum": 0.2}[scheme]
            assert np.linalg.norm(result - exact) <= share * np.linalg.norm(exact)


@pytest.mark.rotate(3)
@pytest.mark.parametrize(("scheme", "activations"), GROUPS)
def test_longer_groups(scheme: str, activations: str) -> None:
    """One group of k or two for the first product, two or four and an odd width for the second."""
    wide = MLP.replace("96", "256").replace("64x", "128x").replace(" 64]", " 128]")
    text = quantized(wide, scheme, f"activations={activations}")
    assert list(rules(text).values()).count("quantized_matmul") == 2
    random = np.random.default_rng(5)
    up, b, down = (random.standard_normal(n, np.float32) for n in ((256, 128), 256, (256, 21)))
    executable = compile(text, opt_level=3)
    given = parameters(executable, up, b, down)
    wide_up, wide_down = rounded(up, scheme), rounded(down.T, scheme).T
    for n in (0, 1, 2, 33):
        x = random.standard_normal((n, 128), np.float32)
        hidden = np.maximum(activation(x, activations) @ wide_up.T + b, 0)
        expected = activation(hidden, activations) @ wide_down
        slack = 1e-4 if activations == "f32" else 0.02  # as above
        size = np.abs(hidden).max(initial=0) * np.abs(wide_down).max()
        result = executable["main"](x, *given)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=slack * size)
        exact = np.maximum(x.astype(np.float64) @ up.T + b, 0) @ down
        share = 0.03 if scheme.startswith("q8") else 0.3
        assert np.linalg.norm(result - exact) <= share * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("other", "scheme"), [(other, scheme) for scheme, other in SCHEMES.items()]
)
def test_schemes_of_files_are_accepted(other: str, scheme: str) -> None:
    assert quantized(MLP, other) == quantized(MLP, scheme)


BITS = {
    "q8_32": 8.5, "q4_32": 4.5, "q4_32_minimum": 5, "q8_64": 8.25, "q8_128": 8.125, "q4_64": 4.25,
    "q4_128": 4.125, "q4_64_minimum": 4.5, "q4_128_minimum": 4.25,
}  # fmt: skip


def test_bits_of_a_number() -> None:
    assert {*BITS} == {*NAMES}
    matrix = np.ones((32, 256), np.float32)
    for scheme, bits in BITS.items():
        parts = panels.quantize(matrix, NAMES[scheme])
        assert sum(part.nbytes for part in parts.values()) == matrix.size * bits / 8


def test_fewer_bytes() -> None:
    floats = sum(n.nbytes for n in (np.empty((96, 64), "f4"), np.empty((96, 21), "f4")))
    for scheme, bits in (("q8_32", 8.5), ("q4_32", 4.5), ("q4_32_minimum", 5)):
        arguments = compile(quantized(MLP, scheme))["main"].arguments[1:]
        sizes = [
            np.prod(a.dims) * (2 if a.dtype == "f16" else 1) for a in arguments if a.dtype != "f32"
        ]
        padded = floats * (96 * 64 + 96 * 32) / (96 * 64 + 96 * 21)
        assert sum(sizes) == padded * bits / 32


TIED = """
!i = tensor<?x?xi64, #graph.shape<["b", "n"]>>
!x = tensor<?x?x64xf32, #graph.shape<["b", "n", 64]>>
!y = tensor<?x?x50xf32, #graph.shape<["b", "n", 50]>>
func.func @main(%i: !i, %w: tensor<50x64xf32>) -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.take"(%w, %i) {axis = 0 : i64} : (tensor<50x64xf32>, !i) -> !x
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<50x64xf32>) -> tensor<64x50xf32>
  %1 = "graph.matmul"(%0, %t) : (!x, tensor<64x50xf32>) -> !y
  return %1 : !y
}
"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tied_table_of_higher_rank(scheme: str) -> None:
    executable = compile(quantized(TIED, scheme))
    random = np.random.default_rng(1)
    table = random.standard_normal((50, 64), np.float32)
    wide = rounded(table, scheme)
    given = parameters(executable, table)
    for shape in ((1, 1), (2, 7), (3, 0)):
        indices = random.integers(0, 50, shape)
        result = executable["main"](indices, *given)
        np.testing.assert_allclose(result, wide[indices] @ wide.T, rtol=1e-4, atol=1e-4)


HALF = """
!x = tensor<?x64x{0}, #graph.shape<["n", 64]>>
!y = tensor<?x32x{0}, #graph.shape<["n", 32]>>
func.func @main(%x: !x, %w: tensor<64x32x{1}>) -> !y attributes {{graph.num_inputs = 1 : i64}} {{
  %0 = "graph.astype"(%w) {{dtype = {0}}} : (tensor<64x32x{1}>) -> tensor<64x32x{0}>
  %1 = "graph.matmul"(%x, %0) : (!x, tensor<64x32x{0}>) -> !y
  return %1 : !y
}}
"""


@pytest.mark.parametrize("activations", ACTIVATIONS)
@pytest.mark.parametrize(("computed", "stored"), [("f32", "f16"), ("f16", "f32"), ("f16", "f16")])
def test_half_precision(computed: str, stored: str, activations: str) -> None:
    kinds = {"f32": np.float32, "f16": np.float16}
    text = quantized(HALF.format(computed, stored), "q8_32", f"activations={activations}")
    executable = compile(text)
    random = np.random.default_rng(2)
    weight = random.standard_normal((64, 32), np.float32).astype(kinds[stored])
    given = parameters(executable, weight)
    x = random.standard_normal((5, 64), np.float32).astype(kinds[computed])
    expected = activation(x, activations) @ rounded(weight.T, "q8_32").T
    result = executable["main"](x, *given)
    assert result.dtype == kinds[computed]
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=1e-2)


BLOCK = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!h = tensor<?x64xbf16, #graph.shape<["n", 64]>>
func.func @main(%x: !x, %w: tensor<64x64xf32>, %v: tensor<64x64xbf16>) -> !h
    attributes {graph.num_inputs = 1 : i64} {
  %0 = scf.execute_region -> !x no_inline {
    %1 = "graph.matmul"(%x, %w) : (!x, tensor<64x64xf32>) -> !x
    %2 = "graph.matmul"(%1, %w) : (!x, tensor<64x64xf32>) -> !x
    scf.yield %2 : !x
  } {graph.dataflow}
  %b = "graph.astype"(%0) {dtype = bf16} : (!x) -> !h
  %3 = "graph.matmul"(%b, %v) : (!h, tensor<64x64xbf16>) -> !h
  return %3 : !h
}
"""


@pytest.mark.parametrize("activations", ACTIVATIONS)
def test_dataflow_blocks_and_bf16(activations: str) -> None:
    executable = compile(quantized(BLOCK, "q8_32", f"activations={activations}"))
    random = np.random.default_rng(4)
    x, w, v = (random.standard_normal(n, np.float32) for n in ((5, 64), (64, 64), (64, 64)))
    v = v.astype(ml_dtypes.bfloat16)
    expected = x.astype(np.float64) @ w @ w @ v.astype(np.float64)
    result = executable["main"](x, *parameters(executable, w, v)).astype(np.float64)
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    assert 1e-3 < error < 3e-2  # rounding to 8 bits shows, and is all that shows


def constant_module(weight: np.ndarray) -> str:
    """A product with a constant."""
    k, m = weight.shape
    values = np.array2string(weight, separator=",", threshold=weight.size + 1)
    return f"""
!x = tensor<?x{k}xf32, #graph.shape<["n", {k}]>>
!y = tensor<?x{m}xf32, #graph.shape<["n", {m}]>>
func.func @main(%x: !x) -> !y {{
  %w = arith.constant dense<{values}> : tensor<{k}x{m}xf32>
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<{k}x{m}xf32>) -> !y
  return %0 : !y
}}"""


@pytest.mark.rotate(3)
@pytest.mark.parametrize(
    ("scheme", "level"), [*product(SCHEMES, (0, 2, 3)), ("q8_128", 2), ("q4_64_minimum", 2)]
)
def test_constant_is_saved_in_few_bits(tmp_path, scheme: str, level: int) -> None:
    random = np.random.default_rng(3)
    weight = random.standard_normal((256, 160), np.float32)
    text = constant_module(weight)
    executable = compile(quantized(text, scheme), opt_level=level)
    executable.save(tmp_path / "few.so")
    compile(text, opt_level=level).save(tmp_path / "floats.so")
    saved = (tmp_path / "floats.so").stat().st_size - (tmp_path / "few.so").stat().st_size
    assert saved > weight.nbytes * 0.6
    loaded = load(tmp_path / "few.so")
    assert loaded.functions == ("main",)
    for n in (1, 2, 17):
        x = random.standard_normal((n, 256), np.float32)
        expected = x.astype(np.float64) @ rounded(weight.T, scheme).T
        np.testing.assert_allclose(loaded["main"](x), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("scheme", "least"), [("q8_32", 8321040), ("q4_32", 524160), ("q4_32_minimum", 65520)]
)
def test_constants_beyond_the_scales_stay_floats(
    scheme: str, least: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their scales were infinite, and so results were no numbers."""
    weight = np.random.default_rng(4).standard_normal((64, 16), np.float32)
    for value, stays in ((least * 0.999, False), (-least, True), (np.float32(3e38), True)):
        weight[:2, 3] = value, -value
        main = compile(quantized(constant_module(weight), scheme))["main"]
        remarks = capsys.readouterr().err
        assert ("exceeds the range of float16 scales" in remarks) == stays
        x = np.eye(64, dtype=np.float32)
        kept = weight if stays else rounded(weight.T, scheme).T
        np.testing.assert_allclose(main(x), kept, rtol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_parameters_beyond_the_scales_are_bounded(scheme: str) -> None:
    """What rounds them has no place for a remark: no result may be infinite, or no number."""
    executable = compile(quantized(HALF.format("f32", "f32"), scheme))
    weight = np.random.default_rng(2).standard_normal((64, 32), np.float32)
    weight[5], weight[7, ::2] = 3e38, -1e9
    found = executable["main"](np.eye(64, dtype=np.float32), *parameters(executable, weight))
    np.testing.assert_allclose(found, rounded(weight.T, scheme).T, rtol=1e-6)
    assert np.isfinite(found).all()
    assert (found[5] > 4e5).all()


def test_a_constant_of_bf16_is_rounded() -> None:
    values = np.random.default_rng(3).standard_normal((64, 16)).astype(ml_dtypes.bfloat16)
    text = f"""
    !x = tensor<?x64xbf16, #graph.shape<["n", 64]>>
    !y = tensor<?x16xbf16, #graph.shape<["n", 16]>>
    func.func @main(%x: !x) -> !y {{
      %w = arith.constant dense<"0x{values.tobytes().hex()}"> : tensor<64x16xbf16>
      %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x16xbf16>) -> !y
      return %0 : !y
    }}"""
    found = compile(quantized(text, "q8_32"))["main"](np.eye(64, dtype=ml_dtypes.bfloat16))
    expected = rounded(values.astype(np.float32).T, "q8_32").T
    np.testing.assert_array_equal(found, expected.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("scheme=q3", "unknown scheme 'q3'; accepted are q8_32, q4_32, q4_32_minimum, q8_64, q8_"),
        ("scheme=q5_0", "unknown scheme 'q5_0'; accepted are q8_32"),
        ("scheme=q4_256", "unknown scheme 'q4_256'; accepted are q8_32"),
        ("", "needs the option 'scheme'"),
        ("scheme=q4_32 activations=int4", "unknown activations 'int4'; accepted are f32, int8"),
        ("scheme=q4_32 skip='('", "is not a regular expression"),
        ("scheme=q4_32 skip='a{1,99999999999}'", "is not a regular expression"),
        ("scheme=q4_32 group=64", "has no option 'group'"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message.replace("(", r"\(")):
        Pipeline.parse(f"builtin.module(relax-quantize{{{options}}})")


def test_remarks_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    quantized(MLP.replace("96", "100"), "q4_32")
    assert "'arg3' is not quantised: its contracted dim is 100" in capsys.readouterr().err


def test_weights_that_groups_do_not_divide_stay(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 64 and 96 numbers, the second is a multiple of 32, but not of 64."""
    assert quantized(MLP, "q4_64").count('"graph.dequantize"') == 1
    told = capsys.readouterr().err
    assert told.count("is not quantised") == 1
    assert (
        "'arg3' is not quantised: its contracted dim is 96, which is not a multiple of 64" in told
    )
