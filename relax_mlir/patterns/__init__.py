"""A pattern language for graph functions: describe values, find them, replace or group them.

>>> from relax_mlir.patterns import is_op, parse, wildcard
>>> dense = is_op("add")(is_op("matmul")(wildcard("x"), wildcard("w")), wildcard("bias"))
>>> str(dense)
'add(matmul(%x, %w), %bias)'
>>> parse("add(matmul(%x, %w), %bias)") == dense
True
"""

from . import cublas, openblas  # noqa: F401 - they register their functions
from .dispatch import Row, register_dispatch, rows_of
from .matching import Match, match, matches
from .pattern import Op, Pattern, either_order, is_argument, is_const, is_op, wildcard
from .replacing import rewrite_matches
from .table import NamedPattern, register_pattern, registered_pattern
from .text import parse, parse_list

__all__ = [
    "Match",
    "NamedPattern",
    "Op",
    "Pattern",
    "Row",
    "either_order",
    "is_argument",
    "is_const",
    "is_op",
    "match",
    "matches",
    "parse",
    "parse_list",
    "register_dispatch",
    "register_pattern",
    "registered_pattern",
    "rewrite_matches",
    "rows_of",
    "wildcard",
]
