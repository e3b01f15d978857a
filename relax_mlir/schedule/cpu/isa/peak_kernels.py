"""Hand-scheduled kernels that multiply and add, or read memory, at full speed.

Twelve accumulators are independent: more than the latency times the throughput of multiply-adds on
known machines, and fewer than there are vector registers. If a target has tile registers for a
unit, there are four tiles of sums, as in other kernels. Memory is read in four interleaved streams,
since hardware prefetchers stop at the end of a page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from relax_mlir.bindings import arith, func, ir, vector
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import CallTirOp, TensorType
from relax_mlir.schedule.build.loops import (
    flatten,
    for_range,
    load,
    mul,
    parallel_range,
    scratch,
    store,
    vector_type,
)
from relax_mlir.target import Cpu

from . import amx
from .pointers import pointer

CHAINS = 12
STEPS = 1 << 14  # of each accumulator, in a task
TILE_STEPS = 1 << 11  # of each tile
READ_ROW = 1 << 18  # float32 that a task reads
STREAMS, VECTORS = 4, 2  # interleaved streams, and vectors of each


@dataclass(frozen=True)
class _Unit:
    """An instruction: the feature it needs, its types, its text, and operations of a 32-bit lane.

    `values` is the type of its factors and `total` that of its sums, `{lanes}` being 32-bit lanes;
    `tile` is the corresponding instruction on tile registers.
    """

    name: str
    feature: str
    values: str
    total: str
    text: str
    operations: int
    tile: str = ""


def _intrinsic(name: str) -> str:
    types = "({total}, {values}, {values}) -> {total}"
    return f'llvm.call_intrinsic "{name}"({{old}}, %v, %v) : {types}'


UNITS: Mapping[str, _Unit] = {
    "f32": _Unit(
        "fma",
        "",
        "vector<{lanes}xf32>",
        "vector<{lanes}xf32>",
        "vector.fma %v, %v, {old} : {total}",
        2,
    ),
    "bf16": _Unit(
        "vdpbf16ps",
        "avx512bf16",
        "vector<32xbf16>",
        "vector<16xf32>",
        _intrinsic("llvm.x86.avx512bf16.dpbf16ps.512"),
        4,
        amx.PAIRS,
    ),
    "int8": _Unit(
        "vpdpbusd",
        "avx512vnni",
        "vector<64xi8>",
        "vector<16xi32>",
        _intrinsic("llvm.x86.avx512.vpdpbusd.512"),
        8,
        amx.product_name(False, True),
    ),
}
"""Arithmetic whose peak is worth knowing."""


@dataclass(frozen=True)
class CpuPeaks:
    """See `Peaks`."""

    cpu: Cpu

    @property
    def units(self) -> list[str]:
        """See `Peaks`; a special instruction counts where it is 512 bits wide."""
        is_wide = self.cpu.vector_bytes == 64
        features = {name: unit.feature for name, unit in UNITS.items()}
        return [name for name, f in features.items() if not f or (is_wide and self.cpu.has(f))]

    @property
    def row_elements(self) -> int:
        """See `Peaks`."""
        return READ_ROW

    @property
    def lanes(self) -> int:
        """See `Peaks`."""
        return self.cpu.f32_lanes

    def instruction(self, unit: str) -> str:
        """See `Peaks`."""
        return UNITS[unit].tile if amx.has_tiles(self.cpu, unit) else UNITS[unit].name

    def operations(self, unit: str) -> float:
        """See `Peaks`."""
        sums = STEPS * CHAINS * self.lanes
        if amx.has_tiles(self.cpu, unit):
            sums = TILE_STEPS * len(amx.SUMS) * amx.ROWS * amx.LANES * amx.LANES
        return float(sums * UNITS[unit].operations)

    def computing(self, unit: str) -> str:
        """See `Peaks`."""
        is_tiled = amx.has_tiles(self.cpu, unit)
        kernel = _tile_kernel(UNITS[unit]) if is_tiled else _peak_kernel(UNITS[unit], self.lanes)
        return _module(kernel, self.lanes, self.lanes)

    def reading(self) -> str:
        """See `Peaks`."""
        return _module(_read_kernel(self.lanes), READ_ROW, self.lanes)


def _module(kernel: str, columns: int, lanes: int) -> str:
    """A module with a kernel, and a function that calls it."""
    with make_context(), ir.Location.unknown():
        module, f32 = ir.Module.parse(kernel), ir.F32Type.get()
        source, result = (TensorType.make(["n", size], f32) for size in (columns, lanes))
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([source.to_mlir()], [result.to_mlir()]))
        with ir.InsertionPoint(main.add_entry_block()):
            call = CallTirOp.build("kernel", [main.arguments[0]], [result])
            func.ReturnOp(list(call.outs))
        return str(module)


def _peak_kernel(unit: _Unit, lanes: int) -> str:
    row, memory = f"vector<{lanes}xf32>", f"memref<?x{lanes}xf32>"
    values, total = unit.values.format(lanes=lanes), unit.total.format(lanes=lanes)
    integer = "i32" in total
    zero, add = ("0", "arith.addi") if integer else ("0.0", "arith.addf")
    chains = range(CHAINS)
    steps = [
        f"%new{i} = {unit.text.format(old=f'%old{i}', values=values, total=total)}" for i in chains
    ]
    sums = [f"%sum{i + 1} = {add} %sum{i}, %end#{i} : {total}" for i in chains]
    return f"""
    func.func private @kernel(%x: {memory}, %y: {memory})
        attributes {{tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %steps = arith.constant {STEPS} : index
      %sum0 = arith.constant dense<{zero}> : {total}
      %n = memref.dim %x, %c0 : {memory}
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
        %row = vector.load %x[%i, %c0] : {memory}, {row}
        %v = vector.bitcast %row : {row} to {values}
        %end:{CHAINS} = scf.for %k = %c0 to %steps step %c1
            iter_args({", ".join(f"%old{i} = %sum0" for i in chains)})
            -> ({", ".join([total] * CHAINS)}) {{
          {chr(10).join(steps)}
          scf.yield {", ".join(f"%new{i}" for i in chains)} : {", ".join([total] * CHAINS)}
        }}
        {chr(10).join(sums)}
        %out = vector.bitcast %sum{CHAINS} : {total} to {row}
        vector.store %out, %y[%i, %c0] : {memory}, {row}
      }} {{tir.grain = 1 : i64}}
      return
    }}"""


def _tile_kernel(unit: _Unit) -> str:
    """Products of tiles whose rows all are the row of the task; a row of their sums is stored."""
    memory = f"memref<?x{amx.LANES}xf32>"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"""
            func.func private @kernel(%x: {memory}, %y: {memory})
                attributes {{tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64}} {{
              %c0 = arith.constant 0 : index
              %n = memref.dim %x, %c0 : {memory}
              return
            }}""")
        (block,) = module.body.operations[0].regions[0].blocks
        _, count, end = block.operations
        with ir.InsertionPoint(end):
            x, y = map(flatten, block.arguments)
            parallel_range(count.results[0], 1, lambda task: _tile_task(unit, x, y, task))
        return str(module)


def _tile_task(unit: _Unit, x: ir.Value, y: ir.Value, task: ir.Value) -> None:
    offset, left, right = mul(task, amx.LANES), amx.LEFT[0], amx.RIGHT[0]
    total = ir.Type.parse(unit.total.format(lanes=amx.LANES))
    element = ir.VectorType(total).element_type
    rows_of_sums = len(amx.SUMS) * amx.LANES
    with amx.configured(amx.ROWS, amx.ROWS), scratch(rows_of_sums, element) as rows:
        for tile in (left, right):
            amx.load_tile(tile, pointer(x, offset), 0)
        for tile in amx.SUMS:
            amx.clear_tile(tile)

        def step(_: ir.Value) -> None:
            for tile in amx.SUMS:
                amx.multiply_tiles(unit.tile, tile, left, right)

        for_range(0, TILE_STEPS, 1, step)
        for tile in amx.SUMS:
            amx.store_tile(tile, pointer(rows, tile * amx.LANES), 0)
        sums = [load(rows, tile * amx.LANES, amx.LANES) for tile in amx.SUMS]
        plus = arith.addi if isinstance(element, ir.IntegerType) else arith.addf
        result = vector.bitcast(vector_type(amx.LANES, ir.F32Type.get()), reduce(plus, sums))
        store(result, y, offset)


def _read_kernel(lanes: int) -> str:
    row, memory = f"vector<{lanes}xf32>", f"memref<?x{READ_ROW}xf32>"
    out = f"memref<?x{lanes}xf32>"
    offsets = [
        s * (READ_ROW // STREAMS) + v * lanes for s in range(STREAMS) for v in range(VECTORS)
    ]
    count = range(len(offsets))
    loads = [
        f"%at{i} = arith.addi %k, %offset{i} : index\n"
        f"%x{i} = vector.load %x[%i, %at{i}] : {memory}, {row}\n"
        f"%new{i} = arith.addf %old{i}, %x{i} : {row}"
        for i in count
    ]
    sums = [f"%sum{i + 1} = arith.addf %sum{i}, %end#{i} : {row}" for i in count]
    return f"""
    func.func private @kernel(%x: {memory}, %y: {out})
        attributes {{tir.prim_func, tir.scheduled, tir.num_outs = 1 : i64}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %step = arith.constant {VECTORS * lanes} : index
      %part = arith.constant {READ_ROW // STREAMS} : index
      {chr(10).join(f"%offset{i} = arith.constant {offsets[i]} : index" for i in count)}
      %sum0 = arith.constant dense<0.0> : {row}
      %n = memref.dim %x, %c0 : {memory}
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
        %end:{len(offsets)} = scf.for %k = %c0 to %part step %step
            iter_args({", ".join(f"%old{i} = %sum0" for i in count)})
            -> ({", ".join([row] * len(offsets))}) {{
          {chr(10).join(loads)}
          scf.yield {", ".join(f"%new{i}" for i in count)} : {", ".join([row] * len(offsets))}
        }}
        {chr(10).join(sums)}
        vector.store %sum{len(offsets)}, %y[%i, %c0] : {out}, {row}
      }} {{tir.grain = 1 : i64}}
      return
    }}"""
