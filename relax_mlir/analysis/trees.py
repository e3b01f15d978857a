"""The tuples that users of an exported function pass and get, written on the function.

    graph.argument_tree = [0, [1, [2, 3]]]          f(x, (a, (b, c)))

A leaf is the index of an argument or result, all in order; a list is a tuple.
"""

from collections.abc import Iterator, Sequence

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph.tuples import Tree

ARGUMENT_TREE, RESULT_TREE = "graph.argument_tree", "graph.result_tree"


def tree_attribute(trees: Sequence[Tree]) -> ir.ArrayAttr:
    """The trees as an attribute."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [
            ir.IntegerAttr.get(i64, tree) if isinstance(tree, int) else tree_attribute(tree)
            for tree in trees
        ]
    )


def read_trees(attribute: ir.Attribute, depth: int = 0) -> list[Tree]:
    """The trees of an attribute; raises ValueError if it is of another form."""
    if not isinstance(attribute, ir.ArrayAttr) or depth > 100:
        raise ValueError("no nested arrays of integers")
    return [
        item.value if isinstance(item, ir.IntegerAttr) else read_trees(item, depth + 1)
        for item in attribute
    ]


def leaves_of(trees: Sequence[Tree]) -> Iterator[int]:
    """The leaves in order."""
    for tree in trees:
        if isinstance(tree, int):
            yield tree
        else:
            yield from leaves_of(tree)


def trees_on(function: func.FuncOp, name: str) -> list[Tree] | None:
    """The trees that an attribute of a function has; None if there are no tuples."""
    attributes = function.attributes
    return read_trees(attributes[name]) if name in attributes else None


def keep_arguments(function: func.FuncOp, indices: Sequence[int]) -> None:
    """Notes that of the arguments these are left, in that order, and that the rest is new."""
    trees = trees_on(function, ARGUMENT_TREE)
    if trees is not None:
        more = range(len(indices), len(function.arguments))
        function.attributes[ARGUMENT_TREE] = tree_attribute([*_of(trees, indices), *more])


def give_arguments(maker: func.FuncOp, function: func.FuncOp, first: int) -> None:
    """Has a function take the tuples that another one has from argument `first` on."""
    trees = trees_on(function, ARGUMENT_TREE)
    if trees is not None:
        indices = range(first, first + len(maker.arguments))
        maker.attributes[ARGUMENT_TREE] = tree_attribute(_of(trees, indices))


def _of(trees: Sequence[Tree], indices: Sequence[int]) -> list[Tree]:
    """The trees of some leaves; a tuple of which no element is left is gone."""
    left: list[Tree] = []
    for tree in trees:
        if isinstance(tree, int):
            left += [indices.index(tree)] if tree in indices else []
        elif (inner := _of(tree, indices)) or not tree:
            left.append(inner)
    return left
