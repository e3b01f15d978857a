"""Random ops of StableHLO with attributes that are hard to get right, against its own interpreter.

    python test/python/frontends/stablehlo/random_modules.py FIRST COUNT

Dims are 0, 1 and small primes; indices are often outside. Ops that StableHLO's verifier refuses
are left out.
"""

import pickle
import sys
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from relax_mlir.bindings import ir, stablehlo
from relax_mlir.child_process import run_in_child
from relax_mlir.data import elements_of
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

Rng = np.random.Generator
DIMS = (0, 1, 2, 3, 5, 7)
REDUCERS = ("add", "maximum", "minimum", "multiply", "subtract")


def kind(dims: list[int], element: str) -> str:
    """The text of a tensor type."""
    return f"tensor<{''.join(f'{dim}x' for dim in dims)}{element}>"


def dims_of(rng: Rng, rank: int, least: int = 0) -> list[int]:
    """Random dims."""
    return [int(dim) for dim in rng.choice([d for d in DIMS if d >= least], rank)]


def axes(values: list[int]) -> str:
    """The text of a list."""
    return f"[{', '.join(map(str, values))}]"


def array(values: list[int]) -> str:
    """The text of an array attribute."""
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def region(op: str, element: str) -> str:
    """A region that combines two elements."""
    scalar = f"tensor<{element}>"
    return (
        f"({{\n ^bb0(%a: {scalar}, %b: {scalar}):\n  %c = stablehlo.{op} %a, %b : {scalar}\n"
        f"  stablehlo.return %c : {scalar}\n }})"
    )


def module(inputs: list[str], op: str, results: list[str]) -> str:
    """A module of one op."""
    arguments = ", ".join(f"%{i}: {each}" for i, each in enumerate(inputs))
    count, returned = len(results), ", ".join(f"%r#{i}" for i in range(len(results)))
    signature = f"({', '.join(inputs)}) -> ({', '.join(results)})"
    return (
        f"func.func @main({arguments}) -> ({', '.join(results)}) {{\n"
        f" %r:{count} = {op} : {signature}\n return {returned} : {', '.join(results)}\n}}"
    )


def gather(rng: Rng) -> str:
    """Slices by tuples of indices along any axes."""
    rank, batch = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    dims, batches = dims_of(rng, rank, 1), dims_of(rng, batch)
    count = int(rng.integers(1, rank + 1))
    indexed = [int(each) for each in rng.permutation(rank)[:count]]
    sizes = [int(rng.integers(0, dim + 1)) for dim in dims]
    if rng.integers(2):  # whole slices along other axes
        sizes = [1 if axis in indexed else dim for axis, dim in enumerate(dims)]
    dropped = sorted(int(a) for a in range(rank) if rng.integers(2) and dims[a])
    for axis in dropped:
        sizes[axis] = 1
    inside = [axis for axis in range(rank) if axis not in dropped]
    total = batch + len(inside)
    windows = sorted(int(each) for each in rng.permutation(total)[: len(inside)])
    at = int(rng.integers(0, batch + 1))
    indices = [*batches[:at], count, *batches[at:]]
    rest, others = iter([sizes[a] for a in inside]), iter(batches)
    result = [next(rest) if i in windows else next(others) for i in range(total)]
    numbers = (
        f"#stablehlo.gather<offset_dims = {axes(windows)}, collapsed_slice_dims = {axes(dropped)},"
        f" start_index_map = {axes(indexed)}, index_vector_dim = {at}>"
    )
    op = f'"stablehlo.gather"(%0, %1) <{{dimension_numbers = {numbers},'
    op += f" slice_sizes = {array(sizes)}}}>"
    return module([kind(dims, "f32"), kind(indices, "i32")], op, [kind(result, "f32")])


def scatter(rng: Rng) -> str:
    """Updates of slices along any axes, by known functions and others."""
    rank, batch = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    dims, batches = dims_of(rng, rank, 1), dims_of(rng, batch)
    count = int(rng.integers(1, rank + 1))
    indexed = [int(each) for each in rng.permutation(rank)[:count]]
    inserted = sorted(int(a) for a in range(rank) if rng.integers(2))
    inside = [axis for axis in range(rank) if axis not in inserted]
    sizes = [int(rng.integers(0, dims[axis] + 1)) for axis in inside]
    total = batch + len(inside)
    windows = sorted(int(each) for each in rng.permutation(total)[: len(inside)])
    at = int(rng.integers(0, batch + 1))
    indices = [*batches[:at], count, *batches[at:]]
    rest, others = iter(sizes), iter(batches)
    updates = [next(rest) if i in windows else next(others) for i in range(total)]
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {axes(windows)}, inserted_window_dims ="
        f" {axes(inserted)}, scatter_dims_to_operand_dims = {axes(indexed)},"
        f" index_vector_dim = {at}>"
    )
    op = f'"stablehlo.scatter"(%0, %1, %2) <{{scatter_dimension_numbers = {numbers}}}>'
    op += f" {region(str(rng.choice(REDUCERS)), 'f32')}"
    operands = [kind(dims, "f32"), kind(indices, "i32"), kind(updates, "f32")]
    return module(operands, op, [kind(dims, "f32")])


