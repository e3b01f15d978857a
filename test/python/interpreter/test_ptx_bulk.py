"""Copies of boxes of tensors in PTX, and the barriers that count them."""

import numpy as np
import pytest

from relax_mlir.interpreter.ptx import Buffer, PtxFault, parse, run
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

THREADS, ROWS, ROW = 64, 16, 64
"""Threads of a group, and the rows and elements of a box, of which a thread has 16."""
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
TEXT = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 k_0[128], .param .u64 k_1, .param .u32 k_2, .param .u32 k_3)
{
.reg .b32 %r<40>;
.reg .b64 %rd<20>;
.reg .pred %p<9>;
.shared .align 1024 .b8 own[2048];
.shared .align 8 .b8 full[8];
mov.b64 %rd0, k_0;
cvta.param.u64 %rd0, %rd0;
ld.param.b64 %rd1, [k_1];
ld.param.b32 %r1, [k_2];
ld.param.b32 %r2, [k_3];
mov.u32 %r0, %tid.x;
mov.b64 %rd2, own;
mov.b64 %rd3, full;
setp.ne.b32 %p0, %r0, 0;
@%p0 bra $MADE;
mov.b32 %r3, 1;
mbarrier.init.shared.b64 [%rd3], %r3;
fence.mbarrier_init.release.cluster;
$MADE:
bar.sync 0;
@%p0 bra $BEGUN;
mov.b32 %r4, 2048;
mbarrier.arrive.expect_tx.shared.b64 %rd4, [%rd3], %r4;
cvta.shared.u64 %rd5, %rd2;
cvta.to.shared::cluster.u64 %rd5, %rd5;
KIND [%rd5], [%rd0, {%r2, %r1}], [%rd3];
$BEGUN:
mov.b32 %r5, 0;
$AGAIN:
mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], %r5;
@!%p1 bra $AGAIN;
mul.wide.u32 %rd6, %r0, 32;
add.s64 %rd7, %rd2, %rd6;
add.s64 %rd8, %rd1, %rd6;
ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%rd7];
ld.shared.v4.b32 {%r14, %r15, %r16, %r17}, [%rd7+16];
st.global.v4.b32 [%rd8], {%r10, %r11, %r12, %r13};
st.global.v4.b32 [%rd8+16], {%r14, %r15, %r16, %r17};
ret;
}""".replace("KIND", COPY)


def copied(x: np.ndarray, row: int, column: int, text: str = TEXT) -> np.ndarray:
    """Memory of a group after a box of a tensor was copied there."""
    result = np.zeros((ROWS, ROW), np.uint16)
    made = TensorMap(x.ctypes.data, x.shape, x.strides[:-1], (ROWS, ROW), x)
    buffers = [Buffer.of(made.memory, False), Buffer.of(result, True)]
    words = [made, result.ctypes.data, row % (1 << 32), column % (1 << 32)]
    run(parse(text), "k", (1, 1, 1), (THREADS, 1, 1), words, buffers)
    return result


def aligned(rows: int, columns: int, pitch: int) -> np.ndarray:
    """A matrix at a multiple of 16 bytes."""
    memory = np.random.default_rng().integers(1, 1 << 16, rows * pitch + 8, np.uint16)
    first = -memory.ctypes.data % 16 // 2
    return memory[first : first + rows * pitch].reshape(rows, pitch)[:, :columns]


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 8), (5, 40), (-2, -7), (30, 0), (0, 100)])
def test_boxes(row: int, column: int) -> None:
    """Units of 16 bytes are at their index xor the row; beyond the tensor there are zeros."""
    x = aligned(29, 77, 80)
    got = copied(x, row, column)
    for i in range(ROWS):
        for j in range(ROW):
            r, c = row + i, column + j
            want = x[r, c] if 0 <= r < 29 and 0 <= c < 77 else 0
            assert got[i, (j // 8 ^ i % 8) * 8 + j % 8] == want


COPY = next(line for line in TEXT.splitlines() if line.startswith(COPY))
WAIT = "mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], %r5;\n@!%p1 bra $AGAIN;"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mbarrier.init.shared.b64 [%rd3], %r3;", "", "there is no barrier at"),
        ("mov.b32 %r3, 1;", "mov.b32 %r3, 0;", "a barrier of 0 arrivals"),
        ("mov.b32 %r3, 1;", "mov.b32 %r3, 2;", "never complete"),
        ("fence.mbarrier_init.release.cluster;", "", "without fence.mbarrier_init"),
        ("$MADE:\nbar.sync 0;", "$MADE:", "that another thread made"),
        ("mov.b32 %r4, 2048;", "mov.b32 %r4, 2047;", "never complete"),
        ("mov.b32 %r4, 2048;", "mov.b32 %r4, 4096;", "never complete"),
        ("mbarrier.arrive.expect_tx.shared.b64 %rd4, [%rd3], %r4;", "", "never complete"),
        (COPY, "", "never complete"),
        (COPY, COPY.replace("[%rd5]", "[%rd5+64]"), "no multiple of 128 bytes"),
        (COPY, COPY.replace("[%rd5]", "[%rd5+1024]"), "is beyond the"),
        (COPY, COPY.replace("[%rd0,", "[%rd1,"), "no tensor map"),
        (COPY, COPY.replace(".tile", ".im2col"), "a copy is not known"),
        (COPY, COPY.replace("2d", "3d"), "other coordinates than dims"),
        (COPY, COPY + "\nst.shared.b32 [%rd2], %r0;", "before a copy to it is complete"),
        (COPY, COPY + "\nst.shared.b32 [%rd3], %r0;", "accesses a barrier as memory"),
        (WAIT, "", "before a copy to it is complete"),
        (WAIT, WAIT.replace("%r5", "1"), "before a copy to it is complete"),
        (WAIT, "setp.eq.b32 %p2, %r0, 7;\n@%p2 bra $SKIPS;\n" + WAIT + "\n$SKIPS:",
         "before a copy to it is complete|without a wait for its barrier"),
        (WAIT, "@%p0 bra $SKIPS;\n" + WAIT + "\n$SKIPS:", "before a copy to it is complete"),
        (WAIT, WAIT + "\nst.shared.b32 [%rd2], %r0;", "writes what another thread accesses"),
        (WAIT, "ret;", "while a copy to its memory is on its way"),
    ],
)  # fmt: skip
def test_what_a_device_would_not_do_is_refused(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(PtxFault, match=message):
        copied(aligned(29, 77, 80), 0, 0, TEXT.replace(old, new))


def test_threads_that_meet_one_who_waited() -> None:
    """A barrier of the group tells all of them."""
    x = aligned(29, 77, 80)
    text = TEXT.replace(WAIT, f"@%p0 bra $SKIPS;\n{WAIT}\n$SKIPS:\nbar.sync 0;")
    np.testing.assert_array_equal(copied(x, 1, 2, text), copied(x, 1, 2))


@pytest.mark.parametrize(
    ("shift", "pitch", "box", "message"),
    [(4, 80, (16, 64), "no multiple of 16 bytes"), (0, 77, (16, 64), "no multiple of 16 bytes"),
     (0, 80, (16, 32), "boxes"), (0, 80, (257, 64), "boxes"), (0, 80, (64,), "dims")],
)  # fmt: skip
def test_maps_that_no_device_takes(
    shift: int, pitch: int, box: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TensorMap(1 << 20 | shift, (29, 77), (2 * pitch,), box)


def test_maps_are_passed_for_parameters_that_are_maps() -> None:
    with pytest.raises(PtxFault, match="is passed for k_0"):
        run(parse(TEXT), "k", (1, 1, 1), (THREADS, 1, 1), [0, 0, 0, 0], [])
