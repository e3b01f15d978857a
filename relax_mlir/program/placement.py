"""Assigns memory to the tensors of a program: outputs in place, the rest in scratch.

    %r = linalg.generic ... -> %e               %r lives in the window of %out
    %o = tensor.insert_slice %r into %out   ->  (nothing is copied)
    return %o

A tensor that cannot be computed in its memory is copied there by a stage of its own.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from .access import Inlining, Use, inline_producers, root_of, uses_of
from .extents import Extents
from .program import (
    Argument,
    Computed,
    Empty,
    Operand,
    Program,
    Reshape,
    Stage,
    Tensor,
    Window,
    identity_of,
)


@dataclass(frozen=True)
class Spot:
    """The memory of `owner`, seen through windows and reshapes, outermost first."""

    owner: Tensor
    path: tuple[Window | Reshape, ...] = ()

    def within(self, step: Window | Reshape) -> "Spot":
        """A part or another shape of this memory."""
        return replace(self, path=(*self.path, step))


@dataclass
class Placement:
    """The memory of computed tensors; those without a spot need scratch or no memory."""

    program: Program
    inlining: Inlining
    spots: dict[Computed, Spot] = field(default_factory=dict)

    @cached_property
    def extents(self) -> Extents:
        """Which loops have equal extents; computed once all stages exist."""
        return Extents(self.program)

    def spot(self, tensor: Tensor) -> Spot | None:
        """The memory of a tensor, if it is an argument or has been assigned."""
        if isinstance(tensor, Argument):
            return Spot(tensor)
        return self.spots.get(tensor) if isinstance(tensor, Computed) else None

    def reads_of(self, owner: Tensor) -> list[tuple[Stage, tuple[Use, ...] | None]]:
        """Stages that read the initial contents of an argument, or a computed tensor."""
        return [
            (stage, None if access.sliced else access.uses)
            for stage in self.program.stages
            if stage not in self.inlining.inlined and self.inlining.may_read(stage, owner)
            for access in self.inlining.reads(stage)
            if access.tensor is owner
        ]


def assign_memory(program: Program, inline: bool = True) -> Placement:
    """Assigns memory to all outputs, and inserts copies into the program where needed."""
    inlining = inline_producers(program) if inline else Inlining(program)
    placement = Placement(program, inlining)
    _drop_dead(program)
    outs = [argument for argument in program.arguments if argument.out is not None]
    for tensor, out in zip(program.returned, outs, strict=True):
        if not _assign(placement, tensor, Spot(out)):
            _append_copy(placement, tensor, Spot(out))
    for stage in program.stages:
        if stage.window is not None and stage.results[0] not in placement.spots:
            _assign(placement, stage.results[0], Spot(stage.results[0]))
    _elide_insertions(placement)
    _fill_extended(placement)
    _share_outputs(placement)
    return placement


def _share_outputs(placement: Placement) -> None:
    """Assigns the memory of an output to a tensor from which it is computed elementwise."""
    for stage in reversed(placement.program.stages):
        if stage in placement.inlining.inlined or stage.has_reduction or stage.window is not None:
            continue
        for result, init in zip(stage.results, stage.inits, strict=True):
            spot = placement.spots.get(result)
            if spot is None or spot.path or not isinstance(spot.owner, Argument):
                continue
            for operand in stage.reads:
                if isinstance(operand.tensor, Computed) and _may_share(
                    placement, stage, operand, init, spot
                ):
                    placement.spots[operand.tensor] = spot
                    break


def _may_share(
    placement: Placement, stage: Stage, operand: Operand, init: Operand, spot: Spot
) -> bool:
    """Whether the operand of a stage may share the memory of the stage's result."""
    tensor = operand.tensor
    if not isinstance(tensor, Computed) or placement.inlining.is_inlined(tensor):
        return False
    producer = tensor.stage
    whole = uses_of(producer.inits[tensor.index].indices)
    same = operand.indices == init.indices and tensor.shape == init.tensor.shape
    if not same or tensor.element != spot.owner.element or tensor in placement.spots:
        return False
    if producer.has_reduction or producer.uses_init(tensor.index) or producer.window is not None:
        return False
    if is_partial(producer, tensor.index) or len({use.dim for use in whole}) != len(whole):
        return False
    others = [shared for shared in placement.spots.values() if shared.owner is spot.owner]
    if len(others) != 1 or placement.reads_of(spot.owner) or _is_extended(placement, tensor):
        return False
    return all(
        reader.order < stage.order or (reader is stage and uses == uses_of(init.indices))
        for reader, uses in placement.reads_of(tensor)
    )


def _is_extended(placement: Placement, tensor: Tensor) -> bool:
    """Whether a stage writes to a part of the tensor, or scalars read it."""
    program = placement.program
    roots = [init.tensor for stage in program.stages for init in stage.inits]
    roots += [
        program.tensors[item.operands[0]]
        for item in program.items
        if not isinstance(item, Stage) and item.operation.name == "tensor.extract"
    ]
    return any(root_of(root) is tensor for root in roots)


def _drop_dead(program: Program) -> None:
    """Removes stages whose results are not read."""
    live: set[Stage] = set()
    roots = [*program.returned]
    for item in program.items:
        if not isinstance(item, Stage) and item.operation.name == "tensor.extract":
            roots.append(program.tensors[item.operands[0]])
    while roots:
        tensor = root_of(roots.pop())
        if isinstance(tensor, Computed) and tensor.stage not in live:
            stage = tensor.stage
            live.add(stage)
            roots += [operand.tensor for operand in [*stage.reads, *stage.inits]]
            roots += stage.gathers
    program.items[:] = [i for i in program.items if not isinstance(i, Stage) or i in live]


