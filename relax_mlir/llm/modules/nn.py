"""A small module API that builds `graph` IR: layers have parameters, calls build operators.

    class Mlp(Module):
        def __init__(self):
            self.up = Linear(576, {"up_proj": 1536}, F32_STORAGE)  # of "up_proj.weight"
        def __call__(self, x):
            return silu(self.up(x))

A `Parameter` is an argument of the graph function that is being built; `Scope` maps it to its
value. Source: the `nn.Module` layer that the paper's models are written in (§5.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, TensorType
from relax_mlir.dialects.graph.quantized import PANEL, PARTS
from relax_mlir.llm.modules.config import Changes
from relax_mlir.panels import part_kinds
from relax_mlir.symbolic import Expr, as_expr

DimLike = Dim | int | str
BF16 = "bf16"
"""The scheme of bfloat16 matrices."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """An argument of the graph function: its dims, and the checkpoint's tensors in it.

    They are concatenated along dim 0. `part` "values" is a plain matrix: float32, or bfloat16 if
    that is the `scheme`. A matrix that is quantised by `scheme` has a parameter for each of its
    parts. `dtype` is the element type's name.
    """

    dims: tuple[int, ...]
    sources: tuple[str, ...]
    part: str = "values"
    scheme: str = ""
    dtype: str = "f32"

    @property
    def name(self) -> str:
        """Name of the argument: the sources, joined, and the part."""
        joined = "+".join(self.sources)
        return joined if self.part == "values" else f"{joined}.{self.part}"

    @property
    def element(self) -> ir.Type:
        """Its element type in the graph."""
        return ir.Type.parse(self.dtype)


@dataclass(frozen=True)
class Storage:
    """The storage of matrices: by their `schemes`, or float32 without one.

    A scheme is one of `graph.dequantize`, or "bf16". With `activations` "int8", operands of a
    quantised matrix are rounded to 8 bits in blocks of 32, so that products are of integers, and
    operands of a bf16 matrix are rounded to bf16; with "f32" they are not rounded. `cache` is the
    type of key and value caches, one of `kv_cache.py`. Adapters add `changes` to products.
    """

    schemes: Mapping[str, str] = field(default_factory=dict)
    activations: str = "int8"
    cache: str = "f32"
    changes: Changes = field(default_factory=Changes)

    def for_matrices(self, rows: int) -> "Storage":
        """This, or float32, if matrices of these rows, concatenated, begin within panels."""
        return self if rows % PANEL == 0 else replace(self, schemes={})


F32_STORAGE = Storage()
"""Every matrix in float32."""


class Module:
    """A layer; its parameters are those of its fields, in order of assignment."""

    def parameters(self) -> Iterator[Parameter]:
        """Yields every parameter below this layer once."""
        for value in vars(self).values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Parameter):
                    yield item
                elif isinstance(item, Module):
                    yield from item.parameters()


class Block(Module):
    """A layer of one operand and one result."""

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [..., size] to [..., size]."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Product:
    """A product of the function that is being built: weights times the rows of an operand.

    The operand is [..., columns]. With `experts`, int32[n, chosen], there are `count` of them,
    whose weights are in turn; the chosen ones multiply row n of it, or rows [n, chosen].
    """

    sources: tuple[str, ...]
    operand: ir.Value
    experts: ir.Value | None = None
    count: int = 1


class Scope:
    """Maps parameters to values of the function that is being built, within a `with` block.

    `adapters` are those of tokens: int32[n], or int32[1] of all, where 0 is none. Its `products`
    are collected.
    """

    def __init__(self, values: dict[Parameter, ir.Value], adapters: ir.Value | None = None) -> None:
        self.values, self.adapters = values, adapters
        self.products: list[Product] = []

    def __enter__(self) -> "Scope":
        self._token = _SCOPE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPE.reset(self._token)


_SCOPE: ContextVar[Scope] = ContextVar("scope")


def value_of(parameter: Parameter) -> ir.Value:
    """The value of a parameter in the current scope."""
    return _SCOPE.get().values[parameter]


def adapters_of_tokens() -> ir.Value | None:
    """The adapters of the current scope, if the function has any."""
    return _SCOPE.get().adapters


class Weight(Module):
    """A matrix [rows, columns] of the checkpoint, or several, concatenated along the rows."""

    def __init__(self, rows: int, columns: int, sources: Sequence[str], storage: Storage) -> None:
        self.rows = rows
        self.scheme = storage.schemes.get(sources[0], "")
        self.rounds = bool(self.scheme) and storage.activations == "int8"
        names = tuple(sources)
        if self.scheme in ("", BF16):
            dtype = self.scheme or "f32"
            self.parts = [Parameter((rows, columns), names, scheme=self.scheme, dtype=dtype)]
            return
        kinds = part_kinds(self.scheme, rows, columns)
        self.parts = [
            Parameter(dims, names, part, self.scheme, dtype)
            for part, (dims, dtype) in kinds.items()
        ]

    def multiply(self, x: "Operand") -> ir.Value:
        """Maps x[..., columns] to [..., rows]: x times the transpose of the matrix."""
        self.note(x.value)
        parts = [value_of(part) for part in self.parts]
        if not self.scheme:
            return matmul_transposed(x.value, *parts)
        if self.scheme == BF16:
            return matmul_transposed(x.rounded() if self.rounds else x.value, widened(*parts))
        matrix = graph.DequantizeOp.build(*self._slots(), scheme=self.scheme).result
        product = matmul_transposed(x.decoded() if self.rounds else x.value, matrix)
        if self.rows % PANEL == 0:
            return product
        return slice_axis(product, len(dims_of(product)) - 1, 0, self.rows)

    def matrices(self, count: int) -> ir.Value:
        """The rows as matrices of equal size, float32[count, rows / count, columns]."""
        parts = [value_of(part) for part in self.parts]
        if not self.scheme:
            value = parts[0]
        elif self.scheme == BF16:
            value = widened(*parts)
        else:
            value = graph.DequantizeOp.build(*self._slots(), scheme=self.scheme).result
        return reshape(value, [count, self.rows // count, dims_of(value)[1]])

    def note(self, operand: ir.Value, experts: ir.Value | None = None, count: int = 1) -> None:
        """Adds a `Product` to those of the scope."""
        _SCOPE.get().products.append(Product(self.parts[0].sources, operand, experts, count))

    def take(self, ids: ir.Value) -> ir.Value:
        """The rows [n, columns] of the ids int32[n]."""
        parts = [value_of(part) for part in self.parts]
        if not self.scheme:
            return graph.TakeOp.build(*parts, ids, axis=0).result
        if self.scheme == BF16:
            return widened(graph.TakeOp.build(*parts, ids, axis=0).result)
        return graph.DequantizeRowsOp.build(ids, *self._slots(), scheme=self.scheme).result

    def _slots(self) -> list[ir.Value | None]:
        """The values of the parts, in the order of the operators' operands."""
        values = {part.part: value_of(part) for part in self.parts}
        return [values.get(name) for name in PARTS]


