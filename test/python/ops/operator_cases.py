"""Each operator with operands of every kind that it takes, for what compares many of them.

    for case in cases("f32"): case.op, case.specs, case.attributes, case.arrays(sizes)

Dims are n and m, for which `SIZES` has values. Elements stay where the operator is defined and
results do not overflow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from harness import (
    FLOATS,
    INTEGERS,
    NUMPY,
    SMALL_FLOATS,
    UNSIGNED,
    Spec,
    assert_close,
    floats,
    integers,
    spec,
    wide,
)
from test_binary import ARITHMETIC, BITWISE, COMPARE, FLOAT_ONLY, LOGICAL
from test_quantized import Packed, panels
from test_unary import FUNCTIONS, PREDICATES

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import ROUNDED, SCHEMES
from relax_mlir.symbolic import as_expr

SIZES = ({"n": 0, "m": 3}, {"n": 1, "m": 1}, {"n": 7, "m": 5}, {"n": 33, "m": 16})
TOLERANCE = {"f64": 1e-13, "f32": 4e-6, "f16": 2e-3, "bf16": 1.6e-2}


@dataclass(frozen=True)
class Case:
    """An operator with the annotations of its operands and its attributes.

    Results are compared with `ulps`, or to a tolerance of their type if there are none; integers
    and truth values are the same. `low` and `high` bound the elements.
    """

    op: Any
    specs: Sequence[Spec]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    ulps: float | None = None
    low: float = -3
    high: float = 3

    @property
    def name(self) -> str:
        """Of a function that has no other operator."""
        texts = [str(value) for value in self.attributes.values() if isinstance(value, str)]
        texts += [name for name, value in self.attributes.items() if value is True]
        kinds = [item.dtype for item in self.specs]
        return "_".join([self.op.OPERATION_NAME.partition(".")[2], *texts, *kinds])

    def of_constants(self, sizes: Mapping[str, int]) -> "Case":
        """The case with constants for its dims, in its attributes too."""

        def constants(value: Any) -> Any:
            if not isinstance(value, list | tuple):
                return value
            exact = [as_expr(x).evaluate(sizes) if isinstance(x, str) else x for x in value]
            return type(value)(exact)

        specs = [Spec(item.dtype, constants(tuple(item.dims))) for item in self.specs]
        attributes = {name: constants(value) for name, value in self.attributes.items()}
        return replace(self, specs=specs, attributes=attributes)

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Repeatable operands; no two of one shape are the same."""
        return [
            self._array([as_expr(dim).evaluate(sizes) for dim in item.dims], item.dtype, number)
            for number, item in enumerate(self.specs)
        ]

    def compare(
        self, run: Callable[..., Any], meant: Callable[..., Any], sizes: Mapping[str, int]
    ) -> None:
        """Calls both with operands of the given sizes; raises AssertionError if they differ."""
        arrays = self.arrays(sizes)
        results = [call(*(array.copy() for array in arrays)) for call in (run, meant)]
        got, want = (found if isinstance(found, tuple) else (found,) for found in results)
        for one, other in zip(got, want, strict=True):
            try:
                self._check(one, other)
            except AssertionError as error:
                raise AssertionError(f"{self.name} at {sizes}: {error}") from None

    def _check(self, got: np.ndarray, want: np.ndarray) -> None:
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        if got.dtype.itemsize == 1 and got.dtype.kind not in "iub":
            got, want = got.view(np.uint8), want.view(np.uint8)
        if got.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want)
        elif self.ulps is not None:
            assert_close(got, wide(want), self.ulps)
        else:
            kind = {2: "f16", 4: "f32", 8: "f64"}[got.dtype.itemsize]
            tolerance = TOLERANCE["bf16" if got.dtype.name == "bfloat16" else kind]
            scale = np.abs(wide(want)[np.isfinite(wide(want))]).max(initial=1)
            np.testing.assert_allclose(
                wide(got), wide(want), rtol=tolerance, atol=tolerance * scale
            )

    def _array(self, shape: Sequence[int], dtype: str, number: int) -> np.ndarray:
        values = (
            floats(shape, dtype, self.low, self.high) if dtype in FLOATS else integers(shape, dtype)
        )
        return np.roll(values.reshape(-1), 3 * number).reshape(shape)


