"""Fourier transforms along an axis: fft, rfft, irfft, dft of ONNX, and of windows in time: stft.

    x : tensor<..., n, ..., 2>, pairs; or tensor<..., n, ...>, real elements, of rfft

`axis` is that of n, counted with the last dim. Half precision is computed in f32.
"""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, RequireOp, ShapeError, dims_differ, normalize_axis
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, Fact, at_most, const, product

from ..emit import (
    add,
    arange,
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    is_integer,
    multiply,
    permute,
    rank_of,
    reshape,
    scalar,
    symbol,
    widen,
    with_dims,
)
from .fourier import FORWARD, INVERSE, constant, roots, sliced, transform
from .pairs import require_pairs

DIRECT = 512
"""The longest real lines whose half spectrum is one matrix product."""


def fft(x: ir.Value, *, axis: int = -2, inverse: bool = False, scaled: bool = True) -> ir.Value:
    """The Fourier transform of pairs; the inverse one is divided by n if it is `scaled`.

    Source: StableHLO `fft`.
    """
    require_pairs(x)
    lines = _Lines(x, _signal_axis(x, axis))
    return lines.joined(_either(lines.pairs(), inverse, scaled))


def rfft(x: ir.Value, *, axis: int = -1) -> ir.Value:
    """Pairs 0 to n // 2 of the transform of real elements, which have the others as conjugates.

    The pairs are along a new last dim. Source: StableHLO `fft`, RFFT.
    """
    lines = _Lines(expand_dims(x, [rank_of(x)]), normalize_axis(axis, rank_of(x)))
    return lines.joined(_half_spectrum(lines.real()))


