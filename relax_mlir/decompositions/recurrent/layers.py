"""Recurrent layers of ONNX: rnn, gru, lstm, as a loop over the elements of sequences.

    x            : tensor<t, n, features>, or tensor<n, t, features> where `batch_first`
    w            : tensor<directions, gates * hidden, features>, r with `hidden` instead of features
    bias         : tensor<directions, 2 * gates * hidden>, of the products with W, then with R
    initial_h    : tensor<directions, n, hidden>, or tensor<n, directions, hidden>; 0 without it
    sequence_lens: tensor<n> of integers, how many elements of each sequence count

The results are y, tensor<t, directions, n, hidden> or tensor<n, t, directions, hidden>, and the
last states, as `initial_h` is. Beyond the end of a sequence y is 0, and states stay. Half precision
is computed in f32. The products with W are one matrix product in front of the loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr, const

from ..emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    dims_text,
    element_of,
    emit,
    expand_dims,
    is_integer,
    less,
    permute,
    rank_of,
    scalar,
    where,
    widen,
    with_dims,
)
from ..loops import Round, each_index
from .quantized import Quantized
from .steps import (
    Activation,
    Direction,
    Product,
    activation_of,
    gru_step,
    linear_gru_step,
    lstm_step,
    plain_product,
    rnn_step,
)

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Whether each direction goes from the end to the beginning."""

Step = Callable[[Direction, ir.Value, Sequence[ir.Value]], list[ir.Value]]
Activations = Sequence[str | Activation]


