"""Builders for the loops, index arithmetic and vectors of schedules.

An `Index` is a Python int if it is constant, else an index value; functions fold constants, so that
kernels of static shapes have constant bounds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, overload

from relax_mlir.bindings import arith, ir, memref, scf, vector

Index: TypeAlias = int | ir.Value
GRAIN = "tir.grain"


def value(x: Index) -> ir.Value:
    """The index value of `x`."""
    return arith.constant(ir.IndexType.get(), x) if isinstance(x, int) else x


def add(*terms: Index) -> Index:
    """Sum of the terms."""
    known = sum(t for t in terms if isinstance(t, int))
    unknown = [t for t in terms if not isinstance(t, int)]
    if not unknown:
        return known
    total = unknown[0]
    for term in unknown[1:]:
        total = arith.addi(total, term)
    return arith.addi(total, value(known)) if known else total


def sub(a: Index, b: Index) -> Index:
    """a - b."""
    if isinstance(b, int):
        return add(a, -b)
    return arith.subi(value(a), b)


def mul(*factors: Index) -> Index:
    """Product of the factors."""
    known = 1
    unknown = []
    for factor in factors:
        if isinstance(factor, int):
            known *= factor
        else:
            unknown.append(factor)
    if not unknown or known == 0:
        return known
    total = unknown[0]
    for factor in unknown[1:]:
        total = arith.muli(total, factor)
    return arith.muli(total, value(known)) if known != 1 else total


def floor_div(a: Index, b: Index) -> Index:
    """a // b of nonnegative indices."""
    if isinstance(b, int) and (b == 1 or isinstance(a, int)):
        return a // b if isinstance(a, int) else a
    return arith.divui(value(a), value(b))


def mod(a: Index, b: Index) -> Index:
    """a % b of nonnegative indices."""
    if isinstance(b, int) and (b == 1 or isinstance(a, int)):
        return a % b if isinstance(a, int) else 0
    return arith.remui(value(a), value(b))


