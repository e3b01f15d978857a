"""Exponentials of differences from a maximum: which are found, and the accuracy of softmax."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import TARGETS, built, built_from_graph, generic, program

MATRIX, ROW = "tensor<?x?xf32>", "tensor<?xf32>"
ID, BY_ROW = "(a, b) -> (a, b)", "(a, b) -> (a)"
FLAG, NOT_POSITIVE = "fastmath<afn>", "tir.not_positive"
MAXIMA = {
    "maximumf": "%t = arith.maximumf %p, %o : f32",
    "maxnumf": "%t = arith.maxnumf %o, %p : f32",
    "ogt": "%c = arith.cmpf ogt, %p, %o : f32\n%t = arith.select %c, %p, %o : f32",
    "ole": "%c = arith.cmpf ole, %o, %p : f32\n%t = arith.select %c, %p, %o : f32",
}
OTHERS = {
    "minimumf": "%t = arith.minimumf %p, %o : f32",
    "addf": "%t = arith.addf %p, %o : f32",
    "olt": "%c = arith.cmpf olt, %p, %o : f32\n%t = arith.select %c, %p, %o : f32",
    "oge swapped": "%c = arith.cmpf oge, %o, %p : f32\n%t = arith.select %c, %p, %o : f32",
}


def differences(update: str, operands: str = "%p, %q", reduced: str = "%x0") -> str:
    """exp(x - m), where m is what `update` makes of each row of `reduced`, and the sum of these."""
    power = f"""^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.subf {operands} : f32
      %t = math.exp %d : f32
      linalg.yield %t : f32"""
    total = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    lines = [
        "%z = arith.constant 0xFF800000 : f32",
        "%c0 = arith.constant 0 : index",
        f"%m = tensor.dim %x0, %c0 : {MATRIX}",
        f"%e = tensor.empty(%m) : {ROW}",
        f"%f = linalg.fill ins(%z : f32) outs(%e : {ROW}) -> {ROW}",
        generic("%top", [(reduced, MATRIX, ID)], [("%f", ROW, BY_ROW)], "pr",
                f"^bb0(%p: f32, %o: f32):\n{update}\nlinalg.yield %t : f32"),
        generic("%r", [("%x0", MATRIX, ID), ("%top", ROW, BY_ROW)], [("%y0", MATRIX, ID)], "pp",
                power),
        generic("%s", [("%r", MATRIX, ID)], [("%y1", ROW, BY_ROW)], "pr", total),
    ]  # fmt: skip
    return program([MATRIX, MATRIX], [MATRIX, ROW], "\n".join(lines) + "\nreturn %r, %s")


@pytest.mark.parametrize("update", MAXIMA)
def test_differences_from_the_maximum_are_found(update):
    kernel = built(differences(MAXIMA[update]))
    assert f"{FLAG} {{{NOT_POSITIVE}}}" in kernel.text
    x = np.random.default_rng(len(update)).uniform(-40, 40, (5, 131)).astype(np.float32)
    powers, sums = np.empty_like(x), np.zeros(5, np.float32)
    kernel(x, x, powers, sums)
    shifted = x - x.max(1, keepdims=True)
    wanted = np.exp(shifted.astype(np.float64))
    bound = wanted * (2.2 * 2.0**-23 + 2.0**-23.6 * np.abs(shifted))
    assert np.all(np.abs(powers - wanted) <= bound)
    np.testing.assert_allclose(sums, wanted.sum(1), rtol=1e-6)


def assert_exact(text: str) -> None:
    kernel = built(text)
    assert "math.exp" in kernel.text
    assert FLAG not in kernel.text
    assert NOT_POSITIVE not in kernel.text


@pytest.mark.parametrize("update", OTHERS)
def test_other_reductions_are_left_exact(update):
    assert_exact(differences(OTHERS[update]))


def test_other_differences_are_left_exact():
    assert_exact(differences(MAXIMA["ogt"], operands="%q, %p"))
    assert_exact(differences(MAXIMA["ogt"], reduced="%x1"))


def softmax(dtype: str, axis: int, target: str):
    kind = f'tensor<?x?x{dtype}, #graph.shape<["m", "n"]>>'
    return built_from_graph(
        f"""
    func.func @main(%x: {kind}) -> {kind} {{
      %y = "graph.nn_softmax"(%x) {{axis = {axis} : i64}} : ({kind}) -> {kind}
      return %y : {kind}
    }}""",
        target=target,
    )


def exact(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_softmax_is_as_exact_as_its_differences(target, axis):
    kernel = softmax("f32", axis, target)
    assert f"{FLAG} {{{NOT_POSITIVE}}}" in kernel.text
    generator = np.random.default_rng(axis)
    for shape in ((1, 1), (3, 0), (0, 5), (2, 16), (7, 61), (64, 67), (3, 1031)):
        for scale in (1e-3, 1.0, 30.0, 1e4):
            x = (scale * generator.standard_normal(shape)).astype(np.float32)
            actual = np.full(shape, np.nan, np.float32)
            kernel(x, actual)
            if not x.size:
                continue
            wanted = exact(x, axis)
            # Relative to each element, and to the sum.
            distance = x.max(axis, keepdims=True) - x.astype(np.float64)
            bound = wanted * (1e-6 + 2.0**-22.5 * distance) + 1e-37
            assert np.all(np.abs(actual - wanted) <= bound)
            np.testing.assert_allclose(actual.sum(axis, dtype=np.float64), 1, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_masked_elements_are_exactly_zero(target):
    kernel = softmax("f32", 1, target)
    x = np.random.default_rng(9).standard_normal((4, 73)).astype(np.float32)
    x[0, ::2], x[1, 1:], x[2, 5:], x[3, 3] = -np.inf, -3e38, -1e9, -200
    actual = np.empty_like(x)
    kernel(x, actual)
    wanted = exact(x, 1)
    assert np.all(actual[wanted < 1e-80] == 0)
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_without_an_answer_are_nan(target):
    kernel = softmax("f32", 1, target)
    x = np.zeros((5, 37), np.float32)
    x[0, :], x[1, 36], x[2, 0], x[3, :] = -np.inf, np.nan, np.inf, np.nan
    # A NaN's own bits must not matter.
    x.view(np.uint32)[1, 36] = 0xFFC00123
    actual = np.empty_like(x)
    kernel(x, actual)
    assert np.isnan(actual[:4]).all()
    np.testing.assert_allclose(actual[4], 1 / 37, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision(dtype):
    kernel = softmax(dtype, 1, "native")
    assert f"{FLAG} {{{NOT_POSITIVE}}}" in kernel.text
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    x = (4 * np.random.default_rng(5).standard_normal((9, 83))).astype(kind)
    actual = np.empty_like(x)
    kernel(x.view(np.uint16), actual.view(np.uint16))
    wanted = exact(x.astype(np.float32), 1)
    step = 2.0**-11 if dtype == "f16" else 2.0**-8
    assert np.all(np.abs(actual.astype(np.float64) - wanted) <= wanted * step * 1.01 + 2.0**-24)
