"""Bounds of the indices of a kernel, for devices whose indices have 32 bits.

    %i = group * 256 + thread          (grid x - 1) * 256 + 255
    %j = %i / %n * %m                  that / n * m

A bound is an expression over the scalars that a launch passes and over its grid, so the host can
tell before a launch whether an index would not fit. What depends on data has no bound: such indices
are clamped where they are computed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from relax_mlir.bindings import gpu, ir

Bound: TypeAlias = int | tuple[Any, ...]
"""An integer; ("p", i) or ("n", i): scalar i if it is positive, or minus it; ("g", axis): groups
along an axis less one; ("+" | "*" | "/" | "max", a, b)."""

_BINARY = ("+", "*", "/", "max")

_GROUP_ADDRESSES = 2**20
"""What addresses of memory of a group are less than."""
LIMIT = 2**31
"""What an index of 32 bits is less than."""


@dataclass(frozen=True)
class Range:
    """Bounds of `-x` and `x`, not negative; None if there is none."""

    below: Bound | None
    above: Bound | None

    @property
    def size(self) -> Bound | None:
        """A bound of |x|."""
        return greatest(self.below, self.above)


UNKNOWN = Range(None, None)


def _fold(op: str, a: Bound | None, b: Bound | None) -> Bound | None:
    """The bound `a op b`; None if one of them is unknown."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return {"+": a + b, "*": a * b, "/": a // max(b, 1), "max": max(a, b)}[op]
    if op in ("+", "max") and 0 in (a, b):
        return b if a == 0 else a
    if op == "*" and (a, b) != (a, 1) and (a, b) != (1, b):
        return 0 if 0 in (a, b) else (op, a, b)
    if op == "*":
        return a if b == 1 else b
    if op == "/" and (a == 0 or b == 1):
        return a
    return a if op == "max" and a == b else (op, a, b)


def greatest(a: Bound | None, b: Bound | None) -> Bound | None:
    """The greater of two bounds."""
    return _fold("max", a, b)


def steps_of(bounds: Iterable[Bound]) -> tuple[list[list[Any]], list[int]]:
    """Steps that compute bounds, in order, and those of them that are the bounds.

    Operands of a step are earlier ones, by their positions: ["+", 0, 3]; integers are ["c", 5].
    """
    steps: dict[Bound, int] = {}

    def add(bound: Bound) -> int:
        if bound not in steps:
            if isinstance(bound, tuple) and bound[0] in _BINARY:
                parts = (bound[0], *(add(part) for part in bound[1:]))
            else:
                parts = ("c", bound) if isinstance(bound, int) else bound
            made.append(list(parts))
            steps[bound] = len(made) - 1
        return steps[bound]

    made: list[list[Any]] = []
    return made, [add(bound) for bound in bounds]


@dataclass
class IndexBounds:
    """The ranges of a kernel's indices; `checks` are the bounds that a launch has to keep."""

    kernel: gpu.GPUFuncOp
    _ranges: dict[ir.Value, Range] = field(default_factory=dict)
    checks: dict[Bound, None] = field(default_factory=dict)
    _has_unsigned: bool = False
    """Whether something that may be negative is taken without its sign."""

    def __post_init__(self) -> None:
        """Finds the range of each index, in the order of the ops."""
        entry = self.kernel.operation.regions[0].blocks[0]
        for i, argument in enumerate(entry.arguments):
            if isinstance(argument.type, ir.IndexType):
                self._ranges[argument] = Range(("n", i), ("p", i))
        for op in _in_order(entry):
            self._visit(op)
        self._keep_largest()

    def is_known(self, x: ir.Value) -> bool:
        """Whether an index has bounds, so that it fits after the launch was checked."""
        return self.range(x).size is not None

    def range(self, x: ir.Value) -> Range:
        """The range of an index."""
        return self._ranges.get(x, UNKNOWN)

    @property
    def fit(self) -> bool:
        """Whether each index is known to fit 32 bits, whatever is launched."""
        values = list(_values(self.kernel.operation.regions[0].blocks[0]))
        kinds = [value.type for value in values]
        elements = [ir.MemRefType(kind).element_type for kind in kinds if _is_buffer(kind)]
        sizes = [self.range(x).size for x in values if isinstance(x.type, ir.IndexType)]
        has_indices_in_memory = any(isinstance(kind, ir.IndexType) for kind in elements)
        are_small = all(isinstance(size, int) and size < LIMIT for size in sizes)
        return are_small and not self._has_unsigned and not has_indices_in_memory

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "scf.for":
            self._visit_loop(op)
        if op.name in _UNSIGNED:
            self._has_unsigned |= any(
                self.range(x).below != 0 for x in op.operands if isinstance(x.type, ir.IndexType)
            )
        rule = _RULES.get(op.name)
        for result in op.results:
            if isinstance(result.type, ir.IndexType):
                own = rule(self, op) if rule else UNKNOWN
                self._ranges[result] = own
                if op.name in _GROWING:
                    self._check(own)

    def _visit_loop(self, op: ir.Operation) -> None:
        lower, upper, step = (self.range(x) for x in list(op.operands)[:3])
        index = op.regions[0].blocks[0].arguments[0]
        end = _fold("+", greatest(lower.above, upper.above), step.above)
        self._ranges[index] = Range(lower.below, end)
        self._check(self._ranges[index])

    def _check(self, own: Range) -> None:
        if own.below is not None and own.above is not None:
            self.checks |= dict.fromkeys((own.below, own.above))

    def _keep_largest(self) -> None:
        """Drops bounds that are a part of another one, which is no less."""
        parts = {
            part for bound in self.checks if isinstance(bound, tuple) and bound[0] in ("+", "max")
            for part in bound[1:]
        }  # fmt: skip
        small = {x for x in self.checks if isinstance(x, int) and x < LIMIT}
        self.checks = dict.fromkeys(x for x in self.checks if x not in parts and x not in small)


