"""A target CPU: its instructions, vectors, registers, caches, and performance traits."""

from dataclasses import dataclass, fields

from relax_mlir.target.errors import TargetError
from relax_mlir.target.features import FLAGS
from relax_mlir.target.implied import contradiction

SYSTEMS = {
    "x86_64": ("linux-gnu",),
    "aarch64": ("linux-gnu", "linux-android"),
    "armv7": ("linux-gnueabihf",),
    "riscv64": ("linux-gnu",),
    "wasm32": ("unknown",),
}
"""The systems of each architecture, as its triples name them."""
WASM = "wasm32"
"""The architecture that is no machine: modules run in engines, on one thread, without a system."""
VECTOR_BYTES = (4, 8, 16, 32, 64)
LEAST_VECTOR = VECTOR_BYTES[0]
SCALABLE = {"aarch64": "sve", "riscv64": "v"}
"""The feature of an architecture whose vectors have whatever length a machine gives them."""
KNOWN_VECTOR = 16
"""The bytes that vectors of these architectures have at least."""
LEAST_REGISTERS = 16  # that register blocks need


@dataclass(frozen=True)
class Caches:
    """Sizes in bytes of a cache line, of a core's L1 and L2 cache, and of a page.

    `l1` is the data cache; `l1_ways` is its associativity.
    """

    line: int = 64
    l1: int = 32 << 10
    l1_ways: int = 8
    l2: int = 1 << 20
    page: int = 4096

    def __post_init__(self) -> None:
        for size in fields(self):
            if getattr(self, size.name) <= 0:
                text = f"{size.name.replace('_', '-')}={getattr(self, size.name)}"
                raise TargetError(f"no cache is of '{text}'; sizes are at least 1")
        if not self.l1_sets:
            raise TargetError(
                f"an L1 cache of {self.l1} bytes holds no set of {self.l1_ways} lines of "
                f"{self.line} bytes"
            )

    @property
    def l1_sets(self) -> int:
        """The count of sets of the L1 cache."""
        return self.l1 // (self.l1_ways * self.line)


@dataclass(frozen=True)
class Cpu:
    """A CPU to generate code for.

    `cpu` and `features` are LLVM's, the latter signed ("+avx2", "-avx512f"); they are sorted.
    `vector_bytes` is the width of the vectors that kernels use, 4 for scalars only, and
    `registers` the count of vector registers. `caches` are those of one core. `traits` describe
    performance, which features do not determine: they are keys of tables of measurements on
    similar CPUs.

    Raises TargetError for an unknown architecture, for a feature without one that it implies, for
    vectors that the CPU does not have, and for more registers than it has.
    """

    arch: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bytes: int
    registers: int
    caches: Caches = Caches()
    traits: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(sorted(self.features)))
        systems = SYSTEMS.get(self.arch, ())
        if self.triple not in [f"{self.arch}-unknown-{system}" for system in systems]:
            raise TargetError(
                f"no code is made for '{self.arch}' with the triple '{self.triple}'; architectures "
                f"are {', '.join(SYSTEMS)}, and systems Linux and, on aarch64, Android"
            )
        conflict = contradiction(self.features)
        if conflict is not None:
            raise TargetError("no CPU has '{}' without '{}', which it implies".format(*conflict))
        widest, most = widest_vectors(self.arch, self.features)
        if self.vector_bytes not in VECTOR_BYTES or self.vector_bytes > widest:
            widths = ", ".join(str(width) for width in VECTOR_BYTES if width <= widest)
            raise TargetError(
                f"vectors of {self.vector_bytes} bytes are none of '{self.cpu}' with its features; "
                f"they may have {widths}"
            )
        if not LEAST_REGISTERS <= self.registers <= most:
            raise TargetError(
                f"{self.registers} vector registers are none that code for '{self.cpu}' may have: "
                f"{LEAST_REGISTERS} to {most}"
            )

    @property
    def vector_length(self) -> int:
        """The bytes that a machine's scalable vectors must have, with RVV at least; 0: any."""
        is_longer = self.arch in SCALABLE and self.vector_bytes > KNOWN_VECTOR
        return self.vector_bytes if is_longer else 0

    def has(self, feature: str) -> bool:
        """Whether the CPU has a feature, by LLVM's name: `has("avx512vnni")`."""
        return f"+{feature}" in self.features

    @property
    def system(self) -> str:
        """The system: "linux", "android", or none."""
        if self.arch == WASM:
            return ""
        return "android" if self.triple.endswith("-android") else "linux"

    @property
    def needs(self) -> tuple[str, ...]:
        """The features that kernels may use, so that a machine must have them."""
        return tuple(f[1:] for f in self.features if f[0] == "+" and f[1:] in FLAGS)

    @property
    def llvm_features(self) -> str:
        """The features as LLVM's target machine reads them: "+avx,+avx2,-avx512f"."""
        return ",".join(self.features)

    @property
    def f32_lanes(self) -> int:
        """The count of f32 lanes of a vector."""
        return self.vector_bytes // 4


def widest_vectors(arch: str, features: tuple[str, ...]) -> tuple[int, int]:
    """The width in bytes of the widest vectors of a feature set, and the count of registers.

    Vectors of scalable length are as wide as a target says.
    """
    has = {feature[1:] for feature in features if feature[0] == "+"}
    many = arch in ("aarch64", "riscv64") or "avx512vl" in has
    registers = 32 if many else 16
    if SCALABLE.get(arch) in has:
        return VECTOR_BYTES[-1], registers
    if arch == "riscv64":
        return LEAST_VECTOR, registers
    if arch == "x86_64" and {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= has:
        return 64, registers
    return (32 if arch == "x86_64" and {"avx2", "fma"} <= has else 16), registers
