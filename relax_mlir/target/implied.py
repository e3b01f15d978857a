"""Implied features: LLVM enables a feature only together with those that it implies.

Disabling a feature disables those that imply it; LLVM aborts on an inconsistent set.
Source: LLVM `X86.td`, `AArch64Features.td`, `ARMFeatures.td`, `RISCVFeatures.td`,
`WebAssembly.td`.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from relax_mlir.target.errors import TargetError
from relax_mlir.target.features import WASM

_IMPLIED: Mapping[str, tuple[str, ...]] = {
    **{"sse2": ("sse",), "sse3": ("sse2",), "ssse3": ("sse3",), "sse4.1": ("ssse3",)},
    **{"sse4.2": ("sse4.1",), "sse4a": ("sse3",), "fma4": ("avx", "sse4a"), "xop": ("fma4",)},
    **dict.fromkeys(("aes", "gfni", "pclmul", "sha", "kl"), ("sse2",)),
    **{"avx": ("sse4.2",), "vpclmulqdq": ("avx", "pclmul"), "vaes": ("avx2", "aes")},
    **dict.fromkeys(("f16c", "fma", "avx2", "sm3"), ("avx",)),
    **dict.fromkeys(("avxvnni", "avxifma", "avxneconvert", "avxvnniint8"), ("avx2",)),
    **dict.fromkeys(("avxvnniint16", "sha512", "sm4"), ("avx2",)),
    **{"cx16": ("cx8",), "widekl": ("kl",)},
    **dict.fromkeys(("xsavec", "xsaveopt", "xsaves"), ("xsave",)),
    "avx512f": ("avx2", "f16c", "fma"),
    **dict.fromkeys(("avx512bw", "avx512cd", "avx512dq", "avx512ifma"), ("avx512f",)),
    **dict.fromkeys(("avx512vl", "avx512vnni", "avx512vp2intersect"), ("avx512f",)),
    "avx512vpopcntdq": ("avx512f",),
    **dict.fromkeys(("avx512bf16", "avx512bitalg", "avx512fp16"), ("avx512bw",)),
    **dict.fromkeys(("avx512vbmi", "avx512vbmi2"), ("avx512bw",)),
    **dict.fromkeys(("amx-bf16", "amx-complex", "amx-fp16", "amx-fp8", "amx-int8"), ("amx-tile",)),
    **dict.fromkeys(("amx-movrs", "amx-tf32"), ("amx-tile",)),
    "amx-avx512": ("amx-tile", "avx10.2"),
    "avx10.2": ("avx10.1",),
    "avx10.1": (
        *("avx512bf16", "avx512bitalg", "avx512cd", "avx512dq", "avx512fp16", "avx512ifma"),
        *("avx512vbmi2", "avx512vbmi", "avx512vl", "avx512vnni", "avx512vpopcntdq"),
    ),
    **{"neon": ("fp-armv8",), "fullfp16": ("fp-armv8",), "dotprod": ("neon",), "rdm": ("neon",)},
    **{"i8mm": ("neon",), "bf16": ("neon",)},
    **{"sve": ("fullfp16",), "sve2": ("sve",)},
    **{"vfp4": ("vfp3",), "d": ("f",), "zvfh": ("v",)},
    **{"v": ("zve64d", "zvl128b"), "zve64d": ("d",)},
    **{"relaxed-simd": ("simd128",), "bulk-memory": ("bulk-memory-opt",)},
}
_BASE = {
    "x86_64": ("sse", "sse2"),
    "aarch64": ("fp-armv8", "neon"),
    "armv7": ("neon", "vfp4", "hwdiv-arm"),
    "riscv64": ("m", "a", "f", "d"),
    "wasm32": WASM,
}
"""Features that all code for an architecture needs: most for its calling convention."""


def changed(arch: str, features: Iterable[str], changes: Iterable[str]) -> tuple[str, ...]:
    """Applies changes to signed features: "avx2" adds it and what it implies, "-avx2" removes it.

    Removes the features that imply a removed one. Raises TargetError if that removes a base
    feature of the architecture.
    """
    chosen = {feature[1:]: feature[0] for feature in features}
    for missing in [name for name, sign in chosen.items() if sign == "-"]:
        _remove(chosen, missing)
    for change in changes:
        if not change.startswith("-"):
            chosen |= dict.fromkeys(_with_implied(change), "+")
            continue
        _remove(chosen, change[1:])
        for base in _BASE[arch]:
            if chosen.get(base) == "-":
                raise TargetError(f"'+{change}' removes '{base}', which all code for {arch} needs")
    return tuple(sorted(sign + feature for feature, sign in chosen.items()))


def contradiction(features: Iterable[str]) -> tuple[str, str] | None:
    """A feature and one that it implies but that is disabled; None if there is none."""
    given = set(features)
    for name in sorted(feature[1:] for feature in given if feature[0] == "+"):
        for other in sorted(_with_implied(name)):
            if f"-{other}" in given:
                return name, other
    return None


@cache
def _with_implied(feature: str) -> frozenset[str]:
    """The feature and all that it implies."""
    return frozenset({feature}).union(
        *(_with_implied(other) for other in _IMPLIED.get(feature, ()))
    )


def _remove(chosen: dict[str, str], feature: str) -> None:
    chosen[feature] = "-"
    chosen |= {name: "-" for name in chosen if feature in _with_implied(name)}
