"""What one scalar of a loop body is across the lanes of a vector.

    Uniform(x)          every lane is x                                x: scalar value, or an int
    Ramp(base, step)    lane i is base + i * step                      indices and integers
    Varying(v)          lane i is v[i]                                 v: vector<lanes x T>
    Repeated, Runs      a Varying of few elements next to each other   of packed elements
    Clamped             a Varying that is mostly a Ramp                of indices at borders

The first two make loads at ramps contiguous, and work that all lanes share scalar.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, vector

from .loops import Index, value


@dataclass(frozen=True)
class Uniform:
    """One value for every lane; an int stands for an `index` constant."""

    value: Index


@dataclass(frozen=True)
class Ramp:
    """Lane i is `base + i * step`.

    Integers wrap. `align` divides base; `nonnegative` says that base is known to be at least zero,
    and that no lane wraps.
    """

    base: ir.Value
    step: Index = 1
    align: int = 1
    nonnegative: bool = False


@dataclass(frozen=True)
class Varying:
    """A vector, one element a lane."""

    value: ir.Value


@dataclass(frozen=True)
class Repeated(Varying):
    """Lane i is `base + i // times`; `times` divides the lanes."""

    base: Index
    times: int


@dataclass(frozen=True)
class Runs(Varying):
    """Lane i is `base + (phase + i) // length`, with a phase from 0 to `length - 1`."""

    base: Index
    phase: ir.Value
    length: int


@dataclass(frozen=True)
class Clamped(Varying):
    """The lanes of a ramp, which are not less than `low` nor more than `high`, where given."""

    ramp: Ramp
    low: Index | None = None
    high: Index | None = None

    def recomputed(self, lanes: int) -> Varying:
        """The lanes, computed at the insertion point."""
        lane = to_vector(self.ramp, lanes)
        if self.high is not None:
            lane = arith.MinSIOp(lane, splat(value(self.high), lanes)).result
        if self.low is not None:
            lane = arith.MaxSIOp(lane, splat(value(self.low), lanes)).result
        return Varying(lane)


Lane = Uniform | Ramp | Varying


def lanes_from(base: ir.Value, lanes: int, is_aligned: bool = True) -> Uniform | Ramp:
    """Lane i is `base + i`, which is not negative; a single lane is a scalar.

    `is_aligned` says that `lanes` divides the base.
    """
    return Uniform(base) if lanes == 1 else Ramp(base, 1, lanes if is_aligned else 1, True)


def value_of(lane: Lane) -> Index:
    """The scalar or vector of lanes that are not a Ramp."""
    assert not isinstance(lane, Ramp), "a Ramp is no value"
    return lane.value


def scalar(lane: Lane) -> ir.Value:
    """The scalar that all lanes share."""
    return value(value_of(lane))


def vector_type(lanes: int, element: ir.Type) -> ir.VectorType:
    """`vector<lanes x element>`."""
    return ir.VectorType.get([lanes], element)


def splat(x: ir.Value, lanes: int) -> ir.Value:
    """x in every lane."""
    return vector.BroadcastOp(vector_type(lanes, x.type), x).result


def element_type(lane: Lane) -> ir.Type:
    """The type of one lane."""
    if isinstance(lane, Varying):
        return ir.VectorType(lane.value.type).element_type
    base = lane.value if isinstance(lane, Uniform) else lane.base
    return ir.IndexType.get() if isinstance(base, int) else base.type


def to_vector(lane: Lane, lanes: int) -> ir.Value:
    """The lanes as one vector value."""
    if isinstance(lane, Varying):
        return lane.value
    if isinstance(lane, Uniform):
        return splat(scalar(lane), lanes)
    steps = iota(lanes, lane.base.type)
    if not (isinstance(lane.step, int) and lane.step == 1):
        steps = arith.MulIOp(steps, splat(_as_type(lane.step, lane.base.type), lanes)).result
    return arith.AddIOp(splat(lane.base, lanes), steps).result


def iota(lanes: int, element: ir.Type) -> ir.Value:
    """0, 1, 2, ... as a constant vector."""
    kind = vector_type(lanes, element)
    if isinstance(element, ir.IndexType):
        return vector.StepOp(kind).result
    values = [ir.IntegerAttr.get(element, i) for i in range(lanes)]
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get(values, kind)).result


def _as_type(x: Index, element: ir.Type) -> ir.Value:
    if isinstance(x, int):
        return arith.ConstantOp(element, ir.IntegerAttr.get(element, x)).result
    return x if x.type == element else arith.IndexCastOp(element, x).result
