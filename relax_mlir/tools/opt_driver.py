"""The implementation of `relax-opt`, after its command line is parsed."""

import argparse
import io
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.data import elided
from relax_mlir.dataflow.drawing import svg
from relax_mlir.diagnostics import MAX_COLUMNS, Diagnostic, collecting, detailed, parse_module
from relax_mlir.errors import CompileError, UsageError
from relax_mlir.passes import Pipeline, Timing, describe, load_passes, own_passes
from relax_mlir.passes.names import among
from relax_mlir.passes.reproducer import split_reproducer
from relax_mlir.passes.upstream import UPSTREAM_DIALECTS, UPSTREAM_PASSES
from relax_mlir.testing.equivalence import Equivalence
from relax_mlir.testing.expectations import unmet
from relax_mlir.tools.files import read_input, write_output
from relax_mlir.tools.pretty import pretty

SEPARATOR = "// -----"
SEVERITIES = ("error", "warning", "remark")


def run(args: argparse.Namespace) -> int:
    """Runs the tool; returns its exit status.

    Raises UsageError on a wrong flag, pipeline or file.
    """
    for source in args.load_ops:
        dialects.load_operators(source)
    loaded = {name: file for file in args.load_passes for name in load_passes(file)}
    if args.list_passes or args.show_dialects or args.irdl:
        write_output(args.output, "".join(_answers(args, loaded)))
        return 0
    if args.export_irdl:
        _export_irdl(Path(args.export_irdl))
        return 0
    if args.passes:
        if args.pass_pipeline is not None:
            raise UsageError(f"--{args.passes[0]} and --pass-pipeline exclude each other")
        args.pass_pipeline = ",".join(_flag_element(flag, loaded) for flag in args.passes)
    if args.run_reproducer and args.pass_pipeline is not None:
        raise UsageError("--run-reproducer takes the pipeline from the input; give no other")
    if args.diagnostics and args.verify_diagnostics:
        raise UsageError("--diagnostics and --verify-diagnostics exclude each other")
    _check_form(args)
    source = read_input(args.input)
    if args.run_reproducer:
        if isinstance(source, bytes):
            raise UsageError("--run-reproducer expects text, but the input is bytecode")
        source, args.pass_pipeline = split_reproducer(source)
    pipeline = Pipeline.parse(args.pass_pipeline or "")
    timing = Timing() if args.mlir_timing else None
    outputs: list[str | bytes] = []
    told: list[Diagnostic] = []
    failed = False
    for chunk in _chunks(source, args.split_input_file):
        with detailed(args.remarks):
            output, diagnostics = _process(chunk, pipeline, args, timing)
        if args.diagnostics:
            told += diagnostics
            failed |= _is_failure(diagnostics)
        else:
            failed |= _report(args, chunk, diagnostics)
        if output is not None:
            outputs.append(output)
    if args.diagnostics:
        write_output(args.diagnostics, json.dumps([asdict(each) for each in told]) + "\n")
    if timing is not None:
        print(timing.report(), file=sys.stderr)
    if outputs and (not failed or args.output == "-"):
        texts = [output for output in outputs if isinstance(output, str)]
        joined = f"\n{SEPARATOR}\n".join(texts) if texts else outputs[0]
        write_output(args.output, joined)
    return int(failed)


def _check_form(args: argparse.Namespace) -> None:
    """Raises UsageError if flags ask for two forms of the output, or one that is of one module."""
    asked = {
        "--emit-bytecode": args.emit_bytecode,
        "--dataflow-svg": args.dataflow_svg,
        "--pretty": args.pretty,
    }
    forms = [flag for flag, is_set in asked.items() if is_set]
    if len(forms) > 1:
        raise UsageError(f"{forms[0]} and {forms[1]} exclude each other")
    if args.split_input_file and forms and forms[0] != "--pretty":
        raise UsageError(f"{forms[0]} writes one module; drop --split-input-file")


def _flag_element(flag: str, loaded: Iterable[str]) -> str:
    """The pipeline element of a flag `<pass>` or `<pass>=<options>`."""
    name, _, options = flag.partition("=")
    known = [*own_passes(), *loaded, *UPSTREAM_PASSES]
    if name not in known:
        raise UsageError(f"unknown flag '--{name}'{among(name, known)}")
    return f"{name}{{{options}}}"


