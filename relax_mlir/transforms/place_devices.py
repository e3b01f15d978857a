"""Decides where operators run, and outlines those of the host, or of other devices than the first.

    %1 = "graph.exp"(%0) {graph.device = "cpu"} : (!t) -> !t
      ->
    func.func private @exp_on_host(%x: !t) -> !t attributes {graph.device = "cpu", graph.noinline} {
      "graph.exp" and what follows it on the host
    }
    %1 = "graph.call"(%0) {callee = @exp_on_host}

Tensors of a module are on the first device of the target. Where something else is wanted,
`graph.device` says so on an operator, an argument or a function, `graph.hint_on_device` of what is
computed, and `graph.to_device` moves a tensor. An operator runs

    where it is marked, or its result is hinted to be;
    on the host if the first device stores no such elements: only it, not what follows;
    on the host, or on another device, if all tensors are there that it is computed from, apart from
      constants and what is made of them;
    there if it is computed from such alone, and all that uses it is there;
    on the first device otherwise.

Neighbours on one device become one function, which no later pass mixes with code of another one.
What crosses the border is not copied yet: see `relax-copy-between-devices`. For a target without a
device all marks are left out. Functions that are called from outside take and return tensors on the
host or on the first device.

Needs: facts on dims (`relax-state-assumptions`). Leaves: no hint and no marked operator; other
    devices than the target's are refused.
Source: TVM `RealizeVDevice`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.devices import DEVICE, device_of_argument, placed
from relax_mlir.analysis.functions import (
    FACTS,
    NOINLINE,
    argument_name,
    graph_functions,
    is_public,
)
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.analysis.symbols import bindings
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects.graph import (
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    DataDependentOp,
    DeviceOp,
    GraphOp,
    HintOnDeviceOp,
    MatchCastOp,
    TensorType,
    ToDeviceOp,
    annotation_of,
    is_small_float,
)
from relax_mlir.outlining import Group, Outliner, Refused
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import is_unused, replace, retyped, safe_erase, walk_ops
from relax_mlir.symbolic import Facts
from relax_mlir.target import Device, Target, TargetError, native
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST, in_names, resolve_device

MAX_NAME = 60


@dataclass(frozen=True)
class PlaceDevices(Pass):
    """Decides where operators run, and outlines those that are not of the first device."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)

    def run(self, op: ir.Operation) -> None:
        """Places the operators of every graph function of the module."""
        devices, functions = self.target.devices, graph_functions(op)
        for function in functions:
            marked = _resolve(function, devices)
            if not devices:
                _forget(marked)
        if not devices:
            return
        outliner = Outliner(op, Purity.of(op))
        for function in functions:
            if is_public(function):
                _check_border(function)
            _realize_hints(function)
            if placed(function) == OF_TARGET:
                _Placement(function, devices[0], outliner).run()
            else:
                _check_whole(function)


def _check_border(function: func.FuncOp) -> None:
    """Raises PassFailure if a function takes or returns tensors on a device after the first."""
    accepted = f"accepted are '{HOST}' and '{OF_TARGET}', from where `graph.to_device` copies"
    if (device := placed(function)) not in (HOST, OF_TARGET):
        raise PassFailure(
            function, f"is called from outside, but is placed on '{device}'; {accepted}"
        )
    for index in range(len(function.arguments)):
        if (device := device_of_argument(function, index)) not in (HOST, OF_TARGET):
            name = argument_name(function, index)
            text = f"takes '{name}' on '{device}', although it is called from outside"
            raise PassFailure(function, f"{text}; {accepted}")


def _check_whole(function: func.FuncOp) -> None:
    """Raises PassFailure at an operator that is marked for elsewhere than its function is."""
    own = placed(function)
    for op in walk_ops(function):
        if isinstance(op, func.FuncOp) or DEVICE not in op.attributes:
            continue
        if (device := placed(op)) != own:
            text = f"is placed on '{device}', but '@{function.name.value}' computes on '{own}'"
            raise PassFailure(op, f"{text} as a whole; `graph.call` calls functions of others")
        del op.attributes[DEVICE]


def _resolve(function: func.FuncOp, devices: Sequence[Device]) -> list[ir.OpView]:
    """Has all marks name the host or devices of the target; returns the ops that have some.

    Raises PassFailure at one of another device.
    """

    def resolved(at: ir.OpView, name: ir.Attribute) -> ir.StringAttr:
        if not isinstance(name, ir.StringAttr):
            raise PassFailure(at, f"expects '{DEVICE}' to be a text, but got {name}")
        try:
            device = resolve_device(name.value, devices)
        except TargetError as error:
            raise PassFailure(at, str(error)) from None
        return ir.StringAttr.get(device)

    if "arg_attrs" in function.attributes:
        rows = [ir.DictAttr(row) for row in ir.ArrayAttr(function.attributes["arg_attrs"])]
        new = [{named.name: named.attr for named in row} for row in rows]
        for row in new:
            if DEVICE in row:
                row[DEVICE] = resolved(function, row[DEVICE])
                if not devices:
                    del row[DEVICE]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in new])
    marked = []
    for op in walk_ops(function):
        names = [DEVICE] if DEVICE in op.attributes else []
        names += ["device"] if isinstance(op, DeviceOp) else []
        for name in names:
            op.attributes[name] = resolved(op, op.attributes[name])
        if names:
            marked.append(op)
    return marked


