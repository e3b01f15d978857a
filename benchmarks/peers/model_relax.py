"""This compiler: each model compiled once for all sizes, or once for each size."""

import math
from functools import cache

import model_cases
import numpy as np
from worker import Prepared

import relax_mlir
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType


class Models:
    """One compilation for all batch sizes, lengths, heights and widths."""

    version = relax_mlir.__version__
    is_dynamic = True
    fast_math = "none"

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._loaded = cache(self._load)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        sizes = () if self.is_dynamic else tuple(case["sizes"].items())
        executable, parameters = self._loaded(
            tuple(x for x in case.items() if x[0] != "sizes"), sizes
        )
        given = list(model_cases.arguments(case).values())
        main = executable["main"]
        shape = main(*given, *parameters).shape
        out = np.empty(shape, np.float32)
        call = main.bind(*given, *parameters, results=[out])
        return Prepared(lambda: [call.run()])

    def _load(self, items: tuple, sizes: tuple) -> tuple[relax_mlir.Executable, list[np.ndarray]]:
        case = dict(items)
        executable = relax_mlir.compile(export(case, dict(sizes), self.fast_math), opt_level=3)
        executable.threads = self._threads
        parameters = list(model_cases.weights(case).values())
        if case["dtype"] == "bf16":
            names = model_cases.model(case).weights
            parameters = [
                (x.view(np.uint32) >> 16).astype(np.uint16) if len(names[name]) == 2 else x
                for name, x in zip(names, parameters, strict=True)
            ]
        packed = executable["main_params"](*parameters)
        return executable, list(packed) if isinstance(packed, tuple) else [packed]


class FastMath(Models):
    """Convolutions may take fewer products, of sums of finite values."""

    fast_math = "reassoc,nnan,ninf"


class Specialised(Models):
    """One compilation for each case."""

    is_dynamic = False


def export(case: dict, sizes: dict[str, int], fast_math: str = "none") -> str:
    """The model as a module; dims that `sizes` does not name are symbols.

    `fast_math` are flags of its convolutions.
    """
    model = model_cases.model(case)
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        types = []
        for named, dtype in model.arguments.values():
            dims = [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in named]
            types.append(TensorType.make(dims, ir.Type.parse(dtype)).to_mlir())
        for extents in model.weights.values():
            kind = "bf16" if case["dtype"] == "bf16" and len(extents) == 2 else "f32"
            types.append(TensorType.make(extents, ir.Type.parse(kind)).to_mlir())
        names = [*model.arguments, *model.weights]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        main.arg_attrs = [ir.DictAttr.get({"graph.name": ir.StringAttr.get(n)}) for n in names]
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(model.arguments))
        main.attributes["graph.num_inputs"] = count
        values = dict(zip(names, main.add_entry_block().arguments, strict=True))
        with ir.InsertionPoint(main.entry_block):
            result = model.run(_Graph(case["dtype"], fast_math), values, values)
            func.ReturnOp([result])
        signature = ir.FunctionType.get(types, [result.type])
        main.attributes["function_type"] = ir.TypeAttr.get(signature)
        return str(module)


