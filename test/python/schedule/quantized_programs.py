"""Products with quantised matrices: graphs as text, matrices in panels, NumPy's account of them."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.graph.quantized import SCHEMES
from relax_mlir.executable import Executable


@dataclass(frozen=True)
class Matrix:
    """A matrix of N(rows, columns) by scheme: its operands, and its exact values in float64."""

    scheme: str
    operands: tuple[np.ndarray, ...]
    values: np.ndarray

    @staticmethod
    def of(
        scheme: str,
        numbers: np.ndarray,
        scale: np.ndarray,
        minimum: np.ndarray | None = None,
    ) -> "Matrix":
        """From numbers [rows, k], scale and minimum [rows, k / 32]; 16 divides rows."""
        rows, k = numbers.shape
        wide = numbers.reshape(rows, k // 32, 32).astype(np.float64) - SCHEMES[scheme].zero
        values = wide * scale.astype(np.float64)[:, :, None]
        operands = [pack_numbers(scheme, numbers), pack_factors(scale)]
        if minimum is not None:
            values = values + minimum.astype(np.float64)[:, :, None]
            operands.append(pack_factors(minimum))
        return Matrix(scheme, tuple(operands), values.reshape(rows, k))

    @staticmethod
    def random(scheme: str, rows: int, k: int, seed: int = 0) -> "Matrix":
        """Numbers and scales of every kind that a scheme has, negative and zero scales included."""
        rng = np.random.default_rng(seed)
        low, high = (-128, 128) if SCHEMES[scheme].bits == 8 else (0, 16)
        numbers = rng.integers(low, high, (rows, k))
        shape = (rows, k // 32)
        scale = (rng.standard_normal(shape) * (rng.random(shape) > 0.1)).astype(np.float16)
        minimum = rng.standard_normal(shape).astype(np.float16)
        return Matrix.of(scheme, numbers, scale, minimum if SCHEMES[scheme].has_minimum else None)


def pack_numbers(scheme: str, numbers: np.ndarray) -> np.ndarray:
    """Element by element as the operators' documentation says."""
    rows, k = numbers.shape
    out = np.zeros((rows // 16, k // 32, *SCHEMES[scheme].inner), np.int8)
    for row in range(rows):
        p, r = divmod(row, 16)
        for b in range(k // 32):
            for half in range(2):
                for group in range(4):
                    at = 32 * b + 16 * half + 4 * group
                    four = numbers[row, at : at + 4]
                    if SCHEMES[scheme].bits == 8:
                        out[p, b, half, group, r] = four
                    else:
                        out[p, b, group, r] |= (four << (4 * half)).astype(np.uint8).view(np.int8)
    return out


def pack_factors(factors: np.ndarray) -> np.ndarray:
    """[rows, blocks] as [panels, blocks, 16]."""
    rows, blocks = factors.shape
    return np.ascontiguousarray(factors.reshape(rows // 16, 16, blocks).transpose(0, 2, 1))


def rounded(x: np.ndarray) -> np.ndarray:
    """What `quantize_blocks` keeps of f32 numbers, in float64."""
    values, scale = quantized(x)
    blocks = values.reshape(*scale.shape, 32).astype(np.float64)
    return (blocks * scale.astype(np.float64)[..., None]).reshape(x.shape)


def quantized(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values and scales of `quantize_blocks`, each step rounded to float32."""
    blocks = x.reshape(*x.shape[:-1], x.shape[-1] // 32, 32)
    greatest = np.abs(blocks).max(-1)
    factor = np.float32(127) / np.where(greatest == 0, np.float32(127), greatest)
    values = np.rint(blocks * factor[..., None]).astype(np.int8).reshape(x.shape)
    return values, greatest / np.float32(127)


@dataclass(frozen=True)
class Product:
    """x[lead.., k] times the transpose of a matrix [rows, k], and maybe more.

    `kept` columns are cut out of the product, `bias` and `residual` added to that.
    """

    scheme: str
    rows: int
    k: int
    activations: str
    lead: tuple[int | str, ...] = ("n",)
    kept: int | None = None
    bias: bool = False
    residual: bool = False

    def text(self) -> str:
        """The module."""
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            f32 = ir.F32Type.get()
            columns = self.rows if self.kept is None else self.kept
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
            x = graph.DequantizeBlocksOp.build(*graph.QuantizeBlocksOp.build(x).results).result
        matrix = graph.DequantizeOp.build(*arguments[1 : 1 + parts], scheme=self.scheme).result
        transposed = graph.PermuteDimsOp.build(matrix, axes=[1, 0]).result
        y = graph.MatmulOp.build(x, transposed).result
        if self.kept is not None:
            y = graph.StridedSliceOp.build(
                y, axes=[len(self.lead)], begin=[0], end=[self.kept], strides=[1]
            ).result
        for other in more:
            y = graph.AddOp.build(y, other).result
        return y


def operand_types(scheme: str, rows: int, k: int) -> list[TensorType]:
    """The annotations of a matrix's operands."""
    panels, blocks = rows // 16, k // 32
    factors = TensorType.make([panels, blocks, 16], ir.F16Type.get())
    i8 = ir.IntegerType.get_signless(8)
    data = TensorType.make([panels, blocks, *SCHEMES[scheme].inner], i8)
    return [data, *[factors] * (1 + SCHEMES[scheme].has_minimum)]


@cache
def compiled(product: Product, target: str = "native", opt_level: int = 2) -> Executable:
    """The executable of a product, made once for all tests."""
    return relax_mlir.compile(product.text(), target, opt_level)
