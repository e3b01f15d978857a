"""PTX in NumPy: what instructions compute, against exact arithmetic, and what is refused."""

import re
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from relax_mlir.interpreter.ptx import Buffer, PtxFault, parse, run

COUNT = 61
WIDE = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


def kernel(body: str, parameters: int = 0, shared: int = 256) -> str:
    """A kernel of so many addresses, `%in0` and on, whose threads have `%rd0 = thread * 8`."""
    takes = ", ".join(f".param .u64 k_{i}" for i in range(parameters))
    loads = "".join(f"ld.param.b64 %in{i}, [k_{i}];\n" for i in range(parameters))
    return f"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry k({takes})
{{
.reg .pred %p<9>;
.reg .b16 %rs<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.reg .b64 %in<9>;
.shared .align 16 .b8 own[{shared}];
{loads}mov.u32 %r0, %tid.x;
mul.wide.u32 %rd0, %r0, 8;
{body}
ret;
}}"""


def run_kernel(body: str, *arrays: np.ndarray, threads: int = COUNT, groups: int = 1) -> None:
    """Runs a kernel on arrays of which it writes to the last one."""
    buffers = [Buffer.of(array, i == len(arrays) - 1) for i, array in enumerate(arrays)]
    addresses = [array.ctypes.data for array in arrays]
    program = parse(kernel(body, len(arrays)))
    run(program, "k", (groups, 1, 1), (threads, 1, 1), addresses, buffers)


def computed(instruction: str, result: str, *arrays: np.ndarray) -> np.ndarray:
    """What an instruction computes: operands are written as `$1` and on, its result as `$0`."""
    stored, body = np.dtype(result), ""
    registers = {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}
    for i, array in enumerate(arrays, 1):
        own = f"{registers[array.dtype.itemsize]}{i}"
        instruction = instruction.replace(f"${i}", own)
        load = f"ld.global.{WIDE[array.dtype.itemsize]} {own}, [%rd8];"
        body += f"add.s64 %rd8, %in{i - 1}, %rd0;\n{load}\n"
    own = f"{registers[stored.itemsize]}7"
    body += instruction.replace("$0", own) + f"\nadd.s64 %rd8, %in{len(arrays)}, %rd0;\n"
    body += f"st.global.{WIDE[stored.itemsize]} [%rd8], {own};"
    spread = [np.zeros(8 * COUNT // a.dtype.itemsize, a.dtype) for a in arrays]
    for to, array in zip(spread, arrays, strict=True):
        to[:: 8 // array.dtype.itemsize] = array
    out = np.zeros(8 * COUNT // stored.itemsize, stored)
    run_kernel(body, *spread, out)
    return out[:: 8 // stored.itemsize]


def floats(dtype: str, seed: int) -> np.ndarray:
    """Floats of all sizes; some are near to each other."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 1 << 8 * np.dtype(dtype).itemsize, COUNT, np.uint64)
    x = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    x = np.where(np.isfinite(x), x, 1)
    near = generator.random(COUNT) < 0.7
    return np.where(near, generator.standard_normal(COUNT), x).astype(dtype)


def integers(dtype: str, seed: int) -> np.ndarray:
    """Integers of all sizes, and the bounds."""
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(seed)
    x = generator.integers(limits.min, limits.max, COUNT, dtype, endpoint=True)
    x >>= generator.integers(0, limits.bits, COUNT).astype(dtype)
    x[:4] = limits.min, limits.max, 0, 1
    return generator.permutation(x)


def rounded(exact: Fraction, dtype: str) -> np.floating:
    """The nearest float, ties to even, by search from an estimate."""
    type_ = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        guess = type_(float(exact)) if abs(exact) < Fraction(2) ** 1023 else type_(np.inf)
    if not np.isfinite(guess):
        return guess
    near = [np.nextafter(guess, type_(-np.inf)), guess, np.nextafter(guess, type_(np.inf))]
    near = [x for x in near if np.isfinite(x)]
    word = f"u{np.dtype(dtype).itemsize}"
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(word)) & 1))


