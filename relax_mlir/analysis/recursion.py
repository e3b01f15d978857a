"""The graph functions that call themselves, directly or through each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relax_mlir.bindings import func
from relax_mlir.dialects.graph import CallDpsOp, CallOp, MakeClosureOp
from relax_mlir.rewriting import walk_ops


class Recursion:
    """The calls among graph functions, by names of functions.

    `groups` maps each function that calls itself to those that take part, in the module's order:
    each of them may be running several times. `order` has all functions, each behind those that it
    calls from outside of their group.
    """

    def __init__(self, functions: Sequence[func.FuncOp]) -> None:
        ops = _naming(functions)
        callees = {
            name: [op.callee_name for op in own if not isinstance(op, MakeClosureOp)]
            for name, own in ops.items()
        }
        self._named = {name: [op.callee_name for op in own] for name, own in ops.items()}
        index = {name: at for at, name in enumerate(callees)}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.order: list[str] = []
        for component in _Components(callees).components:
            group = tuple(sorted(component, key=index.__getitem__))
            self.order += group
            if len(group) > 1 or group[0] in callees[group[0]]:
                self.groups.update(dict.fromkeys(group, group))

    def is_reached(self, name: str) -> bool:
        """Whether a function may call, directly or not, one that calls itself."""
        seen, stack = {name}, [name]
        while stack:
            if stack[-1] in self.groups:
                return True
            new = [each for each in self._named.get(stack.pop(), ()) if each not in seen]
            seen.update(new)
            stack += new
        return False

    def group(self, name: str) -> tuple[str, ...]:
        """The group of a function; itself alone if it does not call itself."""
        return self.groups.get(name, (name,))

    def is_recursive(self, caller: str, callee: str) -> bool:
        """Whether a call is one between functions that call themselves."""
        return callee in self.groups.get(caller, ())


_NAMING: tuple[type[Any], ...] = (CallOp, CallDpsOp, MakeClosureOp)


def _naming(functions: Sequence[func.FuncOp]) -> dict[str, list[Any]]:
    """The ops of each function that name one of these."""
    names = {function.name.value for function in functions}
    return {
        function.name.value: [op for op in walk_ops(function, *_NAMING) if op.callee_name in names]
        for function in functions
    }


class _Components:
    """The strongly connected components of a graph, `components` by Tarjan's algorithm."""

    def __init__(self, edges: Mapping[str, Sequence[str]]) -> None:
        self.components: list[list[str]] = []
        self._edges = edges
        self._indices: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: list[str] = []
        for first in edges:
            if first not in self._indices:
                self._search(first)

    def _search(self, first: str) -> None:
        path = [(first, self._enter(first))]
        while path:
            name, rest = path[-1]
            callee = next(rest, None)
            if callee is None:
                path.pop()
                self._leave(name)
                if path:
                    self._lower(path[-1][0], self._lowest[name])
            elif callee not in self._indices:
                path.append((callee, self._enter(callee)))
            else:
                self._lower(name, self._lowest[callee])

    def _enter(self, name: str) -> Iterator[str]:
        self._indices[name] = self._lowest[name] = len(self._indices)
        self._open.append(name)
        return iter(self._edges[name])

    def _lower(self, name: str, index: int) -> None:
        self._lowest[name] = min(self._lowest[name], index)

    def _leave(self, name: str) -> None:
        """Completes the component that begins with the function, if one does."""
        if self._lowest[name] != self._indices[name]:
            return
        at = self._open.index(name)
        self.components.append(self._open[at:])
        for member in self._open[at:]:
            self._lowest[member] = len(self._edges)  # no longer open: lowers nobody
        del self._open[at:]
