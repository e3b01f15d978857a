"""The time of compiling follows from the size of the program, not from the numbers in it."""

import pytest
from test_linear_compile_time import ALL, calls_of

MOST = 2.0
"""Times the calls of the same program with small numbers."""


def _main(types: list[str], result: str, op: str, attributes: str) -> str:
    arguments = [f"%a{i}" for i in range(len(types))]
    head = ", ".join(f"{name}: {type_}" for name, type_ in zip(arguments, types, strict=True))
    tensors = [t for t in types if t.startswith("tensor")]
    return (
        f"func.func @main({head}) -> {result} {{\n"
        f'%0 = "graph.{op}"({", ".join(arguments[: len(tensors)])}) {{{attributes}}} : '
        f"({', '.join(tensors)}) -> {result}\nreturn %0 : {result}\n}}\n"
    )


def exp(n: int) -> str:
    t = f"tensor<{n}x3xf32>"
    return _main([t], t, "exp", "")


def softmax(n: int) -> str:
    t = f"tensor<3x{n}xf32>"
    return _main([t], t, "nn_softmax", "axis = 1 : i64")


def matmul(n: int) -> str:
    return _main([f"tensor<3x{n}xf32>", f"tensor<{n}x5xf32>"], "tensor<3x5xf32>", "matmul", "")


def strides(n: int) -> str:
    attributes = "axes = array<i64: 0>, begin = #graph.shape<[0]>"
    attributes += f", end = #graph.shape<[{8 * n}]>, strides = array<i64: {n}>"
    return _main([f"tensor<{8 * n}xf32>"], "tensor<8xf32>", "strided_slice", attributes)


def _windows(n: int, apart: int) -> str:
    return (
        f"strides = array<i64: {apart}, {apart}>, padding = array<i64: 0, 0, 0, 0>, "
        "dilation = array<i64: 1, 1>"
    )


def convolution(n: int) -> str:
    types = [f"tensor<1x1x{2 * n}x{2 * n}xf32>", f"tensor<1x1x{n}x{n}xf32>"]
    result = f"tensor<1x1x{n + 1}x{n + 1}xf32>"
    return _main(types, result, "nn_conv2d", f"{_windows(n, 1)}, groups = 1 : i64")


def pooling(n: int) -> str:
    attributes = f"window = array<i64: {n}, {n}>, {_windows(n, n)}"
    return _main(
        [f"tensor<1x1x{2 * n}x{2 * n}xf32>"], "tensor<1x1x2x2xf32>", "nn_max_pool2d", attributes
    )


def _attention(heads: int, kv_heads: int, width: int) -> str:
    query = f'tensor<?x{heads}x{width}xf32, #graph.shape<["n", {heads}, {width}]>>'
    cache = f'tensor<{kv_heads}x?x{width}xf32, #graph.shape<[{kv_heads}, "c", {width}]>>'
    attributes = 'causal = true, position = #graph.shape<["m"]>, scale = 0.125 : f64'
    types = [query, cache, cache, '!graph.shape_value<["m"]>']
    return _main(types, query, "nn_attention", attributes)


def head_dim(n: int) -> str:
    return _attention(2, 2, n)


def grouped_heads(n: int) -> str:
    return _attention(n, 1, 64)


@pytest.mark.parametrize(
    ("program", "small", "huge"),
    [
        (exp, 100, 2**40),
        (softmax, 100, 2**40),
        (matmul, 100, 2**40),
        (strides, 100, 2**40),
        (convolution, 50, 2**14),
        (pooling, 80, 2**14),
        (head_dim, 1024, 2**20),
        (grouped_heads, 64, 2**16),
    ],
)
def test_numbers_cost_no_time(program, small, huge):
    calls_of(program(small), ALL)  # what is done once
    assert calls_of(program(huge), ALL) < MOST * calls_of(program(small), ALL)


def test_ranks_cost_no_more_than_their_length():
    def permuted(rank: int) -> str:
        extents = ["1"] * (rank - 1)
        axes = ", ".join(map(str, reversed(range(rank))))
        types = "x".join([*extents, "4"]), "x".join(["4", *extents])
        source, result = (f"tensor<{text}xf32>" for text in types)
        return _main([source], result, "permute_dims", f"axes = array<i64: {axes}>")

    assert calls_of(permuted(60), ALL) < 12 * calls_of(permuted(6), ALL)
