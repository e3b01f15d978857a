"""Products with quantised matrices against float64, at the sizes where tiles and blocks end."""

import numpy as np
import pytest
from quantized_programs import Matrix, Product, compiled, rounded
from scheduled import NATIVE, ZEN5, runnable

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph.quantized import BY_BLOCK, BY_GROUP, SCHEMES
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline

# Vectors of 16 with 8-bit dot products and without them, of 8, and machines that have neither.
TARGETS = [*NATIVE, *runnable("x86-64-v4", "x86-64-v3", "x86-64-v2")]
ROWS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 23, 127, 128, 129, 257, 386)
RANDOM = np.random.default_rng(1)


def normal(*shape: int) -> np.ndarray:
    """Normally distributed f32 values."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def unit(scheme: str) -> int:
    """A divisor of k."""
    return 256 if SCHEMES[scheme].is_nested else SCHEMES[scheme].group


def check(product: Product, matrix: Matrix, x: np.ndarray, target: str, *more: np.ndarray) -> None:
    """Compares with the product in float64, relative to the sum of its terms' magnitudes."""
    actual = compiled(product, target)["main"](x, *matrix.operands, *more)
    exact = rounded(x) if product.activations == "int8" else x.astype(np.float64)
    values = matrix.values[: product.sliced]
    expected = exact @ values.T + sum(more, np.float64(0))
    terms = np.abs(exact) @ np.abs(values).T + sum(map(np.abs, more), np.float64(1e-30))
    assert actual.shape == expected.shape
    assert actual.dtype == np.float32
    assert (np.abs(actual - expected) <= 1e-6 * terms).all()


def rule_of(product: Product, target: str) -> set[str]:
    """The schedule rules that the kernels of a product were made by."""
    compiled(product, target)  # which caches the kernels
    passes = pipeline(target, 2, builds=True)
    passes = passes[: passes.index(",relax-lower-calls")] + ")"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(product.text())
        Pipeline.parse(passes).run(module)
        kernels = [op.operation for op in module.body.operations]
        return {
            k.attributes["tir.schedule"].value for k in kernels if "tir.schedule" in k.attributes
        }


@pytest.mark.rotate(4)
@pytest.mark.parametrize("activations", ["int8", "f32"])
@pytest.mark.parametrize("scheme", BY_BLOCK)
@pytest.mark.parametrize("target", TARGETS)
def test_row_counts(target: str, scheme: str, activations: str) -> None:
    k = unit(scheme)
    product = Product(scheme, 48, 3 * k, activations)
    matrix = Matrix.random(scheme, 48, 3 * k)
    assert "quantized_matmul" in rule_of(product, target)
    for rows in ROWS:
        check(product, matrix, normal(rows, 3 * k), target)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("activations", ["int8", "f32"])
@pytest.mark.parametrize(("scheme", "groups"), [*((s, 3) for s in BY_GROUP), ("q4_128", 1)])
def test_blocks_that_share_a_scale(scheme: str, groups: int, activations: str) -> None:
    k = groups * SCHEMES[scheme].group
    product = Product(scheme, 48, k, activations, sliced=45)
    matrix = Matrix.random(scheme, 48, k)
    assert "quantized_matmul" in rule_of(product, "native")
    for rows in (0, 1, 2, 9, 33, 129):
        check(product, matrix, normal(rows, k), "native")


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("scheme", ["q8_64", "q4_128_minimum"])
def test_shared_scales_on_other_machines(scheme: str, target: str) -> None:
    k = 3 * SCHEMES[scheme].group
    product, matrix = Product(scheme, 32, k, "int8"), Matrix.random(scheme, 32, k)
    for rows in (1, 6, 33):
        check(product, matrix, normal(rows, k), target)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", runnable("x86-64+vector-bytes=4", "x86-64+vector-bytes=8"))
@pytest.mark.parametrize("scheme", ["q8_0", "q4_k"])
def test_narrow_vectors(scheme: str, target: str) -> None:
    """A panel fills all registers: the block of many rows has one row."""
    product, matrix = Product(scheme, 16, 256, "f32"), Matrix.random(scheme, 16, 256)
    for rows in (1, 6, 33):
        check(product, matrix, normal(rows, 256), target)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", ZEN5)
@pytest.mark.parametrize(
    ("scheme", "columns"), [("q8_0", 16), ("q4_0", 32), ("q4_1", 48), ("q6_k", 80), ("q4_1", 784)]
)
def test_panels_together(scheme: str, columns: int, target: str) -> None:
    k = unit(scheme)
    product, matrix = Product(scheme, columns, k, "int8"), Matrix.random(scheme, columns, k)
    for rows in (1, 9, 10, 11, 12, 128, 131):
        check(product, matrix, normal(rows, k), target)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("scheme", BY_BLOCK)
