"""The operands of attention over pages, as the legalization writes it."""

from dataclasses import dataclass

from relax_mlir.bindings import ir

from .attention import Operands, Source
from .program import Argument, Program, all_known

HINT = "paged_attention"
SETTINGS = "tir.paged_attention"


@dataclass(frozen=True)
class PagedOperands:
    """What attention over pages reads; its keys and values are [page, kv head, row, feature].

    `tables` has the pages of each sequence, `sequences` and `positions` are of the tokens.
    """

    operands: Operands
    out: Argument
    tables: Argument
    sequences: Argument
    positions: Argument


def find_paged_operands(program: Program) -> PagedOperands | None:
    """The operands of a program of attention over pages that is fused with nothing."""
    products = [stage for stage in program.stages if stage.gathers and stage.has_reduction]
    narrows = len(products) == 2 and products[1] is not program.stages[-1]
    if len(products) != 2 or [program.stages[0], program.stages[-1 - narrows]] != products:
        return None  # fused
    scores, mixed = products
    if narrows and program.stages[-1].reads[0].tensor is not mixed.results[0]:
        return None
    read = all_known(_argument(operand.tensor) for operand in (*scores.reads, *mixed.reads[1:]))
    gathered = all_known(map(_argument, (*scores.gathers, *mixed.gathers)))
    (out,) = (argument for argument in program.arguments if argument.out is not None)
    if read is None or gathered is None or len(gathered) not in (4, 6):
        return None
    query, sequences, positions, *again = read
    tables, *keys = gathered[: len(gathered) // 2]
    tables_again, *values = gathered[len(gathered) // 2 :]
    if [tables, sequences, positions] != [tables_again, *again]:
        return None
    ranks = [len(x.shape) for x in (query, tables, sequences, positions, *keys, *values)]
    if ranks != [3, 2, 1, 1, *[4] * (len(keys) + len(values))] or len(keys) > 2:
        return None
    operands = Operands(Source(query), _source(*keys), _source(*values))
    if any(isinstance(x.element, ir.F64Type) for x in (query, keys[0], values[0], out)):
        return None
    return PagedOperands(operands, out, tables, sequences, positions)


def _source(pages: Argument, scales: Argument | None = None) -> Source:
    return Source(pages, scales)


def _argument(tensor: object) -> Argument | None:
    return tensor if isinstance(tensor, Argument) else None
