"""Recipes of nodes for random models: the operators of ONNX's domains, with random attributes."""

from typing import Any

import numpy as np
from model_maker import Maker, recipe

FLOATS = "f4 f4 f8 f2"
INTS = "i8 i4 u1 i4"
ALL = "f4 i8 i4 f8 u1 f2"

Added = list[str] | None


@recipe("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Relu", "LeakyRelu", "Elu", "Selu")
@recipe("Exp", "Sigmoid", "Tanh", "Erf", "Sqrt", "Log", "Sin", "Cos", "Tan", "Atan", "Softplus")
@recipe("Softsign", "HardSigmoid", "HardSwish", "Mish", "Celu", "ThresholdedRelu", "Reciprocal")
@recipe("Sinh", "Cosh", "Asinh", "Acos", "Asin", "Atanh", "Acosh", "Gelu", "Shrink", "Identity")
def unary(m: Maker, op: str) -> Added:
    dtypes = ALL if op in ("Abs", "Neg", "Sign", "Identity") else FLOATS
    attributes: dict[str, Any] = {}
    if op in ("LeakyRelu", "Elu", "Selu", "HardSigmoid", "Celu", "ThresholdedRelu"):
        attributes |= m.maybe(alpha=m.rng.choice([0.0, 0.3, 1.5]) + (op == "Celu"))
    if op == "Selu":
        attributes |= m.maybe(gamma=0.7)
    if op == "HardSigmoid":
        attributes |= m.maybe(beta=0.1)
    if op == "Gelu":
        attributes |= m.maybe(approximate="tanh")
    if op == "Shrink":
        attributes |= m.maybe(bias=0.5, lambd=1.0)
    x = m.any(dtypes=dtypes)
    if op == "Reciprocal" and not m.values[x].all():
        return None  # zeros of either sign
    return m.node(op, [x], **attributes)


@recipe("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod", "PRelu", "Sum", "Mean")
@recipe("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr")
def binary(m: Maker, op: str) -> Added:
    a = m.any(dtypes=INTS if op.startswith("Bitwise") else "f4 i8 i4 u1")
    b = m.like(a)
    values = m.values[b]
    if op in ("Div", "Mod"):
        values[values == 0] = 1
    if op == "Pow" and values.dtype.kind != "f":
        np.copyto(values, values % 4)
        if np.abs(m.values[a]).max(initial=0) > 9:
            return None
    attributes = (
        {"fmod": 1} if op == "Mod" and (m.rng.random() < 0.5 or values.dtype.kind == "f") else {}
    )
    names = [a, b] if m.rng.random() < 0.6 or op in ("PRelu", "Div", "Mod", "Pow") else [b, a]
    if op in ("Min", "Max", "Sum", "Mean"):
        names = names[: m.rng.randint(1, 2)] + [m.like(a)] * m.rng.randint(0, 1)
    return m.node(op, names, **attributes)


@recipe("And", "Or", "Xor", "Not")
def logic(m: Maker, op: str) -> Added:
    a = m.any(dtypes="bool")
    return m.node(op, [a] if op == "Not" else [a, m.like(a)])


@recipe("Where")
def where(m: Maker, op: str) -> Added:
    x = m.any(dtypes=ALL)
    y = m.like(x)
    condition = m.array(m.rng.choice([m.dims(x), m.dims(y)]), bool)
    return m.node(op, [m.input(condition), x, y])


@recipe("Clip")
def clip(m: Maker, op: str) -> Added:
    x = m.any(dtypes="f4 f8" if m.opset < 12 else ALL)
    low, high = m.rng.randint(0, 3) / 2, m.rng.randint(0, 8) / 2
    if m.opset < 11:
        return m.node(op, [x], **m.maybe(min=low, max=high))
    dtype = m.values[x].dtype
    bounds = [
        m.rng.choice([m.constant, m.input])(np.array(each, dtype)) if m.rng.random() < 0.7 else ""
        for each in (low, high)
    ]
    return m.node(op, [x, *bounds])