def divided(a: Index, b: Index) -> tuple[Index, Index]:
    """a // b and a % b, without a division if b is 1 at run time."""
    if isinstance(b, int):
        return floor_div(a, b), mod(a, b)
    kind = ir.IndexType.get()
    branch = scf.IfOp(less(b, 2), [kind, kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([value(a), value(0)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([value(floor_div(a, b)), value(mod(a, b))])
    quotient, rest = branch.results
    return quotient, rest


def unravel(linear: Index, extents: Sequence[Index]) -> tuple[Index, ...]:
    """The indices of nested loops in the iteration with this row-major linear index."""
    if not extents:
        return ()
    indices = []
    for extent in reversed(extents[1:]):
        indices.append(mod(linear, extent))
        linear = floor_div(linear, extent)
    return (0 if extents[0] == 1 else linear, *reversed(indices))


def ceil_div(a: Index, b: Index) -> Index:
    """a / b, rounded up."""
    return floor_div(add(a, sub(b, 1)), b)


def round_up(a: Index, b: int) -> Index:
    """`a` rounded up to a multiple of `b`."""
    return mul(ceil_div(a, b), b)


def minimum(a: Index, b: Index) -> Index:
    """The smaller index."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return arith.minui(value(a), value(b))


def maximum(a: Index, b: Index) -> Index:
    """The larger index."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return arith.maxui(value(a), value(b))


def less(a: Index, b: Index) -> bool | ir.Value:
    """Whether 0 <= a < b, for b >= 0: a bool if both are constant, else an i1."""
    if isinstance(a, int) and isinstance(b, int):
        return 0 <= a < b
    return arith.cmpi(arith.CmpIPredicate.ult, value(a), value(b))


def and_(a: bool | ir.Value, b: bool | ir.Value) -> bool | ir.Value:
    """Whether both hold."""
    if isinstance(a, bool) or isinstance(b, bool):
        known, other = (a, b) if isinstance(a, bool) else (b, a)
        return other if known else False
    return arith.andi(a, b)


def or_(a: bool | ir.Value, b: bool | ir.Value) -> bool | ir.Value:
    """Whether at least one holds."""
    if isinstance(a, bool) or isinstance(b, bool):
        known, other = (a, b) if isinstance(a, bool) else (b, a)
        return known or other
    return arith.ori(a, b)


@overload
def select(condition: bool | ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value: ...


@overload
def select(condition: bool | ir.Value, then: Index, otherwise: Index) -> Index: ...


def select(condition: bool | ir.Value, then: Index, otherwise: Index) -> Index:
    """`then` if the condition holds, else `otherwise`: values of any type, or indices."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return arith.select(condition, value(then), value(otherwise))


Body = Callable[..., Sequence[ir.Value] | None]


LOOP_ANNOTATION = "llvm.loop_annotation"
UNROLLED = "#llvm.loop_annotation<unroll = <count = {} : i32>>"


def for_range(
    start: Index,
    stop: Index,
    step: Index,
    body: Body,
    init: Sequence[ir.Value] = (),
    unroll: int = 1,
) -> list[ir.Value]:
    """A loop; `body(i, *carried)` returns the next carried values. Returns the last ones.

    LLVM unrolls the body `unroll` times.
    """
    loop = scf.ForOp(value(start), value(stop), value(step), list(init))
    if unroll > 1:
        annotation = ir.Attribute.parse(UNROLLED.format(unroll))
        loop.operation.attributes[LOOP_ANNOTATION] = annotation
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(body(loop.induction_variable, *loop.inner_iter_args) or ()))
    return list(loop.results)


def shared_range(
    count: Index, work: Index, thread_work: int, body: Callable[[ir.Value], None]
) -> None:
    """An outermost parallel loop of `count` tasks of some `work` each.

    Tasks of at least `thread_work` work in all are worth a thread. If `work` is known at run time
    only, threads take parts of half of that or more.
    """
    if isinstance(work, int):
        parallel_range(count, max(1, thread_work // max(1, work)), body)
        return
    max_parts = floor_div(mul(count, work), thread_work)
    parts = maximum(minimum(mul(max_parts, 2), count), 1)

    def begin(part: Index) -> Index:
        return floor_div(mul(part, count), parts)

    def some(part: ir.Value) -> None:
        for_range(begin(part), begin(add(part, 1)), 1, body)

    parallel_range(parts, 1, some)


def parallel_range(count: Index, grain: int, body: Callable[[ir.Value], None]) -> None:
    """An outermost parallel loop of `count` tasks; `grain` of them are worth a thread."""
    loop = scf.ParallelOp([], [value(0)], [value(count)], [value(1)], [])
    loop.operation.attributes[GRAIN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), grain)
    block = loop.operation.regions[0].blocks.append(ir.IndexType.get())
    with ir.InsertionPoint(block):
        body(block.arguments[0])
        scf.ReduceOp([], 0)


def if_else(
    condition: bool | ir.Value,
    then: Callable[[], object],
    otherwise: Callable[[], object] | None = None,
) -> None:
    """A branch without results; for a constant condition, only the taken side is emitted."""
    if isinstance(condition, bool):
        taken = then if condition else otherwise
        if taken is not None:
            taken()
        return
    branch = scf.IfOp(condition, has_else=otherwise is not None)
    with ir.InsertionPoint(branch.then_block):
        then()
        scf.YieldOp([])
    if otherwise is not None:
        with ir.InsertionPoint(branch.else_block):
            otherwise()
            scf.YieldOp([])


def values_if(
    condition: bool | ir.Value,
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Sequence[ir.Value],
) -> list[ir.Value]:
    """The values of `then` if the condition holds, else others, which are known before."""
    if isinstance(condition, bool):
        return list(then() if condition else otherwise)
    branch = scf.IfOp(condition, [x.type for x in otherwise], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(list(then()))
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(list(otherwise))
    return list(branch.results)


def value_if(
    condition: bool | ir.Value, then: Callable[[], ir.Value], otherwise: ir.Value
) -> ir.Value:
    """The value of `then` if the condition holds, else another one, which is known before."""
    return values_if(condition, lambda: [then()], [otherwise])[0]


def least_fitting(
    count: Index,
    sizes: Sequence[int],
    emit: Callable[[int], object],
    otherwise: Callable[[], object] | None = None,
    unit: int = 1,
) -> None:
    """Emits `emit(size)` for the first of ascending sizes with `size * unit >= count`.

    If there is none, emits `otherwise()`, or `emit` of the last size if that is None.
    """
    if not sizes:
        assert otherwise is not None
        otherwise()
        return
    size, *larger = sizes
    fits = not larger and otherwise is None
    if_else(
        fits or less(count, size * unit + 1),
        lambda: emit(size),
        lambda: least_fitting(count, larger, emit, otherwise, unit),
    )


def flat_buffer(count: Index, element: ir.Type) -> ir.Value:
    """A 1-D buffer of `count` elements, which the caller frees."""
    if isinstance(count, int):
        return memref.alloc(ir.MemRefType.get([count], element), [], [])
    kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element)
    return memref.alloc(kind, [count], [])


@contextmanager
def scratch(count: Index, element: ir.Type) -> Iterator[ir.Value]:
    """A 1-D buffer of `count` elements that lives as long as the `with` block."""
    buffer = flat_buffer(count, element)
    yield buffer
    memref.dealloc(buffer)


def flatten(buffer: ir.Value) -> ir.Value:
    """The same memory as a 1-D buffer."""
    rank = ir.MemRefType(buffer.type).rank
    if rank == 1:
        return buffer
    element = ir.MemRefType(buffer.type).element_type
    shape = ir.MemRefType(buffer.type).shape
    dynamic = ir.ShapedType.get_dynamic_size()
    size = 1
    for extent in shape:
        size = dynamic if dynamic in (size, extent) else size * extent
    if rank == 0:
        return memref.expand_shape(
            ir.MemRefType.get([1], element), buffer, ir.ArrayAttr.get([]), [], [1]
        )
    index = ir.IntegerType.get_signless(64)
    group = ir.ArrayAttr.get([ir.IntegerAttr.get(index, i) for i in range(rank)])
    kind = ir.MemRefType.get([size], element)
    return memref.collapse_shape(kind, buffer, ir.ArrayAttr.get([group]))


def dim(buffer: ir.Value, position: int) -> Index:
    """The extent of one dim of a memref."""
    kind = ir.MemRefType(buffer.type)
    if kind.is_dynamic_dim(position):
        return memref.dim(buffer, value(position))
    return kind.get_dim_size(position)


def vector_type(lanes: int, element: ir.Type) -> ir.VectorType:
    """vector<lanes x element>."""
    return ir.VectorType.get([lanes], element)


def splat(x: float, lanes: int, element: ir.Type) -> ir.Value:
    """A constant vector with equal float elements."""
    kind = vector_type(lanes, element)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(element, x)))


def splat_integer(x: int, lanes: int, element: ir.Type) -> ir.Value:
    """A constant vector with equal integer elements."""
    kind = vector_type(lanes, element)
    return arith.constant(
        kind, ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, x))
    )


def splat_of(x: float, lanes: int, element: ir.Type) -> ir.Value:
    """A constant vector with equal elements of a float or integer type."""
    if isinstance(element, ir.FloatType):
        return splat(x, lanes, element)
    return splat_integer(int(x), lanes, element)


def mask(count: Index, lanes: int, certain: int = 0) -> ir.Value:
    """The mask of the lanes below `count`, which is at least `certain`."""
    bit = ir.IntegerType.get_signless(1)
    rest = vector.create_mask(vector_type(lanes - certain, bit), [value(sub(count, certain))])
    if not certain:
        return rest
    kind = vector_type(lanes, bit)
    every = arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(True)))
    return vector.insert_strided_slice(rest, every, [certain], [1])


def constant_mask(lanes: int, on: bool) -> ir.Value:
    """A mask with all lanes, or none."""
    bit = ir.IntegerType.get_signless(1)
    kind = ir.VectorType.get([lanes], bit)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(bit, on)))


def load(buffer: ir.Value, offset: Index, lanes: int, keep: ir.Value | None = None) -> ir.Value:
    """`lanes` elements from `offset` on; lanes outside of the mask `keep` are zero and unread."""
    element = ir.MemRefType(buffer.type).element_type
    kind = vector_type(lanes, element)
    if keep is None:
        return vector.load(kind, buffer, [value(offset)])
    zero = arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_attr(element)))
    return vector.maskedload(kind, buffer, [value(offset)], keep, zero)


def store(x: ir.Value, buffer: ir.Value, offset: Index, keep: ir.Value | None = None) -> None:
    """Stores a vector, or its lanes in the mask `keep`."""
    if keep is None:
        vector.store(x, buffer, [value(offset)])
    else:
        vector.maskedstore(buffer, [value(offset)], keep, x)


def zero_attr(element: ir.Type) -> ir.Attribute:
    """The zero of an element type."""
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, 0.0)
    return ir.IntegerAttr.get(element, 0)


def broadcast(x: ir.Value, lanes: int) -> ir.Value:
    """A scalar in every lane."""
    return vector.broadcast(vector_type(lanes, x.type), x)