def cases(dtype: str) -> Iterator[Case]:
    """Every operator that takes elements of a type."""
    if dtype in SMALL_FLOATS:
        yield from _small_floats(dtype)
        return
    yield from _element_wise(dtype)
    yield from _movements(dtype)
    if dtype != "i1":
        yield from _reductions(dtype)
    if dtype in FLOATS:
        yield from _networks(dtype)
    if dtype == "f32":
        yield from _quantised()


def _small_floats(dtype: str) -> Iterator[Case]:
    """Conversions, and what moves elements: nothing computes with floats of 8 bits."""
    x = spec(dtype, "n", "m")
    computing = graph.FirstNonzeroOp, graph.EyeOp, graph.ArangeOp
    for case in _movements(dtype):
        if case.op not in computing and case.attributes.get("reduction", "none") == "none":
            yield case
    yield Case(graph.WhereOp, [spec("i1", "n", 1), x, spec(dtype, "m")])
    yield Case(graph.BitcastOp, [x], {"dtype": "i8"})
    yield Case(graph.BitcastOp, [spec("ui8", "n", "m")], {"dtype": dtype})
    cache, new = spec(dtype, 2, "n + 5", 8), spec(dtype, "n", 2, 8)
    yield Case(graph.KvAppendOp, [cache, cache, new, new], {"position": (3,)})
    for other in NUMPY:
        yield Case(graph.AstypeOp, [x], {"dtype": other})
        if other != dtype:
            yield Case(graph.AstypeOp, [spec(other, "n", "m")], {"dtype": dtype})


def _element_wise(dtype: str) -> Iterator[Case]:
    x, half = spec(dtype, "n", "m"), dtype in ("f16", "bf16")
    if dtype in FLOATS:
        for op, (_, low, high, ulps) in FUNCTIONS.items():
            yield Case(op, [x], {}, 1 if half else ulps, low, high)
        for op in PREDICATES:
            yield Case(op, [x])
        for op, (_, ulps) in (ARITHMETIC | FLOAT_ONLY).items():
            # A sum of logarithms that is near 0 is only as exact as what cancels.
            cancels = op is graph.LogaddexpOp
            yield Case(op, [x, x], {}, None if cancels else 1 if half else ulps)
        yield Case(graph.PowerOp, [x, x], {}, 1 if half else 4, 0.1, 4)
    elif dtype in (*INTEGERS, *UNSIGNED):
        for op in (graph.AbsOp, graph.NegativeOp, graph.SignOp, graph.SquareOp, graph.ReluOp):
            yield Case(op, [x])
        yield Case(graph.PopcountOp, [x])
        for op in (
            *ARITHMETIC,
            graph.PowerOp,
            graph.LeftShiftOp,
            graph.RightShiftOp,
            graph.LogicalRightShiftOp,
        ):
            yield Case(op, [x, x])
    if dtype not in FLOATS:
        yield Case(graph.BitwiseNotOp, [x])
        for op in BITWISE:
            yield Case(op, [x, spec(dtype, "m")])
    if dtype == "i1":
        yield Case(graph.AnyOp, [x], {"axes": (1,), "keepdims": False})
        yield Case(graph.AllOp, [spec(dtype, "n", 4, "m")], {"axes": (0, 2), "keepdims": True})
        yield Case(graph.LogicalNotOp, [x])
        for op in LOGICAL:
            yield Case(op, [x, x])
    else:
        for op in (graph.FloorDivideOp, graph.RemainderOp):
            yield Case(op, [x, spec(dtype, "n", 1)], {}, 1, 0.5, 9)
    for op in COMPARE:
        yield Case(op, [x, spec(dtype, "m")])
    yield Case(graph.WhereOp, [spec("i1", "n", 1), x, spec(dtype, "m")])
    for target in (*FLOATS, *INTEGERS, *UNSIGNED, "i1"):
        yield Case(graph.AstypeOp, [x], {"dtype": target}, 0)


