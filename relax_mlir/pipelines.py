"""The default pipelines: each pass with what holds after it.

`-O0` keeps every operator a kernel of its own and every tensor its own memory; `-O1` plans
memory and uses the fast schedules; `-O2` also fuses across levels, and lays out weights that are
constants. All give the same results. `-O3` also lays out parameters (the arguments from
`graph.num_inputs` on) for the kernels: a function `@main` then takes what `@main_params` returns
for the original ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.errors import UsageError
from relax_mlir.target.device import ALIGNMENT as DEVICE_ALIGNMENT
from relax_mlir.target.device import split_devices

OPT_LEVELS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Step:
    """A pass of a pipeline, as text, and the sentence on what holds after it."""

    text: str
    holds: str
    min_level: int = 0
    only_with: str = ""
    """The option of `pipeline` that this pass requires."""
    unless: str = ""
    """The option that excludes it."""

    @property
    def name(self) -> str:
        """Name of the pass, without the prefix of this project's passes."""
        return self.text.partition("{")[0].removeprefix("relax-")


STEPS = (
    Step("relax-split-streams", "streams of nodes are functions, one of each stage"),
    Step("relax-map-nodes{{target={target}}}", "dataflow nodes have one version, on one device"),
    Step("relax-split-leaves", "no leaf has a barrier"),
    Step("relax-lower-dataflow", "dataflow nodes are calls of tensor programs"),
    Step("relax-convert-torch", "functions of PyTorch's dialect are of linalg"),
    Step("relax-convert-tosa", "functions of TOSA are graph functions"),
    Step("relax-convert-linalg", "functions of linalg are graph functions and tensor programs"),
    Step("relax-resolve-kinds", "what values hold is known, though not their dims"),
    Step("relax-flatten-tuples", "values are no tuples"),
    Step("relax-lower-host-objects", "values are no objects of the host program"),
    Step("relax-lower-optional-arguments", "arguments tell which optional ones are there"),
    Step("relax-resolve-closures", "values are no functions"),
    Step("relax-bind-params", "arguments with a known value are constants"),
    Step("relax-infer-shapes", "every annotation is as precise as the rules can make it"),
    Step("relax-verify", "every rule of the dialects holds, so later passes need no checks"),
    Step("relax-inline-functions", "graph functions call only kernels and noinline functions"),
    Step("relax-name-dims", "every dim is an expression over symbols that are bound"),
    Step("relax-expand-data-dependent", "counts are computed before what they are the size of"),
    Step("relax-state-assumptions", "facts imply that all dims fit; calls check facts"),
    Step("relax-place-devices{{target={target}}}", "functions run on a device, or on the host"),
    Step("relax-fuse-attention", "attention that was written out is one operator", 2),
    Step("relax-canonicalize-bindings", "no cast, reshape or permutation is redundant", 1),
    Step("relax-remove-unused-results", "private functions return what a caller uses", 1),
    Step("relax-remove-unused-parameters", "private functions take what they use", 1),
    Step("relax-dead-code-elimination", "what is computed is used, or may be refused", 1),
    Step("relax-fold-constants{{target={target}}}", "constant expressions are evaluated", 3),
    Step(
        "relax-quantize{{scheme={quantize}}}",
        "weights are quantised, and decoded where they are read",
        only_with="quantize",
    ),
    Step("relax-externalize-constants", "large constants are named blobs"),
    Step(
        "relax-dispatch-library{{libraries={libraries}{devices}}}",
        "operators that a library computes are calls of it",
        only_with="libraries",
    ),
    Step("relax-legalize-ops", "every operator is a call of a tensor program"),
    Step("relax-annotate-pattern", "every tensor program says how it may be fused", 2),
    Step("relax-fuse-ops", "the calls of each fused kernel are one private function", 2),
    Step("relax-fuse-tir", "each such function is one tensor program again", 2),
    Step("relax-eliminate-common-subexpr", "no kernel is called twice for the same", 2),
    Step("relax-pack-weights{{target={target}{packs}}}", "kernels read weights in panels", 2),
    Step("relax-pack-filters{{target={target}{packs}}}", "kernels read filters in panels", 2),
    Step("relax-lift-params", "computations on parameters alone are a function that runs once", 3),
    Step("symbol-dce", "no tensor program is unused"),
    Step(
        "relax-schedule{{target={target}{fuse}}}",
        "tensor programs are vector loops on memory",
        unless="builds",
    ),
    Step(
        "relax-build-kernels{{target={target}{fuse}}}",
        "tensor programs are scheduled and compiled; their declarations are left",
        only_with="builds",
    ),
    Step(
        "relax-lift-workspace{{kernels=false}}",
        "what library functions need while they run is results of their calls",
    ),
    Step(
        "relax-copy-between-devices",
        "what crosses between host and devices is copied",
        only_with="device",
    ),
    Step("relax-lower-calls", "allocations are explicit; the order of calls matters"),
    Step("relax-double-buffer", "loops do not copy what their rounds make", 1),
    Step("relax-plan-memory{plan}", "temporaries live in one arena"),
    Step(
        "relax-outline-launches",
        "kernels of the device are functions of modules of their own",
        only_with="device",
    ),
    Step("relax-to-host{{target={target}}}", "graph functions are native host code"),
)


