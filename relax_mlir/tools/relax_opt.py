"""`relax-opt`: runs a pipeline of passes over MLIR text, as `mlir-opt` does."""

import argparse
import sys

from relax_mlir.tools.cli import described, guard


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing MLIR, so that `--help` is quick."""
    parser = described(
        "Reads MLIR, runs passes of relax-mlir and of MLIR itself over it, prints it.",
        "relax-opt",
        "A pass is a flag too: --relax-fuse-ops --canonicalize='max-iterations=3'\n"
        "Exit status: 0 success, 1 the IR is wrong or a pass failed, 2 wrong usage.",
    )
    add = parser.add_argument
    add("input", nargs="?", default="-", help="MLIR text or bytecode; '-' is standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="output file")
    add("--pass-pipeline", metavar="TEXT", help="as in 'builtin.module(relax-fuse-ops,cse)'")
    add("--run-reproducer", action="store_true", help="run the pipeline in the input")
    add("--load-passes", action="append", default=[], metavar="FILE.py", help="add a file's passes")
    add("--load-ops", action="append", default=[], metavar="FILE.py", help="add a file's operators")
    add("--split-input-file", action="store_true", help="split the input at '// -----'")
    add(
        "--verify-diagnostics",
        action="store_true",
        help="compare diagnostics with the 'expected-error {{text}}' comments of the input",
    )
    add(
        "--diagnostics",
        metavar="FILE",
        help="write the diagnostics to a file, as JSON, instead of printing them",
    )
    add(
        "--verify-each",
        type=_boolean,
        default=True,
        metavar="BOOL",
        help="verify the IR after each pass (default: true)",
    )
    add(
        "--check-equivalent-after-each",
        action="store_true",
        help="interpret the module before and after each pass, and name the pass after which "
        "a result differs",
    )
    show = parser.add_argument_group("printing")
    add = show.add_argument
    add("--mlir-print-op-generic", action="store_true", help="print the generic form of every op")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--pretty", action="store_true", help="print a short form for people; cannot be parsed")
    add("--dataflow-svg", action="store_true", help="draw the graphs of dataflow nodes as SVG")
    add(
        "--elide-constants",
        action="store_true",
        help="omit the elements of large constants; cannot be parsed",
    )
    add("--emit-bytecode", action="store_true", help="write bytecode")
    add("--mlir-print-ir-before-all", action="store_true", help="print the IR before each pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print the IR after each pass")
    add("--mlir-print-ir-before", type=_names, default=(), metavar="PASSES", help="by name")
    add("--mlir-print-ir-after", type=_names, default=(), metavar="PASSES", help="by name")
    add(
        "--mlir-print-ir-after-change",
        action="store_true",
        help="print the IR after each pass that changed it",
    )
    add(
        "--mlir-print-ir-module-scope",
        action="store_true",
        help="print the whole module in these dumps",
    )
    add("--remarks", action="store_true", help="print the refusals of schedule rules")
    add("--mlir-timing", action="store_true", help="print how long each pass took")
    ask = parser.add_argument_group("asking")
    add = ask.add_argument
    add("--list-passes", action="store_true", help="list the passes and exit")
    add("--show-dialects", action="store_true", help="list the dialects and exit")
    add("--irdl", action="store_true", help="print the dialects' definitions in IRDL and exit")
    add("--export-irdl", metavar="DIR", help="write them to DIR/<dialect>.mlir and exit")
    return parser


def _boolean(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"expected true or false, but got '{text}'")
    return text in ("true", "1")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    parser = arguments()
    args, flags = parser.parse_known_args(argv)
    if strange := [flag for flag in flags if not flag.startswith("--")]:
        parser.error(f"unrecognized arguments: {' '.join(strange)}")
    args.passes = [flag.removeprefix("--") for flag in flags]

    def body() -> int:
        # MLIR takes 0.2 s to import, so it waits until the command line is known to be right.
        from relax_mlir.tools import opt_driver

        return opt_driver.run(args)

    return guard("relax-opt", body, args.input)


if __name__ == "__main__":
    sys.exit(main())