def _movements(dtype: str) -> Iterator[Case]:
    x, cube = spec(dtype, "n", "m"), spec(dtype, "n", 4, "m")
    yield Case(graph.PermuteDimsOp, [cube], {"axes": (2, 0, 1)})
    yield Case(graph.ReshapeOp, [cube], {"shape": (2, "2*n*m")})
    yield Case(graph.ExpandDimsOp, [x], {"axes": (0, -1)})
    yield Case(graph.SqueezeOp, [spec(dtype, 1, "n", 1)], {"axes": (0, 2)})
    yield Case(graph.BroadcastToOp, [spec(dtype, "n", 1)], {"shape": (2, "n", 3)})
    yield Case(graph.ConcatOp, [cube, spec(dtype, "n", 1, "m"), cube], {"axis": 1})
    yield Case(graph.SplitOp, [cube], {"sizes": (1, 3), "axis": 1})
    yield Case(graph.TakeOp, [cube, spec("i64", 2, 3)], {"axis": 1})
    pairs = spec("i32", 2, "m", 2)
    yield Case(graph.GatherElementsOp, [cube, spec("i64", "n", 7, "m")], {"axis": 1})
    yield Case(graph.GatherNdOp, [spec(dtype, 2, 4, 5, "n + 1"), pairs], {"batch_dims": 1})
    yield Case(graph.IndexTensorOp, [spec(dtype, 4, "n", 6), pairs, pairs], {"axes": (0, 2)})
    yield from _scatters(dtype)
    slices = {"axes": (0, 1), "begin": (0, 1), "end": ("n", 4), "strides": (2, 2)}
    yield Case(graph.StridedSliceOp, [cube], slices)
    yield Case(graph.SliceScatterOp, [cube, spec(dtype, "(n + 1) floordiv 2", 2, "m")], slices)
    yield Case(graph.FullOp, [spec(dtype)], {"shape": (3, 5)})
    same = {"f32": "i32", "f64": "i64", "f16": "bf16", "bf16": "i16"} | dict(i64="f64", i8="i8")
    if dtype in same:
        yield Case(graph.BitcastOp, [x], {"dtype": same[dtype]}, 0)
    if dtype == "i64":
        yield Case(graph.PhiloxOp, [spec("i64", 2)], {"blocks": (37,)})
    yield from _pads(dtype)
    yield Case(graph.OneHotOp, [pairs, spec(dtype), spec(dtype)], {"depth": ("m + 2",), "axis": 1})
    yield Case(graph.EyeOp, [], {"shape": (5, 9), "k": 2, "dtype": dtype}, 0)
    starts = spec("i32", 3)
    yield Case(graph.DynamicSliceOp, [cube, starts], {"sizes": ("n", 2, "m")})
    yield Case(graph.DynamicUpdateSliceOp, [cube, spec(dtype, "n", 2, "m"), starts])
    yield from _rearranged(dtype)
    yield Case(graph.TrilOp, [cube], {"k": -1})
    yield Case(graph.TriuOp, [cube], {"k": 1})
    yield Case(graph.FirstNonzeroOp, [cube], {"count": ("2*n*m",)})
    if dtype in UNSIGNED:  # as indices
        parts = [cube, spec(dtype, "n", 7, "m")]
        yield Case(graph.TakeOp, [cube, spec(dtype, 2, 3)], {"axis": 1})
        yield Case(graph.GatherElementsOp, parts, {"axis": 1})
        to = {"axis": 1, "reduction": "none"}
        yield Case(graph.ScatterElementsOp, [*parts, spec(dtype, "n", 7, "m")], to)
        yield Case(graph.OneHotOp, [x, spec(dtype), spec(dtype)], {"depth": (9,), "axis": -1})
        yield Case(graph.DynamicSliceOp, [cube, spec(dtype, 3)], {"sizes": ("n", 2, "m")})
    if dtype != "i1":
        yield Case(graph.ArangeOp, [], {"bounds": (-3, 30, 4), "dtype": dtype}, 0)


