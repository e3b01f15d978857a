"""Tables of CPUs: the named targets, and the caches and traits of LLVM's CPUs.

Source: vendors' software optimization guides.
"""

from relax_mlir.target.cpu import KNOWN_VECTOR, SCALABLE, SYSTEMS, Caches, Cpu, widest_vectors
from relax_mlir.target.features import (
    ARMV7,
    ARMV8,
    ARMV8_2,
    ARMV8_6,
    LEVEL_1,
    LEVEL_2,
    LEVEL_3,
    LEVEL_4,
    RV64GC,
    RVV,
    SAPPHIRE_RAPIDS,
    WASM,
    ZEN_4,
    ZEN_5,
)

NAMED = {
    "x86-64": ("x86_64", "x86-64", LEVEL_1),
    "x86-64-v2": ("x86_64", "x86-64-v2", LEVEL_2),
    "x86-64-v3": ("x86_64", "x86-64-v3", LEVEL_3),
    "x86-64-v4": ("x86_64", "x86-64-v4", LEVEL_4),
    "znver3": ("x86_64", "znver3", LEVEL_3),
    "znver4": ("x86_64", "znver4", ZEN_4),
    "znver5": ("x86_64", "znver5", ZEN_5),
    "sapphirerapids": ("x86_64", "sapphirerapids", SAPPHIRE_RAPIDS),
    "aarch64": ("aarch64", "generic", ARMV8),
    "aarch64-v8.2": ("aarch64", "generic", ARMV8_2),
    "aarch64-v8.6": ("aarch64", "generic", ARMV8_6),
    "neoverse-v1": ("aarch64", "neoverse-v1", (*ARMV8_6, "sve")),
    "armv7": ("armv7", "generic", ARMV7),
    "riscv64": ("riscv64", "generic-rv64", RV64GC),
    "riscv64-v": ("riscv64", "generic-rv64", RVV),
    "wasm32": ("wasm32", "generic", WASM),
    "wasm32-relaxed": ("wasm32", "generic", (*WASM, "relaxed-simd")),
}
"""Name of a target: architecture, LLVM's name of the CPU, features."""
ANDROID = "-android"
NAMED |= {f"{name}{ANDROID}": NAMED[name] for name in NAMED if name.startswith("aarch64")}
# AMD's before Zen 4; Intel's with tile registers.
_ZEN = (Caches(l2=512 << 10), "zen")
_XEON = (Caches(l1=48 << 10, l1_ways=12, l2=2 << 20), "xeon")
_CPUS: dict[str, tuple[Caches, str]] = {
    **dict.fromkeys(("znver1", "znver2", "znver3"), _ZEN),
    "znver5": (Caches(l1=48 << 10, l1_ways=12), "zen5"),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"), _XEON),
}
"""LLVM's name of a CPU: its caches and its trait."""
_ARCHITECTURES = {
    "aarch64": Caches(l1=64 << 10, l1_ways=4),  # Neoverse N1
    "armv7": Caches(l1_ways=4, l2=512 << 10),  # Cortex-A7, of four cores
    "riscv64": Caches(l2=512 << 10),  # SpacemiT K1
}
_VECTOR_BYTES = {"neoverse-v1": 32, "a64fx": 64}
"""LLVM's name of a CPU with scalable vectors: their length, where it is known and longer."""
# A hypervisor may hide the name of a CPU that its features identify.
_TRAITS_OF_FEATURES = {"+amx-tile": "xeon"}


def make_cpu(arch: str, name: str, features: tuple[str, ...], caches: Caches | None = None) -> Cpu:
    """A CPU by LLVM's name and its signed features; `caches` override the known ones."""
    vector_bytes, registers = widest_vectors(arch, features)
    if arch in SCALABLE:
        vector_bytes = min(vector_bytes, _VECTOR_BYTES.get(name, KNOWN_VECTOR))
    default = _ARCHITECTURES.get(arch, Caches())
    known, *traits = _CPUS.get(name, (default,))
    traits += [trait for feature, trait in _TRAITS_OF_FEATURES.items() if feature in features]
    return Cpu(
        arch, f"{arch}-unknown-{SYSTEMS[arch][0]}", name, features, vector_bytes, registers,
        known if caches is None else caches, frozenset(traits),
    )  # fmt: skip
