"""Imports what JAX exports, by way of StableHLO.

    b = jax.export.symbolic_shape("b")
    exported = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct((*b, 4), jnp.float32))
    model = relax_mlir.compile(from_exported(exported))

    g = jit(f, shapes=("b, 4",))          # the same, when it is called; one compilation for all b

Symbolic dims of JAX are symbols of these names. Needs JAX.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

import relax_mlir
from relax_mlir.errors import ModelError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.source import Imported
from relax_mlir.symbolic import SymbolicError, parse


def from_exported(
    exported: "export.Exported", dims: Mapping[str, int | str] | None = None
) -> Imported:
    """Imports what `jax.export.export` gives: arguments are the leaves of the function's own.

    `dims` gives symbolic dims other names, or values. Dims are 1 or more, as JAX assumes, which is
    checked at each call. Raises CompileError for what is not supported.
    """
    avals = [exported.in_avals[i] for i in exported.module_kept_var_idx]
    shapes = [[_dim(each) for each in aval.shape] for aval in avals]
    names = sorted({name for shape in shapes for dim in shape for name in parse(dim).symbols})
    facts = [f"1 <= {name}" for name in names if not (dims or {}).get(name)]
    artifact = exported.mlir_module_serialized
    return from_stablehlo(artifact, dims=dims, facts=facts, shapes=shapes, trusted=True)


def _dim(dim: Any) -> str:
    text = str(dim)
    try:
        parse(text)
    except (SymbolicError, ValueError):
        raise ModelError(
            f"has an argument with the dim '{text}', which is no sum or product"
        ) from None
    return text


def jit(
    function: Callable[..., Any],
    shapes: "str | Sequence[str | None] | None" = None,
    constraints: Sequence[str] = (),
    **options: Any,
) -> Callable[..., Any]:
    """A function that is compiled when it is called, once for each structure and type of arguments.

    `shapes` are symbolic shapes of arguments as `jax.export.symbolic_args_specs` takes them, such
    as "b, 4" or "..."; with them one compilation serves all sizes. `constraints` are what JAX may
    assume of them, such as "b >= 2". `options` are those of `relax_mlir.compile`.
    """
    compiled: dict[Any, tuple[Any, Any]] = {}

    def call(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        arrays = [np.asarray(leaf) for leaf in leaves]
        sizes = [each.ndim if shapes is not None else each.shape for each in arrays]
        key = tree, *(each.dtype for each in arrays), *sizes
        if key not in compiled:
            specs = jax.tree.unflatten(tree, [_spec(each) for each in arrays])
            if shapes is not None:
                specs = export.symbolic_args_specs(specs, shapes, constraints)
            exported = export.export(jax.jit(function))(*specs)
            compiled[key] = exported, relax_mlir.compile(from_exported(exported), **options)
        exported, model = compiled[key]
        results = model["main"](*(arrays[i] for i in exported.module_kept_var_idx))
        flat = results if isinstance(results, tuple) else (results,)
        return jax.tree.unflatten(exported.out_tree, flat)

    return call


def _spec(array: np.ndarray) -> "jax.ShapeDtypeStruct":
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    return jax.ShapeDtypeStruct(array.shape, dtype)