def reduce_window(rng: Rng) -> str:
    """Windows with strides, dilation and padding, by known functions and others."""
    rank = int(rng.integers(1, 4))
    dims = dims_of(rng, rank, 1)
    sizes, strides, base, dilation = (
        [int(each) for each in rng.integers(1, most, rank)] for most in (4, 3, 3, 3)
    )
    padding = [[int(each) for each in rng.integers(0, 3, 2)] for _ in dims]
    if rng.integers(4) == 0:  # all that is before each element, or after it
        (sizes, strides, base, dilation), padding = ([1] * rank for _ in range(4)), [[0, 0]] * rank
        axis = int(rng.integers(rank))
        sizes[axis], ends = dims[axis], [dims[axis] - 1, 0]
        padding[axis] = ends if rng.integers(2) else ends[::-1]
    result = []
    for i, dim in enumerate(dims):
        extent = (dim - 1) * base[i] + 1 + sum(padding[i])
        result.append(max((extent - (sizes[i] - 1) * dilation[i] - 1) // strides[i] + 1, 0))
    op = (
        f'"stablehlo.reduce_window"(%0, %1) <{{window_dimensions = {array(sizes)},'
        f" window_strides = {array(strides)}, base_dilations = {array(base)},"
        f" window_dilations = {array(dilation)},"
        f" padding = dense<{padding}> : tensor<{rank}x2xi64>}}>"
    )
    op += f" {region(str(rng.choice(REDUCERS[:4])), 'f32')}"
    return module([kind(dims, "f32"), "tensor<f32>"], op, [kind(result, "f32")])


def reduce(rng: Rng) -> str:
    """Reductions along any axes."""
    rank, element = int(rng.integers(1, 4)), str(rng.choice(["f32", "i32", "i8", "ui8", "f64"]))
    dims = dims_of(rng, rank)
    reduced = sorted(int(each) for each in range(rank) if rng.integers(2))
    result = [dim for i, dim in enumerate(dims) if i not in reduced]
    op = f'"stablehlo.reduce"(%0, %1) <{{dimensions = {array(reduced)}}}>'
    op += f" {region(str(rng.choice(REDUCERS[:4])), element)}"
    return module([kind(dims, element), f"tensor<{element}>"], op, [kind(result, element)])


def pad(rng: Rng) -> str:
    """Elements around and between others, or fewer of them."""
    rank = int(rng.integers(1, 4))
    dims = dims_of(rng, rank)
    low, high = ([int(each) for each in rng.integers(-2, 4, rank)] for _ in range(2))
    interior = [int(each) for each in rng.integers(0, 3, rank)]
    result = [d + max(d - 1, 0) * i + a + b for d, i, a, b in zip(dims, interior, low, high)]
    op = (
        f'"stablehlo.pad"(%0, %1) <{{edge_padding_low = {array(low)}, edge_padding_high ='
        f" {array(high)}, interior_padding = {array(interior)}}}>"
    )
    return module([kind(dims, "f32"), "tensor<f32>"], op, [kind(result, "f32")])


def dot_general(rng: Rng) -> str:
    """Products over any axes of both."""
    batch, sums, left, right = (dims_of(rng, int(n)) for n in rng.integers(0, 3, 4))
    roles = [("b", i) for i in range(len(batch))] + [("s", i) for i in range(len(sums))]
    sizes = {"b": batch, "s": sums}
    sides = []
    for own in (left, right):
        order = [*roles, *(("f", i) for i in range(len(own)))]
        order = [order[i] for i in rng.permutation(len(order))]
        free = sorted(i for role, i in order if role == "f")
        names = iter(free)
        order = [("f", next(names)) if role == "f" else (role, i) for role, i in order]
        dims = [own[i] if role == "f" else sizes[role][i] for role, i in order]
        sides.append((order, dims))
    at = [[order.index(("b", i)) for i in range(len(batch))] for order, _ in sides]
    over = [[order.index(("s", i)) for i in range(len(sums))] for order, _ in sides]
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {axes(at[0])}, rhs_batching_dimensions ="
        f" {axes(at[1])}, lhs_contracting_dimensions = {axes(over[0])},"
        f" rhs_contracting_dimensions = {axes(over[1])}>"
    )
    op = f'"stablehlo.dot_general"(%0, %1) <{{dot_dimension_numbers = {numbers}}}>'
    kinds = [kind(dims, "f32") for _, dims in sides]
    return module(kinds, op, [kind([*batch, *left, *right], "f32")])


def sort(rng: Rng) -> str:
    """Two tensors in an order that a region has, of either key."""
    rank = int(rng.integers(1, 4))
    dims, axis = dims_of(rng, rank), int(rng.integers(0, rank))
    names = ["%a, %b", "%b, %a", "%c, %d"]
    direction, pair = str(rng.choice(["LT", "GT"])), str(rng.choice(names))
    scalar = "tensor<f32>" if "a" in pair else "tensor<i32>"
    op = (
        f'"stablehlo.sort"(%0, %1) <{{dimension = {axis} : i64, is_stable = true}}> ({{\n'
        " ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):\n"
        f"  %e = stablehlo.compare {direction}, {pair} : ({scalar}, {scalar}) -> tensor<i1>\n"
        "  stablehlo.return %e : tensor<i1>\n })"
    )
    kinds = [kind(dims, "f32"), kind(dims, "i32")]
    return module(kinds, op, kinds)


def broadcast(rng: Rng) -> str:
    """Dims repeated, in any order."""
    rank, target = int(rng.integers(0, 4)), dims_of(rng, 4)
    at = [int(each) for each in rng.permutation(4)[:rank]]
    dims = [1 if rng.integers(2) else target[axis] for axis in at]
    op = f'"stablehlo.broadcast_in_dim"(%0) <{{broadcast_dimensions = {array(at)}}}>'
    return module([kind(dims, "f32")], op, [kind(target, "f32")])


def dynamic_update(rng: Rng) -> str:
    """A part replaced, at a position that may be outside."""
    rank = int(rng.integers(1, 4))
    dims = dims_of(rng, rank)
    part = [int(rng.integers(0, dim + 1)) for dim in dims]
    names = ", ".join(f"%{i}" for i in range(2 + rank))
    kinds = [kind(dims, "f32"), kind(part, "f32"), *["tensor<i32>"] * rank]
    return module(kinds, f'"stablehlo.dynamic_update_slice"({names})', [kind(dims, "f32")])


def integers(rng: Rng) -> str:
    """Arithmetic of integers, at the bounds of their types."""
    element = str(rng.choice(["i8", "ui8", "i32", "ui32", "i64", "ui64"]))
    names = ["add", "subtract", "multiply", "and", "or", "xor", "maximum", "minimum"]
    names += ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
    own = kind([7], element)
    return module([own, own], f'"stablehlo.{rng.choice(names)}"(%0, %1)', [own])


def quantization(rng: Rng, count: int = 1, axis: int | None = None) -> str:
    """A quantised element type, of scales that are powers of 2: results are exact, ties are met.

    Of i8: StableHLO's interpreter takes unsigned integers as signed ones.
    """
    zeros = [0 if axis is not None else int(z) for z in rng.integers(-128, 127, count)]
    each = ", ".join(f"{float(2.0 ** rng.integers(-3, 3))}:{zero}" for zero in zeros)
    return f"!quant.uniform<i8:f32{f', {each}' if axis is None else f':{axis}, {{{each}}}'}>"


def quantized(rng: Rng) -> str:
    """Arithmetic and products of quantised tensors, whose integers are arguments and results.

    Not `add`, of which StableHLO's interpreter rounds each operand first.
    """
    two = ["subtract", "multiply", "maximum", "minimum", "dot_general", "compare"]
    one = ["abs", "negate", "floor", "ceil", "sign", "round_nearest_even", "uniform_quantize"]
    name, own = str(rng.choice([*two, *one, "clamp"])), dims_of(rng, 2)
    count = 1 if name in one else 3 if name == "clamp" else 2
    shapes, result, attributes = [own] * count, own, ""
    kinds = [quantization(rng) for _ in shapes] if count < 3 else [quantization(rng)] * 3
    to = kinds[0] if count == 3 else quantization(rng)
    if name == "dot_general":
        columns = int(rng.choice(DIMS[1:]))
        shapes, result = [own, [own[1], columns]], [own[0], columns]
        kinds[1] = quantization(rng, columns, 1)
        attributes = (
            "{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],"
            " rhs_contracting_dimensions = [0]>}"
        )
    if name == "compare":
        to, attributes = "i1", "{comparison_direction = #stablehlo<comparison_direction LT>}"
    stored, inputs = [kind(dims, "i8") for dims in shapes], list(map(kind, shapes, kinds))
    made, returned = kind(result, to), kind(result, "i1" if to == "i1" else "i8")
    casts = "".join(
        f" %q{i} = stablehlo.bitcast_convert %{i} : ({given}) -> {each}\n"
        for i, (given, each) in enumerate(zip(stored, inputs, strict=True))
    )
    operands = ", ".join(f"%q{i}" for i in range(count))
    op = f'"stablehlo.{name}"({operands}) {attributes} : ({", ".join(inputs)}) -> {made}'
    arguments = ", ".join(f"%{i}: {each}" for i, each in enumerate(stored))
    return (
        f"func.func @main({arguments}) -> {returned} {{\n{casts} %r = {op}\n"
        f" %s = stablehlo.bitcast_convert %r : ({made}) -> {returned}\n"
        f" return %s : {returned}\n}}"
    )


FAMILIES: list[Callable[[Rng], str]] = [
    *(gather, scatter, reduce_window, reduce, pad, dot_general, sort),
    *(broadcast, dynamic_update, integers, quantized),
]


def random_array(rng: Rng, type_: ir.Type) -> np.ndarray:
    """Small values, many of them equal, and for integers some at the bounds."""
    element, shape = str(type_.element_type), type_.shape
    if element.startswith("f"):
        return rng.integers(-4, 5, shape).astype(f"f{int(element[1:]) // 8}")
    dtype = np.dtype(("u" if element[0] == "u" else "") + "int" + element.lstrip("ui"))
    values = rng.integers(-2, 6, shape).astype(dtype)
    if dtype.itemsize == 1:
        values = rng.integers(0, 256, shape).astype(dtype)
    if element in ("i32",):
        return values
    bounds = np.iinfo(dtype)
    ends = np.array([bounds.min, bounds.max], dtype)
    return np.where(rng.integers(4, size=shape) == 0, ends[rng.integers(2)], values)


def evaluated(source: ir.Module, attributes: list[ir.Attribute]) -> list[np.ndarray] | None:
    """The results of StableHLO's interpreter, in a child process; None if it ends that."""

    def run(file: BinaryIO) -> int:
        results = [np.array(elements_of(each)) for each in stablehlo.evaluate(source, attributes)]
        pickle.dump(results, file)
        return 0

    ended = run_in_child(run, 60)
    return pickle.loads(ended.data) if ended.status == 0 else None


def check(seed: int) -> bool:
    """Raises AssertionError where a random op differs; False if StableHLO does not accept it."""
    rng = np.random.default_rng(seed)
    text = FAMILIES[seed % len(FAMILIES)](rng)
    with ir.Context() as context, ir.Location.unknown():
        stablehlo.load(context)
        try:
            source = ir.Module.parse(text)
        except ir.MLIRError:
            return False
        block = source.body.operations[0].operation.regions[0].blocks[0]
        inputs = [random_array(rng, argument.type) for argument in block.arguments]
        attributes = [
            ir.DenseElementsAttr.get(np.ascontiguousarray(x), type=argument.type)
            if x.size
            else ir.Attribute.parse(f"dense<> : {argument.type}")
            for x, argument in zip(inputs, block.arguments, strict=True)
        ]
        expected = evaluated(source, attributes)
        if expected is None:
            return False
    actual = interpret(from_stablehlo(text).module)["main"](*inputs)
    actual = list(actual) if isinstance(actual, tuple) else [actual]
    for a, e in zip(actual, expected, strict=True):
        assert (np.asarray(a).dtype, np.shape(a)) == (e.dtype, e.shape), text
        np.testing.assert_array_equal(a, e, err_msg=f"seed {seed}\n{text}")
    if "f32" in text and "dot_general" not in text and "quant" not in text:
        check_quantized(text, inputs, expected)
    return True


def check_quantized(text: str, inputs: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Raises AssertionError where an op on floats differs of integers that stand for them."""
    zero, limit = 7, 1 << 24
    text = text.replace("f32", f"!quant.uniform<i32:f32, 1.0:{zero}>")
    stored = [x if x.dtype != np.float32 else x.astype(np.int32) + zero for x in inputs]
    actual = interpret(from_stablehlo(text).module)["main"](*stored)
    actual = list(actual) if isinstance(actual, tuple) else [actual]
    for a, e in zip(actual, expected, strict=True):
        if e.dtype == np.float32:
            a, e = (np.where(np.abs(e) < limit, x, 0) for x in (np.asarray(a) - zero, e))
        np.testing.assert_array_equal(a, e, err_msg=text)


if __name__ == "__main__":
    first, total = map(int, sys.argv[1:])
    wrong = accepted = 0
    for each in range(first, first + total):
        try:
            accepted += check(each)
        except Exception as error:  # whatever it is, the others are run
            wrong += 1
            print(f"seed {each}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
    print(f"{accepted} of {total} ops, {wrong} wrong")
    sys.exit(bool(wrong))