def rnn(
    x: ir.Value,
    w: ir.Value,
    r: ir.Value,
    *,
    bias: ir.Value | None = None,
    sequence_lens: ir.Value | None = None,
    initial_h: ir.Value | None = None,
    direction: str = "forward",
    activations: Activations = (),
    clip: float | None = None,
    batch_first: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """h = f(x W + h R + bias). Returns y and the last h. Source: ONNX `RNN`."""
    settings = _Settings(1, ["Tanh"], rnn_step, direction, activations, clip, batch_first)
    y, h = _run(settings, _Operands(x, w, r, bias, sequence_lens, [initial_h]))
    return y, h


def gru(
    x: ir.Value,
    w: ir.Value,
    r: ir.Value,
    *,
    bias: ir.Value | None = None,
    sequence_lens: ir.Value | None = None,
    initial_h: ir.Value | None = None,
    direction: str = "forward",
    activations: Activations = (),
    clip: float | None = None,
    linear_before_reset: bool = False,
    batch_first: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """h = (1 - z) g(x W + (r h) R + bias) + z h, with gates z, r and h in this order.

    With `linear_before_reset` it is the product with R and its bias that r multiplies. Returns y
    and the last h. Source: arXiv 1406.1078; ONNX `GRU`.
    """
    usual, step = ["Sigmoid", "Tanh"], linear_gru_step if linear_before_reset else gru_step
    settings = _Settings(3, usual, step, direction, activations, clip, batch_first)
    y, h = _run(settings, _Operands(x, w, r, bias, sequence_lens, [initial_h]))
    return y, h


def lstm(
    x: ir.Value,
    w: ir.Value,
    r: ir.Value,
    *,
    bias: ir.Value | None = None,
    sequence_lens: ir.Value | None = None,
    initial_h: ir.Value | None = None,
    initial_c: ir.Value | None = None,
    peepholes: ir.Value | None = None,
    direction: str = "forward",
    activations: Activations = (),
    clip: float | None = None,
    input_forget: bool = False,
    batch_first: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """c = f c + i g(x W + h R + bias), h = o h(c), with gates i, o, f and c in this order.

    `peepholes`, tensor<directions, 3 * hidden>, are factors of c in the gates i, o and f. With
    `input_forget` f is 1 - i. Returns y, the last h and the last c. Source: ONNX `LSTM`.
    """
    usual, step = ["Sigmoid", "Tanh", "Tanh"], partial(lstm_step, input_forget=input_forget)
    settings = _Settings(4, usual, step, direction, activations, clip, batch_first)
    initial = [initial_h, initial_c]
    y, h, c = _run(settings, _Operands(x, w, r, bias, sequence_lens, initial, peepholes))
    return y, h, c


def dynamic_quantize_lstm(
    x: ir.Value,
    w: Quantized,
    r: Quantized,
    *,
    bias: ir.Value | None = None,
    sequence_lens: ir.Value | None = None,
    initial_h: ir.Value | None = None,
    initial_c: ir.Value | None = None,
    peepholes: ir.Value | None = None,
    direction: str = "forward",
    activations: Activations = (),
    clip: float | None = None,
    input_forget: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """`lstm` of 8-bit weights, with products of integers: all of x is rounded by one scale, and h.

    W is [directions, features, 4 * hidden], R [directions, hidden, 4 * hidden], with scales and
    zero points [directions] or [directions, 4 * hidden]. Each h is rounded by a scale of its own.
    Source: ONNX Runtime `DynamicQuantizeLSTM`.
    """
    for name, own in (("w", w), ("r", r)):
        if not is_integer(element_of(own.values)) or rank_of(own.values) != 3:
            raise ShapeError(f"expects integers {name} of rank 3, but got '{own.values.type}'")
    step = partial(lstm_step, input_forget=input_forget)
    usual = ["Sigmoid", "Tanh", "Tanh"]
    settings = _Settings(4, usual, step, direction, activations, clip, False)
    w_t, r_t = (permute(own.values, [0, 2, 1]) for own in (w, r))
    states = [initial_h, initial_c]
    operands = _Operands(x, w_t, r_t, bias, sequence_lens, states, peepholes, (w, r))
    y, h, c = _run(settings, operands)
    return y, h, c


@dataclass(frozen=True)
class _Settings:
    gates: int
    usual: Sequence[str]
    step: Step
    direction: str
    activations: Activations
    clip: float | None
    batch_first: bool

    @property
    def directions(self) -> int:
        return len(DIRECTIONS[self.direction])

    def functions(self) -> list[list[Activation]]:
        """The activations of each direction."""
        names = list(self.activations or [*self.usual] * self.directions)
        each = len(self.usual)
        if len(names) != each * self.directions:
            raise ShapeError(
                f"expects {each} activations for each of {self.directions} directions,"
                f" but got {len(names)}"
            )
        chosen = [activation_of(name) if isinstance(name, str) else name for name in names]
        return [chosen[i : i + each] for i in range(0, len(chosen), each)]


@dataclass(frozen=True)
class _Operands:
    x: ir.Value
    w: ir.Value
    r: ir.Value
    bias: ir.Value | None
    lengths: ir.Value | None
    initial: Sequence[ir.Value | None]
    peepholes: ir.Value | None = None
    quantized: tuple[Quantized, ...] = ()
    """W and R, if their elements are integers."""

    @property
    def floats(self) -> list[ir.Value]:
        """The operands that have one element type."""
        weights = [] if self.quantized else [self.w, self.r]
        own = [self.x, *weights, self.bias, *self.initial, self.peepholes]
        return [value for value in own if value is not None]


def _run(settings: _Settings, operands: _Operands) -> list[ir.Value]:
    """y and the last states."""
    _check(settings, operands)
    x = permute(operands.x, [1, 0, 2]) if settings.batch_first else operands.x
    sequence = widen(x)
    _, n, _ = dims_of(x)
    hidden = dims_of(operands.r)[2]
    ends = []
    for index, backwards in enumerate(DIRECTIONS[settings.direction]):
        own, projected = _direction(settings, operands, sequence, index)
        axis = 1 if settings.batch_first else 0
        entering = [
            broadcast_to(scalar(0, element_of(sequence)), [n, hidden])
            if value is None
            else with_dims(widen(_part(value, index, axis)), [n, hidden])
            for value in operands.initial
        ]
        ends.append(_loop(settings.step, own, projected, entering, operands.lengths, backwards))
    element = element_of(x)
    y_axis, state_axis = (2, 1) if settings.batch_first else (1, 0)
    ys, *states = [[astype(value, element) for value in values] for values in zip(*ends)]
    if settings.batch_first:
        ys = [permute(y, [1, 0, 2]) for y in ys]
    return [_stack(ys, y_axis), *(_stack(values, state_axis) for values in states)]


def _check(settings: _Settings, operands: _Operands) -> None:
    if settings.direction not in DIRECTIONS:
        names = ", ".join(DIRECTIONS)
        raise ShapeError(f"expects a direction of {names}, but got '{settings.direction}'")
    if settings.clip is not None and not settings.clip > 0:
        raise ShapeError(f"expects a positive limit, but got {settings.clip}")
    for value in operands.floats:
        if element_of(value) != element_of(operands.x) or is_integer(element_of(value)):
            kinds = f"{element_of(operands.x)} and {element_of(value)}"
            raise ShapeError(f"expects floats of one type, but got {kinds}")
    if operands.lengths is not None and not is_integer(element_of(operands.lengths)):
        raise ShapeError(f"expects integer lengths, but got {element_of(operands.lengths)}")
    for name, value in (("x", operands.x), ("w", operands.w), ("r", operands.r)):
        if rank_of(value) != 3:
            raise ShapeError(f"expects {name} of rank 3, but got rank {rank_of(value)}")
    _check_dims(settings, operands)


def _check_dims(settings: _Settings, operands: _Operands) -> None:
    _, n, features = dims_of(operands.x)
    if settings.batch_first:
        n = dims_of(operands.x)[0]
    hidden, count = dims_of(operands.r)[2], const(settings.directions)
    rows = hidden * settings.gates
    state = [n, count, hidden] if settings.batch_first else [count, n, hidden]
    wanted: list[tuple[str, ir.Value | None, Sequence[Expr]]] = [
        ("w", operands.w, [count, rows, features]),
        ("r", operands.r, [count, rows, hidden]),
        ("bias", operands.bias, [count, rows * 2]),
        ("sequence_lens", operands.lengths, [n]),
        ("peepholes", operands.peepholes, [count, hidden * 3]),
        *((f"initial_{name}", value, state) for name, value in zip("hc", operands.initial)),
    ]
    for name, value, dims in wanted:
        if value is None:
            continue
        actual = dims_of(value)
        if len(actual) != len(dims) or any(map(dims_differ, actual, dims)):
            raise ShapeError(
                f"expects {name} of dims {dims_text(dims)}, but got {dims_text(actual)}"
            )


def _part(value: ir.Value, index: int, axis: int = 0) -> ir.Value:
    """What belongs to one direction."""
    if dims_of(value)[axis] == const(1):
        return emit(graph.SqueezeOp, value, axes=[axis])
    i64 = ir.IntegerType.get_signless(64)
    return emit(graph.TakeOp, value, scalar(index, i64), axis=axis)


def _direction(
    settings: _Settings, operands: _Operands, sequence: ir.Value, index: int
) -> tuple[Direction, ir.Value]:
    """What a direction computes with, and the products of the whole sequence."""
    hidden = dims_of(operands.r)[2]
    rows = hidden * settings.gates
    w, r = (with_dims(_part(v, index), [rows, dims_of(v)[2]]) for v in (operands.w, operands.r))
    products: list[Product] = [plain_product] * 2
    if operands.quantized:
        products = [each.product(index, rows) for each in operands.quantized]
    projected = products[0](sequence, permute(widen(w), [1, 0]))
    of_product = None
    if operands.bias is not None:
        both = with_dims(widen(_part(operands.bias, index)), [rows * 2])
        of_x, of_h = graph.SplitOp.build(both, sizes=[rows, rows], axis=0).operation.results
        if settings.step is linear_gru_step:
            of_product = of_h
        else:
            of_x = add(of_x, of_h)
        projected = add(projected, of_x)
    peepholes: Sequence[ir.Value] = ()
    if operands.peepholes is not None:
        own = with_dims(widen(_part(operands.peepholes, index)), [hidden * 3])
        peepholes = graph.SplitOp.build(own, sizes=[hidden] * 3, axis=0).operation.results
    activations = settings.functions()[index]
    weights = _weights(permute(widen(r), [1, 0]), hidden, settings.step)
    limit = settings.clip
    direction = Direction(hidden, weights, activations, limit, of_product, peepholes, products[1])
    return direction, projected


def _weights(recurrent: ir.Value, hidden: Expr, step: Step) -> Sequence[ir.Value]:
    """R, transposed, in the parts that a step multiplies with."""
    if step is gru_step:
        return graph.SplitOp.build(recurrent, sizes=[hidden * 2, hidden], axis=1).operation.results
    return [recurrent]


def _loop(
    step: Step,
    own: Direction,
    projected: ir.Value,
    entering: Sequence[ir.Value],
    lengths: ir.Value | None,
    backwards: bool,
) -> list[ir.Value]:
    """All h, tensor<t, n, hidden>, and the last states."""
    t, n, _ = dims_of(projected)
    everything = broadcast_to(scalar(0, element_of(projected)), [t, *dims_of(entering[0])])
    ends = None
    if lengths is not None:
        ends = expand_dims(astype(with_dims(lengths, [n]), ir.IntegerType.get_signless(64)), [1])

    def body(turn: Round, done: ir.Value, *states: ir.Value) -> Sequence[ir.Value]:
        new = step(own, turn.take(projected, 0), states)
        row = new[0]
        if ends is not None:
            counts = less(turn.position, ends)
            row = where(counts, row, 0)
            new = [where(counts, value, old) for value, old in zip(new, states)]
        return [turn.put(done, row, 0), *new]

    return each_index(projected, 0, [everything, *entering], body, backwards)


def _stack(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """The results of all directions."""
    if len(values) == 1:
        return expand_dims(values[0], [axis])
    return graph.StackOp.build(*values, axis=axis).operation.results[0]
