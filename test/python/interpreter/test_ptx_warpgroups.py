"""Products of warpgroups in PTX: where sides are in memory, and which thread has which sum."""

import re

import numpy as np
import pytest

from relax_mlir.interpreter.ptx import Buffer, PtxFault, parse, run

ROWS, COLUMNS, DEPTH, THREADS = 64, 128, 16, 128
SUMS = [f"%r{100 + i}" for i in range(ROWS * COLUMNS // THREADS)]
A_BYTES, B_BYTES = 8192, 16384
TEXT = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 shared[];
.visible .entry k(.param .u64 k_0, .param .u64 k_1)
{
.reg .b32 %r<200>;
.reg .b64 %rd<20>;
.reg .pred %p<9>;
ld.param.b64 %rd0, [k_0];
ld.param.b64 %rd1, [k_1];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 16;
mov.b64 %rd5, shared;
COPY
FENCE
bar.sync 0;
START
wgmma.fence.sync.aligned;
mov.b64 %rd10, FIRST;
mov.b64 %rd11, SECOND;
{
.reg .pred p;
setp.ne.b32 p, 1, 0;
wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {SUMS}, %rd10, %rd11, p, 1, 1, TA, TB;
}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd3, %r0, 256;
add.s64 %rd4, %rd1, %rd3;
STORE
ret;
}"""


def text(first: int, second: int, transposes: tuple[int, int] = (0, 0)) -> str:
    """A kernel that copies all of memory, and multiplies what two descriptors name."""
    copies = []
    for at in range(0, A_BYTES + B_BYTES, 16 * THREADS):
        copies.append(f"add.s64 %rd6, %rd0, %rd2;\nadd.s64 %rd7, %rd5, %rd2;\n"
                      f"ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd6+{at}];\n"
                      f"st.shared.v4.b32 [%rd7+{at}], {{%r1, %r2, %r3, %r4}};")  # fmt: skip
    parts = {
        "COPY": "\n".join(copies),
        "FENCE": "fence.proxy.async.shared::cta;",
        "START": "\n".join(f"mov.b32 {x}, 0;" for x in SUMS),
        "FIRST": str(first),
        "SECOND": str(second),
        "TA": str(transposes[0]),
        "TB": str(transposes[1]),
        "STORE": "\n".join(f"st.global.b32 [%rd4+{4 * i}], {x};" for i, x in enumerate(SUMS)),
        "SUMS": ", ".join(SUMS),
    }
    result = TEXT
    for name, part in parts.items():
        result = re.sub(rf"\b{name}\b", part, result)
    return result


def described(start: int, blocks: int, swizzle: int = 1) -> int:
    """A descriptor: its start, how far apart blocks are, and eight rows: 1024 bytes."""
    return start >> 4 | (blocks >> 4) << 16 | (1024 >> 4) << 32 | swizzle << 62


def run_kernel(ptx: str, memory: np.ndarray) -> np.ndarray:
    """The sums of each thread."""
    result = np.zeros((THREADS, len(SUMS)), np.float32)
    buffers = [Buffer.of(memory, False), Buffer.of(result, True)]
    addresses = [memory.ctypes.data, result.ctypes.data]
    run(parse(ptx), "k", (1, 1, 1), (THREADS, 1, 1), addresses, buffers, A_BYTES + B_BYTES)
    return result


def stored(side: np.ndarray, transposed: bool, k: int, size: int) -> np.ndarray:
    """Memory with a side from k on, of which rows have 64 elements; others are NaN."""
    memory = np.full(size // 2, np.nan, np.float16)
    for i in range(len(side)):
        for j in range(DEPTH):
            block, row, own = (i // 64, k + j, i % 64) if transposed else (0, i, k + j)
            unit = (own // 8) ^ (row % 8)
            memory[block * (64 * 64) + row * 64 + unit * 8 + own % 8] = side[i, j]
    return memory


@pytest.mark.parametrize("transposes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products(transposes: tuple[int, int]) -> None:
    random = np.random.default_rng()
    a, b = (random.standard_normal((n, DEPTH)).astype(np.float16) for n in (ROWS, COLUMNS))
    k = 16 * int(random.integers(4))
    parts = zip((a, b), transposes, (A_BYTES, B_BYTES), strict=True)
    sides = [stored(x, bool(flag), k, size) for x, flag, size in parts]
    named = [
        described(start + (128 * k if flag else 2 * k), 8192 if flag else 16)
        for start, flag in zip((0, A_BYTES), transposes, strict=True)
    ]
    sums = run_kernel(text(named[0], named[1], transposes), np.concatenate(sides))
    want = (a.astype("f8") @ b.astype("f8").T).astype("f4")
    for thread in range(THREADS):
        warp, lane = thread // 32, thread % 32
        for i in range(len(SUMS)):
            row = 16 * warp + (lane >> 2) + (8 if i % 4 >= 2 else 0)
            assert sums[thread, i] == want[row, 8 * (i // 4) + 2 * (lane & 3) + (i & 1)]


PLAIN = text(described(0, 16), described(A_BYTES, 16))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fence.proxy.async.shared::cta;", "", "stored without fence.proxy.async"),
        ("fence.proxy.async.shared::cta;\nbar.sync 0;", "bar.sync 0;\n"
         "fence.proxy.async.shared::cta;", "without a barrier between them"),
        ("wgmma.fence.sync.aligned;", "", "without wgmma.fence before"),
        ("p, 1, 1, 0, 0", "p, 1, -1, 0, 0", "matrices is not known"),
        ("setp.ne.b32 p, 1, 0", "setp.ne.b32 p, 0, 0", "does not add to its sums"),
        ("m64n128k16", "m64n64k16", "matrices is not known"),
        (f"mov.b64 %rd10, {described(0, 16)}", f"mov.b64 %rd10, {described(0, 16, 2)}",
         "a layout that is not known"),
        (f"mov.b64 %rd11, {described(A_BYTES, 16)}",
         f"mov.b64 %rd11, {described(A_BYTES + 1024, 16)}", "is beyond the"),
        ("mov.b64 %rd10,", "cvt.u64.u32 %rd10, %r0;\nadd.s64 %rd10, %rd10,",
         "name different matrices"),
        ("wgmma.commit_group", "st.shared.b32 [%rd5], %r0;\nwgmma.commit_group",
         "still reads"),
    ],
)  # fmt: skip
def test_what_a_device_would_not_do_is_refused(old: str, new: str, message: str) -> None:
    assert old in PLAIN
    with pytest.raises((PtxFault, ValueError), match=message):
        run_kernel(PLAIN.replace(old, new), np.zeros((A_BYTES + B_BYTES) // 2, np.float16))


def test_sums_are_none_before_the_wait() -> None:
    ptx = PLAIN.replace("wgmma.wait_group.sync.aligned 0;", "")
    sums = run_kernel(ptx, np.zeros((A_BYTES + B_BYTES) // 2, np.float16))
    assert np.isnan(sums).all()
