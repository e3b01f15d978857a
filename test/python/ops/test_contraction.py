"""Contractions, layouts and sums over what was broadcast, against NumPy in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import floats, integers, numbers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

EXTENTS = ({"a": 1, "b": 2, "c": 3}, {"a": 7, "b": 5, "c": 17}, {"a": 2, "b": 0, "c": 4})
EQUATIONS = [
    "ab,bc->ac", "ab,bc", "ab,ab->", "ba", "ab->b", "abc->", "ab,cb->ac", "abc,acb->a",
    "abc,bc->ab", "aab->b", "aab->ab", "aa->", "aabb->ab", "ab,ac,bc->", "abc,cda->bda",
    "a,b,c->cab", "abc,abc->abc", "ab,b->ab", "...ab,...bc->...ac", "...a,...a->...", "a...->...a",
    "ab...,b->a...", "aab,bcc->ac", "ab,ab,ab->a", "cab,b->ac",
]  # fmt: skip


def _operands(equation: str, extents: dict[str, int], dots: tuple[int, ...]):
    for term in equation.partition("->")[0].split(","):
        first, has, last = term.partition("...")
        names = [*first, *(dots if has else ()), *last]
        yield tuple(names), tuple(extents.get(x, x) if isinstance(x, str) else x for x in names)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    extents = EXTENTS[1] | {"d": 2}
    shapes = list(_operands(equation, extents, (2, 3)))
    run = Decomposed(
        lambda *v: d.einsum(equation, *v), *(spec("f64", *names) for names, _ in shapes)
    )
    for sizes in EXTENTS:
        found = [shape for _, shape in _operands(equation, sizes | {"d": 2}, (2, 3))]
        arrays = [
            np.roll(floats(shape, "f64").ravel(), i).reshape(shape) for i, shape in enumerate(found)
        ]
        np.testing.assert_allclose(
            run(*arrays), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12
        )


def test_einsum_broadcasts_dots() -> None:
    run = Decomposed(
        lambda x, y: d.einsum("...ij,...jk->...ik", x, y),
        spec("f64", "n", 1, 3, 4), spec("f64", 5, 4, 2),
    )  # fmt: skip
    x, y = floats((7, 1, 3, 4), "f64"), floats((5, 4, 2), "f64")
    np.testing.assert_allclose(run(x, y), np.matmul(x, y), rtol=1e-13)


def test_a_diagonal_leaves_out_what_is_not_finite() -> None:
    x = np.full((3, 3), np.nan)
    np.fill_diagonal(x, [1, np.inf, 3])
    run = Decomposed(lambda v: d.einsum("ii->i", v), spec("f64", "n", "n"))
    np.testing.assert_array_equal(run(x), [1, np.inf, 3])


def test_einsum_of_integers_wraps() -> None:
    run = Decomposed(
        lambda x, y: d.einsum("ij,kj->ik", x, y), spec("i8", 3, "n"), spec("i8", 2, "n")
    )
    x, y = integers((3, 67), "i8", -99, 99), integers((2, 67), "i8", -99, 99)
    np.testing.assert_array_equal(run(x, y), (x.astype(int) @ y.T.astype(int)).astype(np.int8))


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij", "has 1 terms in 'ij', but 2 operands"),
        ("ijk,jk->i", "expects letters and dots for 2 dims, but got 'ijk'"),
        ("i1,jk->i", "expects letters and dots for 2 dims, but got 'i1'"),
        ("ij,kl->iz", "has label 'z' in the result of 'ij,kl->iz' alone"),
        ("ij,jk->ii", "has a label twice in the result of 'ij,jk->ii'"),
        ("ij,ji->i", "contracts dim 4 with dim 5"),
        ("ii,jk->i", "takes the diagonal of dims 3 and 4"),
    ],
)  # fmt: skip
def test_einsum_refuses(equation: str, message: str) -> None:
    specs = [spec("f32", 3, 4), spec("f32", 5, 6)]
    with pytest.raises(ShapeError, match=f"^{message}$"):
        module_of({"main": (lambda *v: d.einsum(equation, *v), specs)})


@pytest.mark.parametrize(
    ("batch", "contract", "equation"),
    [
        (((), ()), ((1,), (0,)), "abcd,befg->acdefg"),
        (((0,), (3,)), ((2, 1), (1, 0)), "abcd,bcea->ade"),
        (((3, 0), (0, 1)), ((), ()), "abcd,daef->dabcef"),
        (((0, 1, 2), (0, 1, 2)), ((3,), (3,)), "abcd,abcd->abc"),
        (((), ()), ((0, 1, 2, 3), (0, 1, 2, 3)), "abcd,abcd->"),
        (((-1,), (0,)), ((-2,), (-1,)), "abcd,defc->dabef"),
    ],
)
def test_dot_general(batch, contract, equation: str) -> None:
    terms = equation.partition("->")[0].split(",")
    static = {"e": 2, "f": 3, "g": 1}
    run = Decomposed(
        lambda x, y: d.dot_general(x, y, batch=batch, contract=contract),
        *(spec("f64", *(static.get(x, x) for x in term)) for term in terms),
    )
    for extents in ({"a": 2, "b": 3, "c": 5, "d": 4}, {"a": 1, "b": 1, "c": 2, "d": 7}):
        shapes = [[(extents | static)[x] for x in term] for term in terms]
        x, y = (floats(shape, "f64") for shape in shapes)
        np.testing.assert_allclose(run(x, y), np.einsum(equation, x, y), rtol=1e-12, atol=1e-12)


def test_dot_general_refuses() -> None:
    specs = [spec("f32", 3, 4), spec("f32", 4, 3)]
    for settings, message in (
        ({"contract": ((1,), (0, 1))}, "expects pairs of axes"),
        ({"contract": ((0,), (0,))}, "contracts dim 3 with dim 4"),
        ({"contract": ((1,), (0,)), "batch": ((1,), (1,))}, "expects distinct axes"),
        ({"contract": ((2,), (0,))}, "has axis 2, but rank 2"),
    ):
        with pytest.raises(ShapeError, match=message):
            module_of({"main": (lambda *v, s=settings: d.dot_general(*v, **s), specs)})


@pytest.mark.parametrize(
    ("left", "right"),
    [("k", "k"), ("k", "kn"), ("mk", "k"), ("k", "akn"), ("amk", "k"), ("amk", "kn")],
)
def test_matmul_of_vectors_and_matrices(left: str, right: str) -> None:
    run = Decomposed(d.matmul, spec("f64", *left), spec("f64", *right))
    for sizes in ({"a": 2, "m": 3, "k": 5, "n": 7}, {"a": 1, "m": 1, "k": 0, "n": 1}):
        x, y = (floats([sizes[name] for name in names], "f64") for names in (left, right))
        np.testing.assert_allclose(run(x, y), x @ y, rtol=1e-12, atol=1e-12)


def test_matmul_refuses_scalars() -> None:
    with pytest.raises(ShapeError, match="expects ranks of 1 at least, but got 1 and 0"):
        module_of({"main": (d.matmul, [spec("f32", "n"), spec("f32")])})


@pytest.mark.parametrize(
    ("dims", "to"),
    [
        (("a", "b", "c"), ("b", -1)),
        (("a", "b", "c"), ("c", "b", "a")),
        (("a", "b", "c"), (1, -1)),
        (("a", 6, "c"), (2, -1, "c")),
        ((4, "b"), (-1, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_reshape_to_what_is_left(dims, to, dtype: str) -> None:
    run = Decomposed(lambda v: d.reshape(v, to), spec(dtype, *dims))
    for sizes in ({"a": 2, "b": 3, "c": 5}, {"a": 1, "b": 7, "c": 1}, {"a": 0, "b": 4, "c": 3}):
        x = numbers([sizes.get(dim, dim) for dim in dims], dtype)
        wanted = [sizes.get(dim, dim) for dim in to]
        if x.size or -1 not in wanted:
            np.testing.assert_array_equal(run(x), x.reshape(wanted))
        else:
            assert run(x).size == 0


def test_reshape_keeps_a_dim_whose_factor_is_0() -> None:
    run = Decomposed(lambda v: d.reshape(v, ["b", -1]), spec("f32", "a", "b"))
    assert run(np.zeros((3, 0), np.float32)).shape == (0, 3)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ((-1, -1), "expects one dim of -1 at most, but got 2"),
        ((0, -1), "cannot tell the dim of -1 next to a dim of 0"),
        ((-1, 5), "has 12 elements, which"),
        ((-2, 6), "has 12 elements, which"),
    ],
)
def test_reshape_refuses(to, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (lambda v: d.reshape(v, to), [spec("f32", 3, 4)])})


def test_outer_and_fma() -> None:
    run = Decomposed(d.outer, spec("f64", "n"), spec("f64", "m"))
    for n, m in ((0, 3), (1, 1), (7, 5)):
        x, y = floats((n,), "f64"), floats((m,), "f64")
        np.testing.assert_array_equal(run(x, y), np.outer(x, y))
    run = Decomposed(d.ewise_fma, *[spec("f64", "n")] * 3)
    x, y, z = (floats((9,), "f64", low, 4) for low in (1, 2, 3))
    np.testing.assert_array_equal(run(x, y, z), x * y + z)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("dtype", ["f32", "i8", "i1"])
def test_depth_and_space(mode: str, dtype: str) -> None:
    image = spec(dtype, "n", 18, "h", "w")
    there = Decomposed(lambda v: d.depth_to_space(v, 3, mode), image)
    whole = spec(dtype, "n", 2, "3*h", "3*w")
    back = Decomposed(lambda v: d.space_to_depth(v, 3, mode), whole)
    for n, h, w in ((1, 1, 1), (2, 5, 3), (0, 2, 2)):
        x = numbers((n, 18, h, w), dtype)
        wanted = np.empty((n, 2, 3 * h, 3 * w), x.dtype)
        for c in range(2):
            for i in range(3):
                for j in range(3):
                    channel = (i * 3 + j) * 2 + c if mode == "DCR" else c * 9 + i * 3 + j
                    wanted[:, c, i::3, j::3] = x[:, channel]
        np.testing.assert_array_equal(wide(there(x)), wide(wanted))
        np.testing.assert_array_equal(wide(back(wanted)), wide(x))


def test_channel_shuffle() -> None:
    run = Decomposed(lambda v: d.channel_shuffle(v, 3), spec("f32", "n", 12, "w"))
    x = floats((2, 12, 5), "f32")
    order = [group * 4 + each for each in range(4) for group in range(3)]
    np.testing.assert_array_equal(run(x), x[:, order])


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(count: int, indexing: str) -> None:
    specs = [spec("i32", *dims) for dims in (("n",), (1,), ("m",))[:count]]
    run = Decomposed(lambda *v: d.meshgrid(*v, indexing=indexing), *specs)
    for sizes in ((1, 1, 1), (5, 1, 7), (0, 1, 2)):
        arrays = [integers((n,), "i32") for n in sizes[:count]]
        found = run(*arrays) if count else ()
        for one, other in zip(
            found if count > 1 else [found] * count,
            np.meshgrid(*arrays, indexing=indexing),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_collapse_sum() -> None:
    x = floats((2, 5, 7), "f64")
    for target, wanted in (
        ((5, 7), x.sum(0)),
        ((1, 7), x.sum((0, 1))[None]),
        ((2, 1, 7), x.sum(1, keepdims=True)),
        ((2, 5, 7), x),
        ((), x.sum()),
    ):
        dims = [{5: "n", 7: "m"}.get(n, n) for n in target]
        operand = spec("f64", 2, "n", "m")
        run = Decomposed(lambda v, dims=dims: d.collapse_sum_to(v, dims), operand)
        np.testing.assert_allclose(run(x), wanted, rtol=1e-13)
        like = Decomposed(d.collapse_sum_like, operand, spec("f64", *dims))
        np.testing.assert_allclose(like(x, np.zeros(target)), wanted, rtol=1e-13)


@pytest.mark.parametrize(
    ("dims", "message"),
    [((2, 3, 4, 5), "has rank 3"), ((2, "n", "k"), "cannot tell whether dim m is a repeated k")],
)
def test_collapse_sum_refuses(dims, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (lambda v: d.collapse_sum_to(v, dims), [spec("f64", 2, "n", "m")])})


@pytest.mark.parametrize(
    "build",
    [
        lambda x: d.depth_to_space(x, 2, "DRC"),
        lambda x: d.depth_to_space(x, 0),
        lambda x: d.depth_to_space(x, 4),
        lambda x: d.space_to_depth(x, 2),
        lambda x: d.channel_shuffle(x, 5),
        lambda x: d.meshgrid(x),
        lambda x: d.meshgrid(x, indexing="yx"),
        lambda x: d.outer(x, x),
    ],
)
def test_layouts_refuse(build) -> None:
    with pytest.raises(ShapeError):
        module_of({"main": (build, [spec("f32", 1, 12, 3, 5)])})
