"""Functions of JAX whose arguments have symbolic shapes, of all kinds of operators.

    python test/python/frontends/jax/functions.py [--compile N] [--match TEXT]

Each is exported once, imported, interpreted at three sizes and compared with JAX.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

import relax_mlir
from relax_mlir.frontends.jax import from_exported
from relax_mlir.interpreter import interpret

SIZES = ({"b": 1, "n": 2}, {"b": 3, "n": 5}, {"b": 7, "n": 4})
F32, I32 = np.float32, np.int32


@dataclass(frozen=True)
class Function:
    """A function, and the symbolic shape and the type of each argument."""

    call: Callable
    arguments: tuple[tuple[str, type], ...]


FUNCTIONS: dict[str, Function] = {}


def function(*arguments: str | tuple[str, type]) -> Callable:
    """Registers a function of arguments of these shapes, which are f32 if nothing is said."""

    def register(call: Callable) -> Callable:
        typed = [each if isinstance(each, tuple) else (each, F32) for each in arguments]
        FUNCTIONS[call.__name__] = Function(call, tuple(typed))
        return call

    return register


def add(name: str, call: Callable, *arguments: str | tuple[str, type]) -> None:
    """Registers a function under a name."""
    call.__name__ = name
    function(*arguments)(call)


add("softmax", lambda x: jax.nn.softmax(x, axis=-1), "b, n")
add("log_softmax", lambda x: jax.nn.log_softmax(x, axis=0), "b, n")
add("gelu", lambda x: jax.nn.gelu(x, approximate=False), "b, n")
add("gelu_tanh", lambda x: jax.nn.gelu(x), "b, n")
add("silu", lambda x: jax.nn.silu(x) + jax.nn.relu(x) + jax.nn.elu(x), "b, n")
add("softplus", lambda x: jax.nn.softplus(x) * jax.nn.sigmoid(x), "b, n")
add("logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), "b, n")
add("matmul", lambda x, y: x @ y, "b, n", "n, 6")
add("batched_matmul", lambda x, y: x @ y, "b, 3, n", "b, n, 4")
add("einsum", lambda x, y: jnp.einsum("bij,bkj->bik", x, y), "b, 3, n", "b, 5, n")
add("outer", lambda x, y: jnp.outer(x, y), "b", "n")
add("concatenate", lambda x, y: jnp.concatenate([x, y, x], axis=0), "b, 4", "2*b, 4")
add("stack", lambda x: jnp.stack([x, x + 1], axis=1), "b, n")
add("reshape_merge", lambda x: x.reshape(-1, 2), "b, 4")
add("reshape_split", lambda x: x.reshape(x.shape[0] // 2, 2, 3).sum(1), "2*b, 3")
add("flatten", lambda x: x.ravel() * 2, "b, n, 2")
add("transpose", lambda x: jnp.transpose(x, (2, 0, 1)), "b, n, 3")
add("swapaxes", lambda x: jnp.swapaxes(x, 0, 1) + 1, "b, n")
add("broadcast", lambda x, y: jnp.broadcast_to(x[:, None], (x.shape[0], y.shape[0])) * y, "b", "n")
add("tile", lambda x: jnp.tile(x, (2, 3)), "b, n")
add("repeat", lambda x: jnp.repeat(x, 3, axis=0), "b, n")
add("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=5), "b, n")
add("pad_edge", lambda x: jnp.pad(x, ((2, 1), (0, 0)), mode="edge"), "b, n")
add("slice", lambda x: x[1:, :-1], "b + 1, n")
add("strided_slice", lambda x: x[::2], "b, 3")
add("last", lambda x: x[-1] + x[0], "b, n")
add("flip", lambda x: x[::-1, ::-1], "b, n")
add("roll", lambda x: jnp.roll(x, 1, axis=0), "b, n")
add("arange", lambda x: x + jnp.arange(x.shape[1], dtype=F32), "b, n")
add("eye", lambda x: x[:, :, None] * jnp.eye(x.shape[1]), "b, n")
add("linspace", lambda x: x + jnp.linspace(0, 1, 5), "b, 5")
add("tril", lambda x: jnp.tril(x) + jnp.triu(x, 1), "b, n")
add("where_mask", lambda x: jnp.where(jnp.arange(x.shape[1]) < 2, x, -1.0), "b, n")
add("one_hot", lambda i: jax.nn.one_hot(i % 5, 5), ("b, n", I32))
add("take", lambda x, i: jnp.take(x, i, axis=0), "b, n", ("4", I32))
add(
    "take_along", lambda x, i: jnp.take_along_axis(x, i % x.shape[1], axis=1), "b, n", ("b, 2", I32)
)
add("gather_rows", lambda x, i: x[i % x.shape[0], :], "b, n", ("n", I32))
add("embedding", lambda w, i: w[i % 11], "11, n", ("b, 3", I32))
add("set_row", lambda x: x.at[0].set(7.0), "b, n")
add("add_at", lambda x, i: x.at[i % x.shape[0]].add(1.0), "b, n", ("3", I32))
add("max_at", lambda x, i: x.at[i % x.shape[0]].max(0.5), "b, n", ("3", I32))
add("segment_sum", lambda x, i: jax.ops.segment_sum(x, i % 4, num_segments=4), "b, n", ("b", I32))
add("sort", lambda x: jnp.sort(x, axis=1), "b, n")
add("argsort", lambda x: jnp.argsort(x, axis=0), "b, n")
add("top_k", lambda x: lax.top_k(x, 2), "b, n + 2")
add("argmax", lambda x: (jnp.argmax(x, axis=1), jnp.argmin(x, axis=0)), "b, n")
add("cumsum", lambda x: jnp.cumsum(x, axis=0), "b, n")
add("cumprod", lambda x: lax.cumprod(x, axis=1, reverse=True), "b, n")
add("cummax", lambda x: lax.cummax(x, axis=0), "b, n")
add("mean_var", lambda x: (x.mean(0), x.var(1), x.std()), "b, n")
add("prod_all_any", lambda x: (x.prod(1), (x > 0).all(0), (x > 0).any()), "b, n")
add("median", lambda x: jnp.median(x, axis=0), "b, n")
add("clip", lambda x: jnp.clip(jnp.floor(x * 3) + jnp.round(x), -1, 2), "b, n")
add("integers", lambda i: (i // 3, i % 3, i << 2, i ^ 5, -i, jnp.sign(i)), ("b, n", I32))
add("casts", lambda x: (x > 0).astype(I32) + x.astype(I32), "b, n")
add("sizes", lambda x: x * x.shape[0] + x.shape[1] // 2, "b, n")
add(
    "avg_pool",
    lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    "b, 8, 6, 3",
)
add(
    "max_pool",
    lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    "b, 8, 6, 3",
)
add("special", lambda x: lax.erf_inv(x * 0.1) + lax.lgamma(x + 9) + lax.digamma(x + 9), "b, n")
add("complex_abs", lambda x, y: jnp.abs(lax.complex(x, y) * lax.complex(y, x)), "b, n", "b, n")


@function("b, 8, 8, 3", "3, 3, 3, 5")
def conv(x, w):
    """A convolution of images, in JAX's own layout."""
    axes = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=axes)


