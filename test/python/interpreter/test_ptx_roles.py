"""Threads of which some copy and others read, in PTX: barriers in memory alone say when."""

import numpy as np
import pytest

from relax_mlir.interpreter.ptx import Buffer, PtxFault, parse, run
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

ROUNDS, ROW = 5, 64
"""Boxes of one row that go to the same memory, in turn; a thread reads 4 bytes of each."""
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
TEXT = f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 k_0[128], .param .u64 k_1)
{{
.reg .b32 %r<40>;
.reg .b64 %rd<20>;
.reg .pred %p<9>;
.shared .align 1024 .b8 own[128];
.shared .align 8 .b8 bars[16];
.shared .align 8 .b8 sums[256];
mov.b64 %rd0, k_0;
cvta.param.u64 %rd0, %rd0;
ld.param.b64 %rd1, [k_1];
mov.u32 %r0, %tid.x;
mov.b64 %rd2, own;
mov.b64 %rd3, bars;
mov.b64 %rd4, sums;
setp.ne.b32 %p0, %r0, 0;
@%p0 bra $MADE;
mbarrier.init.shared.b64 [%rd3], 1;
mbarrier.init.shared.b64 [%rd3+8], 32;
fence.mbarrier_init.release.cluster;
$MADE:
bar.sync 0;
mov.b32 %r1, 0;
setp.lt.u32 %p1, %r0, 32;
@%p1 bra $READS;
setp.ne.b32 %p2, %r0, 32;
@%p2 bra $END;
$COPIES:
and.b32 %r2, %r1, 1;
xor.b32 %r2, %r2, 1;
$EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [%rd3+8], %r2;
@!%p3 bra $EMPTY;
mbarrier.arrive.expect_tx.shared.b64 %rd5, [%rd3], 128;
cvta.shared.u64 %rd6, %rd2;
cvta.to.shared::cluster.u64 %rd6, %rd6;
{COPY} [%rd6], [%rd0, {{0, %r1}}], [%rd3];
add.u32 %r1, %r1, 1;
setp.lt.u32 %p4, %r1, {ROUNDS};
@%p4 bra $COPIES;
bra $END;
$READS:
mul.wide.u32 %rd7, %r0, 4;
add.s64 %rd8, %rd2, %rd7;
add.s64 %rd9, %rd1, %rd7;
add.s64 %rd10, %rd4, %rd7;
xor.b32 %r8, %r0, 31;
mul.wide.u32 %rd11, %r8, 4;
add.s64 %rd11, %rd4, %rd11;
$READ:
and.b32 %r2, %r1, 1;
$FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [%rd3], %r2;
@!%p3 bra $FULL;
ld.shared.b32 %r3, [%rd8];
mbarrier.arrive.shared.b64 %rd5, [%rd3+8];
bar.sync 1, 32;
st.shared.b32 [%rd10], %r3;
bar.sync 1, 32;
ld.shared.b32 %r4, [%rd11];
st.global.b32 [%rd9], %r4;
add.s64 %rd9, %rd9, 128;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p4, %r1, {ROUNDS};
@%p4 bra $READ;
$END:
ret;
}}"""


def reversed_rows(x: np.ndarray, text: str = TEXT) -> np.ndarray:
    """The words of each row, the last one first; units of a row are where the swizzle has them."""
    result = np.zeros((ROUNDS, ROW), np.uint16)
    made = TensorMap(x.ctypes.data, x.shape, x.strides[:-1], (1, ROW), x)
    buffers = [Buffer.of(made.memory, False), Buffer.of(result, True)]
    run(parse(text), "k", (1, 1, 1), (64, 1, 1), [made, result.ctypes.data], buffers)
    return result


def rows() -> np.ndarray:
    memory = np.random.default_rng().integers(1, 1 << 16, ROUNDS * ROW + 8, np.uint16)
    first = -memory.ctypes.data % 16 // 2
    return memory[first : first + ROUNDS * ROW].reshape(ROUNDS, ROW)


def test_memory_is_used_again() -> None:
    x = rows()
    np.testing.assert_array_equal(reversed_rows(x).view("u4"), x.view("u4")[:, ::-1])


ARRIVE = "mbarrier.arrive.shared.b64 %rd5, [%rd3+8];"
READ = "ld.shared.b32 %r3, [%rd8];"
FULL = "mbarrier.try_wait.parity.shared.b64 %p3, [%rd3], %r2;\n@!%p3 bra $FULL;"
EMPTY = "mbarrier.try_wait.parity.shared.b64 %p3, [%rd3+8], %r2;\n@!%p3 bra $EMPTY;"
MEET = "bar.sync 1, 32;"
NEVER, AGAIN = "is never complete", "copies to what others read without a barrier"
EARLY = "before a copy to it is complete|without a wait for its barrier|that no thread wrote"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (EMPTY, "", "more than 1 threads arrive"),
        (EMPTY, EMPTY.replace("%r2", "0"), f"{NEVER}|{EARLY}"),
        ("xor.b32 %r2, %r2, 1;", "", NEVER),
        (FULL, "", EARLY),
        (FULL, FULL.replace("%r2", "1"), EARLY),
        (ARRIVE, "", NEVER),
        ("[%rd3+8], 32;", "[%rd3+8], 1;", NEVER),
        (f"{ARRIVE}\n{MEET}", f"setp.eq.b32 %p5, %r0, 7;\n@%p5 {ARRIVE}\n{MEET}", NEVER),
        (f"{READ}\n{ARRIVE}", f"{ARRIVE}\n{READ}", f"{AGAIN}|{EARLY}"),
        (f"{ARRIVE}\n{MEET}\nst", f"{ARRIVE}\nst", "without a barrier between"),
        (f"{MEET}\nld", "ld", "without a barrier between"),
        (f"{MEET}\nld", "bar.sync 2, 32;\nld", "barriers of several names"),
        (f"{MEET}\nld", "bar.sync 0;\nld", NEVER),
        (f"{MEET}\nld", "bar.sync 1, 64;\nld", NEVER),
        (f"{MEET}\nld", "bar.arrive 1, 32;\nld", "a barrier is not known"),
        (f"{MEET}\nld", "bar.sync 16, 32;\nld", "a barrier of the name 16"),
        # Before the others meet, but not with them.
        ("$COPIES:\nand", "st.shared.b32 [%rd4], %r1;\n$COPIES:\nand", "without a barrier between"),
        ("add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p4, %r1, 5;\n@%p4 bra $COPIES;",
         "st.shared.b32 [%rd4], %r1;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p4, %r1, 5;\n"
         "@%p4 bra $COPIES;", "without a barrier between"),
    ],
)  # fmt: skip
def test_what_a_device_would_not_do_is_refused(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(PtxFault, match=message):
        reversed_rows(rows(), TEXT.replace(old, new))


def one_arrives(text: str) -> str:
    """With a barrier of one arrival, of a thread alone."""
    alone = f"setp.eq.b32 %p5, %r0, 7;\n@%p5 {ARRIVE}"
    return text.replace(ARRIVE, alone).replace("[%rd3+8], 32;", "[%rd3+8], 1;")


def test_one_thread_speaks_for_others_that_it_met() -> None:
    """What others read before they met it: after that it can say so, not before."""
    x = rows()
    met = TEXT.replace(f"{ARRIVE}\n{MEET}", f"{MEET}\n{ARRIVE}")
    np.testing.assert_array_equal(reversed_rows(x, one_arrives(met)), reversed_rows(x))
    with pytest.raises(PtxFault, match=AGAIN):
        reversed_rows(x, one_arrives(TEXT))


def test_what_threads_tell_is_known_to_those_who_wait() -> None:
    """Others arrive at a barrier that nobody waits for."""
    text = one_arrives(TEXT).replace("bars[16]", "bars[24]")
    made = "mbarrier.init.shared.b64 [%rd3], 1;"
    text = text.replace(made, f"{made}\nmbarrier.init.shared.b64 [%rd3+16], 31;")
    others = f"@!%p5 {ARRIVE}".replace("+8", "+16")
    text = text.replace(f"@%p5 {ARRIVE}", f"@%p5 {ARRIVE}\n{others}")
    with pytest.raises(PtxFault, match=AGAIN):
        reversed_rows(rows(), text)
