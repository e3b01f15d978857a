"""Intel's tile registers (AMX): eight of up to 16 rows of 64 bytes, and products of them.

    sums[m, n] += sum over k, i of left[m, k, i] * right[k, n, i]

Sums have 32 bits; each of up to 16 lanes k is a pair of bf16 elements, or four 8-bit integers, so
that a tile of the right side is part of a panel of packed weights. Four tiles are for sums, two by
two, and two for each side. A thread configures the tiles before it uses them, and releases them
afterwards, so that a context switch has less to save.

Source: Intel intrinsics guide; LLVM `IntrinsicsX86.td`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import Index, scratch, store, value, vector_type
from relax_mlir.target import Cpu

from .instructions import CONFIGURE_TILES
from .pointers import pointer

ROWS, LANES, LANE_BYTES = 16, 16, 4
"""Rows of a tile, its columns of 32 bits, and their bytes."""
PAIRS = "tdpbf16ps"
"""The instruction that multiplies bf16 elements."""
SUMS, LEFT, RIGHT = (0, 1, 2, 3), (4, 5), (6, 7)
TILES = "tir.tiles"
"""The tile operands of an instruction, repeated as an attribute."""
_CONFIGURATION, _ROW_BYTES, _ROW_COUNTS = 64, 16, 48


def has_tiles(cpu: Cpu, unit: str) -> bool:
    """Whether a target multiplies tiles of "bf16" or "int8" elements."""
    return cpu.vector_bytes == 64 and cpu.has("amx-tile") and cpu.has(f"amx-{unit}")


def product_name(left: bool, right: bool) -> str:
    """The instruction that multiplies 8-bit integers, of which either side may be signed."""
    return "tdpb" + "us"[left] + "us"[right] + "d"


@contextmanager
def configured(upper: Index, lower: Index, steps: int = LANES) -> Iterator[None]:
    """Within the `with` block, tiles have `upper` or `lower` rows, 1 to 16 of either.

    The first two of `SUMS` and the first of `LEFT` have `upper` rows, the others `lower`; left
    tiles have `steps` lanes along k.
    """
    fixed = [0] * _CONFIGURATION
    fixed[0] = 1  # the only palette there is
    for tile in (*SUMS, *LEFT, *RIGHT):
        width = steps if tile in LEFT else LANES
        fixed[_ROW_BYTES + 2 * tile] = width * LANE_BYTES
        fixed[_ROW_COUNTS + tile] = steps
    constants = _constant(fixed, 8)
    for rows, tiles in ((upper, (*SUMS[:2], LEFT[0])), (lower, (*SUMS[2:], LEFT[1]))):
        own = [byte - _ROW_COUNTS in tiles for byte in range(_CONFIGURATION)]
        count = arith.index_cast(_integer(8), value(rows))
        counts = vector.broadcast(constants.type, count)
        constants = arith.select(_constant(own, 1), counts, constants)
    with scratch(_CONFIGURATION, _integer(8)) as configuration:
        store(constants, configuration, 0)
        llvm.call_intrinsic(None, CONFIGURE_TILES, [pointer(configuration, 0)], [], [])
        yield
        _call("tilerelease")


def clear_tile(tile: int) -> None:
    """Sets a tile to zero."""
    _call("tilezero", (tile,))


def load_tile(tile: int, address: ir.Value, stride: Index) -> None:
    """Loads rows that are `stride` bytes apart."""
    _call("tileloadd64", (tile,), address, _bytes(stride))


def store_tile(tile: int, address: ir.Value, stride: Index) -> None:
    """Stores rows `stride` bytes apart."""
    _call("tilestored64", (tile,), address, _bytes(stride))


def multiply_tiles(name: str, sums: int, left: int, right: int) -> None:
    """Adds a product to `sums`: "tdpbf16ps", or one of `product_name`."""
    _call(name, (sums, left, right))


def _call(name: str, tiles: Sequence[int] = (), *operands: ir.Value) -> None:
    constants = [arith.constant(_integer(8), tile) for tile in tiles]
    call = llvm.CallIntrinsicOp(None, f"llvm.x86.{name}", [*constants, *operands], [], [])
    # MLIR merges blocks that differ only in operands, but tile operands have to be constants.
    call.operation.attributes[TILES] = ir.DenseI64ArrayAttr.get(list(tiles))


def _bytes(stride: Index) -> ir.Value:
    return arith.index_cast(_integer(64), value(stride))


def _constant(constants: list[int] | list[bool], bits: int) -> ir.Value:
    kind = vector_type(len(constants), _integer(bits))
    elements = [ir.IntegerAttr.get(_integer(bits), int(element)) for element in constants]
    return arith.constant(kind, ir.DenseElementsAttr.get(elements, kind))


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)
