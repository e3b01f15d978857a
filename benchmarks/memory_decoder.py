"""The decoder whose memory `memory.py` plans: from operators, or as another compiler lowered it.

    @prefill(tokens: int32[n], last: int32[1], cache, weights...) -> logits: f32[1, vocabulary]
    @decode(tokens: int32[n], cache, weights...) -> logits: f32[n, vocabulary]

Values are f16. Attention is one tensor program that also appends to the caches and rotates, as
engines on top of TVM have it; it is called by its signature, and its body does nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import CallDpsOp, CallTirOp, TensorType
from relax_mlir.dialects.graph.memory import AllocTensorOp, ViewOp
from relax_mlir.llm.modules.nn import matmul_transposed, multiply, reshape, silu, slice_axis

ELEMENTS = {"float16": "f16", "float32": "f32", "int32": "i32"}
ROWS, CAPACITY = "n", "c"
EPSILON = 1e-5
KERNEL = "kernel"


@dataclass(frozen=True)
class Config:
    """The sizes of a decoder of Llama's kind; the default is Llama 3 of 8 billion weights."""

    vocabulary: int = 128256
    hidden: int = 4096
    inner: int = 14336
    heads: int = 32
    kv_heads: int = 8
    dim: int = 128
    layers: int = 32

    @property
    def qkv(self) -> int:
        """Heads of queries, keys and values together."""
        return self.heads + 2 * self.kv_heads


def decoder(config: Config, bounds: dict[str, int]) -> ir.Module:
    """The decoder as graph functions; `bounds` are the most rows of each, which become facts."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        _attention_program(config)
        for name, bound in bounds.items():
            _Function(config, name, bound).build()
    return module


def lowered(functions: dict[str, dict]) -> ir.Module:
    """Functions of allocations, views and calls, as `peers/memory_tvm.py` describes them."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        func.FuncOp(KERNEL, ([], []), visibility="private")
        for name, function in functions.items():
            _lowered_function(name, function)
    return module


def _attention_program(config: Config) -> None:
    ins = [_type([ROWS, config.qkv, config.dim]), _type([CAPACITY])]
    out = _type([ROWS, config.heads, config.dim])
    program = func.FuncOp("attention", ([*ins, out], [out]), visibility="private")
    program.attributes["tir.prim_func"] = ir.UnitAttr.get()
    program.attributes["tir.num_outs"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    with ir.InsertionPoint(program.add_entry_block()):
        func.ReturnOp([program.arguments[-1]])


@dataclass
class _Function:
    """One function of the decoder; weights are taken from `arguments` in order of use."""

    config: Config
    name: str
    bound: int
    arguments: list[ir.Value] = field(default_factory=list)

    def build(self) -> None:
        """Writes it at the insertion point."""
        takes_last = self.name == "prefill"
        kinds = [_type([ROWS], "i32"), _type([CAPACITY]), *self._weights()]
        kinds += [_type([1], "i32")] if takes_last else []
        result = _type([1 if takes_last else ROWS, self.config.vocabulary], "f32")
        function = func.FuncOp(self.name, (kinds, [result]))
        fact = ir.StringAttr.get(f"{ROWS} <= {self.bound}")
        function.attributes["graph.facts"] = ir.ArrayAttr.get([fact])
        tokens, cache, *self.arguments = function.add_entry_block().arguments
        with ir.InsertionPoint(function.entry_block):
            x = graph.TakeOp.build(self._next(), tokens, axis=0).result
            for _ in range(self.config.layers):
                x = self._layer(x, cache)
            if takes_last:
                x = graph.TakeOp.build(x, self.arguments.pop(), axis=0).result
            logits = self._linear(self._norm(x))
            func.ReturnOp([graph.AstypeOp.build(logits, dtype=ir.F32Type.get()).result])

    def _weights(self) -> list[ir.Type]:
        c = self.config
        layer: list[Sequence[int]] = [(c.hidden,), (c.qkv * c.dim, c.hidden)]
        layer += [(c.hidden, c.heads * c.dim), (c.hidden,)]
        layer += [(2 * c.inner, c.hidden), (c.hidden, c.inner)]
        words = (c.vocabulary, c.hidden)
        return [_type(dims) for dims in [words, *layer * c.layers, (c.hidden,), words]]

    def _layer(self, x: ir.Value, cache: ir.Value) -> ir.Value:
        """[n, hidden] -> [n, hidden]."""
        c = self.config
        qkv = reshape(self._linear(self._norm(x)), [ROWS, c.qkv, c.dim])
        kind = TensorType.make([ROWS, c.heads, c.dim], ir.F16Type.get())
        mixed = CallTirOp.build("attention", [qkv, cache], [kind]).results[0]
        mixed = self._linear(reshape(mixed, [ROWS, c.heads * c.dim]))
        x = graph.AddOp.build(x, mixed).result
        both = self._linear(self._norm(x))
        gate, up = (slice_axis(both, 1, i * c.inner, (i + 1) * c.inner) for i in range(2))
        return graph.AddOp.build(x, self._linear(multiply(silu(gate), up))).result

    def _next(self) -> ir.Value:
        return self.arguments.pop(0)

    def _linear(self, x: ir.Value) -> ir.Value:
        return matmul_transposed(x, self._next())

    def _norm(self, x: ir.Value) -> ir.Value:
        return graph.RmsNormOp.build(x, self._next(), epsilon=EPSILON).result


def _lowered_function(name: str, described: dict) -> None:
    kinds = [_described(dims, dtype) for _, dims, dtype in described["parameters"]]
    result = next(kind for kind in _allocated(described) if kind[0] == described["result"])
    function = func.FuncOp(name, ([kind.to_mlir() for kind in kinds], [result[1].to_mlir()]))
    names = [parameter for parameter, *_ in described["parameters"]]
    values = dict(zip(names, function.add_entry_block().arguments, strict=True))
    with ir.InsertionPoint(function.entry_block):
        for kind, *operands in described["body"]:
            if kind == "alloc":
                values[operands[0]] = AllocTensorOp.build(_described(*operands[1:])).result
            elif kind == "view":
                source = values[operands[1]]
                values[operands[0]] = ViewOp.build(source, _described(*operands[2:])).result
            else:
                *ins, out = (values[operand] for operand in operands[0])
                CallDpsOp.build(KERNEL, ins, [out])
        func.ReturnOp([values[described["result"]]])


def _allocated(described: dict) -> list[tuple[str, TensorType]]:
    allocations = [operands for kind, *operands in described["body"] if kind == "alloc"]
    return [(name, _described(dims, dtype)) for name, dims, dtype in allocations]


def _described(dims: Sequence[str], dtype: str) -> TensorType:
    sizes = [int(dim) if dim.isdecimal() else dim for dim in dims]
    return TensorType.make(sizes, ir.Type.parse(ELEMENTS[dtype]))


def _type(dims: Sequence[int | str], element: str = "f16") -> ir.Type:
    return TensorType.make(dims, ir.Type.parse(element)).to_mlir()
