"""Explains what the compiler makes of a program: symbols, facts, memory, kernels, refusals.

    print(explain("model.mlir"))            # also text, a module, or a model that was imported
    explain(imported).functions[0].memory   # the same as values; `as_json` for other programs

The default pipeline runs up to the memory plan, and what its passes leave is read on the way.
Nothing is compiled to machine code, but for constants that `-O3` evaluates, and nothing is cached.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from relax_mlir.analysis.parameters import as_arrays, give_values
from relax_mlir.analysis.untrusted import check_untrusted
from relax_mlir.bindings import ir
from relax_mlir.compiler import NONE, for_target
from relax_mlir.diagnostics import collecting, detailed
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import RUNS_CODE, check_level, pipeline
from relax_mlir.source import Imported, Source, read_source
from relax_mlir.target import Target

from .observer import Observer
from .report import Explanation

__all__ = ["Explanation", "explain"]

LAST = "relax-plan-memory"
"""The last pass that runs, if it is in the pipeline; else the last but that to host code."""


def explain(
    source: "Imported | Source | ir.Module | str | os.PathLike",
    target: str | Target = "native",
    opt_level: int = 2,
    without: Sequence[str] = (),
    libraries: Sequence[str] = (),
    quantize: str | None = None,
    untrusted: bool = False,
    parameters: Mapping[str, Any] = NONE,
) -> Explanation:
    """What `relax_mlir.compile`, which takes the same, makes of a program.

    Raises what that raises.
    """
    check_level(opt_level)
    resolved = target if isinstance(target, Target) else Target.parse(target)
    if isinstance(source, Imported):
        parameters = {**source.parameters, **parameters}
    read = read_source(source)
    if untrusted:
        check_untrusted(read.text)
        without = [*without, *RUNS_CODE]
    text = pipeline(str(resolved), opt_level, without, libraries, quantize)
    passes = [str(each) for each in Pipeline.parse(for_target(text, resolved)).root.elements]
    last = next((i for i, each in enumerate(passes) if each.startswith(LAST)), len(passes) - 2)
    with make_context() as context, ir.Location.unknown(), detailed():
        context.allow_unregistered_dialects = False
        with collecting(context, ["remark"]) as remarks:
            observer = Observer(remarks, read.name)
            module = read.parse()
            if parameters:
                Pipeline.parse("builtin.module(relax-flatten-tuples)").run(module)
                give_values(module, as_arrays(parameters))
            chosen = Pipeline.parse(f"builtin.module({','.join(passes[: last + 1])})")
            chosen.run(module, after_each=observer)
        return observer.explanation(module.operation)
