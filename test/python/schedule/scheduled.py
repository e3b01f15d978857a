"""Schedules and builds tensor programs given as text, and runs them on NumPy arrays."""

import ctypes
import mmap
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from relax_mlir.analysis.vectorization import assert_no_scalar_inner_loop
from relax_mlir.bindings import ir
from relax_mlir.codegen import building
from relax_mlir.dialects import make_context
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.schedule.backend import schedule
from relax_mlir.schedule.backends import backend_of
from relax_mlir.schedule.nests.short_rows import MAX_VECTORS, MAX_VECTORS_NARROW
from relax_mlir.target import Target, lacking
from relax_mlir.transforms.legalize_ops import LegalizeOps

TARGET = "native"
HERE = Target.parse(TARGET)


def runnable(*names: str) -> list[str]:
    """Those of the targets that this machine runs."""
    targets = {name: Target.parse(name) for name in names}
    return [
        name
        for name, target in targets.items()
        if target.host.arch == HERE.host.arch and not lacking(target.host.needs)
    ]


TARGETS = runnable("native", "x86-64", "x86-64-v3", "x86-64-v4", "aarch64")
# With tile registers where there are some, and with vectors alone.
NATIVE = ["native", "native+-amx-tile"] if HERE.host.has("amx-tile") else ["native"]
# What such a CPU makes of bf16 when its tile registers are hidden, on machines that can run it.
HIDDEN = "sapphirerapids+-amx-tile+-avx512fp16+-avxvnni"
if "xeon" not in HERE.host.traits:
    NATIVE += runnable(HIDDEN)
# What Zen 5 is made, for machines that have all of its instructions that count.
ZEN5 = runnable("znver5+-avxvnni")
# A nest over rows has a loop for each count of vectors, whole or not, and one for long rows. If
# long rows prefetch the next one, there is one more, for a single row.
LOOPS_OVER_ROWS = 1 + 2 * {64: MAX_VECTORS, 32: MAX_VECTORS_NARROW, 16: 0}[HERE.host.vector_bytes]
if HERE.host.has("amx-tile"):
    # The runtime, which kernels here do without, asks Linux for tile registers: arch_prctl(2).
    ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18
    ctypes.CDLL(None).syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


class Built:
    """A scheduled kernel: its text, the rule that took it, and the machine code.

    With `in_order`, rows may be read element by element, as they are where a gather costs more.
    """

    def __init__(
        self, text: str, fuse: bool = True, target: str = TARGET, in_order: bool = False
    ) -> None:
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            (prim_func,) = prim_funcs(module.operation)
            self.name = prim_func.name
            self.rule = schedule(prim_func, backend_of(Target.parse(target)), fuse)
            module.operation.verify()
            if not in_order:
                assert_no_scalar_inner_loop(module.operation)
            self.text = str(module)
            kernel = ir.SymbolTable(module.operation)[self.name]
            kernel.operation.attributes["sym_visibility"] = ir.StringAttr.get("public")
            with building(Target.parse(target)) as build:
                data = b"".join(build.finish(module, [self.name]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "built.so")
            path.write_bytes(data)
            self._library = ctypes.CDLL(str(path))

    def __call__(self, *arguments: np.ndarray | int) -> None:
        """Runs the kernel: inputs, outputs, then index arguments."""
        flat: list[object] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                assert argument.flags.c_contiguous
                pointer = ctypes.c_void_p(argument.ctypes.data)
                strides = [stride // argument.itemsize for stride in argument.strides]
                flat += [pointer, pointer, *map(ctypes.c_int64, [0, *argument.shape, *strides])]
            else:
                flat.append(ctypes.c_int64(argument))
        function = getattr(self._library, self.name)
        function.restype = None
        function(*flat)


@cache
def built(text: str, fuse: bool = True, target: str = TARGET, in_order: bool = False) -> Built:
    """The kernel of a program, built once for all tests."""
    return Built(text, fuse, target, in_order)


def guarded(shape: Sequence[int], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """An output array, and the memory around it, which a kernel must not change."""
    count = int(np.prod(shape))
    memory = np.full((count + 128) * np.dtype(dtype).itemsize, 0xA5, np.uint8).view(dtype)
    return memory[64 : 64 + count].reshape(shape), memory


def before_a_border(array: np.ndarray) -> np.ndarray:
    """A copy whose last element is the last one before an inaccessible page."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.uint8)
    no_access = 0
    libc = ctypes.CDLL(None, use_errno=True)
    border = ctypes.c_void_p(memory.ctypes.data + size)
    assert libc.mprotect(border, ctypes.c_size_t(mmap.PAGESIZE), no_access) == 0
    copy = memory[size - array.nbytes : size].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def assert_guarded(memory: np.ndarray) -> None:
    """Checks that nothing around the output was written."""
    raw = memory.view(np.uint8)
    edge = 64 * memory.itemsize
    assert (raw[:edge] == 0xA5).all()
    assert (raw[-edge:] == 0xA5).all()


def program(ins: Sequence[str], outs: Sequence[str], body: str, symbols: Sequence[str] = ()) -> str:
    """The text of a tensor program: inputs `%x0`.., outputs `%y0`.., symbols `%name`.

    `body` ends by naming what is returned: `return %a, %b`.
    """
    arguments = [f"%x{i}: {kind}" for i, kind in enumerate(ins)]
    arguments += [f"%y{i}: {kind}" for i, kind in enumerate(outs)]
    arguments += [f'%{name}: index {{tir.sym = "{name}"}}' for name in symbols]
    *lines, last = body.strip().splitlines()
    values = last.split("return", 1)[1].strip()
    kinds = ", ".join(outs)
    return "\n".join([
        f"func.func private @kernel({', '.join(arguments)}) -> ({kinds})",
        f"    attributes {{tir.prim_func, tir.num_outs = {len(outs)} : i64}} {{",
        *lines,
        f"  return {values} : {kinds}",
        "}",
    ])  # fmt: skip


def generic(
    result: str,
    ins: Sequence[tuple[str, str, str]],
    outs: Sequence[tuple[str, str, str]],
    iterators: str,
    block: str,
) -> str:
    """A `linalg.generic`; operands are (value, type, map), iterators a string of `p` and `r`."""
    maps = ", ".join(f"affine_map<{map_}>" for _, _, map_ in [*ins, *outs])
    names = {"p": '"parallel"', "r": '"reduction"'}
    kinds = ", ".join(names[kind] for kind in iterators)
    operands = []
    for word, group in (("ins", ins), ("outs", outs)):
        if group:
            values, types = (", ".join(item[i] for item in group) for i in (0, 1))
            operands.append(f"{word}({values} : {types})")
    results = ", ".join(kind for _, kind, _ in outs)
    return (
        f"{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"{' '.join(operands)} {{\n{block}\n}} -> {results if len(outs) == 1 else f'({results})'}"
    )


@cache
def built_from_graph(text: str, fuse: bool = True, target: str = TARGET) -> Built:
    """The kernel of a module's only operator."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        LegalizeOps().run(module.operation)
        (prim_func,) = prim_funcs(module.operation)
        text = str(prim_func.op)
    return Built(text, fuse, target)