@pytest.mark.parametrize(("name", "dtype"), [("f32", "f4"), ("f64", "f8"), ("f16", "f2")])
def test_multiply_adds_round_once(name: str, dtype: str) -> None:
    for seed in range(8):
        a, b = (floats(dtype, 3 * seed + i) for i in range(2))
        with np.errstate(all="ignore"):
            c = np.where(np.arange(COUNT) % 3 == 0, floats(dtype, 3 * seed + 2), -(a * b))
        c = np.where(np.isfinite(c), c, 1).astype(dtype)
        actual = computed(f"fma.rn.{name} $0, $1, $2, $3;", dtype, a, b, c)
        for x, y, z, result in zip(a, b, c, actual, strict=True):
            exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            if name == "f64" and abs(exact) < Fraction(2) ** -960:
                continue  # the emulation is for products that do not vanish
            want = rounded(exact, dtype)
            assert result == want or np.isinf(want), (x, y, z, result, want)


def test_bfloat_multiply_adds_and_conversions_round_once() -> None:
    import ml_dtypes

    bfloat = np.dtype(ml_dtypes.bfloat16)
    a, b = (floats("f4", i).astype(bfloat) for i in range(2))
    c = (-(a.astype("f8") * b.astype("f8"))).astype(bfloat)
    parts = (x.view(np.uint16) for x in (a, b, c))
    actual = computed("fma.rn.bf16 $0, $1, $2, $3;", "u2", *parts).view(bfloat)
    exact = a.astype("f8") * b.astype("f8") + c.astype("f8")
    near = np.isfinite(exact) & (np.abs(exact) < 1e30)
    np.testing.assert_array_equal(actual[near], exact.astype("f4").astype(bfloat)[near])
    for x in (floats("f4", 9), np.float32([1 + 2**-8, 1 + 2**-8 + 2**-20, np.inf] + [0] * 58)):
        narrow = computed("cvt.rn.bf16.f32 $0, $1;", "u2", x).view(bfloat)
        np.testing.assert_array_equal(narrow, x.astype(bfloat))


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_pairs_of_floats_in_a_register(type_: str) -> None:
    """The first operand is in the upper half."""
    import ml_dtypes

    dtype = np.dtype(np.float16 if type_ == "f16" else ml_dtypes.bfloat16)
    upper, lower = floats("f4", 3), floats("f4", 4)
    pairs = computed(f"cvt.rn.{type_}x2.f32 $0, $1, $2;", "u4", upper, lower)
    with np.errstate(over="ignore"):
        for at, x in enumerate((lower, upper)):
            half = (pairs >> 16 * at).astype(np.uint16).view(dtype)
            np.testing.assert_array_equal(half, x.astype(dtype))


@pytest.mark.parametrize(
    ("instruction", "reference"),
    [
        ("mul.hi.s32", lambda a, b: a.astype("i8") * b >> 32),
        ("mul.lo.s32", lambda a, b: (a.astype("i8") * b).astype("i4")),
        ("min.s32", np.minimum),
        ("max.s32", np.maximum),
        ("sub.s32", lambda a, b: a - b),
        ("and.b32", np.bitwise_and),
        ("shl.b32", lambda a, b: np.where(b.view("u4") < 32, a << (b & 31), 0)),
        ("shr.s32", lambda a, b: a >> np.minimum(b.view("u4"), 31).astype("i4")),
        ("shr.u32", lambda a, b: np.where(b.view("u4") < 32, (a.view("u4") >> b % 32), 0)),
    ],
)  # fmt: skip
def test_integers_of_32_bits(instruction, reference) -> None:
    a, b = integers("i4", 1), integers("i4", 2)
    b[::2] %= 40
    with np.errstate(all="ignore"):
        want = np.asarray(reference(a, b)).astype(np.int64).astype(np.uint32)
    np.testing.assert_array_equal(computed(f"{instruction} $0, $1, $2;", "u4", a, b), want)


