"""From a module to an executable: parse, run the pipeline, generate code, cache, load."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from relax_mlir.analysis.parameters import as_arrays, give_values
from relax_mlir.analysis.untrusted import check_untrusted
from relax_mlir.bindings import ir
from relax_mlir.cache import cached
from relax_mlir.codegen import BuildStats, building, llvm_level
from relax_mlir.codegen.llvm import start_workers
from relax_mlir.data import content_name
from relax_mlir.dialects import make_context, operator_modules
from relax_mlir.errors import UsageError
from relax_mlir.executable import Executable, load
from relax_mlir.extensions import fingerprint
from relax_mlir.fingerprint import compiler_fingerprint
from relax_mlir.host.exports import exported_symbols
from relax_mlir.interpreter import simulate
from relax_mlir.passes import Pipeline, Timing
from relax_mlir.pipelines import RUNS_CODE, check_level, pipeline
from relax_mlir.source import Imported, Source, read_source
from relax_mlir.target import Target

BIND = "relax-bind-params"
NONE: Mapping[str, Any] = MappingProxyType({})


def compile(
    source: "Imported | ir.Module | str | os.PathLike",
    target: str | Target = "native",
    opt_level: int = 2,
    use_cache: bool = True,
    without: Sequence[str] = (),
    libraries: Sequence[str] = (),
    quantize: str | None = None,
    passes: str | None = None,
    untrusted: bool = False,
    parameters: Mapping[str, Any] = NONE,
) -> Executable:
    """Compiles a module for a target and loads it.

    `source` is a module, its text, the path of a file that holds the text, or a model of another
    framework that `relax_mlir.frontends` imported, with its parameters. The result is
    cached on disk under a hash of text, data, target, passes and versions; a second call loads it
    from there. `without` names passes to omit, `libraries` those that may compute operators, and
    `quantize` the scheme in which weights are stored: see `pipelines.pipeline`. With `quantize`,
    `@main` takes the result of `@main_quantize` for its parameters. `passes` is a textual pipeline
    that replaces the default one of `opt_level`; like that, it must lower to host code and kernels,
    for the same target. For custom passes, see `passes.load_passes`. An `untrusted` module may have
    only operators, which check their arguments: no libraries, no loops over memory; and no part of
    it is executed during compilation. It excludes `passes` and `without`, since some passes are
    such checks. `parameters` are values of arguments by their names (`graph.name`), which become
    constants of each function that has such an argument: see `relax-bind-params`, which `passes`
    must begin with then.

    Raises CompileError with located diagnostics if the module is wrong or cannot be compiled,
    UsageError for an unknown target, level, pass, library, scheme or parameter, a missing file, or
    `passes` together with options that choose others; PipelineError, a UsageError, for a text that
    is not a pipeline.
    """
    options = (use_cache, without, libraries, quantize, passes, untrusted, parameters)
    executable = load(compile_to_file(source, target, opt_level, *options))
    is_simulated = "gpu" in executable.metadata["devices"]
    return simulate(executable) if is_simulated else executable


def compile_to_file(
    source: "Imported | Source | ir.Module | str | os.PathLike",
    target: str | Target = "native",
    opt_level: int = 2,
    use_cache: bool = True,
    without: Sequence[str] = (),
    libraries: Sequence[str] = (),
    quantize: str | None = None,
    passes: str | None = None,
    untrusted: bool = False,
    parameters: Mapping[str, Any] = NONE,
) -> Path:
    """Compiles as `compile` does and returns the path of the shared object in the cache."""
    check_level(opt_level)
    resolved = target if isinstance(target, Target) else Target.parse(target)
    if isinstance(source, Imported):
        parameters = {**source.parameters, **parameters}
    read = read_source(source)
    if untrusted:
        if passes is not None or without:
            raise UsageError("an untrusted module takes no choice of passes: some are its checks")
        check_untrusted(read.text)
        without = RUNS_CODE
    if passes is None:
        chosen = pipeline(str(resolved), opt_level, without, libraries, quantize, builds=True)
    elif without or libraries or quantize:
        raise UsageError("a given pipeline is all that runs; add to it the passes of other options")
    else:
        chosen = for_target(passes, resolved)
    if parameters and BIND not in (each.name() for each in Pipeline.parse(chosen).passes()):
        raise UsageError(f"parameters are given, but passes do not bind them: begin with {BIND}")
    values = as_arrays(parameters)
    key = cache_key(read.key, resolved, chosen) + _key(values)
    if not use_cache:
        key += os.urandom(16)
    return cached(key, lambda: _compile(read, resolved, chosen, parameters=values))


def _key(values: Mapping[str, np.ndarray]) -> bytes:
    """What depends on the values of parameters."""
    contents = [(name, a.dtype.str, a.shape, content_name(a)) for name, a in values.items()]
    return repr(sorted(contents)).encode() if contents else b""


def compile_to_parts(
    source: Source,
    target: Target,
    opt_level: int,
    timing: Timing | None = None,
    stats: BuildStats | None = None,
    passes: str | None = None,
) -> list[bytes | memoryview]:
    """Compiles a module to the parts, in order, of a shared object.

    `timing` collects the time of each pass, `stats` that of code generation; `passes` as above.
    """
    if passes is None:
        passes = pipeline(str(target), opt_level, builds=True)
    return _compile(source, target, for_target(passes, target), timing, stats)


def for_target(passes: str, target: Target) -> str:
    """The text of a pipeline, normalised; raises UsageError if a pass is for another target."""
    parsed = Pipeline.parse(passes)
    for each in parsed.passes():
        own = getattr(each, "target", None)
        if isinstance(own, Target) and str(own) != str(target):
            raise UsageError(
                f"the pass '{each.name()}' is for {own}, but the module is compiled for {target}; "
                f"write {each.name()}{{target={target}}}"
            )
    return str(parsed)


def _compile(
    source: Source,
    target: Target,
    passes: str,
    timing: Timing | None = None,
    stats: BuildStats | None = None,
    parameters: Mapping[str, np.ndarray] = NONE,
) -> list[bytes | memoryview]:
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = False
        module = source.parse()
        if parameters:
            Pipeline.parse("builtin.module(relax-flatten-tuples)").run(module)
            give_values(module, parameters)
        start_workers()
        with building(target, stats=stats, timing=timing) as build:
            Pipeline.parse(passes).run(module, timing=timing)
            return build.finish(module, exported_symbols(module))


def cache_key(source: str, target: Target, passes: str) -> bytes:
    """The cache key of a compiled module; `source` is its `Source.key`.

    It depends on all operators from outside, whether the module has them or not: a pass may build
    them.
    """
    parsed = Pipeline.parse(passes)
    settings = repr(target), passes, str(llvm_level())
    parts = [source, *settings, compiler_fingerprint(), *parsed.registered()]
    outside = fingerprint([*operator_modules(), *parsed.modules()])
    return "\0".join(parts).encode() + outside