@function("b, n, 8", "8")
def layer_norm(x, weight):
    """A normalisation of the last axis."""
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.square(x - mean).mean(-1, keepdims=True) + 1e-5) * weight


@function("b, 4, n, 8", "b, 4, n, 8", "b, 4, n, 8")
def attention(q, k, v):
    """Causal attention."""
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(8).astype(F32)
    n = q.shape[2]
    mask = jnp.arange(n)[:, None] >= jnp.arange(n)[None, :]
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(jnp.where(mask, scores, -1e9), -1), v)


@function("b, n", "n, 16", "16, 4")
def mlp_gradient(x, w, v):
    """The gradients of a loss."""
    loss = lambda w, v: jnp.mean(jnp.square(jnp.tanh(x @ w) @ v))  # noqa: E731
    return jax.grad(loss, (0, 1))(w, v)


@function("b, 5", "5, 5")
def scan(x, w):
    """Rounds of a recurrence."""
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), h.sum(1)), x, None, length=4)


@function("b, 3")
def scan_rows(x):
    """Rounds as many as there are rows."""
    return lax.fori_loop(0, x.shape[0], lambda i, s: s * 0.5 + x[i], jnp.zeros(3))


@function("b, n")
def while_loop(x):
    """Rounds until a sum is large."""
    return lax.while_loop(lambda s: jnp.abs(s).max() < 100, lambda s: s * 2 + 1, x)