def test_integers_of_64_bits() -> None:
    a, b = integers("i8", 3), integers("i8", 4)
    b = np.where(b == 0, 3, b)
    exact = list(zip(map(int, a), map(int, b), strict=True))
    wraps = ((a == np.iinfo("i8").min) & (b == -1)) == 0
    high = np.array([x * y >> 64 for x, y in exact], np.int64)
    np.testing.assert_array_equal(computed("mul.hi.s64 $0, $1, $2;", "i8", a, b), high)
    quotient = [abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1) for x, y in exact]
    rest = [x - q * y for (x, y), q in zip(exact, quotient, strict=True)]
    for name, want in (("div", quotient), ("rem", rest)):
        actual = computed(f"{name}.s64 $0, $1, $2;", "i8", a, b)
        assert [int(x) for x in actual[wraps]] == [
            w for w, w_ok in zip(want, wraps, strict=True) if w_ok
        ]


def test_bits_of_words() -> None:
    x = integers("u4", 5)
    words = [f"{int(v):032b}" for v in x]
    bytes_ = x.view(np.uint8).reshape(-1, 4)
    expected = {
        "popc.b32 $0, $1;": [w.count("1") for w in words],
        "clz.b32 $0, $1;": [len(w) - len(w.lstrip("0")) for w in words],
        "brev.b32 $0, $1;": [int(w[::-1], 2) for w in words],
        "bfe.u32 $0, $1, 5, 9;": [int(w[::-1][5:14][::-1], 2) for w in words],
        "shf.l.wrap.b32 $0, $1, $1, 7;": [int(w[7:] + w[:7], 2) for w in words],
        "prmt.b32 $0, $1, 0, 0x0123;": bytes_[:, ::-1].copy().view(np.uint32)[:, 0].tolist(),
        "prmt.b32 $0, $1, %r6, 0x0123U;": bytes_[:, ::-1].copy().view(np.uint32)[:, 0].tolist(),
        "prmt.b32 $0, %r6, $1, 17767;": bytes_[:, ::-1].copy().view(np.uint32)[:, 0].tolist(),
    }
    for instruction, want in expected.items():
        assert computed(instruction, "u4", x).tolist() == want, instruction


@pytest.mark.parametrize("to", ["s8", "s16", "s32", "s64", "u8", "u32", "u64"])
@pytest.mark.parametrize("rounding", ["rzi", "rni", "rmi", "rpi"])
def test_floats_become_integers_within_bounds(to: str, rounding: str) -> None:
    x = floats("f4", 6) * 300
    x[:6] = 2.5, -2.5, 1e30, -1e30, 0.5, -0.5
    size = int(to[1:]) // 8
    limits = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{size}")
    function = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}[rounding]
    want = [min(max(int(v), limits.min), limits.max) for v in function(x.astype("f8"))]
    kept = max(size, 2)
    actual = computed(f"cvt.{rounding}.{to}.f32 $0, $1;", f"u{kept}", x)
    assert actual.tolist() == [v % (1 << 8 * kept) for v in want]


def test_integers_become_floats_rounded_once() -> None:
    x = integers("i8", 7)
    x[:2] = (1 << 60) + (1 << 36) + 1, -((1 << 60) + (1 << 36) + 1)
    for to, dtype in (("f64", "f8"), ("f32", "f4"), ("f16", "f2")):
        actual = computed(f"cvt.rn.{to}.s64 $0, $1;", dtype, x)
        for value, result in zip(x, actual, strict=True):
            want = rounded(Fraction(int(value)), dtype)
            assert result == want, (value, to)


