"""The machine that code is made for: triple, CPU, features, and what they mean for kernels.

    Target.parse("native")               this machine, every feature it has
    Target.parse("x86-64-v3")            a level of the x86-64 psABI
    Target.parse("x86-64-v4+avx512vnni") a level with features added (or taken away by `-`)
    Target.parse("znver4")               a CPU by its name

CPU and feature names are LLVM's. Source: x86-64 psABI, section 3.1.1 (microarchitecture levels);
LLVM `X86.td`.
"""

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from relax_mlir.errors import UsageError

_LEVEL_1 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_LEVEL_2 = (*_LEVEL_1, "cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_LEVEL_3 = (
    *_LEVEL_2,
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
_LEVEL_4 = (*_LEVEL_3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_ZEN_4 = (
    *(*_LEVEL_4, "avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2"),
    *("avx512vnni", "avx512vpopcntdq", "gfni"),
)
_ZEN_5 = (*_ZEN_4, "avxvnni")
_SAPPHIRE_RAPIDS = (*(*_ZEN_4, "amx-bf16", "amx-int8", "amx-tile", "avx512fp16", "avxvnni"),)
_ARMV8 = ("fp-armv8", "neon")


@dataclass(frozen=True)
class Caches:
    """Bytes of a line, of the first and second level of a core, and of a page.

    `l1_ways` are the lines of a set of the first level, which holds data alone.
    """

    line: int = 64
    l1: int = 32 << 10
    l1_ways: int = 8
    l2: int = 1 << 20
    page: int = 4096

    @property
    def l1_sets(self) -> int:
        """Sets of the first level."""
        return self.l1 // (self.l1_ways * self.line)


# name -> (architecture, LLVM CPU, features)
_NAMED = {
    "x86-64": ("x86_64", "x86-64", _LEVEL_1),
    "x86-64-v2": ("x86_64", "x86-64-v2", _LEVEL_2),
    "x86-64-v3": ("x86_64", "x86-64-v3", _LEVEL_3),
    "x86-64-v4": ("x86_64", "x86-64-v4", _LEVEL_4),
    "znver3": ("x86_64", "znver3", _LEVEL_3),
    "znver4": ("x86_64", "znver4", _ZEN_4),
    "znver5": ("x86_64", "znver5", _ZEN_5),
    "sapphirerapids": ("x86_64", "sapphirerapids", _SAPPHIRE_RAPIDS),
    "aarch64": ("aarch64", "generic", _ARMV8),
    "aarch64-v8.2": ("aarch64", "generic", (*_ARMV8, "lse", "rdm", "fullfp16", "dotprod")),
}
# Intel's with tile registers; AMD's before Zen 4.
_XEONS = ("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d")
_EARLY_ZENS = ("znver1", "znver2", "znver3")
# By LLVM's name of a CPU, or by architecture (Neoverse N1). Other CPUs have the defaults.
# Source: vendors' software optimization guides.
_CACHES = {
    **dict.fromkeys(_EARLY_ZENS, Caches(l2=512 << 10)),
    "znver5": Caches(l1=48 << 10, l1_ways=12),
    **dict.fromkeys(_XEONS, Caches(l1=48 << 10, l1_ways=12, l2=2 << 20)),
    "aarch64": Caches(l1=64 << 10, l1_ways=4),
}
_TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
_ARCHITECTURES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


# What kernels may use, by LLVM's names, and what /proc/cpuinfo calls it where that differs.
_X86_FLAGS = {
    **{name: name for name in (*_LEVEL_4, "avx512ifma", "avx512vbmi", "gfni")},
    **{"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "sahf": "lahf_lm"},
    **{"bmi": "bmi1", "lzcnt": "abm", "avxvnni": "avx_vnni", "avx512vbmi2": "avx512_vbmi2"},
    **{"avx512bitalg": "avx512_bitalg", "avx512vpopcntdq": "avx512_vpopcntdq"},
    **{"avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"},
    **{"amx-tile": "amx_tile", "amx-int8": "amx_int8", "amx-bf16": "amx_bf16"},
}
_ARM_FLAGS = {
    **{"fp-armv8": "fp", "neon": "asimd", "fullfp16": "asimdhp", "dotprod": "asimddp"},
    **{"lse": "atomics", "rdm": "asimdrdm", "i8mm": "i8mm", "bf16": "bf16"},
}
_FLAGS = {**_X86_FLAGS, **_ARM_FLAGS}


class TargetError(UsageError):
    """A target name that is not known, or a machine that code cannot be made for."""


@dataclass(frozen=True)
class Target:
    """A CPU to generate code for.

    `features` are LLVM's, signed and sorted ("+avx2", "-avx512f"). `vector_bytes` is the width of
    the vectors that kernels should use: 16, 32 or 64. `caches` are those of one core.
    """

    name: str
    arch: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bytes: int
    caches: Caches = Caches()

    @staticmethod
    def parse(text: str) -> "Target":
        """The target of that name; raises TargetError with the accepted names if there is none."""
        match = re.fullmatch(r"(.*?)((?:[+,]-?[a-z0-9.]+(?:-[a-z0-9.]+)*)*)", text.strip())
        name, changes = match.groups() if match else (text, "")
        if name == "native":
            arch, cpu, features = _native()
            caches = _native_caches(_caches(arch, cpu))
        elif name in _NAMED:
            arch, cpu, names = _NAMED[name]
            features = tuple(f"+{feature}" for feature in names)
            caches = _caches(arch, cpu)
        else:
            accepted = ", ".join(["native", *_NAMED])
            raise TargetError(
                f"unknown target '{text}'; accepted are {accepted}, each with '+feature' or "
                "'+-feature' behind it"
            )
        chosen = {feature[1:]: feature[0] for feature in features}
        for feature in re.findall(r"[+,](-?[a-z0-9.]+(?:-[a-z0-9.]+)*)", changes):
            chosen[feature.lstrip("-")] = "-" if feature.startswith("-") else "+"
        if chosen.get("amx-tile") != "+":  # LLVM, too, has the others only with it
            chosen |= {feature: "-" for feature in chosen if feature.startswith("amx-")}
        signed = tuple(sorted(sign + feature for feature, sign in chosen.items()))
        triple, width = _TRIPLES[arch], _vector_bytes(arch, signed)
        return Target(text.strip(), arch, triple, cpu, signed, width, caches)

    def has(self, feature: str) -> bool:
        """Whether the machine has that feature, by LLVM's name: `has("avx512vnni")`."""
        return f"+{feature}" in self.features

    @property
    def family(self) -> str:
        """What CPUs it is like in what features do not tell: how fast they compute and read memory.

        "xeon"     Intel's server CPUs since Sapphire Rapids; a guest may not see their AMX
        "zen5"     AMD's of that name
        "zen"      AMD's before Zen 4
        "avx512"   others with vectors of 64 bytes
        "generic"  all others
        """
        if self.cpu in _XEONS or self.has("amx-tile"):
            return "xeon"
        if self.cpu == "znver5":
            return "zen5"
        if self.cpu in _EARLY_ZENS:
            return "zen"
        return "avx512" if self.vector_bytes == 64 else "generic"

    @property
    def needs(self) -> tuple[str, ...]:
        """The features that kernels may use, and that a machine must have to run them."""
        return tuple(feature[1:] for feature in self.features if self._is_needed(feature))

    @staticmethod
    def _is_needed(feature: str) -> bool:
        return feature[0] == "+" and feature[1:] in _FLAGS

    @property
    def llvm_features(self) -> str:
        """The features as LLVM's target machine reads them: "+avx,+avx2,-avx512f"."""
        return ",".join(self.features)

    @property
    def f32_lanes(self) -> int:
        """The number of f32 values in one vector."""
        return self.vector_bytes // 4

    @property
    def num_vector_registers(self) -> int:
        """The number of vector registers that code for this machine may name."""
        return 32 if self.arch == "aarch64" or self.has("avx512vl") else 16


def _vector_bytes(arch: str, features: tuple[str, ...]) -> int:
    if arch == "x86_64" and {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= set(features):
        return 64
    return 32 if arch == "x86_64" and {"+avx2", "+fma"} <= set(features) else 16


def _caches(arch: str, cpu: str) -> Caches:
    return _CACHES.get(cpu, _CACHES.get(arch, Caches()))


@lru_cache(maxsize=1)
def _native_caches(known: Caches) -> Caches:
    """The caches of this machine's first core as Linux says; `known` ones where it does not."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    found: dict[str, int] = {}
    try:
        for index in sorted(folder.glob("index[0-9]*")):
            level, kind, size, line, ways = (
                (index / name).read_text(encoding="ascii").strip()
                for name in (
                    "level",
                    "type",
                    "size",
                    "coherency_line_size",
                    "ways_of_associativity",
                )
            )
            if level == "1" and kind == "Data":
                found |= {"l1": _bytes(size), "line": int(line), "l1_ways": int(ways)}
            elif level == "2" and kind != "Instruction":
                found["l2"] = _bytes(size)
        caches = replace(known, **found)
        return caches if caches.l1_sets and caches.l2 else known
    except (OSError, ValueError, ZeroDivisionError):
        return known


def _bytes(size: str) -> int:
    """The bytes of a size as Linux writes it: "48K"."""
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(size.rstrip("KM")) * units.get(size[-1], 1)


def lacking(features: Iterable[str]) -> list[str]:
    """Those of the features, of `Target.needs`, that this machine lacks; none if it is not known.

    Reads what Linux says, which takes a tenth of the time that LLVM's answer takes.
    """
    flags = host_flags()
    return [name for name in features if flags and _FLAGS.get(name, name) not in flags]


@lru_cache(maxsize=1)
def host_flags() -> frozenset[str]:
    """The features of this machine's first CPU, by the names of /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@lru_cache(maxsize=1)
def _native() -> tuple[str, str, tuple[str, ...]]:
    """Architecture, CPU and signed features of this machine."""
    arch = _ARCHITECTURES.get(platform.machine())
    if arch is None or platform.system() != "Linux":
        raise TargetError(
            f"no native target for {platform.system()} on {platform.machine()}; accepted are "
            + ", ".join(_NAMED)
        )
    import llvmlite.binding as llvm  # 60 ms, and named targets do without

    features = dict(llvm.get_host_cpu_features())
    if arch == "aarch64":
        # LLVM leaves out what comes with the CPU's name, dot products among it.
        features |= {name: flag in host_flags() for name, flag in _ARM_FLAGS.items()}
    return arch, llvm.get_host_cpu_name(), tuple(("-", "+")[on] + f for f, on in features.items())
