"""Kernels as WGSL: what is refused, and what the host checks before a launch."""

import json
from typing import Any

import numpy as np
import pytest
from chromium import chromium, launcher, missing

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.wgsl import compile_wgsl
from relax_mlir.codegen.gpu.wgsl.constants import float_literal
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError
from relax_mlir.target import Device

IN_CHROMIUM = pytest.mark.skipif(missing() is not None, reason=missing() or "")
INTEGERS = np.array(
    [*(0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31), 2**31, 2**32, 2**32 - 1, -(2**32)),
     *(2**53 + 1, 2**63 - 1, -(2**63), 0x123456789ABCDEF, -0x7EDCBA9876543210)], np.int64,
)  # fmt: skip
FLOATS = np.array(
    [*(0.0, -0.0, 1.0, -1.5, 0.1, 3e-310, -5e-324, 2.2250738585072014e-308, 1.7e308, -1.7e308),
     *(np.inf, -np.inf, np.nan, 1 / 3, 1e-160, 1e160, 2.0**53 + 2, 16777217.0, 1e-45, 1e39)],
)  # fmt: skip


def kernel_text(arguments: str, body: str, threads: int = 1) -> str:
    """A module with a kernel and no host code."""
    return f"""module {{ gpu.module @k {{
      gpu.func @k({arguments}) kernel
          attributes {{known_block_size = array<i32: {threads}, 1, 1>}} {{
        {body}
        gpu.return
      }} }} }}"""


def compiled(text: str) -> dict[str, Any]:
    """The code of the kernel in a module."""
    with make_context():
        module = ir.Module.parse(text)
        (kernel,) = device_kernels(module.operation)
        return json.loads(compile_wgsl(kernel, Device.parse("webgpu")))


def run(text: str, *values: Any, groups: int = 1) -> None:
    """Runs a kernel on some groups."""
    code = json.dumps(compiled(text)).encode()
    launcher({"k": code})("k", (groups, 1, 1), values)