class Operand:
    """The operand of several matrices, rounded at most once to each type."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value
        self._blocks: Sequence[ir.Value] = ()
        self._halves: ir.Value | None = None

    def decoded(self) -> ir.Value:
        """The values rounded to 8 bits, as float32, to be fused into their users."""
        if not self._blocks:
            self._blocks = graph.QuantizeBlocksOp.build(self.value, symmetric=False).results
        return graph.DequantizeBlocksOp.build(*self._blocks).result

    def rounded(self) -> ir.Value:
        """The values rounded to bf16, as float32, to be fused into their users."""
        if self._halves is None:
            self._halves = graph.AstypeOp.build(self.value, dtype=ir.BF16Type.get()).result
        return widened(self._halves)


class LowRank(Module):
    """What adapters add to a product with matrices, by their names and rows: B A x.

    Of each matrix that adapters change, there are A float32[1 + adapters, rank, in] and the
    transposes of B, float32[1 + adapters, rank, out]. The first ones are zeros, for no adapter.
    Source: Hu et al. 2021 (LoRA); Chen et al. 2023 (Punica), of rows with adapters of their own.
    """

    def __init__(self, inputs: int, sources: Mapping[str, int], changes: Changes) -> None:
        self.rows = tuple(sources.values())
        self.ins: list[Parameter] = []
        self.outs: list[Parameter] = []
        self.changed: list[int] = []
        for index, (name, rows) in enumerate(sources.items()):
            if rank := changes.ranks.get(f"{name}.weight"):
                self.changed.append(index)
                for part, size, own in (("A", inputs, self.ins), ("B", rows, self.outs)):
                    own.append(Parameter((1 + changes.count, rank, size), (f"{name}.lora_{part}",)))

    def added(self, product: ir.Value, x: ir.Value, adapters: ir.Value | None) -> ir.Value:
        """The product of x [n, in], [n, out], with what the adapter of each row adds, or of all."""
        if not self.changed:
            return product
        assert adapters is not None  # a decoder with changes takes them
        count = dims_of(x)[0]
        changes = [full(0.0, [count, rows]) for rows in self.rows]
        for index, a, b in zip(self.changed, self.ins, self.outs, strict=True):
            inner = _sum_of_products(a, adapters, graph.ExpandDimsOp.build(x, axes=[1]).result, 2)
            column = graph.ExpandDimsOp.build(inner, axes=[2]).result
            changes[index] = _sum_of_products(b, adapters, column, 1)
        return add(product, concat(changes, 1))


def _sum_of_products(parameter: Parameter, adapters: ir.Value, x: ir.Value, axis: int) -> ir.Value:
    """The sum along an axis of the adapters' matrices times x; they are read where they are."""
    taken = graph.TakeOp.build(value_of(parameter), adapters, axis=0).result
    return graph.SumOp.build(multiply(taken, x), axes=[axis], keepdims=False).result


