"""Tensor programs of activations and normalisations; half precision computes in f32."""

from math import pi

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects.graph import (
    GeluOp,
    GeluTanhOp,
    LayerNormOp,
    LogSoftmaxOp,
    ReluOp,
    RmsNormOp,
    SiluOp,
    SoftmaxOp,
    normalize_axis,
)

from .kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    elementwise,
    empty,
    empty_like,
    fill,
    generic,
    scalar,
)
from .scalars import (
    add,
    compute_type,
    divide,
    exp,
    from_compute,
    maximum,
    multiply,
    named,
    negate,
    subtract,
    to_compute,
)


def relu(op: ReluOp, kernel: KernelBuilder) -> None:
    """max(x, 0)."""
    kernel.finish(elementwise(kernel.ins, kernel.outs[0], lambda x: maximum(x, scalar(x.type, 0))))


def silu(op: SiluOp, kernel: KernelBuilder) -> None:
    """x / (1 + exp(-x))."""

    def body(x: ir.Value) -> ir.Value:
        return named("silu", divide(x, add(scalar(x.type, 1), exp(negate(x)))))

    _activation(kernel, body)


def gelu(op: GeluOp, kernel: KernelBuilder) -> None:
    """x * (erfc(-x / sqrt(2)) / 2), in which 1 + erf would cancel below zero."""

    def body(x: ir.Value) -> ir.Value:
        tail = math.ErfcOp(multiply(x, scalar(x.type, -(0.5**0.5)))).result
        return named("gelu", multiply(x, multiply(tail, scalar(x.type, 0.5))))

    _activation(kernel, body)


def gelu_tanh(op: GeluTanhOp, kernel: KernelBuilder) -> None:
    """x / (1 + exp(-2 a)), in which 1 + tanh(a) does not cancel below zero."""

    def body(x: ir.Value) -> ir.Value:
        slope = -2 * (2 / pi) ** 0.5
        cubic = multiply(multiply(x, x), scalar(x.type, 0.044715 * slope))
        power = exp(multiply(x, add(cubic, scalar(x.type, slope))))
        return named("gelu_tanh", divide(x, add(scalar(x.type, 1), power)))

    _activation(kernel, body)


def _activation(kernel: KernelBuilder, body) -> None:
    out = kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    kernel.finish(
        elementwise(kernel.ins, out, lambda x: from_compute(body(to_compute(x)), element))
    )


class _Rows:
    """A tensor as rows along one axis: reductions over it, and maps back to it."""

    def __init__(self, value: ir.Value, axis: int) -> None:
        type_ = ir.RankedTensorType(value.type)
        self.value, self.axis = value, axis
        self.shape = type_.shape
        self.compute = compute_type(type_.element_type)
        rank = type_.rank
        self.identity = affine_map(rank, list(range(rank)))
        self.by_row = affine_map(rank, [i for i in range(rank) if i != axis])
        self.iterators = [REDUCTION if i == axis else PARALLEL for i in range(rank)]

    def reduce(self, value: ir.Value, start: float, body) -> ir.Value:
        """Combines the elements of each row; `body` takes an element and the accumulator."""
        shape = [
            dim(self.value, i) if extent < 0 else extent
            for i, extent in enumerate(self.shape)
            if i != self.axis
        ]
        init = fill(scalar(self.compute, start), empty(shape, self.compute))
        maps = [self.identity, self.by_row]
        return generic([value], [init], maps, self.iterators, body)[0]

    def map(self, ins: list[tuple[ir.Value, ir.AffineMap]], out: ir.Value, body) -> ir.Value:
        """Computes every element of `out` from operands with their maps."""
        maps = [map_ for _, map_ in ins] + [self.identity]
        values = [value for value, _ in ins]
        return generic(
            values, [out], maps, [PARALLEL] * len(self.shape), lambda *xs: body(*xs[:-1])
        )[0]

    def mean(self, value: ir.Value, body) -> ir.Value:
        """The sum of `body(element)` over each row; the caller divides by `length`."""
        return self.reduce(value, 0, lambda x, total: add(total, body(to_compute(x))))

    def length(self) -> ir.Value:
        """The count of elements of a row, as a float."""
        extent = dim(self.value, self.axis)
        i64 = ir.IntegerType.get_signless(64)
        integer = arith.IndexCastOp(i64, extent).result
        return arith.SIToFPOp(self.compute, integer).result


