"""Products with quantised matrices: graphs as text, matrices in panels, NumPy's account of them."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.graph.quantized import PARTS, SCHEMES
from relax_mlir.executable import Executable


@dataclass(frozen=True)
class Matrix:
    """A matrix by scheme: its operands, and its exact values [rows, k] in float64."""

    scheme: str
    operands: tuple[np.ndarray, ...]
    values: np.ndarray

    @staticmethod
    def of(scheme: str, elements: np.ndarray, factors: dict[str, np.ndarray]) -> "Matrix":
        """From elements [rows, k] and factors [rows, blocks or groups, ..]; 16 divides rows."""
        kind, (rows, k) = SCHEMES[scheme], elements.shape

        def factor(name: str) -> np.ndarray:
            inner = np.repeat(factors[name].astype(np.float64), kind.shared, 1)
            inner = inner.reshape(rows, k // 32, -1, 1)
            if not kind.is_nested:
                return inner
            outer = factors[f"outer_{name}"].astype(np.float64)
            return inner * np.repeat(outer, 8, 1)[:, :, None, None]

        decoded = elements.reshape(rows, k // 32, 2, 16).astype(np.float64) - kind.zero
        values = decoded * factor("scale") + (factor("minimum") if kind.has_minimum else 0)
        parts = pack_elements(scheme, elements)
        parts.update((name, pack_factors(array)) for name, array in factors.items())
        operands = tuple(parts[name] for name in kind.parts(1, 8))
        return Matrix(scheme, operands, values.reshape(rows, k))

    @staticmethod
    def random(
        scheme: str, rows: int, k: int, seed: int = 0, is_greatest: bool = False
    ) -> "Matrix":
        """Elements and factors of all kinds in a scheme, negative ones and zero included.

        With `is_greatest`, all elements are the maximum.
        """
        rng, kind = np.random.default_rng(seed), SCHEMES[scheme]
        low, high = (-128, 128) if kind.bits == 8 else (0, 1 << kind.bits)
        elements = rng.integers(high - 1 if is_greatest else low, high, (rows, k))
        factors = {}
        for name, (element, dims) in kind.parts(rows // 16, k // 32).items():
            shape = (rows, dims[1], *dims[2:-1])
            if element == "f16":
                factors[name] = rng.standard_normal(shape) * (rng.random(shape) > 0.1)
                factors[name] = factors[name].astype(np.float16)
            elif name not in ("data", "high"):
                factors[name] = rng.integers(-128, 128, shape).astype(np.int8)
        return Matrix.of(scheme, elements, factors)


def pack_elements(scheme: str, elements: np.ndarray) -> dict[str, np.ndarray]:
    """Packed in groups of four, see `dialects/graph/quantized.py`."""
    (rows, k), bits = elements.shape, SCHEMES[scheme].bits
    fours = elements.astype(np.uint8).reshape(rows // 16, 16, k // 32, 2, 4, 4)
    fours = np.moveaxis(fours, 1, 4).copy()  # [panel, block, half, group, row, 4]
    if bits == 8:
        parts = {"data": fours}
    else:
        parts = {"data": fours[:, :, 0] & 15 | fours[:, :, 1] << 4}
    groups = np.arange(4, dtype=np.uint8)[:, None, None]
    if bits == 5:
        halves = 4 * np.arange(2, dtype=np.uint8)[:, None, None, None]
        parts["high"] = np.bitwise_or.reduce(fours >> 4 << halves + groups, axis=(2, 3))
    elif bits == 6:
        parts["high"] = np.bitwise_or.reduce(fours >> 4 << 2 * groups, axis=3)
    return {name: part.view(np.int8) for name, part in parts.items()}


def pack_factors(factors: np.ndarray) -> np.ndarray:
    """[rows, blocks, ...] as [panels, blocks, ..., 16]."""
    panels = factors.reshape(len(factors) // 16, 16, *factors.shape[1:])
    return np.ascontiguousarray(np.moveaxis(panels, 1, -1))


def rounded(x: np.ndarray) -> np.ndarray:
    """f32 values after `quantize_blocks`, in float64."""
    values, scale, offset = quantized(x)
    blocks = values.reshape(*scale.shape, 32).astype(np.float64)
    steps, offsets = (each.astype(np.float64)[..., None] for each in (scale, offset))
    return (blocks * steps + offsets).reshape(x.shape)


def quantized(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, scales and offsets of `quantize_blocks`, each step rounded to float32."""
    blocks = x.reshape(*x.shape[:-1], x.shape[-1] // 32, 32)
    low = blocks.min(-1)
    width = blocks.max(-1) - low
    scale = width / np.float32(254)
    factor = np.float32(254) / np.where(width == 0, np.float32(254), width)
    steps = np.rint((blocks - low[..., None]) * factor[..., None])
    values = (steps - 127).astype(np.int8).reshape(x.shape)
    return values, scale, low + scale * np.float32(127)


@dataclass(frozen=True)
class Product:
    """x[lead.., k] times the transpose of a matrix [rows, k], and an epilogue.

    The first `sliced` columns are used, to which `bias` and `residual` are added.
    """

    scheme: str
    rows: int
    k: int
    activations: str
    lead: tuple[int | str, ...] = ("n",)
    sliced: int | None = None
    bias: bool = False
    residual: bool = False

    def text(self) -> str:
        """The module."""
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            f32 = ir.F32Type.get()
            columns = self.rows if self.sliced is None else self.sliced
            out = TensorType.make([*self.lead, columns], f32)
            matrix = operand_types(self.scheme, self.rows, self.k)
            inputs = [TensorType.make([*self.lead, self.k], f32), *matrix]
            inputs += [TensorType.make([columns], f32)] * self.bias + [out] * self.residual
            with ir.InsertionPoint(module.body):
                kinds = [kind.to_mlir() for kind in inputs]
                main = func.FuncOp("main", (kinds, [out.to_mlir()]))
            with ir.InsertionPoint(main.add_entry_block()):
                func.ReturnOp([self._body(list(main.arguments), len(matrix))])
            return str(module)

    def _body(self, arguments: list[ir.Value], parts: int) -> ir.Value:
        x, more = arguments[0], arguments[1 + parts :]
        if self.activations == "int8":
            blocks = graph.QuantizeBlocksOp.build(x, symmetric=False).results
            x = graph.DequantizeBlocksOp.build(*blocks).result
        given = dict(zip(SCHEMES[self.scheme].parts(1, 8), arguments[1 : 1 + parts], strict=True))
        matrix = graph.DequantizeOp.build(*map(given.get, PARTS), scheme=self.scheme).result
        transposed = graph.PermuteDimsOp.build(matrix, axes=[1, 0]).result
        y = graph.MatmulOp.build(x, transposed).result
        if self.sliced is not None:
            y = graph.StridedSliceOp.build(
                y, axes=[len(self.lead)], begin=[0], end=[self.sliced], strides=[1]
            ).result
        for other in more:
            y = graph.AddOp.build(y, other).result
        return y


def operand_types(scheme: str, rows: int, k: int) -> list[TensorType]:
    """The annotations of a matrix's operands."""
    parts = SCHEMES[scheme].parts(rows // 16, k // 32).values()
    return [TensorType.make(dims, ir.Type.parse(element)) for element, dims in parts]


@cache
def compiled(product: Product, target: str = "native", opt_level: int = 2) -> Executable:
    """The executable of a product, made once for all tests."""
    return relax_mlir.compile(product.text(), target, opt_level)