def test_extrema_of_floats() -> None:
    nan = float("nan")
    a = np.float32([1, nan, 2, nan, -0.0, 0.0] + [5] * 55)
    b = np.float32([nan, 1, 3, nan, 0.0, -0.0] + [7] * 55)
    np.testing.assert_array_equal(computed("max.f32 $0, $1, $2;", "f4", a, b)[:3], [1, 1, 3])
    actual = computed("max.NaN.f32 $0, $1, $2;", "f4", a, b)
    np.testing.assert_array_equal(actual[:4], [nan, nan, 3, nan])
    assert not np.signbit(computed("max.f32 $0, $1, $2;", "f4", a, b)[4:6]).any()
    assert np.signbit(computed("min.f32 $0, $1, $2;", "f4", a, b)[4:6]).all()


BARRIER = """
cvt.u64.u32 %rd1, %r0;
shl.b64 %rd2, %rd1, 2;
mov.b64 %rd3, own;
add.s64 %rd3, %rd3, %rd2;
{store}
{barrier}
xor.b32 %r1, %r0, 1;
mul.wide.u32 %rd4, %r1, 4;
mov.b64 %rd5, own;
add.s64 %rd5, %rd5, %rd4;
ld.shared.b32 %r2, [%rd5];
add.s64 %rd6, %in0, %rd0;
st.global.b32 [%rd6], %r2;"""
STORE = "st.shared.b32 [%rd3], %r0;"


def test_registers_of_inner_braces() -> None:
    """As LLVM writes the upper half of a word; each pair of braces has its own."""
    words = np.random.default_rng(3).integers(0, 1 << 32, COUNT, np.uint32)
    twice = (
        "{ .reg .b16 tmp; mov.b32 {tmp, %rs1}, $1; }\n{ .reg .b16 tmp; mov.b32 {tmp, %rs2}, $1; }"
    )
    upper = computed(f"{twice}\nadd.s16 $0, %rs1, %rs2;", "u2", words)
    np.testing.assert_array_equal(upper, (2 * (words >> 16)).astype(np.uint16))
    body = "{ .reg .b16 tmp; mov.b16 tmp, 1; }\n{ .reg .b32 tmp; mov.b32 tmp, 1; }"
    with pytest.raises(PtxFault, match="'tmp' is declared"):
        parse(kernel(body))


def test_threads_exchange_what_they_store() -> None:
    out = np.zeros(16, np.int64)
    run_kernel(BARRIER.format(store=STORE, barrier="bar.sync 0;"), out, threads=16)
    np.testing.assert_array_equal(out, np.arange(16) ^ 1)


def test_a_variable_without_brackets_has_one_element() -> None:
    out = np.zeros(1, np.int64)
    body = """.shared .f32 one;
.shared .align 4 .b8 next[4];
st.shared.b32 [one], 7;
st.shared.b32 [next], 9;
ld.shared.b32 %r2, [one];
st.global.b32 [%in0], %r2;"""
    run_kernel(body, out, threads=1)
    assert out[0] == 7


WORDS = """
st.shared.b32 [own], 7;
st.shared.v2.b32 [own+8], {{8, 9}};
ld.shared.v4.b32 {{%r1, %r2, %r3, %r4}}, [own{offset}];
add.s32 %r5, %r1, {other};
add.s32 %r5, %r5, %r4;
st.global.b32 [%in0], %r5;"""


def test_what_is_between_the_words_of_a_load_does_not_matter() -> None:
    """Nobody wrote the second one; it has to be there, as all others, and not to be used."""
    out = np.zeros(1, np.int64)
    run_kernel(WORDS.format(offset="", other="%r3"), out, threads=1)
    assert out[0] == 7 + 8 + 9
    with pytest.raises(PtxFault, match="that no thread wrote"):
        run_kernel(WORDS.format(offset="", other="%r2"), out, threads=1)
    with pytest.raises(PtxFault, match="is beyond the 256 bytes of a group"):
        run_kernel(WORDS.format(offset="+256", other="%r3"), out, threads=1)


