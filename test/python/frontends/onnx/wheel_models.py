"""Models that Python packages ship, against ONNX Runtime at random shapes that it takes.

    python test/python/frontends/onnx/wheel_models.py FOLDER [PATTERN] [--trials 5] [--no-cache]

reads each `.onnx` file below a folder, such as one of unpacked wheels of rapidocr, onnx-asr,
silero-vad or ddddocr, in a process of its own, and prints the worst relative error of the outputs,
the seconds of the import and of the compilation, and what was refused or wrong. A model is "unlike"
if it agrees with the reference of `onnx`, in NumPy, but not with ONNX Runtime: its STFT of 400
elements is off by 1e-3.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.tools.cli import described

TOLERANCE = 1e-3
SECONDS = 900
"""After which a model counts as hanging."""
ATTEMPTS = 200
"""Shapes that are tried until ONNX Runtime takes enough of them."""

IMAGES = [32 * i for i in range(1, 9)]
SIZES: list[tuple[str, str, list[int]]] = [
    ("ddddocr/common", "image_width", [*range(17, 240)]),
    ("nudenet|_det_", r"height|width|Dynamic\w*\.[12]", IMAGES),
    ("_rec_|_cls_", "x_2", [48]),
    ("_rec_|_cls_", r"x_3|DynamicDimension\.1", [*range(32, 321)]),
    ("silero", "input_1|sequence", [288, 576]),
    ("onnx_asr", "N", [*range(1600, 20000)]),
    ("", "batch|seq|unk|Dynamic|state|_0$|-1", [1, 2, 3]),
    ("", "", [1, 2, 3, 5, 8, 16, 31, 64]),
]
"""Extents to choose from, by expressions on the path of a model and the name of a dim."""

VALUES: list[tuple[str, str, list[int]]] = [
    ("silero", "sr", [8000, 16000]),
    ("magika", "bytes", [*range(257)]),
    ("", "", [0, 1]),
]
"""Values of integers, by expressions on the path and the name of the input."""


def choices(table: list[tuple[str, str, list[int]]], path: Path, name: str) -> list[int]:
    """The first row of a table that is for a model and a name."""
    return next(
        row for where, of, row in table if re.search(where, str(path)) and re.search(of, name)
    )


def arguments_of(session: Any, path: Path, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random inputs; dims of one name have one extent, lengths are at most the longest axis."""
    extents: dict[str, int] = {}
    arrays: dict[str, np.ndarray] = {}
    for each in session.get_inputs():
        shape = []
        for axis, dim in enumerate(each.shape):
            name = dim if isinstance(dim, str) and dim.strip("?-1") else f"{each.name}_{axis}"
            if not isinstance(dim, int):
                dim = extents.setdefault(name, int(rng.choice(choices(SIZES, path, name))))
            shape.append(dim)
        if "int" in each.type and each.name.endswith("_lens"):
            longest = max(max(a.shape) for a in arrays.values())
            arrays[each.name] = rng.integers(longest // 2, longest + 1, shape, np.int64)
        elif "int" in each.type:
            dtype = np.int32 if "32" in each.type else np.int64
            arrays[each.name] = rng.choice(choices(VALUES, path, each.name), shape).astype(dtype)
        else:
            arrays[each.name] = rng.standard_normal(shape).astype(np.float32)
    return arrays


def trials(session: Any, path: Path, count: int) -> Iterator[tuple[dict, list[np.ndarray]]]:
    """Inputs that ONNX Runtime takes, with its outputs."""
    rng = np.random.default_rng(len(path.name))
    for _ in range(ATTEMPTS):
        arrays = arguments_of(session, path, rng)
        try:
            outputs = session.run(None, arrays)
        except Exception:  # shapes that the model does not have
            continue
        yield arrays, outputs
        count -= 1
        if count == 0:
            return
    raise SystemExit("ONNX Runtime takes too few of the shapes that were tried")


def exactly(path: Path, arrays: dict, outputs: list[np.ndarray]) -> list[np.ndarray]:
    """What the reference of `onnx` computes; the outputs given where it lacks an operator."""
    import onnx.reference

    try:
        return onnx.reference.ReferenceEvaluator(str(path)).run(None, arrays)
    except NotImplementedError:
        return outputs


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest element; infinite for other shapes."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return np.inf
    if not expected.size:
        return 0.0
    actual, expected = (x.astype(np.float64) for x in (actual, expected))
    if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
        return np.inf
    finite = np.isfinite(expected)
    largest = np.abs(expected[finite]).max(initial=1e-6)
    return float(np.abs(actual - expected)[finite].max(initial=0.0) / largest)


def one(path: Path, count: int, use_cache: bool) -> None:
    """Prints the outcome for a model."""
    import onnxruntime

    import relax_mlir
    from relax_mlir.errors import RelaxError
    from relax_mlir.frontends.onnx import from_onnx

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    start = time.perf_counter()
    try:
        imported = from_onnx(path)
        middle = time.perf_counter()
        main = relax_mlir.compile(imported, use_cache=use_cache)["main"]
        seconds = f"{middle - start:6.1f} {time.perf_counter() - middle:8.1f}"
        errors, others = [], []
        for arrays, outputs in trials(session, path, count):
            actual = main(*(arrays[name] for name in imported.inputs))
            actual = actual if isinstance(actual, tuple) else (actual,)
            errors.append(max(map(error, actual, outputs)))
            if errors[-1] > TOLERANCE:
                others.append(max(map(error, actual, exactly(path, arrays, outputs))))
    except RelaxError as refusal:
        print(f"refused  {str(refusal).splitlines()[0]}")
        return
    word = "pass   " if max(errors) <= TOLERANCE else "wrong  "
    note = ""
    if others and max(others) <= TOLERANCE:
        word, note = "unlike ", f"  but {max(others):.1e} from the reference"
    print(f"{word}  {max(errors):8.1e} {seconds}{note}")


def outcome(path: Path, count: int, use_cache: bool) -> str:
    """The line on a model, of a process of its own."""
    options = ["--trials", str(count), *([] if use_cache else ["--no-cache"])]
    command = [sys.executable, __file__, "--one", str(path), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"hangs    after {SECONDS} seconds"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return lines[-1] if done.returncode == 0 else f"fails    {lines[-1:]}"


def main() -> None:
    """Prints a line for each model, and how many there are of each kind."""
    parser = described(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.folder, args.trials, not args.no_cache)
        return
    paths = [p for p in sorted(args.folder.rglob("*.onnx")) if re.search(args.pattern, str(p))]
    print(f"{'model':48} {'':8} {'error':>8} {'import':>6} {'compile':>8}")
    totals: Counter[str] = Counter()
    for path in paths:
        line = outcome(path, args.trials, not args.no_cache)
        totals[line.split()[0]] += 1
        print(f"{'/'.join(path.parts[-2:])[-48:]:48} {line}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in totals.items()))


if __name__ == "__main__":
    main()
