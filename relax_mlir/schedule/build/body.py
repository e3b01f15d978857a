"""Emits the scalar body of a `linalg.generic` for all lanes of a vector at once.

    ^bb0(%a: f32, %b: f32):                      %0 = arith.addf %A, %B : vector<16xf32>
      %0 = arith.addf %a, %b : f32        ->     %1 = math.exp %0 : vector<16xf32>
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32

Operations on uniform values stay scalar; index arithmetic stays a `Ramp` if possible.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import affine, arith, ir, linalg, tensor
from relax_mlir.passes.base import PassFailure

from .affine import add, evaluate, is_linear, is_narrow, resolve, scale, split
from .lanes import (
    Clamped,
    Lane,
    Ramp,
    Uniform,
    Varying,
    element_type,
    scalar,
    splat,
    to_vector,
    vector_type,
)

Extract = Callable[[tensor.ExtractOp, list[Lane]], Lane]
_NARROW_FLOATS = (ir.F16Type, ir.BF16Type)
# These copy bits or convert, so that they take narrow floats directly.
_BIT_OPS = {
    f"arith.{name}"
    for name in ("select", "bitcast", "constant", "extf", "truncf", "sitofp", "uitofp")
}
_DIVISIONS = {
    f"arith.{name}"
    for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
}
_RAMP_OPS = {
    f"arith.{name}"
    for name in ("addi", "subi", "muli", "remui", "divui", "remsi", "divsi", "floordivsi")
}


def emit_body(
    block: ir.Block,
    operands: Sequence[Lane | ir.Value],
    lanes: int,
    *,
    indices: Sequence[Lane] = (),
    extract: Extract | None = None,
    captured: Mapping[ir.Value, ir.Value] | None = None,
    mask: ir.Value | None = None,
) -> list[Lane]:
    """Emits the body at the insertion point and returns the lane values that it yields.

    `operands` are the block's arguments: vectors of `lanes` elements or scalars, as values or as
    `Lane`s. `indices` are the iteration indices that `linalg.index` reads. `extract` loads for
    `tensor.extract`. `captured` maps scalars from outside of the block. Lanes outside of `mask` are
    undefined, but never divide by zero. Use `lanes.to_vector` on the results.

    Raises PassFailure at an op that has no vector form.
    """
    values = emit_values(
        block, operands, lanes, indices=indices, extract=extract, captured=captured, mask=mask
    )
    return [values(value) for value in block.operations[len(block.operations) - 1].operands]


def emit_values(
    block: ir.Block,
    operands: Sequence[Lane | ir.Value],
    lanes: int,
    *,
    indices: Sequence[Lane] = (),
    extract: Extract | None = None,
    captured: Mapping[ir.Value, ir.Value] | None = None,
    mask: ir.Value | None = None,
    only: Container[ir.OpView] | None = None,
) -> Callable[[ir.Value], Lane]:
    """Like `emit_body`, but returns a function from the block's scalars to their lane values.

    `only` are the operations that are emitted, if not all.
    """
    emitter = _Emitter(lanes, indices, extract, captured or {}, mask)
    for argument, operand in zip(block.arguments, operands, strict=True):
        emitter.values[argument] = as_lane(operand)
    for op in block.operations:
        if not isinstance(op, linalg.YieldOp) and (only is None or op in only):
            emitter.emit(op)
    return emitter.read


def emit_op(op: ir.OpView, operands: Sequence[Lane], lanes: int) -> Lane:
    """Emits one elementwise arith or math op for all lanes, a scalar op for uniform operands."""
    return _Emitter(lanes, (), None, {}, None).apply(op, list(operands))


def as_lane(x: Lane | ir.Value) -> Lane:
    """Wraps a vector or scalar value."""
    if isinstance(x, Uniform | Ramp | Varying):
        return x
    return Varying(x) if isinstance(x.type, ir.VectorType) else Uniform(x)


@dataclass
class _Emitter:
    lanes: int
    indices: Sequence[Lane]
    extract: Extract | None
    captured: Mapping[ir.Value, ir.Value]
    mask: ir.Value | None
    values: dict[ir.Value, Lane] = field(default_factory=dict)

    def read(self, value: ir.Value) -> Lane:
        lane = self.values.get(value)
        return Uniform(self.captured.get(value, value)) if lane is None else lane

    def emit(self, op: ir.OpView) -> None:
        operands = [self.read(value) for value in op.operands]
        if isinstance(op, linalg.IndexOp):
            result = self.indices[op.attributes["dim"].value]
        elif isinstance(op, affine.AffineApplyOp):
            result = self._affine(op, operands)
        elif isinstance(op, tensor.ExtractOp) and self.extract is not None:
            result = self.extract(op, operands[1:])
        else:
            result = self.apply(op, operands)
        self.values[op.results[0]] = result

    def _affine(self, op: affine.AffineApplyOp, operands: list[Lane]) -> Lane:
        """The result of an affine map on indices, which fusion across reshapes emits."""
        map_ = op.attributes["map"].value
        dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
        (expression,) = map_.results
        if not is_linear(expression):
            raise PassFailure(op, "multiplies or divides by a symbol")
        return resolve(evaluate(expression, dims, self.lanes, symbols), self.lanes)

    def apply(self, op: ir.OpView, operands: list[Lane]) -> Lane:
        name = op.operation.name
        known = name.startswith(("arith.", "math."))
        if not known or len(op.results) != 1 or len(op.regions):
            raise PassFailure(op, "has no vector form, so that its tensor program has no schedule")
        ramp = _ramp(name, op, operands, self.lanes)
        if ramp is not None:
            return ramp
        if all(isinstance(operand, Uniform) for operand in operands):
            return Uniform(_clone(op, [scalar(operand) for operand in operands], None))
        if name == "arith.select" and isinstance(operands[0], Uniform):
            vectors = [scalar(operands[0])]
            vectors += [to_vector(operand, self.lanes) for operand in operands[1:]]
        else:
            vectors = [to_vector(operand, self.lanes) for operand in operands]
        if name in _DIVISIONS and self.mask is not None:
            vectors[1] = self._safe_divisor(vectors[1])
        result = _clone(op, vectors, self.lanes)
        return _clamped(name, operands, result) or Varying(result)

    def _safe_divisor(self, divisor: ir.Value) -> ir.Value:
        """A divisor without zeros in masked lanes: division by zero is undefined even there."""
        element = ir.VectorType(divisor.type).element_type
        one = arith.ConstantOp(element, ir.IntegerAttr.get(element, 1)).result
        return arith.SelectOp(self.mask, divisor, splat(one, self.lanes)).result


def _clone(op: ir.OpView, operands: list[ir.Value], lanes: int | None) -> ir.Value:
    """The op on these operands; narrow floats are computed in f32 and rounded after each op."""
    name, location = op.operation.name, op.location
    attributes = {key: op.attributes[key] for key in op.attributes}
    result = op.results[0].type
    narrow = name not in _BIT_OPS
    if narrow:
        operands = [_widen(operand, lanes) for operand in operands]
    compute_type = _compute_type(result) if narrow else result
    kind = compute_type if lanes is None else vector_type(lanes, compute_type)
    created = ir.Operation.create(name, [kind], operands, attributes, loc=location).result
    if compute_type == result:
        return created
    return arith.TruncFOp(result if lanes is None else vector_type(lanes, result), created).result


def _compute_type(element: ir.Type) -> ir.Type:
    return ir.F32Type.get() if isinstance(element, _NARROW_FLOATS) else element


def _widen(operand: ir.Value, lanes: int | None) -> ir.Value:
    kind = operand.type
    element = kind if not isinstance(kind, ir.VectorType) else ir.VectorType(kind).element_type
    if not isinstance(element, _NARROW_FLOATS):
        return operand
    f32 = ir.F32Type.get()
    return arith.ExtFOp(f32 if lanes is None else vector_type(lanes, f32), operand).result


def _ramp(name: str, op: ir.OpView, operands: list[Lane], lanes: int) -> Lane | None:
    """The result as a Ramp (or Uniform), if lanes are an arithmetic progression; else None."""
    if not any(isinstance(operand, Ramp) for operand in operands):
        return None
    if any(isinstance(operand, Varying) for operand in operands):
        return None
    if name in ("arith.index_cast", "arith.index_castui"):
        return _cast(operands[0], op.results[0].type)
    if name not in _RAMP_OPS:
        return None
    a, b = operands
    if name == "arith.addi":
        return add(a, b)
    if name == "arith.subi":
        negative = scale(b, -1)
        return None if negative is None else add(a, negative)
    if name == "arith.muli":
        return scale(a, b.value) if isinstance(b, Uniform) else scale(b, getattr(a, "value", None))
    return split(a, b.value, lanes, "rem" in name) if isinstance(b, Uniform) else None


def _clamped(name: str, operands: list[Lane], result: ir.Value) -> Clamped | None:
    """The lanes of a ramp of indices that are clamped by one value; None for others."""
    if name not in ("arith.minsi", "arith.maxsi"):
        return None
    for lane, bound in (operands, reversed(operands)):
        if not isinstance(bound, Uniform) or not isinstance(element_type(lane), ir.IndexType):
            continue
        is_least = name == "arith.maxsi"
        if isinstance(lane, Ramp):
            low, high = (bound.value, None) if is_least else (None, bound.value)
            return Clamped(result, lane, low, high)
        if isinstance(lane, Clamped) and is_least and lane.low is None:
            return Clamped(result, lane.ramp, bound.value, lane.high)
    return None


def _cast(lane: Lane, element: ir.Type) -> Lane | None:
    """A ramp of indices as one of integers, or back unless its lanes may wrap on the way."""
    if not isinstance(lane, Ramp) or not isinstance(lane.step, int):
        return None
    if is_narrow(lane.base.type) and not lane.nonnegative:
        return None
    base = arith.IndexCastOp(element, lane.base).result
    may_wrap = isinstance(element, ir.IntegerType) and element.width < 32
    return Ramp(base, lane.step, lane.align, lane.nonnegative and not may_wrap)
