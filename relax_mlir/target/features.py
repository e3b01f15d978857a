"""Features of CPUs by LLVM's names: those of levels and CPUs, and what Linux calls them.

Source: x86-64 psABI, section 3.1.1 (microarchitecture levels); RISC-V unprivileged specification;
LLVM `X86.td`, `ARMFeatures.td`, `RISCVFeatures.td`, `WebAssembly.td`.
"""

LEVEL_1 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
LEVEL_2 = (*LEVEL_1, "cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
LEVEL_3 = (
    *LEVEL_2,
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
LEVEL_4 = (*LEVEL_3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
ZEN_4 = (
    *(*LEVEL_4, "avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2"),
    *("avx512vnni", "avx512vpopcntdq", "gfni"),
)
ZEN_5 = (*ZEN_4, "avxvnni")
SAPPHIRE_RAPIDS = (*ZEN_4, "amx-bf16", "amx-int8", "amx-tile", "avx512fp16", "avxvnni")
ARMV8 = ("fp-armv8", "neon")
ARMV8_2 = (*ARMV8, "lse", "rdm", "fullfp16", "dotprod")
ARMV8_6 = (*ARMV8_2, "bf16", "i8mm")
ARMV7 = ("neon", "vfp4", "hwdiv-arm")
RV64GC = ("m", "a", "f", "d", "c")
RVV = (*RV64GC, "v")
WASM = ("bulk-memory", "bulk-memory-opt", "nontrapping-fptoint", "sign-ext", "simd128")

# Features that kernels may use, by LLVM's names, with those of /proc/cpuinfo where they differ.
_X86_FLAGS = {
    **{name: name for name in (*LEVEL_4, "avx512ifma", "avx512vbmi", "gfni")},
    **{"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "sahf": "lahf_lm"},
    **{"bmi": "bmi1", "lzcnt": "abm", "avxvnni": "avx_vnni", "avx512vbmi2": "avx512_vbmi2"},
    **{"avx512bitalg": "avx512_bitalg", "avx512vpopcntdq": "avx512_vpopcntdq"},
    **{"avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"},
    **{"amx-tile": "amx_tile", "amx-int8": "amx_int8", "amx-bf16": "amx_bf16"},
}
ARM_FLAGS = {
    **{"fp-armv8": "fp", "neon": "asimd", "fullfp16": "asimdhp", "dotprod": "asimddp"},
    **{"lse": "atomics", "rdm": "asimdrdm", "i8mm": "i8mm", "bf16": "bf16"},
    **{"sve": "sve", "sve2": "sve2"},
}
_ARMV7_FLAGS = {"vfp4": "vfpv4", "hwdiv-arm": "idiva"}
_RISCV_FLAGS = {name: name for name in RVV}
FLAGS = {**_X86_FLAGS, **ARM_FLAGS, **_ARMV7_FLAGS, **_RISCV_FLAGS}
