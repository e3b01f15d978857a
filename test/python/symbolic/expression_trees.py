"""Random expressions with an evaluator of their own, independent of the one under test."""

from itertools import product

from hypothesis import strategies as st

NAMES = ("k", "m", "n")
SMALL = (0, 1, 2, 3, 5, 8, 17)
BINARY = ("+", "-", "*", "floordiv", "mod", "min", "max")

leaves = st.one_of(st.sampled_from(NAMES), st.integers(-3, 17))
trees = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(BINARY), inner, inner), max_leaves=7
)


class UndefinedError(Exception):
    """A division by something that is not positive."""


def spell(tree) -> str:
    if isinstance(tree, (str, int)):
        return str(tree)
    operator, lhs, rhs = tree
    if operator in ("min", "max"):
        return f"{operator}({spell(lhs)}, {spell(rhs)})"
    return f"({spell(lhs)}) {operator} ({spell(rhs)})"


def value_of(tree, values):
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int):
        return tree
    operator, lhs, rhs = tree[0], value_of(tree[1], values), value_of(tree[2], values)
    if operator in ("floordiv", "mod") and rhs <= 0:
        raise UndefinedError
    table = {
        "+": lambda: lhs + rhs,
        "-": lambda: lhs - rhs,
        "*": lambda: lhs * rhs,
        "floordiv": lambda: lhs // rhs,
        "mod": lambda: lhs % rhs,
        "min": lambda: min(lhs, rhs),
        "max": lambda: max(lhs, rhs),
    }
    return table[operator]()


def assignments(values=SMALL):
    """Every assignment of the three names to the given values."""
    return [dict(zip(NAMES, chosen, strict=True)) for chosen in product(values, repeat=len(NAMES))]


def defined_values(tree, allowed):
    """The assignments for which a tree has a value, with that value."""
    pairs = []
    for values in allowed:
        try:
            pairs.append((values, value_of(tree, values)))
        except UndefinedError:
            continue
    return pairs