def test_threads_exchange_registers() -> None:
    out = np.zeros(64, np.int64)
    body = "shfl.sync.bfly.b32 %r2, %r0, 5, 31, -1;\nadd.s64 %rd6, %in0, %rd0;\n"
    run_kernel(f"{body}st.global.b32 [%rd6], %r2;", out, threads=64)
    np.testing.assert_array_equal(out, np.arange(64) ^ 5)


def test_branches_meet_again() -> None:
    """A loop of as many rounds as the index of the thread, half of which leave early."""
    out = np.zeros(32, np.int64)
    body = """
mov.b32 %r1, 0;
$L_head:
setp.ge.u32 %p1, %r1, %r0;
@%p1 bra $L_end;
add.s32 %r1, %r1, 1;
setp.ne.u32 %p2, %r1, 20;
@%p2 bra $L_head;
$L_end:
add.s64 %rd6, %in0, %rd0;
st.global.b32 [%rd6], %r1;"""
    run_kernel(body, out, threads=32)
    np.testing.assert_array_equal(out, np.minimum(np.arange(32), 20))


def test_threads_choose_parameters() -> None:
    """By their addresses, as LLVM does where threads read one of two buffers."""
    first, second, out = np.arange(64), 1000 + np.arange(64), np.zeros(64, np.int64)
    body = """
setp.lt.u32 %p1, %r0, 23;
mov.b64 %rd1, k_0;
mov.b64 %rd2, k_1;
selp.b64 %rd3, %rd1, %rd2, %p1;
ld.param.b64 %rd4, [%rd3];
add.s64 %rd5, %rd4, %rd0;
ld.global.b64 %rd6, [%rd5];
add.s64 %rd7, %in2, %rd0;
st.global.b64 [%rd7], %rd6;"""
    run_kernel(body, first, second, out, threads=64)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 23, first, second))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.param.b64 %rd6, [k_0+8];", "an address is none of a parameter"),
        ("mov.b64 %rd6, k_0;\nst.global.b32 [%rd6], %r0;", "is in no buffer"),
        (BARRIER.format(store=STORE, barrier=""), "without a barrier between them"),
        (BARRIER.format(store="", barrier="bar.sync 0;"), "that no thread wrote"),
        ("setp.lt.u32 %p1, %r0, 3;\n@%p1 bra $L1;\nbar.sync 0;\n$L1:",
         "a barrier that 3 threads of a group do not reach"),
        ("add.s64 %rd6, %in0, %rd0;\nst.global.b32 [%rd6+8], %r0;", "is in no buffer"),
        ("sub.s64 %rd6, %in0, %rd0;\nst.global.b32 [%rd6], %r0;", "is in no buffer"),
        ("add.s64 %rd6, %in0, %rd0;\nst.global.b32 [%rd6+2], %r0;", "is no multiple of 4"),
        ("st.global.b32 [%in0], %r0;", "writes what another thread accesses"),
        ("st.shared.b32 [own+256], %r0;", "is beyond the 256 bytes of a group"),
        ("add.s32 %r1, %r2, 1;", "%r2 is read before it is written"),
        ("prmt.b32 %r1, 0, %r2, 0x0124;", "%r2 is read before it is written"),
        ("div.u32 %r1, %r0, 0;", "divides by zero"),
        ("frob.u32 %r1, %r0, 0;", "an instruction is not known"),
        ("add.s32 %r1, frob, 1;", "an operand is not known"),
        ("ld.b32 %r1, [%in0];", "a space of memory is not known"),
        ("add.sat.s32 %r1, %r0, %r0;", "a modifier is not known"),
        ("cvt.u64.u32 %r1, %r0;", "has no room"),
        ("cvt.rn.f16x2.f16 %r1, %r0, %r0;", "a conversion is not known"),
        ("cvt.rz.f16x2.f32 %r1, %r0, %r0;", "a modifier is not known"),
    ],
)  # fmt: skip
def test_what_a_device_would_not_do_is_refused(body: str, message: str) -> None:
    with pytest.raises(PtxFault, match=re.escape(message)):
        run_kernel(body, np.zeros(16, np.int64), threads=16)