def _rearranged(dtype: str) -> Iterator[Case]:
    cube = spec(dtype, "n", 4, "m")
    yield Case(graph.FlipOp, [cube], {"axes": (0, -1)})
    yield Case(graph.RollOp, [cube], {"shifts": (-3, 18), "axes": (1, 2)})
    yield Case(graph.TileOp, [cube], {"repeats": (2, "m", 1, 3)})
    yield Case(graph.RepeatOp, [cube], {"repeats": (3,), "axis": -1})
    yield Case(graph.StackOp, [cube, cube, cube], {"axis": -2})


def _pads(dtype: str) -> Iterator[Case]:
    cube, value = spec(dtype, "n", 4, "m"), spec(dtype)
    widths = {"low": (2, 0, 1), "high": ("m", -1, 3), "interior": (0, 1, 0), "mode": "constant"}
    yield Case(graph.PadOp, [cube, value], widths)
    for mode, most in (("edge", 5), ("reflect", 3), ("wrap", 4)):
        widths = {"low": (0, -1, 0), "high": (0, most, 0), "interior": (0, 0, 0), "mode": mode}
        yield Case(graph.PadOp, [cube], widths)


def _scatters(dtype: str) -> Iterator[Case]:
    cube, pairs = spec(dtype, "n", 4, "m"), spec("i32", 2, "m", 2)
    for reduction in ("none",) if dtype == "i1" else ("none", "add", "mul", "max", "min"):
        to = {"reduction": reduction}
        parts = [spec("i64", "n", 7, "m"), spec(dtype, "n", 7, "m")]
        yield Case(graph.ScatterElementsOp, [cube, *parts], {"axis": 1, **to})
        parts = [spec("i8", "n", 4, 3), spec(dtype, "n", 4, 3)]
        yield Case(graph.ScatterElementsOp, [spec(dtype, "n", 4, 5), *parts], {"axis": -1, **to})
        yield Case(graph.ScatterNdOp, [cube, pairs, spec(dtype, 2, "m", "m")], to)
        values = spec(dtype, "m", 2)
        parts = [
            spec(dtype, 4, "n", 6),
            spec(dtype, 2, "m", 1),
            spec("i64", 2, "m"),
            spec("i32", "m"),
        ]
        yield Case(graph.IndexPutOp, parts, {"axes": (0, 2), **to})
        parts = [spec(dtype, 9), values, spec("i64", "m", 2)]
        yield Case(graph.IndexPutOp, parts, {"axes": (0,), **to})


def _reductions(dtype: str) -> Iterator[Case]:
    x, cube, span = (
        spec(dtype, "n", "m"),
        spec(dtype, "n", 4, "m"),
        {"axes": (0, 2), "keepdims": False},
    )
    yield Case(graph.SumOp, [cube], span)
    yield Case(graph.ProdOp, [cube], {"axes": (1,), "keepdims": True})
    yield Case(graph.MaxOp, [cube], span, 0)
    yield Case(graph.MinOp, [cube], {"axes": (), "keepdims": True}, 0)
    yield Case(graph.SortOp, [cube], {"axis": -1, "descending": False})
    yield Case(graph.SortOp, [spec(dtype, "n", 67)], {"axis": 0, "descending": True})
    yield Case(graph.ArgsortRowsOp, [spec(dtype, "n", 3)])
    yield Case(graph.TopkOp, [spec(dtype, "n", "m + 3")], {"k": ("m",), "axis": 1, "largest": True})
    yield Case(graph.TopkOp, [spec(dtype, 9, "n")], {"k": (4,), "axis": 0, "largest": False})
    for op in (graph.CumsumOp, graph.CumprodOp):
        yield Case(op, [cube], {"axis": 1, "exclusive": False, "reverse": True})
        yield Case(op, [x], {"axis": -1, "exclusive": True, "reverse": False})
    for op in (graph.ArgmaxOp, graph.ArgminOp):
        yield Case(op, [cube], {"axis": -1, "keepdims": False})
    yield Case(graph.SearchsortedOp, [spec(dtype, "n"), spec(dtype, "m", 3)], {"right": True})
    yield Case(graph.SearchsortedOp, [cube, spec(dtype, "n", 4, 7)], {"right": False})
    yield Case(graph.MatmulOp, [spec(dtype, 2, "n", "m"), spec(dtype, "m", 9)])
    window = {"strides": (2, 1), "padding": (1, 0, 1, 2), "dilation": (1, 2)}
    image = spec(dtype, 2, 4, 9, 17)
    yield Case(graph.MaxPool2dOp, [image], {"window": (3, 2), **window}, 0)
    yield Case(graph.SumPool2dOp, [image], {"window": (3, 2), **window})
    if dtype in FLOATS:
        yield Case(graph.LogsumexpOp, [cube], {"axes": (2, 0), "keepdims": True})
        spread = {"axes": (1, 2), "keepdims": False, "correction": 1}
        yield Case(graph.VarianceOp, [cube], spread)
        yield Case(graph.StdOp, [cube], spread | {"axes": (0,), "correction": 0})
        yield Case(graph.MeanOp, [cube], {"axes": (1, 2), "keepdims": False})
        yield Case(graph.Conv2dOp, [image, spec(dtype, 6, 2, 3, 2)], {**window, "groups": 2})