@pytest.mark.parametrize(("rows", "units"), [(16, 1), (16, 8), (400, 1), (112, 5)])
def test_shapes_of_matrices(rows: int, units: int, scheme: str) -> None:
    k = units * unit(scheme)
    product = Product(scheme, rows, k, "int8")
    for count in (1, 6, 131):
        check(product, Matrix.random(scheme, rows, k), normal(count, k), "native")


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize(
    ("scheme", "columns", "units"),
    [("q8_0", 784, 133), ("q4_1", 48, 131), ("q4_0", 16, 521), ("q6_k", 48, 17)],
)
def test_many_panels_and_long_rows(scheme: str, columns: int, units: int, target: str) -> None:
    """More panels than a task has, and rows longer than a stretch that fits the cache.

    That is 128 blocks of 256 rows, each half of which is a block of rows, and 496 of 33 rows.
    """
    k = units * unit(scheme)
    product, matrix = Product(scheme, columns, k, "int8"), Matrix.random(scheme, columns, k)
    for rows in (1, 3, 5, 33, 256, 257):
        check(product, matrix, normal(rows, k), target)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("activations", ["int8", "f32"])
@pytest.mark.parametrize("scheme", ["q8_0", "q4_0", "q4_1", "q5_1"])
def test_odd_shapes(scheme: str, activations: str) -> None:
    """One block of k, and fewer columns than a panel has."""
    matrix = Matrix.random(scheme, 16, 32)
    for sliced in (1, 7):
        product = Product(scheme, 16, 32, activations, sliced=sliced)
        for rows in (1, 3, 6):
            check(product, matrix, normal(rows, 32), "native")


@pytest.mark.rotate(4)
@pytest.mark.parametrize("activations", ["int8", "f32"])
@pytest.mark.parametrize("sliced", [1, 15, 17, 31, 33, 47])
def test_column_counts(sliced: int, activations: str) -> None:
    product = Product("q4_1", 48, 64, activations, sliced=sliced, bias=True)
    matrix = Matrix.random("q4_1", 48, 64)
    for rows in (1, 3, 130):
        check(product, matrix, normal(rows, 64), "native", normal(sliced))


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_bias_and_residual(target: str) -> None:
    product = Product("q4_1", 32, 64, "int8", bias=True, residual=True)
    rules = rule_of(product, target)
    assert "quantized_matmul" in rules
    assert len(rules) == 2, "rounding is one kernel, all else another"
    for rows in (1, 9):
        more = normal(32), normal(rows, 32)
        check(product, Matrix.random("q4_1", 32, 64), normal(rows, 64), target, *more)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("activations", ["int8", "f32"])
def test_left_sides_of_other_ranks(activations: str) -> None:
    matrix = Matrix.random("q8_0", 32, 64)
    for lead in (("b", "n"), (3, "n"), ("b", 2, 5)):
        product = Product("q8_0", 32, 64, activations, lead=lead)
        shape = [{"b": 2, "n": 7}.get(dim, dim) for dim in lead]
        check(product, matrix, normal(*shape, 64), "native")


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("scheme", BY_BLOCK)
def test_extreme_elements(scheme: str, target: str) -> None:
    """Pairs that instructions add in 16 bits must not overflow."""
    kind, k = SCHEMES[scheme], 2 * unit(scheme)
    extremes = [-128, 127] if kind.bits == 8 else [0, (1 << kind.bits) - 1]
    product = Product(scheme, 16, k, "int8")
    factors = {
        name: np.ones((16, dims[1], *dims[2:-1]), "i1" if element == "i8" else np.float16)
        for name, (element, dims) in kind.parts(1, k // 32).items()
        if name not in ("data", "high")
    }
    for extreme in extremes:
        matrix = Matrix.of(scheme, np.full((16, k), extreme), factors)
        for sign in (1, -1):
            x = np.full((3, k), sign, np.float32)
            check(product, matrix, x, target)
            x[:, ::2] *= -1
            check(product, matrix, x, target)


def test_blocks_of_zero() -> None:
    matrix = Matrix.random("q4_0", 16, 96)
    x = normal(5, 96)
    x[0], x[1, 32:64], x[3, :32] = 0, 0, 0
    check(Product("q4_0", 16, 96, "int8"), matrix, x, "native")


@pytest.mark.parametrize("activations", ["int8", "f32"])
def test_threads_do_not_change_results(activations: str) -> None:
    product = Product("q4_1", 768, 96, activations)
    main = compiled(product)["main"]
    matrix = Matrix.random("q4_1", 768, 96)
    for rows in (1, 200):
        x = normal(rows, 96)
        one, two = (main(x, *matrix.operands, threads=n).copy() for n in (1, 2))
        np.testing.assert_array_equal(one, two)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("scheme", BY_BLOCK)
def test_levels_give_the_same_results(scheme: str) -> None:
    k = unit(scheme)
    product = Product(scheme, 32, k, "int8", residual=True)
    matrix = Matrix.random(scheme, 32, k)
    arguments = (normal(5, k), *matrix.operands, normal(5, 32))
    plain, fused = (compiled(product, opt_level=n)["main"](*arguments).copy() for n in (0, 2))
    np.testing.assert_allclose(
        plain, fused, rtol=1e-4, atol=1e-6 * np.abs(matrix.values).sum(1).max()
    )


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("scheme", BY_BLOCK)
def test_extreme_sums(scheme: str, target: str) -> None:
    """Sums of a block of the largest magnitude, which fit 16 bits or not."""
    k = 2 * unit(scheme)
    product, matrix = Product(scheme, 16, k, "int8"), Matrix.random(scheme, 16, k, 0, True)
    for rows in (1, 3, 14):
        for x in (1.0, -1.0):
            check(product, matrix, np.full((rows, k), x, np.float32), target)
