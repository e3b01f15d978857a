"""Math functions as vector arithmetic: accuracy against wider floats, edges, shapes, types.

Run with `-rP` to see the table of largest errors, in units in the last place.
"""

import ctypes
import math

import mpmath
import numpy as np
import pytest
from small_kernels import NATIVE, RUNNABLE

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.elf_object import read_object
from relax_mlir.codegen.llvm import compile_llvm
from relax_mlir.codegen.lower import lower_to_llvm, to_llvm_ir
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.target import Target

ELEMENTS = {"float32": "f32", "float64": "f64", "float16": "f16", "uint16": "bf16", "int32": "i32"}


def kernel(name: str, op: str, kind: str, lanes: tuple[int, ...] | None, num_inputs: int) -> str:
    """A function that applies `op` to whole buffers, `lanes` numbers a step; None is scalars."""
    shape = lanes or (1,)
    step = math.prod(shape)
    value = f"vector<{'x'.join(map(str, shape))}x{kind}>" if lanes else kind
    flat = f"vector<{step}x{kind}>" if lanes else kind
    lines, names = [], []
    for i in range(num_inputs):
        if lanes:
            lines.append(f"%l{i} = vector.load %a{i}[%i] : memref<?x{kind}>, {flat}")
            lines.append(f"%x{i} = vector.shape_cast %l{i} : {flat} to {value}")
        else:
            lines.append(f"%x{i} = memref.load %a{i}[%i] : memref<?x{kind}>")
        names.append(f"%x{i}")
    types = f"{value}, {value}" if op == "fpowi" else value
    lines.append(f"%y = math.{op} {', '.join(names)} : {types}")
    if lanes:
        lines.append(f"%z = vector.shape_cast %y : {value} to {flat}")
        lines.append(f"vector.store %z, %o[%i] : memref<?x{kind}>, {flat}")
    else:
        lines.append(f"memref.store %y, %o[%i] : memref<?x{kind}>")
    arguments = ", ".join(f"%a{i}: memref<?x{kind}>" for i in range(num_inputs))
    body = "\n".join(lines)
    return f"""
    func.func @{name}({arguments}, %o: memref<?x{kind}>, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant {step} : index
      scf.for %i = %c0 to %n step %step {{
        {body}
      }}
      return
    }}"""


def compile_object(text: str, target: Target) -> bytes:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_math(module, target.host)
        module.operation.verify()
        lower_to_llvm(module, target.host)
        return compile_llvm(to_llvm_ir(module), target)


class Library:
    """Compiled kernels that are called with arrays."""

    def __init__(self, path, text: str, names: list[str], target: Target = NATIVE) -> None:
        path.write_bytes(link_shared([compile_object(text, target)], names))
        self.library = ctypes.CDLL(str(path))

    def __call__(self, name: str, *inputs: np.ndarray, step: int = 16) -> np.ndarray:
        """The results for all elements; buffers are padded with ones to whole steps."""
        size = inputs[0].size
        rest = -size % step
        padded = [np.concatenate([a, np.ones(rest, a.dtype)]) for a in inputs]
        out = np.empty_like(padded[0])
        arguments = []
        for array in (*padded, out):
            pointer = ctypes.c_void_p(array.ctypes.data)
            numbers = (ctypes.c_int64(number) for number in (0, array.size, 1))
            arguments += [pointer, pointer, *numbers]
        self.library[name](*arguments, ctypes.c_int64(out.size))
        return out[:size]


def exact_erfc(x: np.ndarray) -> np.ndarray:
    """The complementary error function, which has come to its limits at 40 and -40."""
    with mpmath.workdps(30):
        values = [mpmath.nstr(mpmath.erfc(min(max(float(number), -40), 40)), 25) for number in x]
    return np.array(values, np.longdouble)