def irfft(x: ir.Value, length: Dim | int | str, *, axis: int = -2, scaled: bool = True) -> ir.Value:
    """Real elements whose transform begins with pairs 0 to length // 2: without the last dim.

    They are divided by the length if they are `scaled`. Source: StableHLO `fft`, IRFFT.
    """
    require_pairs(x)
    (n,) = graph.exact_dims(as_dims([length]))
    position = _signal_axis(x, axis)
    if dims_differ(dims_of(x)[position], n // 2 + 1):
        raise ShapeError(f"expects {n // 2 + 1} pairs, but got {dims_of(x)[position]}")
    lines = _Lines(x, position)
    real = _real_lines(lines.pairs(), n, scaled)
    return emit(graph.SqueezeOp, lines.joined(expand_dims(real, [1])), axes=[-1])


def dft(
    x: ir.Value,
    length: Dim | int | str | None = None,
    *,
    axis: int = -2,
    inverse: bool = False,
    onesided: bool = False,
) -> ir.Value:
    """The transform of real elements or of pairs, a last dim of 1 or 2, to pairs.

    Lines are cut off at `length`, or zeros are added. `onesided` leaves pairs 0 to length // 2 of
    real elements; with `inverse` it takes them, and leaves real ones. Source: ONNX `DFT`.
    """
    position, parts = _signal_axis(x, axis), _parts(x)
    if length is None:
        own = dims_of(x)[position]
        length = (own - 1) * 2 if inverse and onesided else own
    (n,) = graph.exact_dims(as_dims([length]))
    x = _fitted(x, position, n // 2 + 1 if inverse and onesided else n)
    if onesided and inverse:
        if parts != 2:
            raise ShapeError("expects pairs, of which real elements are the transform")
        return expand_dims(irfft(x, n, axis=position), [rank_of(x) - 1])
    lines = _Lines(x, position)
    if onesided:
        if parts != 1:
            raise ShapeError("has pairs, but only of real elements half of a transform is enough")
        return lines.joined(_half_spectrum(lines.real()))
    return lines.joined(_either(lines.pairs(), inverse))


def stft(
    signal: ir.Value,
    step: int,
    window: ir.Value | None = None,
    *,
    length: int | None = None,
    onesided: bool = True,
) -> ir.Value:
    """Transforms of parts of signals [b, n, 1 or 2], every `step` elements: [b, parts, bins, 2].

    A part has `length` elements, or as many as the window, by which they are multiplied. Source:
    ONNX `STFT`.
    """
    if rank_of(signal) != 3 or step < 1:
        raise ShapeError(f"expects signals of rank 3, and a step, but got {step}")
    parts, size = _parts(signal), _window_length(window, length)
    if onesided and parts != 1:
        raise ShapeError("has pairs, but only of real elements half of a transform is enough")
    n = dims_of(signal)[1]
    _require_length(n, size)
    count = (n - size) // step + 1
    i64 = ir.IntegerType.get_signless(64)
    starts, steps = arange(0, count, step, i64), arange(0, size, 1, i64)
    indices = add(expand_dims(starts, [1]), expand_dims(steps, [0]))
    taken = widen(emit(graph.TakeOp, signal, indices, axis=1))
    if window is not None:
        taken = multiply(taken, expand_dims(astype(window, element_of(taken)), [1]))
    lines = _Lines(taken, 2)
    spectrum = _half_spectrum(lines.real()) if onesided else transform(lines.pairs(), FORWARD)
    return astype(lines.joined(spectrum), element_of(signal))


def _window_length(window: ir.Value | None, length: int | None) -> int:
    """The elements of a part."""
    if window is None:
        if length is None or length < 1:
            raise ShapeError(f"expects a window or a length, but got {length}")
        return length
    dims = dims_of(window)
    size = dims[0].value if len(dims) == 1 else None
    if size is None or size < 1 or (length is not None and length != size):
        wanted = "of a known length" if length is None else f"of {length} elements"
        raise ShapeError(f"expects a window {wanted}, but got '{graph.TensorType.of(window)}'")
    return size


def _require_length(n: Expr, size: int) -> None:
    fits = at_most(const(size), n)
    if n.value is not None and not fits.proved:
        raise ShapeError(f"has parts of {size} elements in signals of {n}")
    if not fits.proved:
        RequireOp.build([Fact(const(size), "<=", n)], "@stft")


def _parts(x: ir.Value) -> int:
    """1 for real elements, 2 for pairs."""
    last = dims_of(x)[-1].value if rank_of(x) else None
    if last not in (1, 2) or is_integer(element_of(x)):
        raise ShapeError(f"expects floats of a last dim 1 or 2, but got '{graph.TensorType.of(x)}'")
    return last


def _signal_axis(x: ir.Value, axis: int) -> int:
    position = normalize_axis(axis, rank_of(x))
    if position == rank_of(x) - 1:
        raise ShapeError(f"transforms along another axis than the last one, but got {axis}")
    return position


def _fitted(x: ir.Value, axis: int, length: Expr) -> ir.Value:
    """Cut off, or with zeros added."""
    dims = dims_of(x)
    if dims[axis] == length:
        return x
    none = [const(0)] * len(dims)
    high = [length - dims[axis] if i == axis else dim for i, dim in enumerate(none)]
    return emit(
        graph.PadOp, x, scalar(0, element_of(x)), low=none, high=high,
        interior=[0] * len(dims), mode="constant",
    )  # fmt: skip


def _either(z: ir.Value, inverse: bool, scaled: bool = True) -> ir.Value:
    """The transform of lines, or its inverse."""
    result = transform(z, INVERSE if inverse else FORWARD)
    return divide(result, symbol(dims_of(z)[2], element_of(z))) if inverse and scaled else result


def _half_spectrum(lines: ir.Value) -> ir.Value:
    """Of real lines [b, n] the pairs 0 to n // 2, [b, 2, n // 2 + 1]."""
    b, n = dims_of(lines)
    half = n // 2 + 1
    if n.value is not None and 0 < n.value <= DIRECT:
        table = np.concatenate(roots(n.value, n.value // 2 + 1, n.value, FORWARD), axis=1)
        product = emit(graph.MatmulOp, lines, constant(table, element_of(lines)))
        return reshape(product, [b, 2, half])
    return sliced(transform(_with_zeros(expand_dims(lines, [1])), FORWARD), 0, half)


def _with_zeros(real: ir.Value) -> ir.Value:
    """Pairs [b, 2, n] of imaginary part 0."""
    zero = scalar(0, element_of(real))
    none = [0, 0, 0]
    return emit(graph.PadOp, real, zero, low=none, high=[0, 1, 0], interior=none, mode="constant")


def _real_lines(z: ir.Value, n: Expr, scaled: bool) -> ir.Value:
    """The inverse of a half spectrum: the others are the conjugates, in reverse."""
    mirrored = emit(graph.FlipOp, sliced(z, 1, (n + 1) // 2), axes=[2])
    signs = constant(np.array([[1.0], [-1.0]]), element_of(z))
    whole = graph.ConcatOp.build(z, multiply(mirrored, signs), axis=2).operation.results[0]
    whole = with_dims(whole, [*dims_of(z)[:2], n])  # (n + 1) // 2 + n // 2, unless n is 0
    lines = _either(whole, True, scaled)
    return emit(graph.TakeOp, lines, scalar(0, ir.IntegerType.get_signless(64)), axis=1)


class _Lines:
    """The lines along an axis of a tensor whose last dim are parts, and the way back."""

    def __init__(self, x: ir.Value, axis: int) -> None:
        if is_integer(element_of(x)):
            raise ShapeError(f"expects floats, but got {element_of(x)}")
        last = rank_of(x) - 1
        self.element = element_of(x)
        self.order = [i for i in range(last) if i != axis] + [last, axis]
        ordered = permute(widen(x), self.order)
        self.lead = dims_of(ordered)[:-2]
        self._lines = reshape(ordered, [product(self.lead), *dims_of(ordered)[-2:]])

    def real(self) -> ir.Value:
        """tensor<b, n> of real elements."""
        b, _, n = dims_of(self._lines)
        return reshape(self._lines, [b, n])

    def pairs(self) -> ir.Value:
        """tensor<b, 2, n>, with imaginary parts 0 where there are none."""
        return self._lines if dims_of(self._lines)[1] == const(2) else _with_zeros(self._lines)

    def joined(self, z: ir.Value) -> ir.Value:
        """Lines [b, parts, m] as a tensor of the dims that there were, with m in place of n."""
        whole = reshape(z, [*self.lead, *dims_of(z)[1:]])
        back: Sequence[int] = np.argsort(self.order).tolist()
        return astype(permute(whole, back), self.element)