@pytest.mark.parametrize(
    ("name", "wanted"), [("add.u32", 120), ("max.s32", 15), ("min.u32", 0), ("or.b32", 15)]
)
def test_updates(name: str, wanted: int) -> None:
    """Of one word by all threads."""
    out = np.zeros(1, np.int64)
    run_kernel(f"atom.global.{name} %r1, [%in0], %r0;", out, threads=16)
    assert out[0] == wanted


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("st.global.b32 [%in0], 1;", "updates what a thread of the kernel accesses otherwise"),
        ("ld.global.nc.b32 %r2, [%in0];", "writes what the kernel has read as a constant"),
        ("atom.global.add.f32 %r2, [%in0], %r0;", "an update is not known"),
        ("bar.sync 1, 48;", "a barrier is of no whole warps"),
        ("atom.global.exch.b32 %r2, [%in0], %r0;", "an update is not known"),
        ("atom.global.add.u32 %r1, [%in0], %r0;\nmov.b32 %r2, %r1;", "depends on the order"),
    ],
)
def test_updates_that_are_refused(body: str, message: str) -> None:
    with pytest.raises(PtxFault, match=message):
        run_kernel(f"{body}\natom.global.add.u32 %r3, [%in0], %r0;", np.zeros(1), threads=1)


def test_groups_must_not_depend_on_each_other() -> None:
    body = "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra $L1;\n"
    body += "st.global.b32 [%in0], %r1;\n$L1:"
    with pytest.raises(PtxFault, match="writes what another thread accesses"):
        run_kernel(body, np.zeros(16, np.int64), threads=16, groups=2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_constants_are_not_written(order: tuple[int, int]) -> None:
    """One buffer is fine in words that are apart, and refused in the same ones."""
    accesses = "ld.global.nc.b32 %r1, [%rd8];\n", "st.global.b32 [%rd8+OFFSET], %r0;\n"
    body = "add.s64 %rd8, %in0, %rd0;\n" + "".join(accesses[i] for i in order)
    run_kernel(body.replace("OFFSET", "4"), np.zeros(COUNT * 2 + 1, np.int32))
    with pytest.raises(PtxFault, match="as a constant"):
        run_kernel(body.replace("OFFSET", "0"), np.zeros(COUNT * 2, np.int32))


def test_buffers_that_are_only_read() -> None:
    text = kernel("st.global.b32 [%in0], %r0;", 1)
    array = np.zeros(4, np.int64)
    with pytest.raises(PtxFault, match="is said not to write to"):
        run(parse(text), "k", (1, 1, 1), (1, 1, 1), [array.ctypes.data], [Buffer.of(array, False)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "other"}, "no kernel 'other'; there are k"),
        ({"grid": (0, 1, 1)}, "no threads"),
        ({"arguments": [1]}, "1 arguments for 0 parameters"),
        ({"size": (128, 1, 1)}, "groups of 128 threads, but .maxntid says 64"),
    ],
)
def test_launches_that_are_refused(change: dict, message: str) -> None:
    text = kernel("").replace("k()", "k()\n.maxntid 64, 1, 1")
    given = {"name": "k", "grid": (1, 1, 1), "size": (64, 1, 1), "arguments": []} | change
    assert prod(given["size"]) <= 128
    with pytest.raises(PtxFault, match=re.escape(message)):
        run(parse(text), buffers=[], **given)


@pytest.mark.parametrize("text", ["", "hello", ".version 7.0\n.target sm_80\n.entry k() { frob"])
def test_texts_that_are_no_ptx(text: str) -> None:
    with pytest.raises(PtxFault):
        parse(text)
