"""Matrices in PTX: which thread has which element, by the manual, and asynchronous copies."""

import re

import ml_dtypes
import numpy as np
import pytest

from relax_mlir.interpreter.ptx import Buffer, PtxFault, parse, run

WARP = 32
TEXT = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_0, .param .u64 k_1)
{
.reg .pred %p<9>;
.reg .b32 %r<40>;
.reg .b64 %rd<9>;
.shared .align 16 .b8 own[2048];
ld.param.b64 %rd0, [k_0];
ld.param.b64 %rd1, [k_1];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 16;
add.s64 %rd3, %rd0, %rd2;
add.s64 %rd4, %rd1, %rd2;
mov.b64 %rd5, own;
add.s64 %rd5, %rd5, %rd2;
BODY
ret;
}"""
LOAD = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd3];\n"
STORE = "st.global.v4.b32 [%rd4], {%r5, %r6, %r7, %r8};"


def run_kernel(body: str, source: np.ndarray, target: np.ndarray, threads: int = WARP) -> None:
    """Runs a body on 16 bytes of a source for each thread, and as many of a target."""
    program = parse(TEXT.replace("BODY", body))
    buffers = [Buffer.of(source, False), Buffer.of(target, True)]
    addresses = [source.ctypes.data, target.ctypes.data]
    run(program, "k", (1, 1, 1), (threads, 1, 1), addresses, buffers)


def a_place(lane: int, i: int, width: int) -> tuple[int, int]:
    """Row and column of element i of A, `width` being the elements of a register."""
    group, own = lane >> 2, lane % 4
    is_upper = i < width or 2 * width <= i < 3 * width
    column = own * width + (i & (width - 1)) + (0 if i < 2 * width else 4 * width)
    return (group if is_upper else group + 8), column


def b_place(lane: int, i: int, width: int) -> tuple[int, int]:
    return lane % 4 * width + (i & (width - 1)) + (0 if i < width else 4 * width), lane >> 2


def c_place(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (0 if i < 2 else 8), lane % 4 * 2 + (i & 1)


@pytest.mark.parametrize("type_", ["f16", "bf16", "s8"])
def test_products_of_matrices(type_: str) -> None:
    dtype = np.dtype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8}[type_])
    width = 4 // dtype.itemsize
    depth, total = 8 * width, np.dtype("i4" if type_ == "s8" else "f4")
    random = np.random.default_rng()
    if type_ == "s8":
        a, b = (random.integers(-128, 128, s).astype(dtype) for s in ((16, depth), (depth, 8)))
        c = random.integers(-(2**31), 2**31, (16, 8)).astype(total)
    else:
        a, b = (random.standard_normal(s).astype(dtype) for s in ((16, depth), (depth, 8)))
        c = random.standard_normal((16, 8)).astype(total)
    source = np.zeros((3, WARP, 4), np.uint32)
    for lane in range(WARP):
        for i in range(4 * width):
            source[0, lane].view(dtype)[i] = a[a_place(lane, i, width)]
        for i in range(2 * width):
            source[1, lane].view(dtype)[i] = b[b_place(lane, i, width)]
        for i in range(4):
            source[2, lane].view(total)[i] = c[c_place(lane, i)]
    sums = "s32" if type_ == "s8" else "f32"
    body = (
        LOAD
        + f"""