class _Graph:
    """The operators as those of the graph dialect; bf16 rounds what is multiplied with weights."""

    def __init__(self, dtype: str, fast_math: str) -> None:
        self._rounds = dtype == "bf16"
        self._fast_math = fast_math

    def add(self, a, b):
        return graph.AddOp.build(a, b).result

    def multiply(self, a, b):
        return graph.MultiplyOp.build(a, b).result

    def take(self, table, ids):
        return graph.TakeOp.build(table, ids, axis=0).result

    def first_rows(self, table, ids):
        end = _dims(ids)[1]
        return graph.StridedSliceOp.build(table, axes=[0], begin=[0], end=[end], strides=[1]).result

    def linear(self, x, w, bias=None):
        f32 = ir.F32Type.get()
        if self._rounds:
            x = graph.AstypeOp.build(x, dtype=ir.BF16Type.get()).result
            x, w = (graph.AstypeOp.build(each, dtype=f32).result for each in (x, w))
        y = graph.MatmulOp.build(x, _permuted(w, [1, 0])).result
        return y if bias is None else self.add(y, bias)

    def layer_norm(self, x, gain, bias):
        return graph.LayerNormOp.build(x, gain, bias, epsilon=model_cases.EPSILON).result

    def rms_norm(self, x, gain):
        return graph.RmsNormOp.build(x, gain, epsilon=model_cases.EPSILON).result

    def gelu(self, x):
        return graph.GeluOp.build(x).result

    def silu(self, x):
        return graph.SiluOp.build(x).result

    def relu(self, x):
        return graph.ReluOp.build(x).result

    def mask(self, mask, masked):
        b, n = _dims(mask)
        added = self.multiply(graph.SubtractOp.build(_constant(1), mask).result, _constant(masked))
        return _reshaped(added, [b, 1, 1, n])

    def rotary(self, x, heads, cos, sin):
        b, n, width = _dims(x)
        d = width.value // heads
        x = _reshaped(x, [b, n, heads, d])
        first, second = graph.SplitOp.build(x, sizes=[d // 2] * 2, axis=3).results
        rotated = graph.ConcatOp.build(graph.NegativeOp.build(second).result, first, axis=3).result
        cos, sin = (_reshaped(each, [n, 1, d]) for each in (cos, sin))
        return _reshaped(
            self.add(self.multiply(x, cos), self.multiply(rotated, sin)), [b, n, width]
        )

    def attention(self, q, k, v, heads, kv_heads, d, mask):
        b, n, width = _dims(q)
        group = heads // kv_heads
        q = _permuted(_reshaped(q, [b, n, heads, d]), [0, 2, 1, 3])
        k = _permuted(_reshaped(k, [b, n, kv_heads, d]), [0, 2, 3, 1])
        v = _permuted(_reshaped(v, [b, n, kv_heads, d]), [0, 2, 1, 3])
        if group > 1:
            q = _reshaped(q, [b, kv_heads, group, n, d])
            k, v = (graph.ExpandDimsOp.build(each, axes=[2]).result for each in (k, v))
        scores = self.multiply(graph.MatmulOp.build(q, k).result, _constant(1 / math.sqrt(d)))
        if isinstance(mask, str):
            later = graph.FullOp.build(_constant(-math.inf), shape=[n, n]).result
            mask = graph.TriuOp.build(later, k=1).result
        scores = graph.SoftmaxOp.build(self.add(scores, mask), axis=-1).result
        mixed = graph.MatmulOp.build(scores, v).result
        if group > 1:
            mixed = _reshaped(mixed, [b, heads, n, d])
        return _reshaped(_permuted(mixed, [0, 2, 1, 3]), [b, n, width])

    def conv(self, x, w, bias, stride, pad):
        op = graph.Conv2dOp.build(
            x, w, strides=[stride] * 2, padding=[pad] * 4, dilation=[1, 1], groups=1
        )
        op.attributes["graph.fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{self._fast_math}>")
        y = op.result
        return y if bias is None else self.add(y, _by_channel(bias))

    def batch_norm(self, x, gain, bias, mean, variance):
        root = graph.RsqrtOp.build(self.add(variance, _constant(model_cases.EPSILON))).result
        scale = self.multiply(gain, root)
        shift = graph.SubtractOp.build(bias, self.multiply(mean, scale)).result
        return self.add(self.multiply(x, _by_channel(scale)), _by_channel(shift))

    def max_pool(self, x):
        return graph.MaxPool2dOp.build(
            x, window=[3, 3], strides=[2, 2], padding=[1] * 4, dilation=[1, 1]
        ).result


def _dims(x):
    return TensorType.of(x).dims


def _reshaped(x, dims):
    return graph.ReshapeOp.build(x, shape=dims).result


def _permuted(x, axes):
    return graph.PermuteDimsOp.build(x, axes=axes).result


def _by_channel(x):
    return _reshaped(x, [*_dims(x), 1, 1])


def _constant(value: float):
    kind = ir.RankedTensorType.get([], ir.F32Type.get())
    attribute = ir.FloatAttr.get(ir.F32Type.get(), value)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, attribute)).result
