"""Static dims of 0: kernels without rows, batches, columns or elements to sum, at every level."""

import itertools

import numpy as np
import pytest

import relax_mlir


def tensor(dims: tuple[int, ...]) -> str:
    return "tensor<" + "".join(f"{dim}x" for dim in dims) + "f32>"


def attention(name: str, attributes: str, q: tuple, k: tuple, v: tuple) -> tuple:
    return name, attributes, [q, k, v], (*q[:-1], v[-1])


CASES = [
    *(
        ("matmul", "", [(2, m, k), (2, k, n)], (2, m, n))
        for m, k, n in itertools.product((0, 3), repeat=3)
    ),
    *(
        attention(
            "nn_batched_attention",
            "scale = 0.5 : f64, causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0>",
            (b, n, 2, 4),
            (b, m, 2, 4),
            (b, m, 2, 4),
        )
        for b, n, m in [(0, 3, 5), (2, 0, 5), (2, 3, 0)]
    ),
    attention(
        "nn_attention",
        "position = #graph.shape<[0]>, scale = 0.5 : f64, causal = true",
        (0, 2, 4),
        (2, 8, 4),
        (2, 8, 4),
    ),
    *(("nn_softmax", "axis = 1 : i64", [dims], dims) for dims in [(0, 3), (3, 0)]),
    *(
        ("sum", "axes = array<i64: 1>, keepdims = false", [dims], dims[:1])
        for dims in [(0, 3), (3, 0)]
    ),
    ("broadcast_to", "shape = #graph.shape<[0, 3]>", [(3,)], (0, 3)),
    ("permute_dims", "axes = array<i64: 1, 0>", [(0, 3)], (3, 0)),
]


def module() -> str:
    functions = []
    for number, (name, attributes, operands, result) in enumerate(CASES):
        values = ", ".join(f"%{i}: {tensor(dims)}" for i, dims in enumerate(operands))
        names = ", ".join(f"%{i}" for i in range(len(operands)))
        types = ", ".join(map(tensor, operands))
        functions.append(
            f"func.func @f{number}({values}) -> {tensor(result)} {{\n"
            f'  %r = "graph.{name}"({names}) {{{attributes}}} : ({types}) -> {tensor(result)}\n'
            f"  return %r : {tensor(result)}\n}}"
        )
    return "\n".join(functions)


@pytest.mark.parametrize("level", [0, 2])
def test_static_dims_of_zero(level):
    executable = relax_mlir.compile(module(), opt_level=level)
    for number, (name, _, operands, result) in enumerate(CASES):
        found = executable[f"f{number}"](*(np.ones(dims, np.float32) for dims in operands))
        # What is left of a sum over nothing is 0, so is attention over no keys.
        filled = 3.0 if name == "matmul" and 0 not in operands[0] else 0.0
        np.testing.assert_array_equal(found, np.full(result, filled, np.float32), f"{name}")
