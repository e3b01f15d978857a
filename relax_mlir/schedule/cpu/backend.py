"""Kernels for CPUs: the table of rules, layouts of weights, and what kernels are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.schedule.backend import Rule
from relax_mlir.schedule.build.packed_weights import Groups
from relax_mlir.schedule.build.vectors import Vectors
from relax_mlir.schedule.nests import elementwise, fallback, row_reduction, scalar
from relax_mlir.target import Cpu

from .attention import attention, paged
from .blocking import Blocking
from .convolution import convolution, pooling
from .isa.dot import Dot
from .isa.instructions import tell_instructions, vectors_of
from .isa.int8_groups import Int8Groups
from .isa.int8_matrices import Int8Matrices
from .isa.multiply_add import pair_product
from .isa.peak_kernels import CpuPeaks
from .product import computed_matmul, matmul
from .quantized import quantized_matmul

_OF_CPUS: tuple[tuple[str, Callable[[PrimFunc, Cpu, bool], bool]], ...] = (
    ("quantized_matmul", quantized_matmul.schedule),
    ("matmul", matmul.schedule),
    ("convolution", convolution.schedule),
    ("pooling", pooling.schedule),
    ("attention", attention.schedule),
    ("paged_attention", paged.schedule),
    ("computed_matmul", computed_matmul.schedule),
)
_OF_ALL: tuple[tuple[str, Callable[[PrimFunc, Vectors, bool], bool]], ...] = (
    ("row_reduction", row_reduction.schedule),
    ("elementwise", elementwise.schedule),
    ("fallback", fallback.schedule),
    ("scalar", scalar.schedule),
)


@dataclass(frozen=True)
class CpuBackend:
    """See `Backend`."""

    cpu: Cpu

    @property
    def rules(self) -> Sequence[tuple[str, Rule]]:
        """See `Backend`."""
        vectors = vectors_of(self.cpu)
        own = [(name, _bound(rule, self.cpu)) for name, rule in _OF_CPUS]
        return [*own, *((name, _bound(rule, vectors)) for name, rule in _OF_ALL)]

    @property
    def unread(self) -> int:
        """Scalar loops alone."""
        return 1

    @property
    def layouts(self) -> "CpuLayouts":
        """See `Backend`."""
        return CpuLayouts(self.cpu)

    @property
    def peaks(self) -> CpuPeaks:
        """See `Backend`."""
        return CpuPeaks(self.cpu)

    def tell_instructions(self, kernel: func.FuncOp) -> None:
        """See `Backend`."""
        tell_instructions(kernel, self.cpu)


def _bound(rule: Callable[..., bool], machine: Cpu | Vectors) -> Rule:
    return lambda kernel, fuse: rule(kernel, machine, fuse)


@dataclass(frozen=True)
class CpuLayouts:
    """See `Layouts`."""

    cpu: Cpu

    @property
    def panel_columns(self) -> int:
        """See `Layouts`."""
        return Blocking.of(self.cpu).columns

    def multiplies(self, unit: str) -> bool:
        """See `Layouts`."""
        return bool(pair_product(self.cpu) if unit == "bf16" else Dot.of(self.cpu))

    def int8_groups(self, left: bool, right: bool) -> Groups | None:
        """See `Layouts`."""
        matrices = Int8Matrices.of(self.cpu, left, right)
        if matrices is not None:
            return Groups(matrices.group, False)
        step = Int8Groups.of(self.cpu, left, right)
        return None if step is None else Groups(step.group, bool(step.biases_right(right)))
