"""An ablation study: a model measured with all optimisations, and without each of them.

Variants alternate, so that a temporarily slow machine slows all of them. They share weights that
have the same layout.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relax_mlir.executable import Executable
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.building import compile_decoder
from relax_mlir.llm.decoder.decoder import Settings, parameter_kinds
from relax_mlir.llm.decoder.parameters import Memory, load_parameters
from relax_mlir.llm.generation.generation import Statistics
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.measurement.benchmark import Case, Plan, Relax, measure
from relax_mlir.patterns.openblas import OPENBLAS
from relax_mlir.runtime.libraries import find_function
from relax_mlir.symbolic import parse


@dataclass(frozen=True)
class Variant:
    """A name, and the changes to the settings."""

    name: str
    without: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


WHOLE = "everything"
VARIANTS = (
    Variant(WHOLE),
    Variant("no fusion", without=("fuse-ops",)),
    Variant("no memory planning", without=("plan-memory",)),
    Variant("no weight packing", without=("pack-weights", "lift-params")),
    Variant("matmuls by OpenBLAS", libraries=("openblas",)),
)


class _Contender(Relax):
    """One variant."""

    def __init__(self, variant: Variant, model: LanguageModel, capacity: int) -> None:
        super().__init__(model, capacity)
        self.name = variant.name
        self._limit = _thread_limit() if variant.libraries else None

    def prepare(self, case: Case) -> None:
        """See `benchmark.Contender`."""
        super().prepare(case)
        if self._limit is not None:
            self._limit(case.threads)


def _thread_limit() -> Callable[[int], None]:
    """OpenBLAS's function that limits its threads: it has its own pool."""
    address = find_function("scipy_openblas_set_num_threads64_", OPENBLAS)
    return ctypes.CFUNCTYPE(None, ctypes.c_int)(address)


def ablate(
    checkpoint: Checkpoint, settings: Settings, plan: Plan, variants: Sequence[Variant] = VARIANTS
) -> dict:
    """Measures the variants.

    Returns the result of `benchmark.measure`, and, as `variants`, each one's kernel calls and
    arena.
    """
    contenders, described = [], {}
    weights: dict[object, Sequence[np.ndarray]] = {}
    for variant in variants:
        chosen = replace(settings, without=variant.without, libraries=variant.libraries)
        executable, parameters = compile_decoder(checkpoint, chosen)
        layout = _layout(executable, checkpoint)
        if layout not in weights:
            memory = Memory(parameter_kinds(executable))
            threads = max(plan.threads)
            load_parameters(checkpoint.weights, parameters, executable, memory, threads)
            weights[layout] = memory.arrays
        context = checkpoint.config.max_context
        model = LanguageModel(checkpoint, executable, weights[layout], Statistics(), context)
        contenders.append(_Contender(variant, model, plan.longest))
        described[variant.name] = _describe(executable, plan)
    return {**measure(contenders, plan), "variants": described}


def _layout(executable: Executable, checkpoint: Checkpoint) -> object:
    """A key of the weights' layout: the names say how a weight is computed, the dims its layout."""
    names = [argument.name for argument in executable["main"].arguments]
    return tuple(names), tuple(parameter_kinds(executable))


def _describe(executable: Executable, plan: Plan) -> dict:
    main = executable.metadata["functions"]["main"]
    sizes = map(parse, main["arena_bytes"])
    total = sum(sizes, parse("0"))
    arena = {str(case): total.evaluate(_symbols(case, plan)) for case in plan.cases()}
    return {"kernels": len(main["sites"]), "arena bytes": arena}


def _symbols(case: Case, plan: Plan) -> dict[str, int]:
    """The symbols of llama.py in the first call of a case."""
    return {"n": case.prompt or 1, "m": case.context, "r": 1, "c": plan.longest}


def table(results: dict) -> str:
    """A row for each variant: rates of the cases, with the ratio to the whole, and its memory."""
    rows = results["results"]
    heads = [f"{row['case']} T{row['threads']}" for row in rows]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    lines = ["tokens per second (and ratio to everything), kernels of a call, arena in KiB"]
    line = f"{'':20}" + "".join(f"{head:>19}" for head in heads) + f"{'kernels':>9}"
    lines.append(line + "".join(f"{'KiB ' + case:>16}" for case in cases))
    for name, described in results["variants"].items():
        cells = [
            f"{row['rates'][name]:>12.1f} ({row['rates'][name] / row['rates'][WHOLE]:.2f})"
            for row in rows
        ]
        sizes = [f"{described['arena bytes'][case] / 1024:>16.1f}" for case in cases]
        line = f"{name:20}" + "".join(f"{cell:>19}" for cell in cells)
        lines.append(line + f"{described['kernels']:>9}" + "".join(sizes))
    lines.append(f"medians of {results['rounds']} rounds on {results['processor']}")
    return "\n".join(lines)
