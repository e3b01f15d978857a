"""`relax-run`: calls a function of a module with arrays from files or the command line."""

import argparse
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relax_mlir.errors import UsageError
from relax_mlir.tools.cli import described, guard
from relax_mlir.tools.files import write_output

if TYPE_CHECKING:  # NumPy takes 0.1 s to import, so it waits until the command line is right
    import numpy as np

    from relax_mlir import interpreter
    from relax_mlir.executable import Argument, Executable, Function

FILLED = re.compile(r"(zeros|ones|random):((?:\d+x)*)([a-z]+\d+)")
INTEGERS = re.compile(r"-?\d+(,-?\d+)*")
DTYPES = {
    "bf16": "uint16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    **{f"{sign}{bits}": f"int{bits}" for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
MAX_SHOWN = 20


def arguments() -> argparse.ArgumentParser:
    """The command line; built without importing NumPy, so that `--help` is quick."""
    parser = described(
        "Calls a function of a compiled module, or interprets MLIR.",
        "relax-run",
        "An input is FILE.npy, 'random:2x3xf32' (or zeros:, ones:), or integers as in 3,4 "
        "for a shape or a vector.\n"
        "Exit status: 0 success, 1 the call failed, 2 wrong usage.",
    )
    add = parser.add_argument
    add("module", help="the shared object; with --interpret, MLIR text")
    add(
        "--interpret",
        action="store_true",
        help="run MLIR text in NumPy without compiling it, as a reference",
    )
    add(
        "--load-ops",
        action="append",
        default=[],
        metavar="FILE.py",
        help="with --interpret: add a file's operators",
    )
    add("--function", default="main", metavar="NAME", help="the function to call (default: main)")
    add("--input", action="append", default=[], metavar="INPUT", help="the next argument")
    add("--output", action="append", default=[], metavar="FILE.npy", help="file of the next result")
    add("--threads", type=int, metavar="N", help="default: all CPUs")
    add("--repeat", type=int, default=1, metavar="N", help="run N times and print the times")
    add("--seed", type=int, default=0, help="of random inputs (default: 0)")
    add("--list", action="store_true", help="list the module's functions and exit")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the tool on a command line; returns its exit status."""
    args = arguments().parse_args(argv)
    return guard("relax-run", lambda: run(args), args.module)


def run(args: argparse.Namespace) -> int:
    """Runs a parsed command line; raises RelaxError."""
    if args.repeat < 1:
        raise UsageError(f"--repeat is {args.repeat}; expects 1 or more")
    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads is {args.threads}; expects 1 or more")
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; expects 0 or more")
    if args.load_ops and not args.interpret:
        raise UsageError("--load-ops is for --interpret; a compiled module needs no operators")
    executable = _interpret(args.module, args.load_ops) if args.interpret else _load(args.module)
    if args.list:
        write_output("-", "".join(f"{executable[name]}\n" for name in executable.functions))
        return 0
    if args.function not in executable.functions:
        known = ", ".join(executable.functions) or "none"
        raise UsageError(f"no function '{args.function}'; the module has {known}")
    function = executable[args.function]
    inputs = _inputs(function, args.input, args.seed)
    if len(args.output) > len(function.results):
        raise UsageError(
            f"{len(args.output)} outputs are named, but {function} has {len(function.results)}"
        )
    results, seconds = _call(function, inputs, args.threads, args.repeat)
    _write(function, results, args.output)
    if args.repeat > 1:
        best, median = 1e3 * min(seconds), 1e3 * sorted(seconds)[len(seconds) // 2]
        print(f"{args.repeat} runs: best {best:.3f} ms, median {median:.3f} ms", file=sys.stderr)
    return 0


def _load(name: str) -> "Executable":
    from relax_mlir.executable import load

    if not Path(name).is_file():
        reason = "is a directory" if Path(name).is_dir() else "no such file"
        raise UsageError(f"cannot read '{name}': {reason}")
    return load(name)


def _interpret(name: str, operators: Sequence[str]) -> "interpreter.Interpreted":
    from relax_mlir.bindings import ir
    from relax_mlir.diagnostics import parse_module
    from relax_mlir.dialects import load_operators, make_context
    from relax_mlir.interpreter import interpret
    from relax_mlir.tools.files import read_input

    for source in operators:
        load_operators(source)
    with make_context(), ir.Location.unknown():
        return interpret(parse_module(read_input(name)))


def _inputs(
    function: "Function | interpreter.Function", texts: Sequence[str], seed: int
) -> list[Any]:
    import numpy as np

    if len(texts) != len(function.arguments):
        raise UsageError(
            f"{len(texts)} inputs are given, but there are {len(function.arguments)} arguments: "
            f"{function}"
        )
    generator = np.random.default_rng(seed)
    return [
        _read(text, argument, generator)
        for text, argument in zip(texts, function.arguments, strict=True)
    ]


def _read(text: str, argument: "Argument", generator: "np.random.Generator") -> Any:
    """The value of an input: see `epilog`."""
    if text.endswith(".npy"):
        return _read_array(text, argument)
    if filled := FILLED.fullmatch(text):
        dims = [int(dim) for dim in filled[2].split("x")[:-1]]
        if filled[3] not in DTYPES:
            raise UsageError(f"unknown dtype in '{text}'; accepted are {', '.join(DTYPES)}")
        try:
            return _fill(filled[1], dims, filled[3], generator)
        except ValueError as error:
            raise UsageError(f"cannot make '{text}': {error}") from None
    if INTEGERS.fullmatch(text):
        return _integers(text, argument)
    raise UsageError(
        f"cannot read input '{text}'; expects FILE.npy, a shape as in random:2x3xf32 (or zeros:, "
        "ones:), or integers as in 3,4"
    )


def _read_array(name: str, argument: "Argument") -> "np.ndarray":
    import numpy as np

    try:
        with open(name, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read '{name}': {reason}") from None
    except ValueError as error:
        raise UsageError(f"'{name}' is not an array file: {error}") from None
    # The format has no such floats: NumPy writes their bits as untyped elements.
    if argument.dtype.startswith(("bf", "f8")) and array.dtype.kind == "V":
        return array.view(f"u{array.dtype.itemsize}")
    return array


def _integers(text: str, argument: "Argument") -> "np.ndarray":
    import numpy as np

    integers = [int(part) for part in text.split(",")]
    element = "i64" if argument.kind == "shape" else argument.dtype
    values = integers if argument.kind == "shape" or argument.dims != () else integers[0]
    try:
        with np.errstate(over="raise"):
            if element == "bf16":
                return _bfloat16(np.array(values, np.float32))
            return np.array(values, DTYPES.get(element, "int64"))
    except (OverflowError, FloatingPointError):
        raise UsageError(f"'{text}' does not fit into {element}") from None


def _bfloat16(values: "np.ndarray") -> "np.ndarray":
    """The bits of float32 values as bfloat16, rounded towards zero."""
    return (values.view("uint32") >> 16).astype("uint16")


def _fill(
    kind: str, dims: list[int], element: str, generator: "np.random.Generator"
) -> "np.ndarray":
    import numpy as np

    if element == "bf16":
        return _bfloat16(_fill(kind, dims, "f32", generator))
    dtype = np.dtype(DTYPES[element])
    if kind != "random":
        return (np.zeros if kind == "zeros" else np.ones)(dims, dtype)
    if dtype.kind == "f":
        return generator.standard_normal(dims).astype(dtype)
    return generator.integers(0, 2 if dtype.kind == "b" else 100, dims).astype(dtype)


def _call(
    function: "Function | interpreter.Function", inputs: list[Any], threads: int | None, repeat: int
) -> tuple[tuple, list[float]]:
    import time

    call, seconds = function.bind(*function.nesting.nested_arguments(inputs)), []
    for _ in range(repeat):
        begin = time.perf_counter()
        results = call.run(threads)
        seconds.append(time.perf_counter() - begin)
    return tuple(function.nesting.flat_output(results)), seconds


def _write(
    function: "Function | interpreter.Function", results: Sequence["np.ndarray"], names: list[str]
) -> None:
    """Writes the results that have a file name, and prints the others."""
    import numpy as np

    for index, (result, signature) in enumerate(zip(results, function.results, strict=True)):
        result = np.asarray(result)
        if index < len(names):
            buffer = io.BytesIO()
            np.save(buffer, result)
            write_output(str(Path(names[index])), buffer.getvalue())
            continue
        dims = "x".join(map(str, (*result.shape, signature.dtype)))
        text = np.array2string(result, threshold=MAX_SHOWN, precision=6)
        write_output("-", f"result {index}: {dims}\n{text}\n")


if __name__ == "__main__":
    sys.exit(main())
