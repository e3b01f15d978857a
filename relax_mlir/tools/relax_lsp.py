"""`relax-lsp`: a language server for modules, which editors start and talk to."""

import argparse
import sys

from relax_mlir.tools.cli import described, guard


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing MLIR, so that `--help` is quick."""
    parser = described(
        "Answers an editor's requests on MLIR text over standard input and output, by the\n"
        "Language Server Protocol: diagnostics, hover, definitions, completion and more.",
        "relax-lsp",
        "docs/editors.md has settings for editors.\n"
        "Exit status: 0 success, 1 the package 'pygls' is missing, 2 wrong usage.",
    )
    add = parser.add_argument
    add("--stdio", action="store_true", help="standard input and output; there is no other way")
    add("--load-ops", action="append", default=[], metavar="FILE.py", help="add a file's operators")
    add("--load-passes", action="append", default=[], metavar="FILE.py", help="add a file's passes")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    args = arguments().parse_args(argv)

    def body() -> int:
        # MLIR takes 0.2 s to import, so it waits until the command line is known to be right.
        from relax_mlir import dialects
        from relax_mlir.lsp.server import serve
        from relax_mlir.passes import load_passes

        for source in args.load_ops:
            dialects.load_operators(source)
        for source in args.load_passes:
            load_passes(source)
        return serve()

    return guard("relax-lsp", body)


if __name__ == "__main__":
    sys.exit(main())
