"""Whether a tensor program decodes operands within the product that reads them."""

from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure

from .attention import find_operands
from .computed_product import find_computed
from .contraction import find_contractions
from .quantized_product import find_decoded
from .reading import read_kernel


def reads_decoded(kernel: PrimFunc) -> bool:
    """Whether a rule for products, or for attention, decodes the operands of the program.

    Other rules would decode them again for each sum.
    """
    try:
        module, program = read_kernel(kernel)
    except PassFailure:
        return False
    hinted = kernel.schedule_hint is not None and find_operands(program) is not None
    reads = (
        hinted
        or find_decoded(program) is not None
        or find_computed(program) is not None
        or bool(find_contractions(program, lambda _: 0))
    )
    del module  # the program refers to it
    return reads