def _assign(placement: Placement, tensor: Tensor, spot: Spot) -> bool:
    """Assigns the spot to the tensor; False if the tensor has to be copied there.

    What the tensor is written over gets the spot too: a long chain where many are concatenated.
    """
    is_there, rest = _assign_one(placement, tensor, spot)
    while rest is not None:
        _, rest = _assign_one(placement, *rest)
    return is_there


def _assign_one(
    placement: Placement, tensor: Tensor, spot: Spot
) -> tuple[bool, tuple[Tensor, Spot] | None]:
    """As `_assign`, with what is to be assigned next."""
    if isinstance(tensor, Argument):
        return spot == Spot(tensor), None
    if isinstance(tensor, Reshape):
        # Collapsing dims needs memory without gaps, which a window may have.
        gaps = tensor.expands and any(isinstance(step, Window) for step in spot.path)
        return (False, None) if gaps else _assign_one(placement, tensor.source, spot.within(tensor))
    if not isinstance(tensor, Computed) or placement.inlining.is_inlined(tensor):
        return False, None
    if tensor in placement.spots or not _is_safe(placement, tensor, spot):
        return False, None
    placement.spots[tensor] = spot
    stage = tensor.stage
    init = stage.inits[tensor.index].tensor
    keeps = is_partial(stage, tensor.index) or stage.has_reduction
    if (keeps or stage.uses_init(tensor.index)) and not _is_read_after(placement, init, stage):
        return True, (init, spot)
    return True, None


def _is_read_after(placement: Placement, tensor: Tensor, stage: Stage) -> bool:
    return any(reader.order > stage.order for reader, _ in placement.reads_of(tensor))


def is_partial(stage: Stage, index: int) -> bool:
    """Whether the stage leaves some elements of that output unchanged."""
    if stage.window is not None:
        return True
    uses = uses_of(stage.inits[index].indices)
    shape = stage.inits[index].tensor.shape
    loops = [use.dim for use in uses if use.dims]
    fixed_is_unit = all(e == 1 for use, e in zip(uses, shape, strict=True) if not use.dims)
    return None in loops or len(set(loops)) < len(loops) or not fixed_is_unit


def _is_safe(placement: Placement, tensor: Computed, spot: Spot) -> bool:
    """Whether the former contents of the spot are dead when the tensor is written."""
    if not isinstance(spot.owner, Argument):
        return True
    stage = tensor.stage
    for reader, uses in placement.reads_of(spot.owner):
        if reader.order > stage.order:
            return False
        if reader is stage and (spot.path or uses != uses_of(stage.inits[tensor.index].indices)):
            return False
    return True


def _append_copy(placement: Placement, tensor: Tensor, spot: Spot) -> None:
    items = placement.program.items
    items.append(_copy(placement, tensor, spot, len(items) + len(placement.spots) + 1000))


def _copy(placement: Placement, tensor: Tensor, spot: Spot, order: int) -> Stage:
    rank = len(tensor.shape)
    identity = identity_of(rank)
    target = Empty(tensor.shape, tensor.element, tensor.op, [])
    stage = Stage(
        tensor.op, order, tensor.shape, (False,) * rank,
        [Operand(tensor, identity)], [Operand(target, identity)], None,
    )  # fmt: skip
    result = Computed(tensor.shape, tensor.element, tensor.op, stage, 0)
    stage.results.append(result)
    placement.spots[result] = spot
    return stage


def _elide_insertions(placement: Placement) -> None:
    """Computes inserted tensors in place, and drops the insertions."""
    program = placement.program
    for stage in reversed(program.stages):
        if stage.window is None:
            continue
        spot = placement.spots[stage.results[0]].within(stage.window)
        source = stage.reads[0].tensor
        if _may_elide(placement, stage, source) and _assign(placement, source, spot):
            program.items.remove(stage)


def _may_elide(placement: Placement, insertion: Stage, source: Tensor) -> bool:
    while isinstance(source, Reshape):
        source = source.source
    if not isinstance(source, Computed) or source.stage.window is not None:
        return False
    dest = insertion.inits[0].tensor
    spot = placement.spots[insertion.results[0]]
    filled_before = isinstance(dest, Computed) and dest.stage.order < source.stage.order
    if filled_before and _is_read_after(placement, dest, source.stage):
        return False
    is_in_place = placement.spot(dest) == spot and (isinstance(dest, Argument) or filled_before)
    if not isinstance(dest, Empty) and not is_in_place:
        return False
    readers = [stage for stage, _ in placement.reads_of(source)]
    return all(reader.order <= insertion.order for reader in readers)


def _fill_extended(placement: Placement) -> None:
    """Copies the rest of a partly written tensor, unless it is in place already."""
    program = placement.program
    for stage in program.stages:
        for index, result in enumerate(stage.results):
            dest = stage.inits[index].tensor
            if not is_partial(stage, index) or isinstance(dest, Empty):
                continue
            spot = placement.spots.setdefault(result, Spot(result))
            if placement.spot(dest) == spot:
                continue
            program.items.insert(
                program.items.index(stage), _copy(placement, dest, spot, stage.order)
            )