OPTIONAL = (
    "fuse-attention",
    "canonicalize-bindings",
    "remove-unused-results",
    "remove-unused-parameters",
    "dead-code-elimination",
    "fold-constants",
    "fuse-ops",
    "eliminate-common-subexpr",
    "pack-weights",
    "pack-filters",
    "lift-params",
    "double-buffer",
    "plan-memory",
)
"""Passes that a pipeline can omit; without `plan-memory`, tensors do not share memory."""
RUNS_CODE = ("fold-constants",)
"""Those that run what they compile: left out for modules whose author is not trusted."""


def check_level(opt_level: int) -> None:
    """Raises UsageError for a level that there is not."""
    if opt_level not in OPT_LEVELS:
        known = ", ".join(map(str, OPT_LEVELS))
        raise UsageError(f"unknown optimisation level {opt_level}; levels are {known}")


def pipeline(
    target: str = "native",
    opt_level: int = 2,
    without: Sequence[str] = (),
    libraries: Sequence[str] = (),
    quantize: str | None = None,
    builds: bool = False,
) -> str:
    """Returns the text of the pipeline from graph functions to kernels and host code.

    `without` names passes of `OPTIONAL` to leave out, `libraries` those that may compute operators
    (see `relax-dispatch-library`). `quantize` is a scheme of `relax-quantize`, by which weights are
    kept; other options of that pass may follow it. `relax-opt --pass-pipeline` takes the text, and
    `str(Pipeline.parse(...))` gives the same one.

    With `builds`, kernels are compiled as soon as they are scheduled, and leave the module: that is
    what `relax_mlir.compile` runs.

    Raises UsageError if a pass to leave out is not optional.
    """
    rows = _rows(target, opt_level, without, libraries, quantize, builds)
    return f"builtin.module({','.join(text for text, _ in rows)})"


def outlining(target: str, opt_level: int = 2) -> str:
    """Returns the text of the part of `pipeline` after which kernels of a device are outlined."""
    passes, _, _ = pipeline(target, opt_level).rpartition(",relax-to-host")
    return f"{passes})"


def narrate(
    target: str = "native",
    opt_level: int = 2,
    without: Sequence[str] = (),
    quantize: str | None = None,
    builds: bool = False,
    libraries: Sequence[str] = (),
) -> str:
    """Returns the pipeline as a table for people: one pass a line, with what holds after it."""
    rows = _rows(target, opt_level, without, libraries, quantize, builds)
    width = max(len(text) for text, _ in rows)
    return "\n".join(f"{text:{width}}  {holds}" for text, holds in rows)


def _rows(
    target: str,
    opt_level: int,
    without: Sequence[str],
    libraries: Sequence[str],
    quantize: str | None,
    builds: bool,
) -> list[tuple[str, str]]:
    """Each pass of the pipeline with its options, and what holds after it."""
    for name in without:
        if name not in OPTIONAL:
            known = ", ".join(OPTIONAL)
            raise UsageError(f"cannot compile without '{name}'; optional passes are {known}")
    plans, devices = opt_level and "plan-memory" not in without, split_devices(target)[1]
    plan = ["reuse=false"] if not plans else []
    plan += [f"alignment={DEVICE_ALIGNMENT}"] if devices else []
    options = {
        "target": target,
        "libraries": ",".join(libraries) or None,
        "quantize": quantize,
        "device": devices or None,
        "devices": f" target={target}" if devices else "",
        "builds": (builds and not devices) or None,
        "packs": "" if opt_level > 2 else " parameters=false",
        "fuse": "" if opt_level else " fuse=false",
        "plan": f"{{{' '.join(plan)}}}" if plan else "",
    }
    return [
        (step.text.format(**options), step.holds)
        for step in STEPS
        if step.min_level <= opt_level
        and (not step.only_with or options[step.only_with] is not None)
        and (not step.unless or options[step.unless] is None)
        and (step.name not in without or not step.min_level)
    ]
