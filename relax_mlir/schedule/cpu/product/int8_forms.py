"""Products of 8-bit integers: the forms of their factors, and the steps that multiply them.

Left elements are widened from 8 bits, signed or not; a constant may be added to right ones: a zero
point, or the bias of 128 that packed weights have for some machines. Both are corrected by one
multiple of the sum of each row of the left side:

    sum over k of a * (b + c)  =  sum over k of a * (b + s)  +  (c - s) * sum over k of a

where s biases stored elements to the range that the instruction takes. All of this is exact modulo
2^32 for any k, and so are sums of fewer bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.program.contraction import Contraction, Factor
from relax_mlir.program.program import Stage, all_known
from relax_mlir.schedule.build.loops import splat_integer
from relax_mlir.schedule.cpu.isa.int8_groups import Int8Groups
from relax_mlir.schedule.cpu.isa.int8_matrices import Int8Matrices
from relax_mlir.target import Cpu

TOP_BIT = -128
"""As an 8-bit integer; flipping it biases signed elements to unsigned ones and back."""


@dataclass(frozen=True)
class Form:
    """The form of a factor: stored 8-bit elements, `signed` or not, plus a constant."""

    signed: bool
    offset: int


@dataclass(frozen=True)
class Int8Product:
    """How a machine multiplies products of 8-bit integers.

    With `matrices`, many rows are multiplied by products of small ones.

    The right side `is_biased` while it is packed; `factor` times the sum of a row of the left side
    corrects the sums of that row.
    """

    step: Int8Groups
    is_biased: bool
    factor: int
    matrices: Int8Matrices | None = None

    @property
    def many(self) -> Int8Groups | Int8Matrices:
        """The step of many rows, and of any count of them if the right side is in panels."""
        return self.matrices or self.step


def find_int8(contractions: Sequence[Contraction], cpu: Cpu) -> Int8Product | None:
    """How products are multiplied whose factors are 8-bit integers, or None if they are not."""
    first = contractions[0]
    left = form_of(first.stage, first.lhs)
    rights = all_known(form_of(c.stage, c.rhs) for c in contractions)
    if left is None or left.offset or rights is None or len(set(rights)) != 1:
        return None
    right = rights[0]
    step = Int8Groups.of(cpu, left.signed, right.signed)
    if step is None:
        return None
    bias = step.biases_right(right.signed)
    matrices = Int8Matrices.of(cpu, left.signed, right.signed)
    product = Int8Product(step, bool(bias), right.offset - bias, matrices)
    if first.packed and (bias or first.rhs.tensor.shape[3:] != (product.many.group,)):
        return None
    return product


def flip_top_bits(x: ir.Value) -> ir.Value:
    """A vector of 8-bit elements with their top bits flipped."""
    kind = ir.VectorType(x.type)
    return arith.xori(x, splat_integer(TOP_BIT, kind.shape[0], kind.element_type))


def form_of(stage: Stage, factor: Factor) -> Form | None:
    """The form of a factor of a contraction, or None if it has no such form."""
    if factor.tensor.element != ir.IntegerType.get_signless(8):
        return None
    known: Form | bool | None = False
    for cast in factor.casts:
        if cast.block is not None:
            last = cast.block.operations[len(cast.block.operations) - 1]
            known = _follow(last.operands[0], cast.block.arguments[0], known)
    known = _follow(factor.value, stage.body.arguments[factor.read], known)
    if known is False:  # multiplied modulo 2^8
        return Form(True, 0)
    return known if isinstance(known, Form) else None


def _follow(value: ir.Value, argument: ir.Value, known: Form | bool | None) -> Form | bool | None:
    """The form of a value that is computed from `argument`, whose form is `known`, or None.

    A bool stands for the stored elements: whether their top bit has been flipped.
    """
    if value == argument or known is None:
        return known
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    constants = [constant_of(operand) for operand in op.operands]
    inner = _follow(op.operands[0], argument, known)
    if isinstance(op, arith.ExtSIOp | arith.ExtUIOp) and isinstance(inner, bool):
        signed = isinstance(op, arith.ExtSIOp)
        return Form(signed != inner, (TOP_BIT if signed else -TOP_BIT) if inner else 0)
    if isinstance(op, arith.XOrIOp) and isinstance(inner, bool) and constants[1] == TOP_BIT:
        return not inner
    if isinstance(inner, Form) and len(constants) == 2 and constants[1] is not None:
        if value.type == ir.IntegerType.get_signless(32):
            sign = {arith.AddIOp: 1, arith.SubIOp: -1}.get(type(op))
            return None if sign is None else Form(inner.signed, inner.offset + sign * constants[1])
    is_wider = isinstance(op, arith.ExtSIOp) and isinstance(inner, Form) and not inner.offset
    return inner if is_wider else None


def constant_of(value: ir.Value) -> int | None:
    """The integer that a value is known to be."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, arith.ConstantOp):
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