def softmax(op: SoftmaxOp, kernel: KernelBuilder) -> None:
    """Row maximum, exponentials of the differences, their sum, products with its reciprocal."""
    source, out = kernel.ins[0], kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    rows = _Rows(source, normalize_axis(op.attributes["axis"].value, type_.rank))
    top = rows.reduce(source, float("-inf"), lambda x, m: _greater(to_compute(x), m))
    powers = rows.map(
        [(source, rows.identity), (top, rows.by_row)],
        empty_like(source, rows.compute),
        lambda x, m: exp(subtract(to_compute(x), m)),
    )
    total = rows.reduce(powers, 0, add)
    result = rows.map(
        [(powers, rows.identity), (total, rows.by_row)],
        out,
        lambda x, t: from_compute(
            multiply(x, divide(scalar(rows.compute, 1), t)), type_.element_type
        ),
    )
    kernel.finish(result)


def _greater(x: ir.Value, top: ir.Value) -> ir.Value:
    """The greater one, in one instruction; ignores NaN, which makes the sum NaN later."""
    return arith.SelectOp(arith.CmpFOp(arith.CmpFPredicate.OGT, x, top).result, x, top).result


def log_softmax(op: LogSoftmaxOp, kernel: KernelBuilder) -> None:
    """Row maximum, sum of exponentials of the differences, and its logarithm taken off these."""
    source, out = kernel.ins[0], kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    rows = _Rows(source, normalize_axis(op.attributes["axis"].value, type_.rank))
    top = rows.reduce(source, float("-inf"), lambda x, m: _greater(to_compute(x), m))
    moved = rows.map(
        [(source, rows.identity), (top, rows.by_row)],
        empty_like(source, rows.compute),
        lambda x, m: subtract(to_compute(x), m),
    )
    total = rows.reduce(moved, 0, lambda x, t: add(t, exp(x)))
    result = rows.map(
        [(moved, rows.identity), (total, rows.by_row)],
        out,
        lambda x, t: from_compute(subtract(x, math.LogOp(t).result), type_.element_type),
    )
    kernel.finish(result)


def rms_norm(op: RmsNormOp, kernel: KernelBuilder) -> None:
    """Sum of squares of each row, then x * rsqrt(mean + epsilon) * weight."""
    source, weight = kernel.ins
    out = kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    rows = _Rows(source, type_.rank - 1)
    squares = rows.mean(source, lambda x: multiply(x, x))
    length = rows.length()
    epsilon = scalar(rows.compute, op.attributes["epsilon"].value)

    def body(x: ir.Value, total: ir.Value, w: ir.Value) -> ir.Value:
        factor = math.RsqrtOp(add(divide(total, length), epsilon)).result
        scaled = multiply(multiply(to_compute(x), factor), to_compute(w))
        return from_compute(scaled, type_.element_type)

    by_column = affine_map(type_.rank, [type_.rank - 1])
    operands = [(source, rows.identity), (squares, rows.by_row), (weight, by_column)]
    kernel.finish(rows.map(operands, out, body))


def layer_norm(op: LayerNormOp, kernel: KernelBuilder) -> None:
    """Mean, then the mean of squared differences, then the affine map."""
    source, weight, bias = kernel.ins
    out = kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    rows = _Rows(source, type_.rank - 1)
    length = rows.length()
    total = rows.mean(source, lambda x: x)
    centred = rows.map(
        [(source, rows.identity), (total, rows.by_row)],
        empty_like(source, rows.compute),
        lambda x, t: subtract(to_compute(x), divide(t, length)),
    )
    squares = rows.mean(centred, lambda x: multiply(x, x))
    epsilon = scalar(rows.compute, op.attributes["epsilon"].value)

    def body(x: ir.Value, total: ir.Value, w: ir.Value, b: ir.Value) -> ir.Value:
        factor = math.RsqrtOp(add(divide(total, length), epsilon)).result
        scaled = multiply(multiply(x, factor), to_compute(w))
        return from_compute(add(scaled, to_compute(b)), type_.element_type)

    by_column = affine_map(type_.rank, [type_.rank - 1])
    operands = [
        (centred, rows.identity),
        (squares, rows.by_row),
        (weight, by_column),
        (bias, by_column),
    ]
    kernel.finish(rows.map(operands, out, body))
