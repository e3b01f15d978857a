"""Compiles a function of JAX once, for all sizes that its symbolic dims allow.

pip install 'relax-mlir[jax]'
python examples/import_jax.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import relax_mlir


def distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """How far each row of x is from each row of y."""
    return jnp.sqrt(jnp.sum((x[:, None] - y[None, :]) ** 2, axis=-1))


def main() -> None:
    """Compares it with JAX at three sizes."""
    compiled = relax_mlir.frontends.jax.jit(distances, shapes=("n, d", "m, d"))
    generator = np.random.default_rng(0)
    for n, m, d in ((1, 1, 1), (4, 7, 3), (17, 2, 64)):
        x, y = (generator.standard_normal((rows, d), np.float32) for rows in (n, m))
        error = np.abs(compiled(x, y) - distances(x, y)).max()
        print(f"[{n}, {d}] and [{m}, {d}]: error {error:.0e}")


if __name__ == "__main__":
    main()
