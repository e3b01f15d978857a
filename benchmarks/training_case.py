"""A transformer with its loss, as a module for any batch, and its parameters and batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions import cross_entropy
from relax_mlir.decompositions.emit import add, dims_of, emit, reshape
from relax_mlir.dialects import graph, make_context


@dataclass(frozen=True)
class Transformer:
    """The sizes of a decoder with norms in front of attention and of a perceptron."""

    vocabulary: int = 256
    width: int = 128
    heads: int = 4
    layers: int = 2
    context: int = 128

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter, in the order of arguments."""
        d, inner = self.width, 4 * self.width
        shapes: dict[str, tuple[int, ...]] = {
            "tokens.w": (self.vocabulary, d),
            "positions.w": (self.context, d),
        }
        for layer in range(self.layers):
            shapes |= {
                f"{layer}.norm1.w": (d,),
                f"{layer}.norm1.b": (d,),
                f"{layer}.qkv.w": (d, 3 * d),
                f"{layer}.out.w": (d, d),
                f"{layer}.norm2.w": (d,),
                f"{layer}.norm2.b": (d,),
                f"{layer}.up.w": (d, inner),
                f"{layer}.up.b": (inner,),
                f"{layer}.down.w": (inner, d),
            }
        return shapes | {"norm.w": (d,), "norm.b": (d,), "head.w": (d, self.vocabulary)}

    def parameters(self, dtype: type = np.float32) -> dict[str, np.ndarray]:
        """Random weights of deviation 1 / sqrt(rows); norms begin as the identity."""
        random = np.random.default_rng(0)
        values: dict[str, np.ndarray] = {}
        for name, shape in self.shapes().items():
            if "norm" in name:
                value = np.full(shape, float(name.endswith("w")))
            else:
                value = random.normal(0, shape[0] ** -0.5, shape)
            values[name] = value.astype(dtype)
        return values

    def batch(self, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Random tokens, and those that follow them."""
        tokens = np.random.default_rng(1).integers(0, self.vocabulary, (rows, length + 1))
        return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])

    def module(self, element: str = "f32") -> str:
        """The text of a module with `@main`, of tokens, labels and parameters to the mean loss."""
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            kind, i64 = ir.Type.parse(element), ir.IntegerType.get_signless(64)
            types = [graph.TensorType.make(["b", "n"], i64).to_mlir()] * 2
            types += [graph.TensorType.make(s, kind).to_mlir() for s in self.shapes().values()]
            with ir.InsertionPoint(module.body):

                @func.func(*types)
                def main(tokens: ir.Value, labels: ir.Value, *parameters: ir.Value) -> ir.Value:
                    return self._loss(tokens, labels, dict(zip(self.shapes(), parameters)))

            function = main.func_op
            names = ["tokens", "labels", *self.shapes()]
            function.arg_attrs = [
                ir.DictAttr.get({"graph.name": ir.StringAttr.get(name)}) for name in names
            ]
            function.attributes["graph.num_inputs"] = ir.IntegerAttr.get(i64, 2)
            return str(module)

    def _loss(self, tokens: ir.Value, labels: ir.Value, p: dict[str, ir.Value]) -> ir.Value:
        b, n = dims_of(tokens)
        bounds = {"axes": [0], "begin": [0], "end": [n], "strides": [1]}
        positions = emit(graph.StridedSliceOp, p["positions.w"], **bounds)
        x = add(emit(graph.TakeOp, p["tokens.w"], tokens, axis=0), positions)
        for layer in range(self.layers):
            own = {k.removeprefix(f"{layer}."): v for k, v in p.items()}
            x = self._block(x, own)
        x = _norm(x, p["norm.w"], p["norm.b"])
        scores = reshape(emit(graph.MatmulOp, x, p["head.w"]), [b * n, self.vocabulary])
        return cross_entropy(scores, reshape(labels, [b * n]))

    def _block(self, x: ir.Value, p: dict[str, ir.Value]) -> ir.Value:
        b, n, d = dims_of(x)
        joint = emit(graph.MatmulOp, _norm(x, p["norm1.w"], p["norm1.b"]), p["qkv.w"])
        parts = graph.SplitOp.build(joint, sizes=[d, d, d], axis=2).outs
        size = self.width // self.heads
        heads = [reshape(part, [b, n, self.heads, size]) for part in parts]
        attention = emit(graph.BatchedAttentionOp, *heads, None, scale=size**-0.5, causal=True)
        x = add(x, emit(graph.MatmulOp, reshape(attention, [b, n, d]), p["out.w"]))
        inner = emit(graph.MatmulOp, _norm(x, p["norm2.w"], p["norm2.b"]), p["up.w"])
        inner = emit(graph.GeluOp, add(inner, p["up.b"]))
        return add(x, emit(graph.MatmulOp, inner, p["down.w"]))


def _norm(x: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
    return emit(graph.LayerNormOp, x, weight, bias, epsilon=1e-5)


def sizes() -> Iterator[tuple[int, int]]:
    """Batches that are timed: rows and tokens of each."""
    yield from ((1, 64), (8, 64), (8, 128))