def _process(
    source: str | bytes, pipeline: Pipeline, args: argparse.Namespace, timing: Timing | None
) -> tuple[str | bytes | None, list[Diagnostic]]:
    """Runs the pipeline on one module: its text, or None if it failed, and its diagnostics."""

    def timed(name: str):
        return nullcontext() if timing is None else timing.span(name)

    context = dialects.make_context(upstream=None)  # a user's pass may make any op
    with context, ir.Location.unknown(), collecting(context, SEVERITIES) as diagnostics:
        try:
            with timed("(parse)"):
                module = parse_module(source)
            after_each = Equivalence(module).check if args.check_equivalent_after_each else None
            pipeline.run(
                module,
                verify=args.verify_each,
                print_before=args.mlir_print_ir_before_all or args.mlir_print_ir_before,
                print_after=args.mlir_print_ir_after_all or args.mlir_print_ir_after,
                print_after_change=args.mlir_print_ir_after_change,
                print_module_scope=args.mlir_print_ir_module_scope,
                timing=timing,
                reproducer=not args.verify_diagnostics and after_each is None,
                after_each=after_each,
            )
            with timed("(print)"):
                return _print(module, args), diagnostics
        except CompileError as error:
            return None, [*diagnostics, *error.diagnostics]


def _print(module: ir.Module, args: argparse.Namespace) -> str | bytes:
    if args.pretty:
        return pretty(module.operation)
    if args.dataflow_svg:
        return svg(module)
    if args.emit_bytecode:
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return buffer.getvalue()
    options = {
        "print_generic_op_form": args.mlir_print_op_generic,
        "enable_debug_info": args.mlir_print_debuginfo,
    }
    if args.elide_constants:
        return elided(module.operation, large_resource_limit=0, **options)
    # Readers of the text verify it, so a result that does not verify is still printed.
    text = module.operation.get_asm(assume_verified=True, **options)
    return text.rstrip("\n") + "\n"


def _chunks(source: str | bytes, split: bool) -> Iterator[str | bytes]:
    """The modules of the input, each with its line numbers in the file."""
    if isinstance(source, bytes) or not split:
        yield source
        return
    line = 0
    for chunk in re.split(rf"^{SEPARATOR}[ \t]*\n", source, flags=re.MULTILINE):
        yield "\n" * line + chunk
        line += chunk.count("\n") + 1


def _is_failure(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def _report(args: argparse.Namespace, chunk: str | bytes, diagnostics: list[Diagnostic]) -> bool:
    """Prints the diagnostics, or their differences from the expected ones; True on failure."""
    lines = [] if isinstance(chunk, bytes) else chunk.splitlines()
    failure = _is_failure(diagnostics)
    if args.verify_diagnostics:
        diagnostics = unmet(lines, diagnostics)
        failure = bool(diagnostics)
    for diagnostic in diagnostics:
        for shown in (diagnostic, *diagnostic.notes):
            print(_show(shown, args.input, lines), file=sys.stderr)
    return failure


def _show(diagnostic: Diagnostic, name: str, lines: list[str]) -> str:
    """The diagnostic's text, followed by the line of the input with a caret."""
    known = diagnostic.file == "-" and 0 < diagnostic.line <= len(lines)
    if diagnostic.file == "-":
        diagnostic = replace(diagnostic, file="<stdin>" if name == "-" else name)
    text = str(replace(diagnostic, notes=()))
    if not known:
        return text
    line = lines[diagnostic.line - 1]
    if len(line) > MAX_COLUMNS:
        return text
    return f"{text}\n{line}\n{' ' * (diagnostic.column - 1)}^"


def _answers(args: argparse.Namespace, loaded: dict[str, str]) -> Iterator[str]:
    """The output of options that list passes or dialects."""
    if args.list_passes:
        yield "Passes of relax-mlir:\n"
        for name, file in own_passes().items():
            summary, options = describe(file)
            yield f"  {name:32}{summary}\n"
            yield from (f"    {{{option}}}\n" for option in options)
        for name, origin in loaded.items():
            yield f"  {name:32}from {origin}\n"
        yield "\nPipelines may contain all passes of MLIR too:\n"
        yield textwrap.fill(
            ", ".join(UPSTREAM_PASSES),
            width=98,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        yield "\n"
    if args.show_dialects:
        names = [dialect.DIALECT_NAMESPACE for dialect in dialects.ALL]
        yield "Available dialects: " + ",".join(sorted([*names, *UPSTREAM_DIALECTS])) + "\n"
    if args.irdl:
        for dialect in dialects.ALL:
            yield dialects.irdl_text(dialect) + "\n"


def _export_irdl(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot make folder '{folder}': {reason}") from None
    for dialect in dialects.ALL:
        text = dialects.irdl_text(dialect) + "\n"
        write_output(str(folder / f"{dialect.DIALECT_NAMESPACE}.mlir"), text)