def _forget(marked: Sequence[ir.OpView]) -> None:
    """Leaves out all marks: all tensors are in one memory."""
    for op in marked:
        if isinstance(op, DeviceOp):
            with ir.InsertionPoint(op), op.location:
                replace(op, retyped(op.input, op.result.type))
        elif DEVICE in op.attributes:
            del op.attributes[DEVICE]


def _realize_hints(function: func.FuncOp) -> None:
    """Marks the operators whose results are hinted; a hint is a move of what is elsewhere."""
    for hint in walk_ops(function, HintOnDeviceOp):
        maker = hint.input.owner
        is_free = placed(function) == OF_TARGET and not isinstance(maker, ir.Block)
        if is_free and _is_placeable(maker.opview):
            if DEVICE not in maker.opview.attributes:
                maker.opview.attributes[DEVICE] = hint.attributes["device"]
        with ir.InsertionPoint(hint), hint.location:
            move = ToDeviceOp.build(hint.input, device=hint.attributes["device"])
        replace(hint, move.result)


def _is_placeable(op: ir.OpView) -> bool:
    """Whether an op can be of another function: it makes tensors of known dims from such."""
    is_call = isinstance(op, CallTirOp | CallTirInplaceOp)
    is_computed = is_call or (isinstance(op, GraphOp) and op.has_rule())
    if not is_computed or isinstance(op, DeviceOp | DataDependentOp):
        return False
    tensors = [value for value in (*op.operands, *op.results) if _is_tensor(value)]
    made = [value for value in op.results if _is_tensor(value)]
    return len(made) == len(op.results) > 0 and all(map(_is_exact, tensors))


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType | ir.UnrankedTensorType)


def _is_exact(value: ir.Value) -> bool:
    annotation = annotation_of(value)
    return isinstance(annotation, TensorType) and annotation.is_exact