# What no operator of the dialect is tested by: op -> reference.
UNARY = {"exp2": np.exp2, "erfc": exact_erfc, "cbrt": np.cbrt}
BINARY = {"powf": np.power}
OTHERS = (
    *("exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos"),
    *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf"),
)
BOUND = 2.0


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    """Every function on sixteen lanes of f32 and f64."""
    texts, names = [], []
    for kind in ("f32", "f64"):
        for op in (*UNARY, *OTHERS, *BINARY):
            names.append(f"{op}_{kind}")
            texts.append(kernel(names[-1], op, kind, (16,), 1 + (op in BINARY)))
    return Library(tmp_path_factory.mktemp("math") / "math.so", "\n".join(texts), names)


def numbers(dtype: type) -> np.ndarray:
    """Random bit patterns, ranges, surroundings of 1 and of the multiples of pi/2, edges."""
    random = np.random.default_rng(7)
    limits = np.finfo(dtype)
    integer, count = (np.uint32, 60000) if dtype is np.float32 else (np.uint64, 30000)
    patterns = random.integers(0, 2 ** (8 * limits.bits // 8) - 1, count, dtype=integer)
    ranges = [random.uniform(-r, r, 12000) for r in (1, 2, 5, 20, 100, 800, 1e5, 1e9)]
    near_one = 1 + random.normal(size=12000) * 10 ** random.uniform(-8, 0, 12000)
    multiples = np.pi / 2 * np.arange(-2000, 2001)
    powers = 2.0 ** np.arange(-140, 128)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, limits.max, -limits.max]
    edges += [limits.tiny, -limits.tiny, limits.smallest_subnormal, -limits.smallest_subnormal]
    rest = np.concatenate([*ranges, near_one, multiples, powers, -powers, edges])
    return np.concatenate([patterns.view(dtype), rest.astype(dtype)])


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs at several scales, and all pairs of edges."""
    random = np.random.default_rng(8)
    edges = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan]
    edges += [1e30, -1e30, 1.5, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
    first, second = np.meshgrid(edges, edges)
    n = 20000
    powers = 10 ** random.uniform(-30, 30, n)
    near_one = 1 + random.normal(size=n) * 1e-3
    whole = random.integers(-50, 50, n)
    x = [first.ravel(), random.uniform(0, 3, n), powers, near_one, -random.uniform(0, 5, n)]
    y = [second.ravel(), random.uniform(-99, 99, n), random.uniform(-8, 8, n)]
    y += [random.uniform(-9e4, 9e4, n), whole]
    return np.concatenate(x).astype(dtype), np.concatenate(y).astype(dtype)


def largest_error(got: np.ndarray, want: np.ndarray) -> float:
    """In units in the last place of the result's type; infinite where one alone is NaN."""
    dtype = got.dtype.type
    rounded = want.astype(dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(dtype).tiny)).astype(want.dtype)
    error = np.abs(got.astype(want.dtype) - want) / unit
    alike = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(alike, np.where(np.isfinite(rounded), error, 0), error)
    return float(np.where(np.isnan(error), np.inf, error).max())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_accuracy(library, op, dtype):
    inputs = pairs(dtype) if op in BINARY else (numbers(dtype),)
    if op == "erfc":  # takes Python's numbers
        inputs = (inputs[0][::50],)
    got = library(f"{op}_{ELEMENTS[np.dtype(dtype).name]}", *inputs)
    want = {**UNARY, **BINARY}[op](*(x.astype(np.longdouble) for x in inputs))
    error = largest_error(got, want)
    print(f"{op:6} {np.dtype(dtype).name} {error:.2f} ulp")
    assert error <= BOUND
    numeric = ~np.isnan(want)
    assert np.array_equal(np.signbit(got)[numeric], np.signbit(want.astype(dtype))[numeric])


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize(
    ("op", "exact", "least", "rounded", "attribute"),
    [
        ("exp", np.exp, -104, 2.0**-23.6, ""),
        ("exp", np.exp, -104, 2.0**-23.6, "{tir.not_positive}"),
        ("exp2", np.exp2, -150, 0, ""),
    ],
)
def test_approximate_exponentials(tmp_path, target, op, exact, least, rounded, attribute):
    """As exact as if the argument of e^x were rounded; exact at 0 and at both infinities."""
    shapes = {
        "s": None,
        "v3": (3,),
        "v4": (4,),
        "v8": (8,),
        "v12": (12,),
        "v64": (64,),
        "t": (2, 8),
    }
    texts = [kernel(name, op, "f32", lanes, 1) for name, lanes in shapes.items()]
    text = "\n".join(texts).replace(f"{op} %x0", f"{op} %x0 fastmath<afn> {attribute}")
    approximate = Library(tmp_path / "afn.so", text, [*shapes], Target.parse(target))
    x = numbers(np.float32)
    x = x[x <= 0] if attribute else x[~np.isnan(x)]
    assert -math.inf in x
    limit = np.log2(float(np.finfo(np.float32).max)) / np.log2(exact(1.0))
    inside = np.abs(x) < limit * (1 - 1e-6)
    argument = np.where(inside, x, 0).astype(np.float64)
    want = exact(argument)
    bound = want * (2.2 * 2.0**-23 + rounded * np.abs(argument))
    for name, lanes in shapes.items():
        got = approximate(name, x, step=math.prod(lanes or (1,)))
        error = np.abs(got.astype(np.float64) - want)
        assert np.all(error[inside] <= (bound + np.finfo(np.float32).tiny)[inside])
        assert np.all(error[inside & (x <= 0)] <= 2.0**-22.4)
        assert np.all(got[x > limit * (1 + 1e-6)] == math.inf)
        assert np.all(got[x == 0] == 1)
        assert np.all(got[x < least] == 0)
        nan = np.array([math.nan, -math.nan, 0], np.float32)
        nan.view(np.uint32)[2] = 0x7FC00001
        assert np.isnan(approximate(name, nan, step=math.prod(lanes or (1,)))).all()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "aarch64"])
