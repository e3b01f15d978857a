"""Recipes of packed weights that a handwritten program decodes, mostly for a product."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const
from relax_mlir.testing.decoders import WIDTHS, Decoder

from ..builder import Builder
from .table import recipe

_SIZES = (1, 3, 8, 16, 17, 31, 32, 33, 48, 64)


@recipe("quantised", "decoder by hand")
def decoder(b: Builder, op: object) -> None:
    """Words along one of the axes, scaled in groups; left by itself, or the side of a product."""
    word = b.few("words", list(WIDTHS), 2)
    bits = b.few("bits", [bits for bits in (1, 2, 4, 8) if bits < WIDTHS[word]], 2)
    group = b.few("groups", [4, 8, 32], 1)
    along_k, highest_first = (b.few(what, [True, False], 1) for what in ("along k", "highest"))
    k, n = (b.few(what, _SIZES, 2) for what in ("decoded rows", "decoded columns"))
    made = Decoder(bits, word, group, along_k, highest_first)
    b.used.append("decoder by hand")
    name = f"{b.name}_decode{len(b.used)}"
    for each in ir.Module.parse(made.program(name, k, n)).body.operations:
        b.module.body.append(each.operation.clone())
    words, scales = made.packed(k, n)
    operands = [b.argument(words, word), b.argument(scales, "f32")]
    type_ = graph.TensorType.make([const(k), const(n)], ir.F32Type.get())
    called = graph.CallTirOp.build(name, [each.ir for each in operands], [type_])
    bound = 5.0 * 2 ** (bits - 1)
    (matrix,) = b.results_of(called, False, bound)
    if b.chance(0.8) and bound <= 1000:
        x = b.argument([b.pick_dim(), const(k)], "f32")
        b.emit(graph.MatmulOp, [x, matrix], False, 5 * bound * k)
