"""Products that subgroups of Vulkan's devices multiply, against float64.

They run thread by thread, and on a driver that multiplies such matrices, if there is one.
"""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import vulkan
from device_modules import built
from test_device_convolution import RESIDUAL, channels_last
from test_tensor_cores import (
    BATCHED,
    PLAIN,
    STATIC,
    TRANSPOSED,
    TWO,
    check,
    check_integers,
    exact_of,
)
from test_warp_convolution import last, residual

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.testing.outlined import outlined

TARGETS = ("vulkan:8x8x8", "vulkan:8x8x16", "vulkan:8x16x16", "vulkan:16x16x16")
OF_BYTES = ("vulkan:8x8x8/8x8x8", "vulkan:8x8x16/8x8x32", "vulkan:8x16x16/8x16x32",
            "vulkan:16x16x16/16x16x16", "vulkan:16x16x16/16x16x32")  # fmt: skip
SIZES = [(1, 1, 1), (0, 3, 4), (3, 0, 5), (7, 40, 0), (6, 0, 5), (5, 3, 7), (17, 31, 63),
         (64, 32, 64), (65, 33, 72), (70, 65, 127), (130, 104, 8)]  # fmt: skip
Product = Callable[..., np.ndarray]


def by_threads(text: str, target: str, type_: str = "f16") -> Product:
    """The function of a module, of which subgroups multiply matrices, on interpreted threads."""
    module, kernels, rules = built(text.replace("TYPE", type_), target, 2)
    assert "cooperative" in rules
    assert any("gpu.subgroup_mma_compute" in str(kernel.module) for kernel in kernels)
    return module["main"]


@cache
def target_of_driver(type_: str) -> str:
    """The target of the shape that the driver has; skips the test if it has none."""
    for target in TARGETS if type_ == "f16" else OF_BYTES:
        try:
            relax_mlir.compile(PLAIN.replace("TYPE", type_), target)
        except ExecutionError as error:
            if "multiply no matrices" not in str(error):
                pytest.skip(f"needs a driver with cooperative matrices: {error}")
        else:
            return target
    pytest.skip("needs a driver with cooperative matrices of a known shape")


def on_a_driver(text: str, type_: str = "f16") -> Product:
    """The same, compiled."""
    return relax_mlir.compile(text.replace("TYPE", type_), target_of_driver(type_))["main"]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape).astype(np.float16)


def check_product(run: Product, m: int, k: int, n: int, is_transposed: bool) -> None:
    x, w = normal(m, k), normal(k, n)
    a, b = exact_of(x, w)
    given = np.ascontiguousarray(x.T) if is_transposed else x
    check(run(given, w), a @ b, np.abs(a) @ np.abs(b), k)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [PLAIN, TRANSPOSED], ids=["plain", "transposed"])
def test_sizes(text: str, target: str) -> None:
    run = by_threads(text, target)
    for sizes in SIZES:
        check_product(run, *sizes, is_transposed=text is TRANSPOSED)


def test_long_sums_are_divided() -> None:
    """Several groups for a tile."""
    run = by_threads(PLAIN, TARGETS[1])
    for sizes in ((9, 520, 40), (65, 1031, 7)):
        check_product(run, *sizes, is_transposed=False)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("text", [PLAIN, TRANSPOSED], ids=["plain", "transposed"])
def test_sizes_on_a_driver(text: str) -> None:
    run = on_a_driver(text)
    for sizes in SIZES:
        check_product(run, *sizes, is_transposed=text is TRANSPOSED)


def test_shapes_that_a_driver_lacks_are_refused() -> None:
    vulkan.require()
    says = "has no (cooperativeMatrix|vulkanMemoryModel|computeFull)|multiply no matrices of f16 of"
    text = PLAIN.replace("TYPE", "f16")
    with pytest.raises(ExecutionError, match=says):  # none has all of them
        _ = [relax_mlir.compile(text, target) for target in TARGETS]


def check_batches(run: Product) -> None:
    for m, k, n in ((5, 24, 9), (66, 33, 65)):
        x, w, r = (normal(3, *shape) for shape in ((m, k), (n, k), (m, n)))
        a, b, c = exact_of(x, w.swapaxes(1, 2), r)
        product = (a @ b).astype(np.float16).astype(float)
        size = np.abs(a) @ np.abs(b)
        check(run(x, w, r), c - product, 2.0**13 * size, k)  # the product is rounded, too


def test_batches_with_an_epilogue() -> None:
    check_batches(by_threads(BATCHED, "vulkan:8x16x16"))


