"""`relax-compile`: compiles a module to a shared object, or prints an intermediate stage."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relax_mlir.errors import UsageError
from relax_mlir.pipelines import RUNS_CODE, check_level, narrate, pipeline
from relax_mlir.tools.cli import add_compile_options, described, guard
from relax_mlir.tools.files import read_input, write_external, write_output

if TYPE_CHECKING:
    from relax_mlir.source import Source
    from relax_mlir.target import Device, Target

STAGE_PREFIX = "mlir-"
KERNELS, OUTLINED = "kernels", "mlir-outline-launches"
"""The stage of a device's code, and the one that it is printed from."""
PIECE = 1 << 20
"""Bytes that are copied at a time."""
MODELS = (".onnx", ".stablehlo", ".stablehlo.mlir")
"""Suffixes of models that are imported."""
BYTECODE, PRODUCER = ".mlirbc", b"StableHLO_v"
"""Of bytecode, and how it begins after a mark if it is of StableHLO."""


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing MLIR, so that `--help` is quick."""
    parser = described(
        "Compiles an MLIR module to a shared object that relax-run, Python and C "
        "programs can load.",
        "relax-compile",
        "Exit status: 0 success, 1 the module is wrong, 2 wrong usage.",
    )
    add = parser.add_argument
    add(
        "input",
        nargs="?",
        default="-",
        help="MLIR text or bytecode, '-' is standard input; or a model: FILE.onnx, of StableHLO "
        "FILE.stablehlo.mlir, FILE.mlirbc",
    )
    add("-o", dest="output", metavar="FILE", help="output file (default: INPUT's stem)")
    add(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=DIM",
        help="a dim of a model: its value, its bounds as in batch=1..64, or another name",
    )
    add_compile_options(parser)
    _add_choices(add)
    add(
        "--emit",
        default="so",
        metavar="STAGE",
        help="'so' (default): code to load; 'llvm': LLVM IR; 'kernels': code of a device, as PTX, "
        "SPIR-V or WGSL; 'mlir-PASS': the module after a pass of the pipeline, as in "
        "mlir-legalize-ops, without the elements of large constants, which relax-opt prints",
    )
    add(
        "--external-data",
        action="store_true",
        help="write large constants to a safetensors file beside the shared object, which names it",
    )
    add("--load-ops", action="append", default=[], metavar="FILE.py", help="add a file's operators")
    add("--load-passes", action="append", default=[], metavar="FILE.py", help="add a file's passes")
    add(
        "--pass-pipeline",
        metavar="TEXT",
        help="run exactly these passes, whatever -O is, as in "
        "'builtin.module(relax-legalize-ops,...,relax-to-host)'",
    )
    add("--print-pipeline", action="store_true", help="print the passes and what each ensures")
    add(
        "--remarks",
        action="store_true",
        help="compile without the cache and print the refusals of schedule rules",
    )
    add(
        "--explain",
        action="store_const",
        const="text",
        help="print symbols and where they come from, facts, dims that no expression gives, "
        "memory, kernels and refusals, instead of compiling",
    )
    add(
        "--explain=json",
        action="store_const",
        const="json",
        dest="explain",
        help="the same as JSON",
    )
    add("--untrusted", action="store_true", help="refuse modules that could do harm")
    add(
        "--stats",
        action="store_true",
        help="compile without the cache and print where the time went",
    )
    return parser


def _add_choices(add: Callable[..., object]) -> None:
    """Adds the options that choose passes of the default pipeline."""
    add(
        "--quantize",
        metavar="SCHEME",
        help="quantise weights (parameters and constants) to q8_32, q4_32, q4_32_minimum, or these "
        "with groups of 64 or 128, as in q4_128; other options of relax-quantize may follow, as "
        "in 'q4_32 activations=int8'",
    )
    add(
        "--libraries",
        default=[],
        type=lambda text: text.split(","),
        metavar="NAMES",
        help="let libraries compute operators, as openblas, or cublas on NVIDIA's devices",
    )


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    args = arguments().parse_args(argv)
    return guard("relax-compile", lambda: run(args), args.input)


def run(args: argparse.Namespace) -> int:
    """Runs a parsed command line; raises RelaxError."""
    check_level(args.opt_level)
    others = {
        "--quantize": args.quantize,
        "--libraries": args.libraries,
        "--print-pipeline": args.print_pipeline,
    }
    other = next((name for name, value in others.items() if value), None)
    if args.pass_pipeline is not None and other is not None:
        raise UsageError(f"--pass-pipeline names all passes; it does not go with {other}")
    if args.untrusted and (args.load_ops or args.load_passes):
        other = "--load-ops" if args.load_ops else "--load-passes"
        raise UsageError(f"{other} runs Python; it does not go with --untrusted")
    if args.untrusted and args.pass_pipeline is not None:
        raise UsageError("--pass-pipeline may lack checks; it does not go with --untrusted")
    if args.dim and not _is_model(args.input):
        raise UsageError(f"--dim is about models, not '{args.input}'")
    if args.explain and (args.pass_pipeline is not None or args.emit != "so"):
        other = "--pass-pipeline" if args.pass_pipeline is not None else "--emit"
        raise UsageError(f"--explain is about the whole default pipeline; it excludes {other}")
    _load(args)
    if args.explain:
        write_output(args.output or "-", _explanation(args))
        return 0
    if args.print_pipeline:
        builds = args.emit == "so"
        text = narrate(
            args.target, args.opt_level, _without(args), args.quantize, builds, args.libraries
        )
        write_output(args.output or "-", f"{text}\n")
        return 0
    if args.external_data and (args.emit != "so" or _is_wasm(args.target)):
        other = f"--emit={args.emit}" if args.emit != "so" else f"modules for {args.target}"
        raise UsageError(f"--external-data is about shared objects, not {other}")
    if args.external_data:
        write_external(_output(args), _shared_object(args))
    elif args.emit == "so":
        write_output(_output(args), _shared_object(args))
    else:
        write_output(args.output or "-", _stage(args))
    return 0


def _is_model(path: str) -> bool:
    """Whether a file is a model that is imported."""
    if not path.endswith(BYTECODE):
        return path.endswith(MODELS)
    try:
        with Path(path).open("rb") as file:
            return PRODUCER in file.read(64)
    except OSError:
        return False


def _load(args: argparse.Namespace) -> None:
    """Loads the operators and passes of files."""
    if args.load_ops:
        from relax_mlir.dialects import load_operators  # imports MLIR, as the next one does

        for source in args.load_ops:
            load_operators(source)
    if args.load_passes:
        from relax_mlir.passes import load_passes

        for source in args.load_passes:
            load_passes(source)


def _without(args: argparse.Namespace) -> Sequence[str]:
    """The optional passes that are omitted."""
    return RUNS_CODE if args.untrusted else ()


def _passes(args: argparse.Namespace, builds: bool) -> str:
    """The text of the pipeline."""
    if args.pass_pipeline is not None:
        return args.pass_pipeline
    return pipeline(
        args.target, args.opt_level, _without(args), args.libraries, args.quantize, builds
    )


def _output(args: argparse.Namespace) -> str:
    if args.output:
        return args.output
    if args.input == "-":
        raise UsageError("the module comes from standard input; name the output with -o FILE")
    return Path(args.input).stem + (".wasm" if _is_wasm(args.target) else ".so")


def _is_wasm(target: str) -> bool:
    from relax_mlir.target import WASM, Target

    return Target.parse(target).host.arch == WASM


def _shared_object(args: argparse.Namespace) -> Iterable[bytes | memoryview]:
    # MLIR takes 0.2 s to import, so it waits until the command line is known to be right.
    from relax_mlir.codegen import BuildStats
    from relax_mlir.compiler import compile_to_file, compile_to_parts
    from relax_mlir.diagnostics import detailed
    from relax_mlir.passes import Timing
    from relax_mlir.target import Target

    source = _source(args)
    target = Target.parse(args.target)
    if not (args.stats or args.remarks):
        passes = _passes(args, builds=True)
        path = compile_to_file(source, target, use_cache=not args.no_cache, passes=passes)
        return _pieces(path)
    timing, stats = Timing(), BuildStats()
    with detailed(args.remarks):
        parts = compile_to_parts(
            source, target, args.opt_level, timing, stats, _passes(args, builds=True)
        )
    if args.stats:
        print(
            f"{timing.report()}\ncode generation: {stats}\n{sum(map(len, parts))} bytes",
            file=sys.stderr,
        )
    return parts


def _pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, which may be as large as its constants, a few at a time."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _explanation(args: argparse.Namespace) -> str:
    from relax_mlir.explanation import explain

    explained = explain(
        _source(args), args.target, args.opt_level, _without(args), args.libraries, args.quantize
    )
    return f"{explained.as_json() if args.explain == 'json' else explained}\n"


def _stage(args: argparse.Namespace) -> str:
    """The module after the passes up to the requested stage."""
    from relax_mlir.bindings import ir
    from relax_mlir.codegen import building
    from relax_mlir.codegen.gpu import kernel_texts
    from relax_mlir.compiler import for_target
    from relax_mlir.data import elided
    from relax_mlir.diagnostics import detailed
    from relax_mlir.dialects import make_context
    from relax_mlir.passes import Pipeline
    from relax_mlir.target import Target

    target = Target.parse(args.target)
    passes = for_target(_passes(args, builds=False), target)
    devices = _devices(target) if args.emit == KERNELS else ()
    prefix = passes if args.emit == "llvm" else _prefix(passes, OUTLINED if devices else args.emit)
    source = _source(args)
    with make_context(), ir.Location.unknown(), detailed(args.remarks):
        module = source.parse()
        Pipeline.parse(prefix).run(module)
        if devices:
            return "\n".join(kernel_texts(module, devices))
        if args.emit != "llvm":
            return elided(module.operation)
        with building(target) as build:
            return build.llvm_text(module)


def _devices(target: "Target") -> "tuple[Device, ...]":
    """The devices whose code is printed; raises UsageError if there is none."""
    from relax_mlir.codegen.gpu import check_device

    check_device(target)
    if not target.devices:
        raise UsageError(
            f"--emit=kernels is about the code of a device, and '{target}' has none; "
            "accepted are targets such as cuda:sm_80, vulkan, webgpu"
        )
    return target.devices


def _prefix(passes: str, stage: str) -> str:
    """The text of the pipeline up to the pass that `mlir-<stem>` names."""
    from relax_mlir.passes.elements import parse
    from relax_mlir.passes.names import among

    elements = [str(element) for element in parse(passes).elements]
    stems = [element.partition("{")[0].removeprefix("relax-") for element in elements]
    wanted = stage.removeprefix(STAGE_PREFIX)
    if not stage.startswith(STAGE_PREFIX) or wanted not in stems:
        stages = ["so", "llvm", KERNELS, *(STAGE_PREFIX + stem for stem in stems)]
        hint = among(stage, stages)
        raise UsageError(f"unknown stage '{stage}'{hint or ': stages are ' + ', '.join(stages)}")
    return f"builtin.module({','.join(elements[: stems.index(wanted) + 1])})"


def _source(args: argparse.Namespace) -> "Source":
    """The module; raises CompileError if it is untrusted and could do harm."""
    from relax_mlir.source import Source, read_source

    if _is_model(args.input):
        from relax_mlir.tools.models import read_model

        return read_model(args.input, args.dim)
    given = read_input(args.input)
    if isinstance(given, bytes):
        from relax_mlir.diagnostics import parse_module
        from relax_mlir.dialects import make_context

        with make_context():
            source = read_source(parse_module(given))
    else:
        source = Source(given, args.input)
    if args.untrusted:
        from relax_mlir.analysis.untrusted import check_untrusted

        check_untrusted(source.text)
    return source


if __name__ == "__main__":
    sys.exit(main())