@function("b, n")
def cond(x):
    """One of two branches."""
    return lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, x)


@function("b, n", ("", I32))
def switch(x, i):
    """One of three branches."""
    return lax.switch(i % 3, [jnp.sin, jnp.cos, lambda y: y * 3], x)


@function("b, n")
def dynamic_slice(x):
    """A row at a computed position."""
    row = lax.dynamic_slice_in_dim(x, jnp.argmax(x[:, 0]), 1, axis=0)
    return lax.dynamic_update_slice_in_dim(x, row * 2, 0, axis=0)


@function("b, n", "n")
def vmapped(x, y):
    """A function of each row."""
    return jax.vmap(lambda row: jnp.dot(row, y) + jnp.cumsum(row)[-1])(x)


@function("b, 4, 4")
def cholesky(x):
    """Factors of matrices that are positive definite."""
    return jnp.linalg.cholesky(x @ jnp.swapaxes(x, 1, 2) + 4 * jnp.eye(4))


@function("b, n")
def random(x):
    """Noise of a key."""
    return x + jax.random.uniform(jax.random.key(3), (4,))[0]


def shapes_of(call: Function) -> list[tuple]:
    """The symbolic shapes of the arguments, in one scope."""
    scope = export.SymbolicScope()
    return [export.symbolic_shape(shape, scope=scope) for shape, _ in call.arguments]


def inputs_of(call: Function, sizes: dict[str, int], seed: int) -> list[np.ndarray]:
    """Random arguments of sizes."""
    rng, inputs = np.random.default_rng(seed), []
    for shape, kind in call.arguments:
        dims = [eval(dim, {}, sizes) for dim in shape.split(",") if dim.strip()]
        if kind is I32:
            inputs.append(rng.integers(0, 50, dims).astype(I32))
        else:
            inputs.append(rng.standard_normal(dims).astype(F32))
    return inputs


def imported(name: str) -> relax_mlir.source.Imported:
    """What a function is imported as."""
    call = FUNCTIONS[name]
    specs = [
        jax.ShapeDtypeStruct(shape, kind)
        for shape, (_, kind) in zip(shapes_of(call), call.arguments, strict=True)
    ]
    return from_exported(export.export(jax.jit(call.call, keep_unused=True))(*specs))


def compare(name: str, main: Callable, seed: int = 0) -> None:
    """Raises AssertionError unless a function agrees with JAX at three sizes."""
    call = FUNCTIONS[name]
    for sizes in SIZES:
        inputs = inputs_of(call, sizes, seed)
        expected = jax.tree.leaves(call.call(*map(jnp.asarray, inputs)))
        actual = main(*inputs)
        actual = list(actual) if isinstance(actual, tuple) else [actual]
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert np.asarray(a).dtype == e.dtype
            np.testing.assert_allclose(a, e, rtol=2e-5, atol=2e-5, err_msg=f"{name} {sizes}")


def main() -> int:
    """Runs all functions; prints those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", type=int, default=0, help="compile every Nth too")
    parser.add_argument("--match", default="")
    args = parser.parse_args()
    chosen = [name for name in FUNCTIONS if re.search(args.match, name)]
    failed = 0
    for i, name in enumerate(chosen):
        try:
            model = imported(name)
            compare(name, interpret(model.module)["main"])
            if args.compile and i % args.compile == 0:
                compare(name, relax_mlir.compile(model, opt_level=1)["main"], seed=1)
        except Exception as error:  # whatever it is, the other functions are run
            failed += 1
            text = " ".join(str(error).split())[:300]
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"{name}: {type(error).__name__}: {text} ({where.filename}:{where.lineno})")
    print(f"{len(chosen) - failed} of {len(chosen)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