@recipe("IsNaN", "IsInf")
def special(m: Maker, op: str) -> Added:
    x = m.array(m.shape(1, 3))
    for value in (np.nan, np.inf, -np.inf):
        x[np.asarray(np.random.default_rng(m.rng.randint(0, 99)).random(x.shape) < 0.3)] = value
    more = m.maybe(detect_negative=0, detect_positive=0) if op == "IsInf" else {}
    return m.node(op, [m.input(x)], **more)


@recipe("Cast")
def cast(m: Maker, op: str) -> Added:
    x = m.any(dtypes=ALL + " bool")
    kinds = {"f4": 1, "u1": 2, "i1": 3, "i4": 6, "i8": 7, "b1": 9, "f2": 10, "f8": 11}
    to = m.rng.choice(sorted(kinds))
    values = m.values[x]
    if values.dtype.kind == "f" and (
        not np.isfinite(values).all() or np.abs(values).max(initial=0) > 100
    ):
        return None
    if to == "u1" and (values.astype("f8") < 0).any():
        return None
    return m.node(op, [x], to=kinds[to])


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 f8" if op != "Hardmax" else "f4")
    return m.node(op, [x], **m.maybe(axis=m.axis(x)))


@recipe("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
@recipe("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduce(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 f8" if "Log" in op or op == "ReduceProd" else "f4 f4 i4 i8 f8")
    if not m.values[x].size:
        return None  # means of nothing are as everyone likes
    m.grows = True
    axes = m.rng.sample(range(m.rank(x)), m.rng.randint(0, m.rank(x)))
    axes = [axis - m.rank(x) if m.rng.random() < 0.3 and m.opset > 10 else axis for axis in axes]
    attributes = m.maybe(keepdims=m.rng.randint(0, 1))
    if m.opset < (13 if op == "ReduceSum" else 18):
        return m.node(op, [x], **attributes, **({"axes": axes} if axes else {}))
    attributes |= m.maybe(noop_with_empty_axes=1)
    names = [x, m.constant(np.array(axes, np.int64))] if axes or m.rng.random() < 0.5 else [x]
    return m.node(op, names, **attributes)


@recipe("ArgMax", "ArgMin")
def argmax(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4")
    attributes = m.maybe(axis=m.axis(x), keepdims=0)
    if m.opset > 11:
        attributes |= m.maybe(select_last_index=1)
    return m.node(op, [x], **attributes)


@recipe("CumSum")
def cumulative(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4 i8 f8")
    return m.node(op, [x, m.constant(m.axis(x), np.int64)], **m.maybe(exclusive=1, reverse=1))


@recipe("MatMul")
def matmul(m: Maker, op: str) -> Added:
    a = m.any((1, 4), "f4 f4 f8 i4")
    dims = [m.dims(a)[-1]]
    if m.rng.random() < 0.8:
        dims.append(m.extent())
        batch = [dim if m.rng.random() < 0.7 else 1 for dim in m.dims(a)[:-2]]
        dims = [*batch[m.rng.randint(0, len(batch)) :], *dims]
        if m.rng.random() < 0.2:
            dims = [m.extent(), *dims]
    return m.node(op, [a, m.new(dims, m.values[a].dtype)])


@recipe("Gemm")
def gemm(m: Maker, op: str) -> Added:
    a = m.any((2, 2), "f4 f4 f8")
    dtype, attributes = m.values[a].dtype, m.maybe(transA=1, transB=1, alpha=0.5, beta=1.5)
    rows, depth = m.dims(a)[::-1] if "transA" in attributes else m.dims(a)
    columns = m.extent()
    b = m.new([columns, depth] if "transB" in attributes else [depth, columns], dtype)
    names = [a, b]
    if m.opset < 11 or m.rng.random() < 0.7:
        shapes = [[rows, columns], [columns], [1, columns], [rows, 1], [1], []]
        names.append(m.new(m.rng.choice(shapes), dtype))
    return m.node(op, names, **attributes)


@recipe("Einsum")
def einsum(m: Maker, op: str) -> Added:
    a = m.any((2, 3), "f4 f8")
    equation = m.rng.choice(["ij,jk->ik", "ij,kj->ik", "ij,ij->", "ij,ij->j", "ij,k->kij"])
    if m.rank(a) == 3:
        equation = m.rng.choice(["bij,bjk->bik", "bij,jk", "...ij,...jk->...ik", "bij,bij->ib"])
    sizes = dict(zip(equation.partition(",")[0].replace("...", "."), m.dims(a), strict=True))
    second = equation.partition(",")[2].partition("->")[0].replace("...", ".")
    b = m.new([sizes.setdefault(letter, m.extent()) for letter in second], m.values[a].dtype)
    return m.node(op, [a, b], equation=equation)


@recipe("Transpose")
def transpose(m: Maker, op: str) -> Added:
    x = m.any((0, 5), ALL)
    order = list(range(m.rank(x)))
    m.rng.shuffle(order)
    return m.node(op, [x], **m.maybe(perm=order))


@recipe("Reshape")
def reshape(m: Maker, op: str) -> Added:
    x = m.any((0, 5), ALL)
    dims = [n if m.rng.random() < 0.5 else 0 for n in m.dims(x)]
    cut = m.rng.randint(0, len(dims))
    count = int(np.prod(m.dims(x)[cut:]))
    tail = m.rng.choice([[-1], [count], [1, -1], [count, 1], [-1, 1], [2, -1]])
    dims = [*dims[:cut], *tail] if m.rng.random() < 0.8 else dims
    more = m.maybe(allowzero=1) if m.opset > 13 and m.rng.random() < 0.2 else {}
    return m.node(op, [x, m.constant(dims, np.int64)], **more)


@recipe("Flatten")
def flatten(m: Maker, op: str) -> Added:
    x = m.any((0, 4), "f4" if m.opset < 9 else ALL)
    return m.node(
        op, [x], **m.maybe(axis=m.rng.randint(-m.rank(x) if m.opset > 10 else 0, m.rank(x)))
    )


@recipe("Squeeze", "Unsqueeze")
def squeeze(m: Maker, op: str) -> Added:
    x = m.any((0, 4), ALL)
    if op == "Squeeze":
        axes = [i for i, n in enumerate(m.dims(x)) if n == 1 and m.rng.random() < 0.8]
    else:
        axes = m.rng.sample(range(m.rank(x) + 2), 2)
        axes = [
            axis - m.rank(x) - 2 if m.rng.random() < 0.3 and m.opset > 10 else axis for axis in axes
        ]
    if op == "Squeeze" and not axes:
        return m.node(op, [x])
    if m.opset < 13:
        return m.node(op, [x], axes=axes)
    return m.node(op, [x, m.constant(axes, np.int64)])


@recipe("Concat")
def concat(m: Maker, op: str) -> Added:
    x = m.any((1, 4), ALL)
    axis, names = m.axis(x), [x]
    for _ in range(m.rng.randint(0, 3)):
        dims = list(m.dims(x))
        dims[axis] = m.extent()
        names.append(m.new(dims, m.values[x].dtype))
    m.rng.shuffle(names)
    return m.node(op, names, axis=axis)


@recipe("Split")
def split(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4")
    axis, count = m.axis(x), m.rng.randint(1, 3)
    extent = m.dims(x)[axis]
    at = sorted(m.rng.randint(0, extent) for _ in range(count - 1))
    sizes = np.diff([0, *at, extent])
    given = m.rng.random() < 0.6
    if m.opset < 13:
        return m.node(op, [x], count, axis=axis, **({"split": sizes.tolist()} if given else {}))
    names = [x, m.constant(sizes, np.int64)] if given else [x]
    more = {} if given or m.opset < 18 else {"num_outputs": count}
    return m.node(op, names, count, axis=axis, **more)


@recipe("Slice")
def slice_(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4 i8")
    axes = m.rng.sample(range(m.rank(x)), m.rng.randint(1, m.rank(x)))
    bounds = [-(2**31), -9, -2, -1, 0, 1, 2, 5, 9, 2**31 - 1]
    starts, ends = ([m.rng.choice(bounds) for _ in axes] for _ in range(2))
    steps = [m.rng.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    axes = [axis - m.rank(x) if m.rng.random() < 0.2 else axis for axis in axes]
    if m.opset < 10:
        return m.node(op, [x], starts=starts, ends=ends, axes=axes)
    pairs = zip(ends, steps, strict=True)  # the runtime reads the greatest end as the first element
    ends = [8 if step < 0 and end == bounds[-1] else end for end, step in pairs]
    lists = [starts, ends, axes, steps][: m.rng.choice([3, 4])]
    return m.node(op, [x, *(m.constant(each, np.int64) for each in lists)])


@recipe("Expand")
def expand(m: Maker, op: str) -> Added:
    x = m.any((0, 3), ALL)
    dims = [m.extent() if n == 1 else m.rng.choice([1, n]) for n in m.dims(x)]
    dims = [m.extent(), *dims] if m.rng.random() < 0.4 else dims
    return m.node(op, [x, m.constant(dims, np.int64)])


@recipe("Tile")
def tile(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4 i8")
    return m.node(op, [x, m.constant([m.rng.randint(0, 3) for _ in m.dims(x)], np.int64)])


@recipe("Pad")
def pad(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4" if m.opset < 11 else "f4 i4 f8")
    mode = m.rng.choice(["constant", "reflect", "edge"])
    low = -1 if mode == "constant" else 0
    pads = [m.rng.choice([low, 0, 0, 1, 2]) for _ in range(2 * m.rank(x))]
    if m.opset < 11:
        return m.node(op, [x], mode=mode, pads=pads, **m.maybe(value=0.5))
    names = [x, m.constant(pads, np.int64)]
    if m.rng.random() < 0.5:
        names.append(m.constant(np.array(2, m.values[x].dtype)))
    return m.node(op, names, mode=mode)


@recipe("Gather", "GatherElements")
def gather(m: Maker, op: str) -> Added:
    x = m.any((1, 4), ALL)
    axis = m.axis(x)
    extent = m.dims(x)[axis]
    if op == "Gather":
        dims = m.shape(0, 2)
    else:
        dims = [m.rng.randint(0, n) for n in m.dims(x)]
        dims[axis] = m.extent()
    if not extent:
        return None
    count = int(np.prod(dims))
    found = [m.rng.randrange(-extent if m.opset > 10 else 0, extent) for _ in range(count)]
    indices = np.array(found, m.rng.choice(["i4", "i8"])).reshape(dims)
    return m.node(op, [x, m.rng.choice([m.input, m.constant])(indices)], axis=axis)


@recipe("GatherND", "ScatterND")
def nd(m: Maker, op: str) -> Added:
    x = m.any((1, 4), "f4 i4")
    batch = m.rng.randint(0, m.rank(x) - 1) if op == "GatherND" and m.opset > 11 else 0
    width = m.rng.randint(1, m.rank(x) - batch)
    extents = m.dims(x)[batch : batch + width]
    if not all(extents):
        return None
    outer = [*m.dims(x)[:batch], *m.shape(1, 2)]
    cells = list(np.ndindex(*extents))
    if op == "ScatterND":
        m.rng.shuffle(cells)
        outer = [m.rng.randint(0, min(len(cells), 5))]
        found = cells[: outer[0]]
    else:
        found = [m.rng.choice(cells) for _ in range(int(np.prod(outer)))]
    indices = np.array(found, np.int64).reshape(*outer, width)
    names = [x, m.rng.choice([m.input, m.constant])(indices)]
    if op == "GatherND":
        return m.node(op, names, **({"batch_dims": batch} if batch else {}))
    names.append(m.new([*outer, *m.dims(x)[width:]], m.values[x].dtype))
    return m.node(op, names)


@recipe("ScatterElements")
def scatter(m: Maker, op: str) -> Added:
    x = m.any((1, 3), "f4 i4")
    axis = m.axis(x)
    dims = [m.rng.randint(0, n) for n in m.dims(x)]
    order = np.argsort(m.array(m.dims(x)), axis, kind="stable").astype(np.int64)
    indices = order[tuple(slice(0, n) for n in dims)]
    updates = m.new(dims, m.values[x].dtype)
    more = {"reduction": m.rng.choice(["none", "add", "mul"])} if m.opset > 15 else {}
    return m.node(op, [x, m.input(indices), updates], axis=axis, **more)


@recipe("TopK")
def topk(m: Maker, op: str) -> Added:
    shape = m.shape(1, 3)
    values = list(range(int(np.prod(shape))))
    m.rng.shuffle(values)
    x = m.input(np.array(values, np.float32).reshape(shape))
    axis = m.axis(x)
    k = m.rng.randint(1 if m.opset < 10 else 0, m.dims(x)[axis])
    if m.opset < 10:
        return m.node(op, [x], 2, axis=axis % m.rank(x), k=k)
    more = m.maybe(largest=0) if m.opset > 10 else {}
    return m.node(op, [x, m.constant([k], np.int64)], 2, axis=axis, **more)


@recipe("NonZero")
def nonzero(m: Maker, op: str) -> Added:
    return m.node(op, [m.any((1, 3), "f4 i4 bool")])


@recipe("Compress")
def compress(m: Maker, op: str) -> Added:
    x = m.any((1, 3), "f4 i4")
    axis = m.axis(x)
    flat = m.rng.random() < 0.3
    extent = int(np.prod(m.dims(x))) if flat else m.dims(x)[axis]
    condition = m.input(m.array([m.rng.randint(0, extent)], bool))
    return m.node(op, [x, condition], **({} if flat else {"axis": axis}))


@recipe("Unique")
def unique(m: Maker, op: str) -> Added:
    x = m.any((1, 3), "f4 i8")
    if not m.values[x].size:
        return None  # ONNX Runtime 1.32 aborts
    return m.node(op, [x], 4, **m.maybe(axis=m.axis(x), sorted=0))


@recipe("OneHot")
def onehot(m: Maker, op: str) -> Added:
    depth = m.rng.randint(1, 5)
    x = m.input(m.array(m.shape(0, 2), "i8"))
    names = [x, m.constant(depth, np.int64), m.constant([2.0, 5.0], np.float32)]
    return m.node(op, names, **m.maybe(axis=m.rng.randint(-m.rank(x) - 1, m.rank(x))))


@recipe("Trilu", "EyeLike")
def triangle(m: Maker, op: str) -> Added:
    x = m.any((2, 2) if op == "EyeLike" else (2, 4), "f4 i8")
    k = m.rng.randint(-3, 3)
    if op == "EyeLike":
        return m.node(op, [x], k=k)
    names = [x, m.constant(k, np.int64)] if m.rng.random() < 0.6 else [x]
    return m.node(op, names, **m.maybe(upper=0))


@recipe("DepthToSpace", "SpaceToDepth")
def blocks(m: Maker, op: str) -> Added:
    size = m.rng.randint(1, 3)
    n, c, h, w = (m.extent() for _ in range(4))
    if op == "DepthToSpace":
        more = {"mode": m.rng.choice(["DCR", "CRD"])} if m.opset > 10 else {}
        return m.node(op, [m.new([n, c * size * size, h, w])], blocksize=size, **more)
    return m.node(op, [m.new([n, c, h * size, w * size])], blocksize=size)


@recipe("ReverseSequence")
def reverse(m: Maker, op: str) -> Added:
    x = m.any((2, 3), "f4 i4")
    time = m.rng.randint(0, 1)
    extent, batch = m.dims(x)[time], m.dims(x)[1 - time]
    if not extent:
        return None
    lengths = np.array([m.rng.randint(1, extent) for _ in range(batch)], np.int64)
    return m.node(op, [x, m.input(lengths)], time_axis=time, batch_axis=1 - time)


@recipe("Shape", "Size")
def shape(m: Maker, op: str) -> Added:
    x = m.any((0, 4), ALL)
    bounds = m.maybe(start=m.rng.randint(-5, 4), end=m.rng.randint(-5, 4))
    return m.node(op, [x], **(bounds if op == "Shape" and m.opset > 14 else {}))


@recipe("ConstantOfShape", "Range")
def made(m: Maker, op: str) -> Added:
    x = m.any((1, 3), "f4")
    dims = m.node("Shape", [x])[0]
    if op == "ConstantOfShape":
        return m.node(op, [dims])
    zero = m.constant(0, np.int64)
    count = m.node("Gather", [dims, zero])[0]
    step = m.rng.choice([1, 2, 3, -1])
    names = [count, m.constant(-1, np.int64)] if step < 0 else [zero, count]
    return m.node(op, [*names, m.constant(step, np.int64)])
