"""Common parts of the command-line tools: errors become one line and an exit status.

    0    success
    1    the program is wrong, a model is damaged, or something failed while it ran
    2    wrong usage: a flag, an option, a file
    130  interrupted

Any other exception is a bug and shows its traceback.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata

import relax_mlir
from relax_mlir.errors import CompileError, RelaxError, UsageError
from relax_mlir.tools.files import silence_stdout

EXTRA_OF = {
    "gguf": "llm",
    "jinja2": "llm",
    "safetensors": "llm",
    "tokenizers": "llm",
    "llama_cpp": "bench",
    "lsprotocol": "lsp",
    "onnx": "onnx",
    "torch": "torch",
    "pygls": "lsp",
    "python_multipart": "serve",
    "ray": "ray",
    "starlette": "serve",
    "uvicorn": "serve",
}
"""Optional packages, and the extra that installs each."""


def described(
    text: str | None, tool: str | None = None, epilog: str | None = None
) -> argparse.ArgumentParser:
    """A parser that accepts only full option names, whose help begins with the text, verbatim.

    For a `tool` of this package it has `--version` too.
    """
    parser = argparse.ArgumentParser(
        prog=tool,
        description=text,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if tool is not None:
        parser.add_argument("--version", action=_Version, help="print the versions and exit")
    return parser


class _Version(argparse.Action):
    """Prints the versions of the package and its compilers, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{parser.prog} {relax_mlir.__version__} ({', '.join(_compiles_with())})")
        parser.exit()


def _compiles_with() -> Iterator[str]:
    """The packages with MLIR and LLVM, and their versions."""
    for package, brings in (("torch-mlir", "MLIR"), ("llvmlite", "LLVM")):
        try:
            yield f"{brings} of {package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield f"no {package}"


def guard(tool: str, body: Callable[[], int], source: str = "-") -> int:
    """Runs `body` and returns its exit status, or that of its error.

    `source` is the file name of diagnostics that have none.
    """
    with warnings.catch_warnings():
        warnings.showwarning = partial(_show_warning, tool)
        return _run(tool, body, source)


def _show_warning(tool: str, message: Warning | str, *_: object) -> None:
    print(f"{tool}: warning: {message}", file=sys.stderr)


def _run(tool: str, body: Callable[[], int], source: str) -> int:
    """See `guard`."""
    try:
        return body()
    except UsageError as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 2
    except CompileError as error:
        print(_diagnostics(error, source) or f"{tool}: {error}", file=sys.stderr)
        return 1
    except RelaxError as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        reason = f": {error}" if str(error) else ""
        print(f"{tool}: out of memory{reason}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:
            raise
        extra = EXTRA_OF[package]
        print(
            f"{tool}: the package '{package}' is missing: pip install 'relax-mlir[{extra}]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        silence_stdout()
        return 1
    except OSError as error:
        if sys.stdout is not None:
            silence_stdout()  # it may be what failed: a full disk
        where = f"'{error.filename}': " if error.filename else ""
        print(f"{tool}: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1


def _diagnostics(error: CompileError, source: str) -> str:
    name = "<stdin>" if source == "-" else source
    return "\n".join(str(_named(diagnostic, name)) for diagnostic in error.diagnostics)


def _named(diagnostic, name: str):
    """The diagnostic and its notes with the file's name instead of MLIR's '-'."""
    notes = tuple(_named(note, name) for note in diagnostic.notes)
    file = name if diagnostic.file == "-" else diagnostic.file
    return replace(diagnostic, file=file, notes=notes)


def add_compile_options(parser: argparse.ArgumentParser, opt_level: int = 2) -> None:
    """Adds the options of compilation; `opt_level` is the default."""
    parser.add_argument("--target", default="native", help="'native' or a name such as x86-64-v3")
    parser.add_argument(
        "-O",
        "--opt-level",
        type=int,
        default=opt_level,
        metavar="LEVEL",
        help="0: as written, 1: fast kernels, 2: fused kernels, 3: packed parameters "
        f"(default: {opt_level})",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="compile even if the result is in the disk cache"
    )


def integers(text: str) -> list[int]:
    """Parses `1,2,3`: the type of an option that takes several integers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers as in 1,2, but got '{text}'") from None
