"""Decides which device a dataflow node runs on, and which version of its leaf that is.

    @blur {tir.leaf, tir.targets = ["cpu"], tir.versions = [@blur_on_device]}
    @blur_on_device {tir.leaf, tir.targets = ["device"]}
    %0 = "graph.node"(%x) {callee = @blur, ...}
      ->
    %0 = "graph.node"(%x) {callee = @blur_on_device, graph.device = "device", ...}

A node that has `graph.device` gets a version for it. For others the policy decides:

    static      the first target of the first version that this machine has: the leaf's own, in the
                order of `tir.targets`, then those of `tir.versions`
    profiled    the least of `times`, which are measured: `blur@cpu=0.002`, in any unit; what has no
                time comes after what has
    greedy      nothing yet: a public function `f` with nodes becomes `f_on_cpu` and `f_on_device`,
                as far as all of its nodes have such versions, and the host program chooses

A leaf without targets is for each, and a node of such stays where its operands are.

Needs: nothing; it checks the rules of nodes. Leaves: nodes without versions, of leaves that the
    target has; `relax-place-devices` has them run there.
Source: HPVM, arXiv 1611.00860, sections 3.3 and 4.4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE
from relax_mlir.analysis.functions import called_names, is_public
from relax_mlir.analysis.node_versions import Version, available, targets_of, versions_of
from relax_mlir.analysis.nodes import has_nodes, is_internal, is_leaf, report_broken
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import NodeOp
from relax_mlir.dialects.tir import TARGETS, VERSIONS
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, walk_ops
from relax_mlir.target import Target, TargetError, native
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST, device_names, resolve_device

STATIC, PROFILED, GREEDY = "static", "profiled", "greedy"
POLICIES = (STATIC, PROFILED, GREEDY)


@dataclass(frozen=True)
class MapNodes(Pass):
    """Decides which device a dataflow node runs on, and which version of its leaf that is."""

    takes_tuples: ClassVar[bool] = True

    policy: str = STATIC
    times: tuple[str, ...] = ()
    target: Target = field(default_factory=native)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"unknown policy '{self.policy}'; accepted are {', '.join(POLICIES)}")
        if self.times and self.policy != PROFILED:
            raise ValueError(f"times are for the policy '{PROFILED}'")
        self._seconds()

    def _seconds(self) -> dict[str, float]:
        """The times that were measured, by leaf and device."""
        known, sides = {}, (HOST, *(device_names(self.target.devices) or [OF_TARGET]))
        for entry in self.times:
            name, _, text = entry.partition("=")
            try:
                known[name] = float(text)
            except ValueError:
                known[name] = math.nan
            side = name.rpartition("@")[2]
            if not known[name] >= 0 or side not in sides or side == name:
                accepted = " or ".join(f"@{other}" for other in sides[1:])
                raise ValueError(f"'{entry}' is no time; expects blur@{HOST}=0.5 or {accepted}")
        return known

    def run(self, op: ir.Operation) -> None:
        """Maps the nodes of every function, internal nodes included."""
        functions = functions_by_name(op)
        says = any(name in f.attributes for f in functions.values() for name in (TARGETS, VERSIONS))
        if not has_nodes(op) or not (says or self.policy == GREEDY) or report_broken(op):
            return
        mapping = _Mapping(
            self.target, functions, self._seconds(), SymbolNames(op.regions[0].blocks[0])
        )
        if self.policy == GREEDY:
            called = called_names(op)
            for name, function in list(functions.items()):
                if is_public(function) and name not in called and walk_ops(function, NodeOp):
                    mapping.split(function)
        for step in (mapping.separate, mapping.map):
            for function in list(functions.values()):
                for node in walk_ops(function, NodeOp):
                    step(node)
        _forget_versions(functions)


@dataclass
class _Mapping:
    """Chooses versions for the nodes of a module; `functions` are those that it has by now."""

    target: Target
    functions: dict[str, func.FuncOp]
    seconds: Mapping[str, float]
    names: SymbolNames
    copies: dict[tuple[str, str], str] = field(default_factory=dict)

    def separate(self, node: NodeOp) -> None:
        """Has a node on a device run an internal node whose nodes are there."""
        callee, side = self.functions[node.callee_name], self._side(node)
        if side is not None and is_internal(callee):
            self._run_copy(node, callee, side)

    def map(self, node: NodeOp) -> None:
        """Has a node run the best version; raises PassFailure if there is none."""
        leaf, side = self.functions[node.callee_name], self._side(node)
        if not is_leaf(leaf):
            return
        versions = self._versions(leaf, side)
        if not versions:
            raise PassFailure(node, self._lacks(leaf, side))
        self._choose(node, min(versions, key=self._time))

    @property
    def sides(self) -> tuple[str, ...]:
        """The host, and the devices of the target."""
        return (HOST, *device_names(self.target.devices))

    def _versions(self, leaf: func.FuncOp, side: str | None) -> list[Version]:
        """The versions that the target has, on one side or any."""
        found = available(leaf, self.functions, self.target.devices)
        return [
            version for version in found if None in (side, version.side) or version.side == side
        ]

    def _time(self, version: Version) -> float:
        return min(self._times(version).values(), default=math.inf)

    def _times(self, version: Version) -> dict[str, float]:
        """What was measured of a version, by the side that it ran on."""
        sides = self.sides if version.side is None else (version.side,)
        known = {side: self.seconds.get(f"{version.name}@{side}") for side in sides}
        return {side: time for side, time in known.items() if time is not None}

    def _choose(self, node: NodeOp, version: Version) -> None:
        node.attributes["callee"] = ir.FlatSymbolRefAttr.get(version.name)
        times = self._times(version)
        side = version.side or min(times, key=lambda each: times[each], default=None)
        if side is not None and DEVICE not in node.attributes:
            node.attributes[DEVICE] = ir.StringAttr.get(side)

    def _side(self, node: NodeOp) -> str | None:
        """Where a node says that it runs; raises PassFailure if that is nowhere."""
        if DEVICE not in node.attributes:
            return None
        name = node.attributes[DEVICE]
        if not isinstance(name, ir.StringAttr):
            raise PassFailure(node, f"expects '{DEVICE}' to be a text, but got {name}")
        try:
            return resolve_device(name.value, self.target.devices)
        except TargetError as error:
            raise PassFailure(node, str(error)) from None

    def _lacks(self, leaf: func.FuncOp, side: str | None) -> str:
        versions = versions_of(leaf, self.functions)
        known = (
            f"'@{v.name.value}' is for {' or '.join(targets_of(v) or 'all')}" for v in versions
        )
        here = [HOST, *map(str, self.target.devices)]
        wanted = here if side is None else [side]
        return f"has no version for {' or '.join(wanted)}: {', '.join(known)}"

    def split(self, function: func.FuncOp) -> None:
        """Has a copy of a function for the host and the first device, if they have versions."""
        lacking = {side: self._lacking(function, side) for side in self.sides[:2]}
        possible = [side for side, node in lacking.items() if node is None]
        if not possible:
            node = lacking[HOST]
            assert node is not None
            leaf = self.functions[node.callee_name]
            raise PassFailure(node, f"has no version for one device: {self._lacks(leaf, HOST)}")
        name = function.name.value
        for side in possible:
            fresh = f"{name}_on_{side}"
            if fresh in self.functions:
                raise PassFailure(function, f"would become '@{fresh}', which is another function")
            copy = self._copy(function, side, fresh)
            if side == HOST:
                copy.attributes[DEVICE] = ir.StringAttr.get(HOST)
        function.operation.erase()
        del self.functions[name]

    def _lacking(self, function: func.FuncOp, side: str) -> NodeOp | None:
        """A node of a function, or of one that it runs, that has no version for a side."""
        for node in walk_ops(function, NodeOp):
            callee = self.functions[node.callee_name]
            if self._side(node) not in (None, side):
                return node
            if is_leaf(callee):
                if not self._versions(callee, side):
                    return node
            elif (inner := self._lacking(callee, side)) is not None:
                return inner
        return None

    def _copy(self, function: func.FuncOp, side: str, name: str) -> func.FuncOp:
        """A copy of a function whose nodes are on a side, and those of internal nodes in it."""
        with ir.InsertionPoint.after(function):
            copy = function.operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        self.functions[name] = copy
        for node in walk_ops(copy, NodeOp):
            callee = self.functions[node.callee_name]
            node.attributes[DEVICE] = ir.StringAttr.get(side)
            if is_internal(callee):
                self._run_copy(node, callee, side)
        return copy

    def _run_copy(self, node: NodeOp, callee: func.FuncOp, side: str) -> None:
        """Has a node run the copy of an internal node that is for a side."""
        name = callee.name.value
        if name in self.copies.values():
            return
        if (name, side) not in self.copies:
            fresh = self.copies[name, side] = self.names.fresh(
                f"{name}_on_{side.replace(':', '_')}"
            )
            self._copy(callee, side, fresh)
        node.attributes["callee"] = ir.FlatSymbolRefAttr.get(self.copies[name, side])


def _forget_versions(functions: Mapping[str, func.FuncOp]) -> None:
    """Leaves out versions, and leaves that were one of several and that nothing runs."""
    run = {node.callee_name for f in functions.values() for node in walk_ops(f, NodeOp)}
    unused = set()
    for name, function in functions.items():
        if VERSIONS in function.attributes:
            unused |= {version.name.value for version in versions_of(function, functions)} - run
            del function.attributes[VERSIONS]
    for name in unused:
        functions[name].operation.erase()
