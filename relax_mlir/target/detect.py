"""Detects this machine: its CPU, features and caches, by LLVM and Linux."""

import platform
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from relax_mlir.target.cpu import Caches
from relax_mlir.target.errors import TargetError
from relax_mlir.target.features import ARM_FLAGS, ARMV7, FLAGS
from relax_mlir.target.known import NAMED

_ARCHITECTURES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


@lru_cache(maxsize=1)
def native() -> tuple[str, str, tuple[str, ...]]:
    """Architecture, LLVM's name of the CPU, and signed features of this machine.

    Raises TargetError on an unsupported machine.
    """
    arch = _ARCHITECTURES.get(platform.machine())
    if arch is None or platform.system() != "Linux":
        raise TargetError(
            f"no native target for {platform.system()} on {platform.machine()}; accepted are "
            + ", ".join(NAMED)
        )
    import llvmlite.binding as llvm  # 60 ms, which named targets do not need

    features = dict(llvm.get_host_cpu_features())
    if arch == "aarch64":
        # LLVM omits features that the CPU's name implies, such as dot products.
        features |= {name: flag in host_flags() for name, flag in ARM_FLAGS.items()}
    return arch, llvm.get_host_cpu_name(), tuple(("-", "+")[on] + f for f, on in features.items())


@lru_cache(maxsize=1)
def native_caches(known: Caches) -> Caches:
    """The caches of this machine's first core, from Linux; `known` if it does not tell them."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    names = ("level", "type", "size", "coherency_line_size", "ways_of_associativity")
    sizes: dict[str, int] = {}
    try:
        for index in sorted(folder.glob("index[0-9]*")):
            level, kind, size, line, ways = (
                (index / name).read_text(encoding="ascii").strip() for name in names
            )
            if level == "1" and kind == "Data":
                sizes |= {"l1": _bytes(size), "line": int(line), "l1_ways": int(ways)}
            elif level == "2" and kind != "Instruction":
                sizes["l2"] = _bytes(size)
        return replace(known, **sizes)
    except (OSError, ValueError, TargetError):
        return known


def _bytes(size: str) -> int:
    """Bytes from a size in Linux's notation: "48K"."""
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(size.rstrip("KM")) * units.get(size[-1], 1)


def lacking(features: Iterable[str]) -> list[str]:
    """The features of `Cpu.needs` that this machine lacks; none if that is unknown.

    Asks Linux, which takes a tenth of the time of LLVM's detection.
    """
    flags = host_flags()
    if not flags:
        return []
    return [name for name in features if flags.isdisjoint((name, FLAGS.get(name, name)))]


@lru_cache(maxsize=1)
def host_flags() -> frozenset[str]:
    """The features of this machine's first CPU, as named in /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags = frozenset(value.split())
            return flags.union(ARMV7) if "asimd" in flags else flags  # it runs Armv7's code too
        if name.strip() == "isa":
            return _extensions(value.strip())
    return frozenset()


def _extensions(isa: str) -> frozenset[str]:
    """The extensions of RISC-V in Linux's notation: "rv64imafdc_zicsr_zba"."""
    letters, *named = isa.split("_")
    return frozenset([*letters.removeprefix("rv64"), *named])