def test_batches_on_a_driver() -> None:
    check_batches(on_a_driver(BATCHED))


def test_convolutions() -> None:
    """Of two groups of 20 filters, with padding: integers below 2^8."""
    module, kernels, rules = built(RESIDUAL.replace("f32", "f16"), "vulkan:16x16x16", 2)
    assert "warp_convolution" in rules
    assert any("gpu.subgroup_mma_compute" in str(kernel.module) for kernel in kernels)
    generator = np.random.default_rng()
    for n, h, width in ((1, 5, 9), (3, 1, 2), (2, 8, 5), (0, 4, 4), (2, 7, 1)):
        shapes = (n, 6, h, width), (40, 3, 3, 2), (40, 1, 1), (n, 40, h, width - 1)
        given = [generator.integers(-3, 4, shape).astype(np.float16) for shape in shapes]
        for actual, expected in zip(module["main"](*given), residual(*given), strict=True):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.rotate(2)
@pytest.mark.parametrize(("m", "k", "n"), [(5, 32, 24), (32, 48, 65), (33, 7, 64), (128, 64, 128)])
def test_static_sizes(m: int, k: int, n: int) -> None:
    """With tiles of half the height, and copies that need no bounds."""
    text = STATIC.replace("M", str(m)).replace("K", str(k)).replace("N", str(n))
    x, w = (np.round(2 * normal(*shape)) for shape in ((m, k), (k, n)))
    bias = np.round(normal(n))
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)
    for target in ("vulkan:8x8x8", "vulkan:16x16x16"):
        np.testing.assert_array_equal(by_threads(text, target)(x, w, bias), exact)


@pytest.mark.rotate(5)
@pytest.mark.parametrize("target", OF_BYTES)
def test_integers(target: str) -> None:
    for text in (PLAIN, TRANSPOSED, BATCHED):
        check_integers(text, by_threads(text, target, "i8"))


def test_integers_on_a_driver() -> None:
    check_integers(TRANSPOSED, on_a_driver(TRANSPOSED, "i8"))


def test_convolutions_of_integers() -> None:
    """With zeros next to rows and columns; sums begin with 2."""
    text = channels_last("i8", "i32", "extsi", (8, 8), 24)
    module, kernels, rules = built(text, "vulkan:16x16x16/16x16x32", 2)
    assert "warp_convolution" in rules
    assert any("gpu.subgroup_mma_compute" in str(kernel.module) for kernel in kernels)
    generator = np.random.default_rng()
    for n, h, width in ((2, 5, 7), (1, 1, 3), (0, 2, 3)):
        x = generator.integers(-9, 10, (n, h, width, 8)).astype(np.int8)
        w = generator.integers(-9, 10, (2, 3, 8, 24)).astype(np.int8)
        np.testing.assert_array_equal(module["main"](x, w), last(x, w))


def test_infinities_stay_in_their_rows() -> None:
    run = by_threads(PLAIN, "vulkan:16x16x16")
    x, w = normal(20, 33), normal(33, 10)
    x[3, 32], x[5, 0] = np.inf, np.nan
    y = run(x, w)
    assert np.isinf(y[3]).all()
    assert np.isnan(y[5]).all()
    assert np.isfinite(np.delete(y, [3, 5], 0)).all()


def test_what_subgroups_do_not_multiply_is_of_other_rules() -> None:
    """Two products of a left side, and elements of other types."""
    for text in (TWO.replace("TYPE", "f16"), PLAIN.replace("TYPE", "bf16")):
        _, kernels, rules = built(text, "vulkan:16x16x16", 2)
        assert "products" in rules
        assert not any("subgroup_mma" in str(kernel.module) for kernel in kernels)


def test_every_barrier_is_needed() -> None:
    """With one of them left out, threads of a group race."""
    with make_context(), ir.Location.unknown():
        module = outlined(PLAIN.replace("TYPE", "f16"), "vulkan:16x16x16")
        text = str(module)
    x, w = normal(70, 70), normal(70, 65)
    assert np.isfinite(relax_mlir.interpret(text)["main"](x, w)).all()
    begin = text.index("gpu.subgroup_id")
    barriers = [begin + matched.start() for matched in re.finditer("gpu.barrier", text[begin:])]
    assert len(barriers) == 5  # two of each step, and those around the parts of sums
    for at in barriers:
        broken = relax_mlir.interpret(f"{text[:at]}// {text[at:]}")["main"]
        with pytest.raises(ExecutionError, match=r"without a barrier between|no thread wrote"):
            broken(x, w)
