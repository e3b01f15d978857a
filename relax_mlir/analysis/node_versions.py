"""The versions of a dataflow node: what its leaves are written for, and which a target can run.

    @blur {tir.leaf, tir.targets = ["cpu"], tir.versions = [@blur_on_device]}
    @blur_on_device {tir.leaf, tir.targets = ["vulkan", "cuda"]}

Both compute the same, which is for whoever wrote them to see to; that they take and return the same
is checked. Targets are "cpu", "device", which is any that a target has, and kinds of devices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.tir import LEAF, TARGETS, VERSIONS
from relax_mlir.target import Device
from relax_mlir.target.device import DEVICE, HOST, KINDS, device_names

from .leaves import access_of

NAMES = (*KINDS, DEVICE)
"""What a leaf may be written for."""


@dataclass(frozen=True)
class Version:
    """A leaf that a target can run on one side, HOST or one of `device_names`; None is any."""

    leaf: func.FuncOp
    side: str | None

    @property
    def name(self) -> str:
        """The name of the leaf."""
        return self.leaf.name.value


def targets_of(leaf: func.FuncOp) -> tuple[str, ...]:
    """What a leaf is written for, the best first; none is any target."""
    hints = leaf.attributes[TARGETS] if TARGETS in leaf.attributes else ()
    return tuple(hint.value for hint in hints)


def versions_of(leaf: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> list[func.FuncOp]:
    """The leaf, and the others that compute the same."""
    others = leaf.attributes[VERSIONS] if VERSIONS in leaf.attributes else ()
    return [leaf, *(functions[other.value] for other in others)]


def available(
    leaf: func.FuncOp, functions: Mapping[str, func.FuncOp], devices: Sequence[Device]
) -> list[Version]:
    """What a target with devices, or without, can run for a node of this leaf, the best first."""
    versions = []
    for each in versions_of(leaf, functions):
        hints = targets_of(each)
        if not hints:
            versions.append(Version(each, None))
        for hint in hints:
            if hint == HOST:
                versions.append(Version(each, HOST))
            else:
                sides = zip(device_names(devices), devices)
                matching = [side for side, device in sides if hint in (DEVICE, device.api)]
                versions += [Version(each, side) for side in matching]
    return versions


def broken_targets(function: func.FuncOp) -> str | None:
    """What is wrong with `tir.targets` of a function."""
    if TARGETS not in function.attributes:
        return None
    hints = function.attributes[TARGETS]
    entries = list(hints) if isinstance(hints, ir.ArrayAttr) else []
    names = [entry.value for entry in entries if isinstance(entry, ir.StringAttr)]
    is_known = len(names) == len(entries) > 0 and all(name in NAMES for name in names)
    if is_known and LEAF in function.attributes:
        return None
    return f"has '{TARGETS}' {hints}; expects a leaf with some of {', '.join(NAMES)}"


def broken_versions(
    function: func.FuncOp, functions: Mapping[str, func.FuncOp]
) -> Iterator[tuple[ir.OpView, str]]:
    """What is wrong with `tir.versions` of a function: they are other leaves of its types."""
    if VERSIONS not in function.attributes:
        return
    attribute = function.attributes[VERSIONS]
    entries = list(attribute) if isinstance(attribute, ir.ArrayAttr) else []
    names = [entry.value for entry in entries if isinstance(entry, ir.FlatSymbolRefAttr)]
    if LEAF not in function.attributes or not names or len(set(names)) < len(entries):
        yield function, f"has '{VERSIONS}' {attribute}; expects a leaf with names of other leaves"
        return
    for name in names:
        other = functions.get(name)
        if other is None or LEAF not in other.attributes or name == function.name.value:
            yield function, f"has the version '@{name}', which is no other leaf"
        elif VERSIONS in other.attributes:
            yield function, f"has the version '@{name}', which has versions itself"
        elif other.type != function.type or _access(other) != _access(function):
            yield function, f"has the version '@{name}' of '{other.type}'; expects the leaf's own"


def _access(leaf: func.FuncOp) -> list[str] | None:
    try:
        return access_of(leaf)
    except ValueError:
        return None  # an error of its own
