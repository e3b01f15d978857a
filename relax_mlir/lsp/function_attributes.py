"""The attributes of functions and their arguments that people write."""

from relax_mlir.lsp.context import context, in_braces
from relax_mlir.lsp.syntax import Statement, Syntax

Entry = tuple[str, str]
"""The text of an attribute's value, `$` and `${...}` to be filled in; and what it means."""

OF_FUNCTIONS: dict[str, Entry] = {
    "graph.facts": ('["$"]', "relations between the symbols of dims, which are checked at a call"),
    "graph.num_inputs": ("${1} : i64", "arguments from there on are parameters, packed at -O3"),
    "graph.noinline": ("", "a private function is called, not copied into its callers"),
    "graph.device": ('"${cpu}"', "where the function computes: on the host or on the device"),
    "tir.prim_func": ("", "it is a tensor program: it fills outputs that are arguments"),
    "tir.num_outs": ("${1} : i64", "how many of a tensor program's tensors are outputs"),
}
OF_ARGUMENTS: dict[str, Entry] = {
    "graph.name": ('"$"', "the name of the argument in messages and for calls by keyword"),
    "graph.inout": ("${0} : i64", "the result with this index is the argument, updated in place"),
    "graph.no_lift": ("", "a parameter from which nothing is computed before the call"),
    "graph.device": ('"${cpu}"', "where the argument is: on the host or on the device"),
    "tir.sym": ('"$"', "the expression whose value is passed for an index of a tensor program"),
}


def attributes_at(syntax: Syntax, function: Statement, offset: int) -> dict[str, Entry]:
    """The attributes that may be written at an offset; empty if none may."""
    where = context(syntax, function, offset)
    if in_braces(syntax, where, 1) and syntax.tokens[where.brackets[0] - 1].text == "attributes":
        return OF_FUNCTIONS
    if in_braces(syntax, where, 2) and syntax.tokens[where.brackets[0]].text == "(":
        return OF_ARGUMENTS
    return {}
