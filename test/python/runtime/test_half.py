"""f16 and bf16 conversions against NumPy and exact arithmetic."""

import ctypes
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module

from relax_mlir.executable import Executable, load

# The calls that instruction selection makes; halves in C's own types, for the same registers.
PRELUDE = """
_Float16 __truncsfhf2(float);
_Float16 __truncdfhf2(double);
float __extendhfsf2(_Float16);
__bf16 __truncsfbf2(float);
__bf16 __truncdfbf2(double);
"""


def conversion(name: str, source: str, target: str, ctype: tuple[str, str]) -> CFunction:
    code, bits = {"f16": (2, 16), "bf16": (4, 16), "f32": (2, 32)}[target]
    body = f"""
  {ctype[1]} *out = rx_result(context, results, 0, {code}, {bits}, 1, &n);
  if (!out) return 1;
  const {ctype[0]} *x = args[0].data;
  for (int64_t i = 0; i < n; i++) {{ {ctype[1]} y = {name}(x[i]); memcpy(&out[i], &y, sizeof y); }}
"""
    return CFunction(
        name.strip("_"), [Tensor("x", source, ["n"])], [Output(target, ["n"])], body=body
    )


FUNCTIONS = [
    conversion("__truncsfhf2", "f32", "f16", ("float", "_Float16")),
    conversion("__truncdfhf2", "f64", "f16", ("double", "_Float16")),
    conversion("__extendhfsf2", "f16", "f32", ("_Float16", "float")),
    conversion("__truncsfbf2", "f32", "bf16", ("float", "__bf16")),
    conversion("__truncdfbf2", "f64", "bf16", ("double", "__bf16")),
]


@pytest.fixture(scope="module")
def exe(tmp_path_factory) -> Executable:
    return load(build_module(FUNCTIONS, tmp_path_factory.mktemp("half"), PRELUDE))


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"uint{8 * array.itemsize}")


def hard_floats() -> np.ndarray:
    """Each half, the points midway between neighbours, and the floats next to these."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    brains = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
    midway = np.concatenate(
        [
            halves[:-1] / 2 + halves[1:] / 2,
            (np.arange(65536, dtype=np.uint32) << 16 | 0x8000).view(np.float32),
        ]
    )
    points = np.concatenate([halves, brains, midway, np.float32([65519.9, 65520, 65504, 1e9])])
    finite = points[np.isfinite(points)]
    near = [np.nextafter(finite, np.float32(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([points, *near])


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_float_to_halves(exe):
    x = hard_floats()
    for name, dtype in (("truncsfhf2", np.float16), ("truncsfbf2", ml_dtypes.bfloat16)):
        got, want = exe[name](x), x.astype(dtype)
        number = ~np.isnan(x)
        np.testing.assert_array_equal(bits(got)[number], bits(want)[number])
        assert np.isnan(got[~number]).all()


def test_half_to_float(exe):
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(exe["extendhfsf2"](x), x.astype(np.float32))


def nearest(x: float, values: np.ndarray) -> float:
    """The nearest of sorted finite values, ties to the one with an even last bit, exactly."""
    at = int(np.searchsorted(values, x))
    pair = [float(values[i]) for i in (at - 1, at) if 0 <= i < len(values)]
    distance = [abs(Fraction(x) - Fraction(v)) for v in pair]
    if len(pair) == 1 or distance[0] != distance[1]:
        return pair[distance.index(min(distance))]
    even = [v for v, half in zip(pair, values[[at - 1, at]], strict=True) if not bits(half) & 1]
    return even[0]


def test_double_to_halves(exe):
    random = np.random.default_rng(0)
    for name, dtype, top in (
        ("truncdfhf2", np.float16, 0x7C00),
        ("truncdfbf2", ml_dtypes.bfloat16, 0x7F80),
    ):
        values = np.arange(top, dtype=np.uint16).view(dtype)
        at = random.integers(0, top - 1, 300)
        middle = (values[at].astype(float) + values[at + 1].astype(float)) / 2
        # Rounding to float first would make these ties.
        x = np.concatenate([middle, middle * (1 + 2**-50), middle * (1 - 2**-50)])
        want = [nearest(float(v), values) for v in x]
        np.testing.assert_array_equal(exe[name](x).astype(float), want)
        np.testing.assert_array_equal(exe[name](-x).astype(float), -np.array(want))
        special = np.array([0.0, -0.0, np.inf, -np.inf, 1e300, 1e-300])
        got = exe[name](special).astype(float)
        np.testing.assert_array_equal(got, [0, 0, np.inf, -np.inf, np.inf, 0])
        assert np.isnan(exe[name](np.array([np.nan])).astype(float)).all()


def test_copies_memrefs_with_gaps(tmp_path):
    """`memrefCopy` is called by lowered `memref.copy`: descriptors as MLIR lays them out."""
    prelude = """
typedef struct { int64_t rank; void *descriptor; } Unranked;
void memrefCopy(int64_t bytes, const Unranked *from, const Unranked *to);
RX_API void copy(int64_t bytes, const Unranked *from, const Unranked *to) {
  memrefCopy(bytes, from, to);
}
"""
    library = ctypes.CDLL(str(build_module([], tmp_path, prelude)))

    def descriptor(array: np.ndarray, offset: int) -> ctypes.Array:
        start = array.ctypes.data - offset * array.itemsize
        strides = [stride // array.itemsize for stride in array.strides]
        words = [0, start, offset, *array.shape, *strides]
        body = (ctypes.c_int64 * len(words))(*words)
        unranked = (ctypes.c_int64 * 2)(array.ndim, ctypes.addressof(body))
        unranked.body = body
        return unranked

    random = np.random.default_rng(1)
    source = random.integers(0, 100, (6, 7, 8)).astype(np.int16)
    for view in (
        source,
        source[1:5, ::2, 1:],
        source.transpose(2, 0, 1),
        source[::-1, 3:3, :],
        source[2, 3, 4],
        source[0, 0, ::3],
    ):
        view = np.asarray(view)
        target = np.full((*view.shape, 2), -1, np.int16)[..., 0]
        library.copy(ctypes.c_int64(2), descriptor(view, 5), descriptor(target, 0))
        np.testing.assert_array_equal(target, view)