class Linear(Module):
    """x times the transpose of [out, in], plus a bias; concatenates `sources` (name to rows)."""

    def __init__(
        self, inputs: int, sources: Mapping[str, int], storage: Storage, bias: bool = False
    ) -> None:
        runs: list[list[str]] = []
        for name, rows in sources.items():
            last = runs[-1][-1] if runs else None
            # Each matrix of a run begins at a new panel.
            if last is not None and _joins(storage, last, name) and sources[last] % PANEL == 0:
                runs[-1].append(name)
            else:
                runs.append([name])
        self.weights = [
            Weight(
                sum(sources[name] for name in run),
                inputs,
                [f"{name}.weight" for name in run],
                storage,
            )
            for run in runs
        ]
        names = tuple(f"{name}.bias" for name in sources)
        self.bias = Parameter((sum(sources.values()),), names) if bias else None
        self.change = LowRank(inputs, sources, storage.changes)

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [..., in] to [..., out]."""
        operand = Operand(x)
        products = [weight.multiply(operand) for weight in self.weights]
        product = concat(products, len(dims_of(x)) - 1)
        product = self.change.added(product, x, adapters_of_tokens())
        return product if self.bias is None else add(product, value_of(self.bias))


def _joins(storage: Storage, a: str, b: str) -> bool:
    """Whether two matrices have the same storage."""
    schemes = [storage.schemes.get(f"{name}.weight", "") for name in (a, b)]
    return schemes[0] == schemes[1]


class RmsNorm(Block):
    """Root-mean-square normalisation over the last dim, scaled by a weight."""

    def __init__(self, size: int, epsilon: float, source: str) -> None:
        self.weight = Parameter((size,), (source,))
        self.epsilon = epsilon

    def __call__(self, x: ir.Value) -> ir.Value:
        """Normalises [..., size]."""
        return graph.RmsNormOp.build(x, value_of(self.weight), epsilon=self.epsilon).result


class LayerNorm(Block):
    """Normalisation to mean 0 and variance 1 over the last dim, scaled, plus a bias."""

    def __init__(self, size: int, epsilon: float, source: str, bias: bool) -> None:
        self.weight = Parameter((size,), (f"{source}.weight",))
        self.bias = Parameter((size,), (f"{source}.bias",)) if bias else None
        self.epsilon = epsilon
        self.size = size

    def __call__(self, x: ir.Value) -> ir.Value:
        """Normalises [..., size]."""
        bias = full(0.0, [self.size]) if self.bias is None else value_of(self.bias)
        return graph.LayerNormOp.build(x, value_of(self.weight), bias, epsilon=self.epsilon).result


class Embedding(Module):
    """A table of [vocabulary, size] read by token id."""

    def __init__(self, count: int, size: int, source: str, storage: Storage) -> None:
        self.weight = Weight(count, size, [source], storage)

    def __call__(self, ids: ir.Value) -> ir.Value:
        """Maps int32[n] to [n, size]."""
        return self.weight.take(ids)


def matmul_transposed(x: ir.Value, weight: ir.Value) -> ir.Value:
    """x[..., in] times the transpose of weight[out, in]."""
    transposed = graph.PermuteDimsOp.build(weight, axes=[1, 0]).result
    return graph.MatmulOp.build(x, transposed).result


def widened(x: ir.Value) -> ir.Value:
    """Converts to float32."""
    return graph.AstypeOp.build(x, dtype=ir.F32Type.get()).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b."""
    return graph.AddOp.build(a, b).result