def test_instructions_of_avx512_only_where_it_is(target):
    text = kernel("f", "exp", "f32", (32,), 1).replace("exp %x0", "exp %x0 fastmath<afn>")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_math(module, Target.parse(target).host)
        for name in ("reduce", "scalef"):
            found = str(module).count(f"llvm.x86.avx512.mask.{name}.ps.512")
            assert found == (2 if target == "x86-64-v4" else 0)
        lower_to_llvm(module, Target.parse(target).host)


def test_doubles_are_never_approximate(library, tmp_path):
    text = kernel("f", "exp", "f64", (8,), 1).replace("exp %x0", "exp %x0 fastmath<afn>")
    x = np.random.default_rng(3).uniform(-700, 700, 1000)
    flagged = Library(tmp_path / "f64.so", text, ["f"])
    assert np.array_equal(flagged("f", x), library("exp_f64", x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_exact(library, dtype):
    kind = ELEMENTS[np.dtype(dtype).name]

    def value(op: str, *x: float) -> float:
        return float(library(f"{op}_{kind}", *(np.array([number], dtype) for number in x))[0])

    largest, least = np.log(np.finfo(dtype).max), np.log(np.finfo(dtype).tiny)
    subnormal = np.log(np.finfo(dtype).smallest_subnormal)
    assert value("exp", 0) == value("cosh", 0) == value("cos", 0) == value("erfc", 0) == 1
    assert [value("exp2", n) for n in (-126, -1, 3, 127)] == [2.0**-126, 0.5, 8, 2.0**127]
    assert [value("log2", 2.0**n) for n in (-126, -1, 3, 127)] == [-126, -1, 3, 127]
    assert value("exp", largest + 0.01) == math.inf
    assert 0 < value("exp", largest - 0.01) < math.inf
    assert value("exp", least - 0.01) > 0
    assert 0 < value("exp", subnormal + 0.01) < np.finfo(dtype).tiny
    assert value("exp", subnormal - 1) == 0
    assert [value("tanh", x) for x in (30, -30)] == [value("erf", x) for x in (30, -30)] == [1, -1]
    assert [value("cbrt", x) for x in (27, -64)] == [3, -4]
    assert value("powf", 2, 10) == 1024
    assert value("powf", -3, 3) == -27
    assert math.isnan(value("powf", -2, 0.5))


@pytest.mark.parametrize("lanes", [None, (1,), (8,), (17,), (2, 3), (1, 1)])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_any_shape_gives_the_same_numbers(library, tmp_path, lanes, kind):
    ops = ("exp", "tanh", "log", "erf", "sin", "atan")
    texts = [kernel(op, op, kind, lanes, 1) for op in ops]
    shaped = Library(tmp_path / "shaped.so", "\n".join(texts), list(ops))
    dtype = np.float32 if kind == "f32" else np.float64
    x = np.array([-0.0, 0.25, 1.5, -3.0, 7e5, np.nan, np.inf, 1e-39, -2e22, 11.0, 0.7, 88], dtype)
    for op in ops:
        got = shaped(op, x, step=math.prod(lanes or (1,)))
        assert np.array_equal(got, library(f"{op}_{kind}", x), equal_nan=True)


def test_half_precision_goes_through_single(tmp_path):
    functions = {"exp": np.exp, "tanh": np.tanh, "log": np.log, "sin": np.sin, "atan": np.arctan}
    texts = [kernel(op, op, "f16", (16,), 1) for op in functions]
    half = Library(tmp_path / "half.so", "\n".join(texts), list(functions))
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for op, function in functions.items():
        with np.errstate(all="ignore"):
            assert largest_error(half(op, x), function(x.astype(np.float64))) <= 0.51


def test_integer_exponents(tmp_path):
    text = kernel("ipowi", "ipowi", "i32", (8,), 2)
    integers = Library(tmp_path / "integers.so", text, ["ipowi"])
    x, n = np.meshgrid(np.arange(-20, 21, dtype=np.int32), np.arange(-5, 41, dtype=np.int32))
    defined = ~((x == 0) & (n < 0))
    x, n = x[defined], n[defined]

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return {1: 1, -1: (-1) ** (exponent % 2)}.get(base, 0)
        return (base**exponent + 2**31) % 2**32 - 2**31

    want = [power(int(base), int(exponent)) for base, exponent in zip(x, n, strict=True)]
    assert integers("ipowi", x, n, step=8).tolist() == want


@pytest.mark.parametrize("exponent", [-9, -3, -1, 0, 1, 2, 3, 7, 8, 13])
def test_constant_exponents(tmp_path, exponent):
    text = f"""
    func.func @power(%a: memref<?xf32>, %o: memref<?xf32>, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant 16 : index
      %f = arith.constant dense<{float(exponent)}> : vector<16xf32>
      %i = arith.constant dense<{exponent}> : vector<16xi32>
      %half = arith.constant dense<0.5> : vector<16xf32>
      scf.for %k = %c0 to %n step %step {{
        %x = vector.load %a[%k] : memref<?xf32>, vector<16xf32>
        %y = math.powf %x, %f : vector<16xf32>
        %z = math.fpowi %x, %i : vector<16xf32>, vector<16xi32>
        %s = arith.addf %y, %z : vector<16xf32>
        %m = arith.mulf %s, %half : vector<16xf32>
        vector.store %m, %o[%k] : memref<?xf32>, vector<16xf32>
      }}
      return
    }}"""
    power = Library(tmp_path / "power.so", text, ["power"])
    x = np.array([1.5, -1.5, 0.3, -0.9, 2, 1, -1, 1.0000001, -3.7, 12.25], np.float32)
    assert largest_error(power("power", x), x.astype(np.float64) ** exponent) <= 2


def test_clamping(tmp_path):
    text = """
    func.func @clamp(%a: memref<?xf32>, %o: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %step = arith.constant 16 : index
      %low = arith.constant dense<-1.5> : vector<16xf32>
      %high = arith.constant dense<2.25> : vector<16xf32>
      scf.for %k = %c0 to %n step %step {
        %x = vector.load %a[%k] : memref<?xf32>, vector<16xf32>
        %y = math.clampf %x to [%low, %high] : vector<16xf32>
        vector.store %y, %o[%k] : memref<?xf32>, vector<16xf32>
      }
      return
    }"""
    clamp = Library(tmp_path / "clamp.so", text, ["clamp"])
    x = np.array([-np.inf, -2, -1.5, 0, 1, 2.25, 3, np.inf, np.nan], np.float32)
    assert np.array_equal(clamp("clamp", x), np.clip(x, -1.5, 2.25), equal_nan=True)


def test_sine_and_cosine_at_once(library, tmp_path):
    text = """
    func.func @both(%a: memref<?xf32>, %o: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %step = arith.constant 16 : index
      scf.for %k = %c0 to %n step %step {
        %x = vector.load %a[%k] : memref<?xf32>, vector<16xf32>
        %s, %c = math.sincos %x : vector<16xf32>
        %d = arith.subf %s, %c : vector<16xf32>
        vector.store %d, %o[%k] : memref<?xf32>, vector<16xf32>
      }
      return
    }"""
    both = Library(tmp_path / "both.so", text, ["both"])
    x = np.linspace(-1e6, 1e6, 997, dtype=np.float32)
    assert np.array_equal(both("both", x), library("sin_f32", x) - library("cos_f32", x))


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_nothing_is_called(target, kind):
    stay = ("sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "roundeven", "absf")
    texts = [kernel(op, op, kind, (16,), 1) for op in (*UNARY, *OTHERS, *stay)]
    texts += [kernel(op, op, kind, (16,), 2) for op in (*BINARY, "atan2", "copysign")]
    symbols = read_object(compile_object("\n".join(texts), Target.parse(target))).symbols
    undefined = [symbol.name for symbol in symbols if symbol.name and not symbol.defined]
    assert undefined == []


def test_expanding_twice_changes_nothing():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(kernel("sin", "sin", "f32", (16,), 1))
        expand_math(module, NATIVE.host)
        once = str(module)
        expand_math(module, NATIVE.host)
        assert str(module) == once


def test_functions_added_later_share_the_table():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(kernel("sin", "sin", "f32", (16,), 1))
        expand_math(module, NATIVE.host)
        later = ir.Module.parse(kernel("cos", "cos", "f32", (16,), 1))
        module.body.append(later.body.operations[0].operation.clone())
        expand_math(module, NATIVE.host)
        module.operation.verify()
        assert str(module).count("memref.global") == 1


def test_a_square_is_a_product():
    text = """
    func.func @f(%x: vector<4xf32>) -> vector<4xf32> {
      %two = arith.constant dense<2.0> : vector<4xf32>
      %y = math.powf %x, %two : vector<4xf32>
      return %y : vector<4xf32>
    }"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_math(module, NATIVE.host)
        assert str(module).count("arith.mulf") == 1
        assert "arith.divf" not in str(module)


def test_tensors_are_left_alone():
    text = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = math.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_math(module, NATIVE.host)
        assert "math.exp" in str(module)


def test_a_composite_whose_operands_are_one_value() -> None:
    """What computes them is erased once."""
    text = """
    !x = tensor<?xf32, #graph.shape<["n"]>>
    func.func @main(%x: !x) -> !x {
      %0 = "graph.logaddexp"(%x, %x) : (!x, !x) -> !x
      return %0 : !x
    }"""
    x = np.float32([-2, 0.5, 3])
    result = relax_mlir.compile(text)["main"](x)
    np.testing.assert_allclose(result, x + np.log(2), rtol=1e-6)