def _networks(dtype: str) -> Iterator[Case]:
    boxes, scores, bound = spec(dtype, "n", "m", 4), spec(dtype, "n", 2, "m"), spec(dtype)
    yield Case(graph.VisionNmsOp, [boxes, scores, spec("i64"), bound, bound], {"center": False})
    x, weight = spec(dtype, "n", "m"), spec(dtype, "m")
    yield Case(graph.SoftmaxOp, [x], {"axis": -1})
    yield Case(graph.LogSoftmaxOp, [x], {"axis": -1})
    yield Case(graph.RmsNormOp, [x, weight], {"epsilon": 1e-5})
    yield Case(graph.LayerNormOp, [x, weight, weight], {"epsilon": 1e-2})
    heads, table = spec(dtype, "n", 4, 8), spec(dtype, "n", 4)
    yield Case(graph.RotaryOp, [heads, table, table])
    cache, new = spec(dtype, 2, "n + 5", 8), spec(dtype, "n", 2, 8)
    yield Case(graph.KvAppendOp, [cache, cache, new, new], {"position": (3,)})
    settings = {"scale": 0.35, "causal": True}
    yield Case(graph.AttentionOp, [heads, cache, cache], {"position": (3,), **settings})
    pages, new = spec(dtype, "m", 2, 4, 8), spec(dtype, "n", 2, 8)
    tables = [spec("i32", 3, 2), spec("i32", "n"), spec("i64", "n")]
    yield Case(graph.PagedKvAppendOp, [pages, pages, new, new, *tables])
    paged = {"scale": 0.35, "window": 5, "cap": 2.0}
    yield Case(graph.PagedAttentionOp, [heads, pages, pages, *tables], paged)
    query, keys = spec(dtype, 2, "n", 4, 8), spec(dtype, 2, "m", 2, 8)
    mask = spec(dtype, 2, 1, 1, "m")
    settings["causal"] = False
    yield Case(graph.BatchedAttentionOp, [query, keys, keys, mask], settings)


def _quantised() -> Iterator[Case]:
    for scheme in ROUNDED:
        matrix = spec("f32", "n", SCHEMES[scheme].group)
        yield Case(graph.QuantizeOp, [matrix], {"scheme": scheme, "axis": 1}, 0)
    x = spec("f32", "n", 64)
    yield Case(graph.QuantizeBlocksOp, [x], {"symmetric": False})
    values, factors = spec("i8", "n", 64), spec("f32", "n", 2)
    yield Case(graph.DequantizeBlocksOp, [values, factors, factors])
    for scheme in SCHEMES:
        parts = panels(scheme, "n", 8)
        yield Case(Packed(graph.DequantizeOp, scheme), parts, {"scheme": scheme})
    rows, parts = spec("i32", "m"), panels("q5_k", 2, 8)
    yield Case(Packed(graph.DequantizeRowsOp, "q5_k"), [rows, *parts], {"scheme": "q5_k"})