class _Placement:
    """The placement of the operators of one function, which is of the first device."""

    def __init__(self, function: func.FuncOp, device: Device, outliner: Outliner) -> None:
        self.function, self.device, self.outliner = function, device, outliner
        self.elsewhere: dict[ir.Value, str] = {}  # of operators elsewhere, by their first results
        self.free: set[ir.Value] = set()  # computed from constants alone
        self.tensors: dict[ir.Value, str] = {  # elsewhere, so that what uses them is
            argument: own
            for index, argument in enumerate(function.arguments)
            if (own := device_of_argument(function, index)) != OF_TARGET
        }

    def run(self) -> None:
        """Outlines the operators that are elsewhere."""
        operations = walk_ops(self.function)
        for op in operations:
            self._visit(op)
        for op in reversed(operations):
            if (common := self._device_of_users(op)) is not None:
                self.elsewhere[op.results[0]] = common
        for op in operations:
            if isinstance(op, ToDeviceOp):
                self._leave_out(op)
        operations = walk_ops(self.function)
        facts = {
            op.results[0]: scope.facts
            for op, scope in scoped_ops(self.function)
            if self._is_placed(op)
        }
        ordered = [op.operation for op in operations if self._is_placed(op)]
        for members in list(_components(ordered, self.elsewhere)):
            self._outline(members, facts)

    def _is_placed(self, op: ir.OpView | ir.Operation) -> bool:
        """Whether an op is an operator that does not run on the first device."""
        return len(op.results) > 0 and op.results[0] in self.elsewhere

    def _put(self, op: ir.OpView, device: str) -> None:
        """Has an operator, and so what it makes, be on a device."""
        if device != OF_TARGET:
            self.elsewhere[op.results[0]] = device
            self._assign(op.results, device)

    def _assign(self, values: Iterable[ir.Value], device: str) -> None:
        """Has tensors be on a device, of which nothing is said if it is the first device."""
        if device != OF_TARGET:
            self.tensors.update(dict.fromkeys(values, device))

    def _visit(self, op: ir.OpView) -> None:
        """Puts an op, or what it makes, where it is to be."""
        if isinstance(op, ToDeviceOp):
            self._assign([op.result], op.attributes["device"].value)
        elif isinstance(op, MatchCastOp):
            self._assign([op.result], self.tensors.get(op.input, OF_TARGET))
        elif isinstance(op, CallOp):
            callee = self.outliner.purity.functions.get(op.callee_name)
            if callee is not None:
                self._assign(op.outs, placed(callee))
        elif DEVICE in op.attributes and not isinstance(op, func.FuncOp):
            if not _is_placeable(op):
                accepted = "an operator or a call of a tensor program, on tensors of known dims"
                raise PassFailure(op, f"cannot be placed; expects {accepted}")
            self._put(op, placed(op))
            del op.attributes[DEVICE]
        elif _is_placeable(op):
            made_from = self._made_from(op)
            if not self._is_stored(op):
                self.elsewhere[op.results[0]] = HOST
            elif not made_from:
                self.free.update(op.results)
            elif len(devices := {self.tensors.get(value, OF_TARGET) for value in made_from}) == 1:
                self._put(op, *devices)

    def _is_stored(self, op: ir.OpView) -> bool:
        """Whether the device stores the elements of what an op reads and makes."""
        values = [value for value in (*op.operands, *op.results) if _is_tensor(value)]
        elements = {_stored(TensorType.of(value).element) for value in values}
        return elements <= {"i1", "index", *self.device.elements}

    def _device_of_users(self, op: ir.OpView) -> str | None:
        """Where all users are of an op that reads constants at most, if that is elsewhere."""
        if self._is_placed(op) or not self.free.issuperset(op.results):
            return None
        users = [use.owner.operation for result in op.results for use in result.uses]
        if not users or not all(map(self._is_placed, users)):
            return None
        devices = {self.elsewhere[user.results[0]] for user in users}
        return devices.pop() if len(devices) == 1 else None

    def _made_from(self, op: ir.OpView) -> list[ir.Value]:
        """The tensors that an op reads, apart from what is made of constants."""
        tensors = [value for value in op.operands if _is_tensor(value) and not _is_constant(value)]
        return [value for value in tensors if value not in self.free]

    def _leave_out(self, move: ToDeviceOp) -> None:
        """Has operators read elsewhere what is there, without a move that would part them."""
        device = self.tensors.get(move.result)
        if device is not None and device == self.tensors.get(move.input):
            for use in list(move.result.uses):
                if self._is_placed(use.owner) and move.input.type == move.result.type:
                    use.owner.operation.operands[use.operand_number] = move.input
            if is_unused(move):
                safe_erase(move)

    def _outline(self, members: Sequence[ir.Operation], facts: Mapping[ir.Value, Facts]) -> None:
        """Replaces operators by a call of a function on their device, or by one for each."""
        device = self.elsewhere[members[0].results[0]]
        for part in (members, *([op] for op in members)):
            values = dict.fromkeys(value for op in part for value in op.operands)
            constants = [value.owner.operation for value in values if _is_constant(value)]
            try:
                group = Group.of(part, constants, self.outliner.purity)
            except Refused as why:
                if len(members) == 1:
                    raise PassFailure(members[0].opview, f"cannot be placed: {why}") from None
                continue
            names = [op.name.partition(".")[2] for op in group.ops]
            base = f"{'_'.join(names)[:MAX_NAME]}_on_{in_names(device)}"
            known = facts[group.ops[-1].results[0]]
            self.outliner.outline(group, base, self._attributes(group, device, known))
            if part is members:
                return

    def _attributes(self, group: Group, device: str, facts: Facts) -> dict[str, ir.Attribute]:
        """What the function says of itself: its facts are those of its caller on its symbols."""
        known = {*bindings([annotation_of(value) for value in group.inputs]), *group.symbols}
        texts = [ir.StringAttr.get(str(fact)) for fact in facts if fact.symbols <= known]
        stated = {FACTS: ir.ArrayAttr.get(texts)} if texts else {}
        return {DEVICE: ir.StringAttr.get(device), NOINLINE: ir.UnitAttr.get(), **stated}


def _is_constant(value: ir.Value) -> bool:
    is_made = not isinstance(value.owner, ir.Block)
    return is_made and _is_tensor(value) and isinstance(value.owner.opview, arith.ConstantOp)


def _stored(element: ir.Type) -> str:
    """The name of the type that a device stores elements as."""
    return "i8" if is_small_float(element) else re.sub(r"^[su]i", "i", str(element))


def _components(
    operations: Sequence[ir.Operation], devices: Mapping[ir.Value, str]
) -> Iterator[list[ir.Operation]]:
    """Groups operators, in program order, that use each other's results in a block, on a device."""
    component: dict[ir.Value, list[ir.Operation]] = {}
    for op in operations:
        own = component[op.results[0]] = [op]
        makers = [value.owner for value in op.operands if not isinstance(value.owner, ir.Block)]
        for maker in (maker.operation for maker in makers):
            other = component.get(maker.results[0])
            is_near = devices.get(maker.results[0]) == devices[op.results[0]]
            if other is not None and other is not own and is_near and maker.block == op.block:
                other += own
                component.update((member.results[0], other) for member in own)
                own = other
    seen: set[int] = set()
    for members in component.values():
        if id(members) not in seen:
            seen.add(id(members))
            yield members
