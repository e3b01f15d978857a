"""Normalisations and losses that are decompositions, against NumPy in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, floats, integers, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

TOLERANCE = {"f64": 1e-12, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}


def _near(actual, expected, dtype: str = "f32") -> None:
    assert actual.dtype == NUMPY[dtype]
    expected = np.asarray(expected)
    scale = TOLERANCE[dtype] * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(wide(actual), expected, rtol=TOLERANCE[dtype], atol=scale)


def _normal(x, axes, epsilon: float):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def _affine(x, scale, bias):
    shape = (1, -1, *[1] * (x.ndim - 2))
    return x * wide(scale).reshape(shape) + wide(bias).reshape(shape)


@pytest.mark.parametrize("spatial", [(), (5,), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm(dtype: str, spatial) -> None:
    names = ("h", "w", "v")[: len(spatial)]
    run = Decomposed(
        lambda x, *rest: d.batch_norm(x, *rest, epsilon=0.01),
        spec(dtype, "n", 6, *names), *[spec(dtype, 6)] * 4,
    )  # fmt: skip
    for n in (0, 1, 3):
        x = floats((n, 6, *spatial), dtype)
        scale, bias, mean = (floats((6,), dtype, low, 2) for low in (-2, -1, 0))
        variance = floats((6,), dtype, 0.1, 2)
        shape = (1, 6, *[1] * len(spatial))
        centred = (wide(x) - wide(mean).reshape(shape)) / np.sqrt(
            wide(variance).reshape(shape) + 0.01
        )
        _near(run(x, scale, bias, mean, variance), _affine(centred, scale, bias), dtype)


def test_batch_norm_of_the_last_axis_without_parameters() -> None:
    run = Decomposed(
        lambda x, m, v: d.batch_norm(x, None, None, m, v, epsilon=0, axis=-1),
        spec("f32", "n", 3), spec("f32", 3), spec("f32", 3),
    )  # fmt: skip
    x, mean, variance = floats((5, 3), "f32"), floats((3,), "f32"), floats((3,), "f32", 0.5, 2)
    _near(run(x, mean, variance), (wide(x) - mean) / np.sqrt(wide(variance)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_instance_and_group_norm(dtype: str) -> None:
    operands = spec(dtype, "n", 6, "h", "w"), spec(dtype, 6), spec(dtype, 6)
    instance = Decomposed(lambda *v: d.instance_norm(*v, epsilon=0.01), *operands)
    group = Decomposed(lambda x, s, b: d.group_norm(x, 2, s, b, epsilon=0.01), *operands)
    scale, bias = floats((6,), dtype, -2, 2), floats((6,), dtype, -1, 2)
    for n, h, w in ((1, 1, 2), (3, 5, 7), (0, 2, 2)):
        x = floats((n, 6, h, w), dtype) + NUMPY[dtype].type(4)
        _near(instance(x, scale, bias), _affine(_normal(wide(x), (2, 3), 0.01), scale, bias), dtype)
        parts = _normal(wide(x).reshape(n, 2, 3 * h * w), (2,), 0.01).reshape(x.shape)
        _near(group(x, scale, bias), _affine(parts, scale, bias), dtype)


def test_mean_variance_norm() -> None:
    run = Decomposed(lambda x: d.mean_variance_norm(x, [0, 2]), spec("f64", "n", 3, "m"))
    x = floats((5, 3, 7), "f64")
    _near(run(x), _normal(x, (0, 2), 0), "f64")


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_layer_and_rms_norm(dtype: str, axis: int) -> None:
    dims = ("n", 3, "m")[axis:]
    x = floats((5, 3, 7), dtype)
    axes = tuple(range(axis % 3, 3))
    scale, bias = floats(x.shape[axis:], dtype, -2, 2), floats((7,), dtype, -1, 2)
    run = Decomposed(
        lambda *v: d.layer_norm(*v, epsilon=0.01, axis=axis),
        spec(dtype, "n", 3, "m"), spec(dtype, *dims), spec(dtype, "m"),
    )  # fmt: skip
    _near(run(x, scale, bias), _normal(wide(x), axes, 0.01) * wide(scale) + wide(bias), dtype)
    plain = Decomposed(
        lambda v: d.layer_norm(v, None, None, epsilon=0.01, axis=axis), spec(dtype, "n", 3, "m")
    )
    _near(plain(x), _normal(wide(x), axes, 0.01), dtype)
    root = Decomposed(
        lambda *v: d.rms_norm(*v, epsilon=0.01, axis=axis),
        spec(dtype, "n", 3, "m"), spec(dtype, *dims),
    )  # fmt: skip
    size = np.sqrt((wide(x) ** 2).mean(axes, keepdims=True) + 0.01)
    _near(root(x, scale), wide(x) / size * wide(scale), dtype)


@pytest.mark.parametrize("dims", [("n", 3, "m"), (3, "m"), ("n", 1, 1)])
def test_norms_with_parameters_of_more_dims(dims: tuple) -> None:
    x = floats((5, 3, 7), "f32")
    shape = tuple({"n": 5, "m": 7}.get(dim, dim) for dim in dims)
    scale, bias = floats(shape, "f32", -2, 2), floats((3, 1), "f32", -1, 2)
    run = Decomposed(
        lambda *v: d.layer_norm(*v, epsilon=0.01),
        spec("f32", "n", 3, "m"), spec("f32", *dims), spec("f32", 3, 1),
    )  # fmt: skip
    _near(run(x, scale, bias), _normal(wide(x), (2,), 0.01) * wide(scale) + wide(bias))
    root = Decomposed(
        lambda *v: d.rms_norm(*v, epsilon=0.01), spec("f32", "n", 3, "m"), spec("f32", *dims)
    )
    size = np.sqrt((wide(x) ** 2).mean(2, keepdims=True) + 0.01)
    _near(root(x, scale), wide(x) / size * wide(scale))


@pytest.mark.parametrize("p", [1, 2])
def test_lp_norm(p: int) -> None:
    x = floats((5, 3, 7), "f32")
    x[1, :, 2] = 0
    norm = np.linalg.norm(wide(x), p, axis=1, keepdims=True)
    run = Decomposed(lambda v: d.lp_norm(v, p=p, axis=1), spec("f32", "n", 3, "m"))
    _near(run(x), wide(x) / np.where(norm == 0, 1, norm))
    run = Decomposed(lambda v: d.lp_norm(v, p=p, axis=1, epsilon=3), spec("f32", "n", 3, "m"))
    _near(run(x), wide(x) / np.maximum(norm, 3))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_norm(size: int) -> None:
    run = Decomposed(
        lambda x: d.local_response_norm(x, size, alpha=0.5, beta=0.5, bias=2),
        spec("f32", "n", 4, "h", "w"),
    )
    x = floats((2, 4, 3, 5), "f32")
    wanted = np.empty(x.shape)
    for c in range(4):
        part = wide(x)[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
        wanted[:, c] = wide(x)[:, c] / np.sqrt(2 + 0.5 / size * (part**2).sum(1))
    _near(run(x), wanted)


def _loss(logs, target, weight, reduction: str, ignore_index):
    moved = np.moveaxis(logs, 1, -1)
    valid = target != ignore_index if ignore_index is not None else np.ones(target.shape, bool)
    at = np.where(valid, target, 0)
    weights = np.where(valid, 1.0 if weight is None else weight[at], 0)
    loss = -np.take_along_axis(moved, at[..., None], -1)[..., 0] * weights
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weights.sum()


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignore_index", [None, -100, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(reduction: str, ignore_index: int | None, weighted: bool) -> None:
    settings = {"reduction": reduction, "ignore_index": ignore_index}
    for spatial, names in (((), ()), ((3, 2), ("h", 2))):
        specs = [spec("f32", "n", 5, *names), spec("i64", "n", *names)]
        specs += [spec("f32", 5)] if weighted else []
        x, target = floats((7, 5, *spatial), "f32"), integers((7, *spatial), "i64", 0, 4)
        if ignore_index == -100:
            target[::3] = -100
        weight = floats((5,), "f32", 0.5, 2) if weighted else None
        arrays = [x, target, *([weight] if weighted else [])]
        run = Decomposed(lambda *v: d.nll_loss(*v, **settings), *specs)
        _near(run(*arrays), _loss(wide(x), target, weight, **settings))
        run = Decomposed(lambda *v: d.cross_entropy(*v, **settings), *specs)
        logs = wide(x) - np.log(np.exp(wide(x)).sum(1, keepdims=True))
        _near(run(*arrays), _loss(logs, target, weight, **settings))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_losses_of_types(dtype: str) -> None:
    run = Decomposed(d.cross_entropy, spec(dtype, "n", 5), spec("i32", "n"))
    x, target = floats((9, 5), dtype), integers((9,), "i32", 0, 4)
    logs = wide(x) - np.log(np.exp(wide(x)).sum(1, keepdims=True))
    _near(run(x, target), _loss(logs, target, None, "mean", None), dtype)


def test_a_loss_of_one_target_and_of_ignored_infinities() -> None:
    run = Decomposed(d.nll_loss, spec("f32", 5), spec("i64"))
    x = floats((5,), "f32")
    _near(run(x, np.array(3)), -x[3])
    run = Decomposed(
        lambda *v: d.nll_loss(*v, ignore_index=1, reduction="sum"),
        spec("f32", 2, 3),
        spec("i64", 2),
    )
    x = np.array([[-np.inf, -np.inf, 1], [-1, -2, -3]], np.float32)
    _near(run(x, np.array([1, 2])), 3)


def test_cross_entropy_with_logits() -> None:
    for shape, names in (((5, 7), ("n", "m")), ((7,), ("m",))):
        x, y = floats(shape, "f32"), floats(shape, "f32", 0, 1)
        wanted = -(wide(x) * wide(y)).sum() / (shape[0] if len(shape) > 1 else 1)
        run = Decomposed(d.cross_entropy_with_logits, *[spec("f32", *names)] * 2)
        _near(run(x, y), wanted)


IMAGE, CLASSES = spec("f32", 2, 6, 5, 7), spec("i64", 2, 5)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, t: d.group_norm(x, 4, None, None, epsilon=0.1), "expects groups that divide 6"),
        (lambda x, t: d.group_norm(x, 0, None, None, epsilon=0.1), "expects groups that divide 6"),
        (lambda x, t: d.instance_norm(x, x, None, epsilon=0.1), "expects a vector for dim 6"),
        (lambda x, t: d.lp_norm(x, p=3), "expects a norm of 1 or 2, but got 3"),
        (lambda x, t: d.local_response_norm(x, 0), "expects one channel or more, but got 0"),
        (lambda x, t: d.nll_loss(x, t), "has targets of rank 2 for classes of rank 4"),
        (lambda x, t: d.nll_loss(x, t, reduction="max"), "expects one of none, mean, sum"),
        (lambda x, t: d.cross_entropy_with_logits(x, t), "expects one rank of 1 or more"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [IMAGE, CLASSES])})