BUFFERS = ", ".join(
    f"%{t}{w}: memref<?x{t}>" for t in ("f32", "i32", "i64", "i8") for w in ("r", "w")
)
REFUSED = {
    "type": ("%x: i4", "%y = arith.addi %x, %x : i4", "takes a scalar of 'i4'"),
    "function of f64": ("%x: f64", "%y = math.exp %x : f64", "'math.exp' of f64 has no"),
    "no translation": ("%x: i32, %m: memref<?xi32>", "gpu.printf \"x\"", "'gpu.printf' has no"),
    "loop of i64": ("%a: i64", "scf.for %i = %a to %a step %a : i64 { }", "counts in 'i64'"),
    "divided truths": ("%x: i1", "%y = arith.divsi %x, %x : i1", "of truth values has no"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    arguments, body, message = REFUSED[case]
    with pytest.raises(CompileError, match=message) as found:
        compiled(kernel_text(arguments, body))
    assert found.value.diagnostics[0].line


def test_more_memory_of_a_group_than_there_is() -> None:
    """Elements of a byte take a word there."""
    shared = "workgroup(%s: memref<8192xi8, #gpu.address_space<workgroup>>)"
    text = kernel_text("", "").replace(") kernel", f") {shared} kernel")
    with pytest.raises(CompileError, match=r"threads share 32768 bytes; a group .* has 16384"):
        compiled(text)


def test_static_indices_that_do_not_fit() -> None:
    body = """%c = arith.constant 65536 : index
        %x = gpu.thread_id x
        %0 = arith.muli %x, %c : index
        %1 = arith.muli %0, %c : index
        %v = memref.load %m[%1] : memref<?xi32>
        memref.store %v, %m[%1] : memref<?xi32>"""
    with pytest.raises(CompileError, match="has indices of 2147483648 or more"):
        compiled(kernel_text("%m: memref<?xi32>", body, threads=8))


def test_many_buffers_share_bindings() -> None:
    """Those that are only read are joined first."""
    names = [f"%b{i}" for i in range(12)]
    arguments = ", ".join(f"{name}: memref<?xi32>" for name in (*names, "%out"))
    body = "%c0 = arith.constant 0 : index\n%z = arith.constant 0 : i32\n"
    body += "memref.store %z, %out[%c0] : memref<?xi32>"
    assert compiled(kernel_text(arguments, body))["bindings"] == [list(range(12)), [12]]


COPY = """%i = gpu.block_id x
    %v = memref.load %x[%i] : memref<?x{t}>
    memref.store %v, %y[%i] : memref<?x{t}>"""


@IN_CHROMIUM
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_neighbours_in_a_word(bits: int) -> None:
    """Groups that store next to each other leave each other's elements alone."""
    values = np.random.default_rng(bits).integers(0, 256, 257 * bits // 8, np.uint8)
    x, y = values.view(f"int{bits}"), np.zeros(257, f"int{bits}")
    arguments = f"%x: memref<?xi{bits}>, %y: memref<?xi{bits}>"
    run(kernel_text(arguments, COPY.format(t=f"i{bits}")), x, y, groups=257)
    np.testing.assert_array_equal(x, y)


@IN_CHROMIUM
def test_joined_buffers() -> None:
    """Buffers of odd sizes, empty ones among them, read through one binding and written."""
    arrays = [np.full(3 * i % 7, i + 1, np.int8) for i in range(12)]
    total = np.zeros(5, np.int8)
    names = [f"%b{i}" for i in range(12)]
    arguments = ", ".join(f"{name}: memref<?xi8>" for name in (*names, "%out"))
    body, used = "%c0 = arith.constant 0 : index\n%s = arith.constant 0 : i8\n", "%s"
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array.size:
            body += f"%c{i + 1} = arith.constant {array.size - 1} : index\n"
            body += f"%v{i} = memref.load {name}[%c{i + 1}] : memref<?xi8>\n"
            body += f"%s{i} = arith.addi {used}, %v{i} : i8\n"
            used = f"%s{i}"
    body += f"memref.store {used}, %out[%c0] : memref<?xi8>"
    run(kernel_text(arguments, body), *arrays, total)
    assert total.tolist() == [sum(int(a[-1]) for a in arrays if a.size), 0, 0, 0, 0]


@IN_CHROMIUM
@pytest.mark.parametrize(
    ("n", "message"), [(2**31, "more than indices of 32 bits"), (2**20, "indices up to")]
)
def test_indices_are_checked_before_a_launch(n: int, message: str) -> None:
    body = """%0 = arith.muli %n, %n : index
        %1 = arith.remui %0, %n : index
        %v = memref.load %m[%1] : memref<?xi32>
        memref.store %v, %m[%1] : memref<?xi32>"""
    text = kernel_text("%m: memref<?xi32>, %n: index", body)
    run(text, np.zeros(1, np.int32), 7)
    with pytest.raises(Exception, match=message):
        run(text, np.zeros(1, np.int32), n)


@IN_CHROMIUM
def test_bounds_of_loops_with_barriers_are_those_of_the_first_thread() -> None:
    body = """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %w = memref.load %n[%c0] : memref<?xi32>
        %e = arith.index_cast %w : i32 to index
        scf.for %i = %c0 to %e step %c1 { BODY }"""
    text = kernel_text("%n: memref<?xi32>", body.replace("BODY", "gpu.barrier"), threads=32)
    assert compiled(text)["code"].count("workgroupUniformLoad") == 1
    assert "workgroupUniformLoad" not in compiled(text.replace("gpu.barrier", ""))["code"]
    fixed = text.replace("to %e", "to %c1")
    assert "workgroupUniformLoad" not in compiled(fixed)["code"]


def test_literals_of_floats_are_exact_and_within_range() -> None:
    random = np.random.default_rng(7).integers(0, 1 << 32, 999, np.uint32).view(np.float32)
    largest = np.finfo(np.float32).max
    near = [np.nextafter(largest, np.float32(0)), np.finfo(np.float32).tiny]
    for x in (*random[np.isfinite(random)], largest, -largest, *near, 0.1):
        text = float_literal(float(x))
        if text.startswith("bitcast"):
            assert abs(x) < np.finfo(np.float32).tiny
            continue
        decimal = text[4:-1] if "(" in text else text[:-1]
        assert abs(float(decimal)) <= float(largest), text
        assert np.float32(decimal) == np.float32(x)


def test_indices_that_depend_on_data_are_clamped() -> None:
    """They do not wrap to elements that were not meant."""
    x = np.array([3, -3, 2**32 + 1, -(2**32) - 1, 2**63 - 1], np.int64)
    found = np.zeros(5, np.int64)
    body = """%i = gpu.block_id x
        %c = arith.constant 1000000 : index
        %v = memref.load %x[%i] : memref<?xi64>
        %0 = arith.index_cast %v : i64 to index
        %1 = arith.muli %0, %c : index
        %2 = arith.addi %1, %0 : index
        %3 = arith.index_cast %2 : index to i64
        memref.store %3, %y[%i] : memref<?xi64>"""
    run(kernel_text("%x: memref<?xi64>, %y: memref<?xi64>", body), x, found, groups=5)
    most = 2**31 - 1
    assert found.tolist() == [3000003, -3000003, most, -most, most]


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value with each."""
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


def _binary(op: str, element: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.zeros_like(a)
    body = f"""%i = gpu.block_id x
        %a = memref.load %x[%i] : memref<?x{element}>
        %b = memref.load %y[%i] : memref<?x{element}>
        %r = {op} %a, %b : {element}
        memref.store %r, %z[%i] : memref<?x{element}>"""
    arguments = ", ".join(f"%{name}: memref<?x{element}>" for name in "xyz")
    run(kernel_text(arguments, body), a, b, result, groups=a.size)
    return result


ON_INTEGERS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": np.minimum,
    "maxui": lambda a, b: np.maximum(a.view(np.uint64), b.view(np.uint64)).view(np.int64),
    "divui": lambda a, b: (a.view(np.uint64) // b.view(np.uint64)).view(np.int64),
    "remui": lambda a, b: (a.view(np.uint64) % b.view(np.uint64)).view(np.int64),
    "floordivsi": lambda a, b: np.where((a == -(2**63)) & (b == -1), a, a // b),
    "xori": lambda a, b: a ^ b,
    "shrsi": lambda a, b: a >> (b & 63),
    "shli": lambda a, b: a << (b & 63),
}


@IN_CHROMIUM
@pytest.mark.parametrize("op", ON_INTEGERS)
def test_pairs_of_words(op: str) -> None:
    """Integers of 64 bits, to the bit."""
    a, b = _pairs(INTEGERS)
    random = np.random.default_rng(7).integers(-(2**63), 2**63 - 1, (2, 64), np.int64)
    a, b = np.concatenate([a, random[0]]), np.concatenate([b, random[1] >> (random[0] & 63)])
    if "div" in op or "rem" in op:
        b[b == 0] = 3
    if op.startswith("sh"):
        b &= 63
    with np.errstate(all="ignore"):
        expected = ON_INTEGERS[op](a, b)
    np.testing.assert_array_equal(_binary(f"arith.{op}", "i64", a, b), expected)


ON_FLOATS = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
    "maximumf": np.maximum, "minnumf": np.fmin,
}  # fmt: skip


@IN_CHROMIUM
@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize("op", ON_FLOATS)
def test_floats(op: str, element: str) -> None:
    """Those of 64 bits to the bit; those of 32 to what WGSL guarantees."""
    generator = np.random.default_rng(11)
    exponents = generator.integers(-1060, 1020, (2, 128))
    exponents[1, ::2] = exponents[0, ::2] + generator.integers(-60, 60, 64)
    scales = 2.0 ** exponents.clip(-1060, 1019)
    random = generator.standard_normal((2, 128)) * (scales if element == "f64" else 1)
    random[1, ::8] = -random[0, ::8] * (1 + 2.0**-50)  # which cancels
    pairs = _pairs(FLOATS if element == "f64" else FLOATS[[0, 1, 2, 3, 4, 10, 11, 12, 13]])
    a, b = (np.concatenate([x, y]) for x, y in zip(pairs, random, strict=True))
    if element == "f32":
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = ON_FLOATS[op](a, b)
    found = _binary(f"arith.{op}", element, a, b)
    if element == "f64" or op not in ("divf", "mulf"):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_array_max_ulp(found, expected, 3)
    zero = (expected == 0) & (found == 0) & (op not in ("maximumf", "minnumf"))
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@IN_CHROMIUM
def test_conversions_of_doubles() -> None:
    single = np.zeros(FLOATS.size, np.float32)
    whole, back = np.zeros(FLOATS.size, np.int64), np.zeros(FLOATS.size)
    root = np.zeros(FLOATS.size)
    body = """%i = gpu.block_id x
        %v = memref.load %x[%i] : memref<?xf64>
        %s = arith.truncf %v : f64 to f32
        memref.store %s, %single[%i] : memref<?xf32>
        %n = arith.fptosi %v : f64 to i64
        memref.store %n, %whole[%i] : memref<?xi64>
        %b = arith.sitofp %n : i64 to f64
        memref.store %b, %back[%i] : memref<?xf64>
        %r = math.sqrt %v : f64
        memref.store %r, %root[%i] : memref<?xf64>"""
    arguments = "%x: memref<?xf64>, %single: memref<?xf32>, %whole: memref<?xi64>, "
    arguments += "%back: memref<?xf64>, %root: memref<?xf64>"
    run(kernel_text(arguments, body), FLOATS, single, whole, back, root, groups=FLOATS.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(single, FLOATS.astype(np.float32))
        np.testing.assert_array_equal(root, np.sqrt(FLOATS))
    fits = np.abs(FLOATS) < 2.0**62
    np.testing.assert_array_equal(whole[fits], FLOATS[fits].astype(np.int64))
    np.testing.assert_array_equal(back, whole.astype(np.float64))


IN_SINGLES = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "cbrt")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
}  # fmt: skip


@IN_CHROMIUM
@pytest.mark.parametrize("function", IN_SINGLES)
def test_functions_without_f64(function: str) -> None:
    """Over all of f32: large angles are reduced in integers, others use sums of two floats."""
    exponents = np.arange(-100, 128)
    near = np.linspace(-1.5, 1.5, 41)
    x = np.concatenate([2.0**exponents, -1.7 * 2.0 ** (exponents - 1), near, [0, np.inf, np.nan]])
    x = x.astype(np.float32)
    result = np.zeros_like(x)
    body = f"""%i = gpu.block_id x
        %v = memref.load %x[%i] : memref<?xf32>
        %r = math.{function} %v : f32
        memref.store %r, %y[%i] : memref<?xf32>"""
    run(kernel_text("%x: memref<?xf32>, %y: memref<?xf32>", body), x, result, groups=x.size)
    with np.errstate(all="ignore"):
        expected = IN_SINGLES[function](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=5e-7, atol=1e-37)


@IN_CHROMIUM
def test_refusals_of_the_browser_are_errors() -> None:
    script = """async () => {
      const { WebGpu } = await import("/webgpu.js");
      try { await WebGpu.open(null); } catch (error) { return `${error.name}: ${error.message}`; }
    }"""
    found = chromium().run(script.replace("open(null)", "open({ requestAdapter: () => null })"))
    assert found.startswith("RelaxError: WebGPU finds no device")