def _in_order(block: ir.Block) -> Iterator[ir.Operation]:
    """The ops of a block, each before those nested in it."""
    for view in block.operations:
        yield view.operation
        for region in view.operation.regions:
            for inner in region.blocks:
                yield from _in_order(inner)


def _values(block: ir.Block) -> Iterator[ir.Value]:
    """The arguments and results of a block and of those nested in it."""
    yield from block.arguments
    for op in block.operations:
        yield from op.operation.results
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _values(inner)


def _is_buffer(kind: ir.Type) -> bool:
    return isinstance(kind, ir.MemRefType)


_Rule = Callable[[IndexBounds, ir.Operation], Range]


def _constant(bounds: IndexBounds, op: ir.Operation) -> Range:
    value = ir.IntegerAttr(op.attributes["value"]).value
    return Range(max(0, -value), max(0, value))


def _thread(bounds: IndexBounds, op: ir.Operation) -> Range:
    block = ir.DenseI32ArrayAttr(bounds.kernel.operation.attributes["known_block_size"])
    return Range(0, block[_axis(op)] - 1)


def _subgroup(bounds: IndexBounds, op: ir.Operation) -> Range:
    block = ir.DenseI32ArrayAttr(bounds.kernel.operation.attributes["known_block_size"])
    return Range(0, prod(block) - 1)


def _axis(op: ir.Operation) -> int:
    return "xyz".index(str(op.attributes["dimension"])[-2])


def _group(bounds: IndexBounds, op: ir.Operation) -> Range:
    attributes = bounds.kernel.operation.attributes
    if "known_grid_size" not in attributes:
        return Range(0, ("g", _axis(op)))
    return Range(0, ir.DenseI32ArrayAttr(attributes["known_grid_size"])[_axis(op)] - 1)


def _operands(bounds: IndexBounds, op: ir.Operation) -> list[Range]:
    return [bounds.range(x) for x in op.operands]