ld.global.v2.b32 {{%r11, %r12}}, [%rd3+512];
ld.global.v4.b32 {{%r21, %r22, %r23, %r24}}, [%rd3+1024];
mma.sync.aligned.m16n8k{depth}.row.col.{sums}.{type_}.{type_}.{sums}
  {{%r5, %r6, %r7, %r8}}, {{%r1, %r2, %r3, %r4}}, {{%r11, %r12}}, {{%r21, %r22, %r23, %r24}};
{STORE}"""
    )
    target = np.zeros((WARP, 4), total)
    run_kernel(body, source, target)
    product = a.astype("f8") @ b.astype("f8")
    if type_ == "s8":
        want = (product.astype("i8") + c).astype(total)  # modulo 2^32
    else:
        want = (product + c).astype(total)
    for lane in range(WARP):
        for i in range(4):
            assert target[lane, i] == want[c_place(lane, i)]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_loaded(count: int, trans: str) -> None:
    """Lane 8 j + i has the address of row i of matrix j: here row 8 j + i of what is stored."""
    rows = np.arange(WARP * 8, dtype=np.uint16).reshape(4, 8, 8)
    loaded = ", ".join(f"%r{5 + i}" for i in range(count))
    rest = "".join(f"mov.b32 %r{5 + i}, 0;\n" for i in range(count, 4))
    body = (
        LOAD
        + f"""st.shared.v4.b32 [%rd5], {{%r1, %r2, %r3, %r4}};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{loaded}}}, [%rd5];
{rest}{STORE}"""
    )
    target = np.zeros((WARP, 4), np.uint32)
    run_kernel(body, rows.view(np.uint32), target)
    for lane in range(WARP):
        for j in range(count):
            row, column = lane // 4, 2 * (lane % 4)
            matrix = rows[j].T if trans else rows[j]
            want = [matrix[row, column], matrix[row, column + 1]]
            assert target[lane, j : j + 1].view(np.uint16).tolist() == want


COPY = "cp.async.cg.shared.global [%rd5], [%rd3], 16;\ncp.async.commit_group;\n"
WAIT = "cp.async.wait_group 0;\n"
READ = "ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%rd5];\n" + STORE
OTHER = "xor.b64 %rd6, %rd5, 16;\nld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%rd6];\n" + STORE


def test_copies() -> None:
    """Thread t copies t mod 9 elements; what is beyond is zero."""
    source = np.arange(1, 8 * WARP + 1).astype(np.uint16).reshape(WARP, 8)
    target = np.zeros((WARP, 8), np.uint16)
    size = "rem.u32 %r9, %r0, 9;\nshl.b32 %r9, %r9, 1;\n"
    run_kernel(size + COPY.replace("16;", "16, %r9;") + WAIT + READ, source, target)
    for lane in range(WARP):
        kept = lane % 9
        assert target[lane].tolist() == [*source[lane, :kept], *[0] * (8 - kept)]


def test_copies_of_an_earlier_group_are_complete_first() -> None:
    source, target = np.arange(8 * WARP, dtype=np.uint16), np.zeros(8 * WARP, np.uint16)
    later = COPY.replace("[%rd5]", "[%rd5+1024]")
    run_kernel(COPY + later + WAIT.replace("0", "1") + READ, source, target)
    np.testing.assert_array_equal(target, source)
    early = READ.replace("[%rd5]", "[%rd5+1024]")
    with pytest.raises(PtxFault, match="before a copy to it is complete"):
        run_kernel(COPY + later + WAIT.replace("0", "1") + early, source, target)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (COPY + READ, "before a copy to it is complete"),
        (COPY.replace("cp.async.commit_group;", "") + WAIT + READ, "before a copy to it is"),
        (COPY + "st.shared.b32 [%rd5], %r0;", "before a copy to it is complete"),
        (COPY + WAIT + OTHER, "without a barrier between them"),
        (COPY + "bar.sync 0;" + WAIT + OTHER, "without a barrier between them"),
        (COPY.replace("[%rd5]", "[%rd5+8]"), "an address is no multiple of 16"),
        (COPY.replace("[%rd3]", "[%rd3+8]"), "an address is no multiple of 16"),
        (COPY.replace("[%rd3]", "[%rd3+512]"), "is in no buffer"),
        (COPY.replace("[%rd5]", "[%rd5+2048]"), "is beyond the 2048 bytes of a group"),
        (COPY.replace("16;", "16, 17;"), "copies 17 of 16 bytes"),
        (COPY.replace("16;", "8;"), "a copy has 8 bytes, not 16"),
        (COPY.replace("cg", "ca"), "a copy is not known"),
        ("setp.lt.u32 %p1, %r0, 31;\n@%p1 bra $L1;\nbar.warp.sync -1;\n$L1:",
         "a barrier that 31 threads of a warp do not reach"),
        ("setp.lt.u32 %p1, %r0, 31;\n@%p1 bra $L1;\n"
         "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%rd5];\n$L1:",
         "threads of a warp do not run"),
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r5}, [%rd5];", "matrices is not known"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r5}, {%r1}, {%r1}, {%r1};",
         "a product of matrices is not known"),
    ],
)  # fmt: skip
def test_what_a_device_would_not_do_is_refused(body: str, message: str) -> None:
    with pytest.raises(PtxFault, match=re.escape(message)):
        run_kernel(body, np.zeros(8 * WARP, np.uint16), np.zeros(8 * WARP, np.uint16))


def test_reads_before_a_copy_need_a_barrier() -> None:
    """Another thread may copy to what a thread still reads."""
    stored = "mov.b32 %r5, 7;\nst.shared.b32 [%rd5], %r5;\nbar.sync 0;\n"
    read = "xor.b64 %rd6, %rd5, 16;\nld.shared.b32 %r5, [%rd6];\n"
    arrays = np.zeros(8 * WARP, np.uint16), np.zeros(8 * WARP, np.uint16)
    run_kernel(stored + read + "bar.sync 0;\n" + COPY + WAIT, *arrays)
    with pytest.raises(PtxFault, match="without a barrier between them"):
        run_kernel(stored + read + COPY + WAIT, *arrays)


def test_barriers_of_warps_are_none_of_groups() -> None:
    """Threads of another warp see nothing by them."""
    body = "st.shared.b32 [%rd5], %r0;\nBARRIER\nxor.b64 %rd6, %rd5, 512;\n"
    body += "ld.shared.b32 %r5, [%rd6];\n"
    arrays = np.zeros(16 * WARP, np.uint16), np.zeros(16 * WARP, np.uint16)
    run_kernel(body.replace("BARRIER", "bar.sync 0;"), *arrays, threads=2 * WARP)
    with pytest.raises(PtxFault, match="without a barrier between them"):
        run_kernel(body.replace("BARRIER", "bar.warp.sync -1;"), *arrays, threads=2 * WARP)