def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    """a * b."""
    return graph.MultiplyOp.build(a, b).result


def matmul(a: ir.Value, b: ir.Value) -> ir.Value:
    """The product of the last two dims."""
    return graph.MatmulOp.build(a, b).result


def silu(x: ir.Value) -> ir.Value:
    """x * sigmoid(x)."""
    return graph.SiluOp.build(x).result


def scaled(x: ir.Value, factor: float) -> ir.Value:
    """x times a constant; x itself for 1."""
    return x if factor == 1 else multiply(x, constant(factor))


def capped(x: ir.Value, cap: float) -> ir.Value:
    """cap * tanh(x / cap); x itself for 0."""
    if not cap:
        return x
    return scaled(graph.TanhOp.build(scaled(x, 1 / cap)).result, cap)


def constant(value: float) -> ir.Value:
    """A float32 of rank 0."""
    kind = ir.RankedTensorType.get([], ir.F32Type.get())
    data = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(ir.F32Type.get(), value))
    return arith.ConstantOp(kind, data).result


def full(value: float, dims: Sequence[DimLike]) -> ir.Value:
    """A tensor of one float32."""
    return graph.FullOp.build(constant(value), shape=dims).result


def concat(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """The values one after another along an axis; the value itself if it is the only one."""
    return values[0] if len(values) == 1 else graph.ConcatOp.build(*values, axis=axis).result


def permute(x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The dims in another order."""
    return graph.PermuteDimsOp.build(x, axes=axes).result


def reshape(x: ir.Value, dims: Sequence[DimLike]) -> ir.Value:
    """The same elements under other dims."""
    return graph.ReshapeOp.build(x, shape=dims).result


def slice_axis(x: ir.Value, axis: int, begin: DimLike, end: DimLike) -> ir.Value:
    """Elements begin to end of one axis."""
    return graph.StridedSliceOp.build(x, axes=[axis], begin=[begin], end=[end], strides=[1]).result


def arange(start: Expr | str, stop: Expr | str, element: ir.Type) -> ir.Value:
    """The range from start to stop, exclusive."""
    return graph.ArangeOp.build(bounds=[as_expr(start), as_expr(stop), 1], dtype=element).result


def dims_of(x: ir.Value) -> tuple[Dim, ...]:
    """Returns the annotated dims of a tensor."""
    dims = TensorType.of(x).dims
    assert dims is not None  # layers build only tensors of known rank
    return dims