def _add(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    return Range(_fold("+", a.below, b.below), _fold("+", a.above, b.above))


def _subtract(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    return Range(_fold("+", a.below, b.above), _fold("+", a.above, b.below))


def _exclusive_or(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    return Range(0, _fold("+", a.above, b.above)) if a.below == b.below == 0 else UNKNOWN


def _address(bounds: IndexBounds, op: ir.Operation) -> Range:
    """Addresses of memory of a group are small."""
    kind = ir.MemRefType(op.operands[0].type)
    return UNKNOWN if kind.memory_space is None else Range(0, _GROUP_ADDRESSES)


def _multiply(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    if a.below == 0 and b.below == 0:
        return Range(0, _fold("*", a.above, b.above))
    if b.below == 0 and b.above is not None:
        return Range(_fold("*", a.below, b.above), _fold("*", a.above, b.above))
    size = _fold("*", a.size, b.size)
    return Range(size, size)


def _shift_left(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    if not isinstance(b.above, int) or b.below != 0 or b.above > 31:
        return UNKNOWN
    factor = 1 << b.above
    return Range(_fold("*", a.below, factor), _fold("*", a.above, factor))


def _value(bounds: IndexBounds, x: ir.Value) -> Bound | None:
    """The exact value of a scalar or constant that is not negative, as a bound; None of others."""
    own = bounds.range(x)
    if isinstance(x.owner, ir.Block):
        entry = bounds.kernel.operation.regions[0].blocks[0]
        return own.above if x.owner == entry else None
    is_constant = x.owner.operation.name == "arith.constant"
    return own.above if is_constant and own.below == 0 else None


def _divide(bounds: IndexBounds, op: ir.Operation) -> Range:
    """Towards zero; without a sign, what is divided and the divisor are not negative."""
    a, b = _operands(bounds, op)
    if op.name != "arith.divui" and b.below != 0:
        return Range(a.size, a.size)
    by = _value(bounds, op.operands[1])
    return a if by is None else Range(_fold("/", a.below, by), _fold("/", a.above, by))


def _divide_down(bounds: IndexBounds, op: ir.Operation) -> Range:
    """One less, where something negative is divided: -1 by 8 is -1."""
    own = _divide(bounds, op)
    a, b = _operands(bounds, op)
    return own if a.below == b.below == 0 else Range(_fold("+", own.below, 1), own.above)


def _divide_up(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    if op.name == "arith.ceildivsi" and b.below != 0:
        return Range(a.size, _fold("+", a.size, 1))
    return Range(a.below, _fold("+", a.above, 1))


def _remainder(bounds: IndexBounds, op: ir.Operation) -> Range:
    """Less than the divisor; of the sign of what is divided, or without one."""
    a, b = _operands(bounds, op)
    if op.name == "arith.remui":
        return Range(0, a.above if b.above is None else b.above)
    return Range(a.below, a.above if b.size is None else b.size)


def _shift_right(bounds: IndexBounds, op: ir.Operation) -> Range:
    return _operands(bounds, op)[0]


def _least(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    return Range(greatest(a.below, b.below), _known(a.above, b.above))


def _most(bounds: IndexBounds, op: ir.Operation) -> Range:
    a, b = _operands(bounds, op)
    return Range(_known(a.below, b.below), greatest(a.above, b.above))


def _known(a: Bound | None, b: Bound | None) -> Bound | None:
    """One of two bounds, both of which hold."""
    if a is None or b is None:
        return b if a is None else a
    known = [x for x in (a, b) if isinstance(x, int)]
    return min(known) if known else a


def _unsigned_least(bounds: IndexBounds, op: ir.Operation) -> Range:
    known = [x.above for x in _operands(bounds, op) if x.below == 0 and x.above is not None]
    if not known:
        return _select_of(_operands(bounds, op))
    return Range(0, known[0] if len(known) == 1 else _known(known[0], known[1]))


def _select(bounds: IndexBounds, op: ir.Operation) -> Range:
    return _select_of(_operands(bounds, op)[-2:])


def _select_of(ranges: list[Range]) -> Range:
    a, b = ranges
    return Range(greatest(a.below, b.below), greatest(a.above, b.above))


def _cast(bounds: IndexBounds, op: ir.Operation) -> Range:
    width = ir.IntegerType(op.operands[0].type).width
    if width > 16:
        return UNKNOWN
    is_signed = op.name == "arith.index_cast"
    most = (1 << (width - is_signed)) - (not is_signed)
    return Range(most if is_signed else 0, most)


_GROWING = frozenset(
    f"arith.{name}" for name in ("addi", "subi", "muli", "shli", "ceildivui", "ceildivsi")
)
_UNSIGNED = frozenset(
    f"arith.{name}" for name in ("divui", "remui", "ceildivui", "shrui", "index_castui")
)
"""Of something negative, these say with 32 bits what they do not say with 64."""
_RULES: dict[str, _Rule] = {
    "arith.constant": _constant,
    "arith.addi": _add,
    "arith.subi": _subtract,
    "arith.muli": _multiply,
    "arith.shli": _shift_left,
    "arith.xori": _exclusive_or,
    "arith.divsi": _divide,
    "arith.divui": _divide,
    "arith.floordivsi": _divide_down,
    "arith.ceildivui": _divide_up,
    "arith.ceildivsi": _divide_up,
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "arith.shrui": _shift_right,
    "arith.shrsi": _shift_right,
    "arith.minsi": _least,
    "arith.maxsi": _most,
    "arith.minui": _unsigned_least,
    "arith.maxui": _select,
    "arith.select": _select,
    "arith.index_cast": _cast,
    "arith.index_castui": _cast,
    "gpu.thread_id": _thread,
    "gpu.subgroup_id": _subgroup,
    "gpu.block_id": _group,
    "memref.extract_aligned_pointer_as_index": _address,
}
