"""Tuples that users pass and get, as the arguments and results of a function that has none.

    arguments [0, [1, [2, 3]]]      f(x, (a, (b, c)))  is  f(x, a, b, c)

A leaf of a tree is the index of an argument or result, all in order; a list is a tuple. An argument
that may be left out is one leaf, but two arguments: the tensor, and whether it is there.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from relax_mlir.errors import ExecutionError
from relax_mlir.runtime.calls import check_count, sequence_of

Tree: TypeAlias = "int | list[Tree]"


@dataclass(frozen=True)
class Nesting:
    """The trees of the arguments and the results of the function `name`.

    `absent` has the arguments that may be left out, and what is passed in their place then.
    """

    name: str
    arguments: Sequence[Tree]
    results: Sequence[Tree]
    absent: Mapping[int, Any] = field(default_factory=dict)

    @staticmethod
    def of_optional(
        name: str, arguments: Sequence[Tree], results: Sequence[Tree], absent: Mapping[int, Any]
    ) -> "Nesting":
        """Of trees that have a leaf for whether each optional argument is there."""
        flags = {index + 1 for index in absent}
        kept = [tree for tree in arguments if isinstance(tree, list) or tree not in flags]
        return Nesting(name, kept, results, absent)

    @property
    def is_flat(self) -> bool:
        """Whether there is no tuple, and no argument may be left out."""
        return not self.absent and all(
            isinstance(tree, int) for tree in (*self.arguments, *self.results)
        )

    def in_order(
        self,
        values: Sequence[Any],
        named: Mapping[str, Any],
        names: Sequence[str | None],
        optional: Collection[int] = (),
    ) -> list[Any]:
        """Arguments by position, and then by name; None for those that may be left out.

        `names` has those of the arguments one by one, of which `optional` and those that are
        `absent` may be left out. Raises ExecutionError for a name that no
        argument has, an argument that is given twice, and one that is not given.
        """
        known = [_name(tree, names) for tree in self.arguments]
        if len(values) > len(known):
            check_count(self.name, "argument", len(values), len(known))
        for name in named:
            if name not in known:
                has = ", ".join(f"'{each}'" for each in known if each) or "no names"
                raise ExecutionError(f"'{self.name}' has no argument '{name}'; it has {has}")
            if name in known[: len(values)]:
                raise ExecutionError(f"'{self.name}' is given argument '{name}' twice")
        rest = list(zip(self.arguments, known))[len(values) :]
        for index, (tree, own) in enumerate(rest, len(values)):
            may_miss = isinstance(tree, int) and (tree in self.absent or tree in optional)
            if own not in named and not may_miss:
                label = f"argument {index}" + (f" '{own}'" if own else "")
                raise ExecutionError(f"'{self.name}' is not given {label}")
        return [*values, *(None if own is None else named.get(own) for _, own in rest)]

    def flat_arguments(self, values: Sequence[Any]) -> list[Any]:
        """The arguments one by one; raises ExecutionError where a tuple is expected."""
        check_count(self.name, "argument", len(values), len(self.arguments))
        return [
            leaf
            for index, (tree, value) in enumerate(zip(self.arguments, values, strict=True))
            for leaf in self._leaves_of_argument(tree, value, index)
        ]

    def flat_argument(self, index: int, value: Any) -> dict[int, Any]:
        """One argument as those that it consists of, by index."""
        tree = self.arguments[index]
        leaves = self._leaves_of_argument(tree, value, index)
        more = [tree + 1] if isinstance(tree, int) and tree in self.absent else []
        return dict(zip([*_indices(tree), *more], leaves, strict=True))

    def _leaves_of_argument(self, tree: Tree, value: Any, index: int) -> Iterator[Any]:
        if isinstance(tree, int) and tree in self.absent:
            return iter((self.absent[tree], False) if value is None else (value, True))
        return _leaves(tree, value, f"argument {index}", has_default=False)

    def flat_buffers(self, results: Any) -> Any:
        """Buffers one by one; None stands for all those of a tuple."""
        if not isinstance(results, list | tuple):
            return results
        check_count(self.name, "result", len(results), len(self.results))
        return [
            leaf
            for index, (tree, value) in enumerate(zip(self.results, results, strict=True))
            for leaf in _leaves(tree, value, f"result {index}", has_default=True)
        ]

    def nested_arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with their tuples."""
        return tuple(_nested(tree, leaves) for tree in self.arguments)

    def nested_results(self, leaves: Sequence[Any]) -> Any:
        """What a call returns: the result, a tuple of several, or None."""
        values = tuple(_nested(tree, leaves) for tree in self.results)
        return values[0] if len(values) == 1 else values or None

    def flat_output(self, output: Any) -> list[Any]:
        """The results one by one, of what a call returned."""
        return self.flat_results(sequence_of(output, len(self.results)))

    def flat_results(self, values: Sequence[Any]) -> list[Any]:
        """The results one by one."""
        return [
            leaf
            for tree, value in zip(self.results, values, strict=True)
            for leaf in _leaves(tree, value, "result", has_default=False)
        ]


def _leaves(tree: Tree, value: Any, owner: str, has_default: bool) -> Iterator[Any]:
    """What a value has for the leaves of a tree."""
    if isinstance(tree, int):
        yield value
    elif value is None and has_default:
        yield from [None] * sum(1 for _ in _indices(tree))
    elif not isinstance(value, list | tuple):
        raise ExecutionError(
            f"{owner}: expects a tuple of {len(tree)}, but got {type(value).__name__}"
        )
    elif len(value) != len(tree):
        raise ExecutionError(f"{owner}: expects a tuple of {len(tree)}, but got {len(value)}")
    else:
        for index, (inner, part) in enumerate(zip(tree, value, strict=True)):
            yield from _leaves(inner, part, f"{owner}, element {index}", has_default)


def _name(tree: Tree, names: Sequence[str | None]) -> str | None:
    """The name of an argument; elements of a tuple `state` are called `state.0` and so on."""
    suffix = ""
    while isinstance(tree, list):
        index = next(
            (i for i, inner in enumerate(tree) if any(True for _ in _indices(inner))), None
        )
        if index is None:
            return None
        tree, suffix = tree[index], f"{suffix}.{index}"
    name = names[tree]
    return None if name is None else name.removesuffix(suffix)


def _indices(tree: Tree) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        for inner in tree:
            yield from _indices(inner)


def _nested(tree: Tree, leaves: Sequence[Any]) -> Any:
    if isinstance(tree, int):
        return leaves[tree]
    return tuple(_nested(inner, leaves) for inner in tree)
