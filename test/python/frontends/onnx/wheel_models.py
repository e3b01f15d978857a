"""Models that Python packages ship, against ONNX Runtime at random shapes that it takes.

    python test/python/frontends/onnx/wheel_models.py FOLDER [PATTERN] [--trials 5] [--no-cache]

reads each `.onnx` file below a folder, such as one of unpacked wheels of rapidocr, onnx-asr,
silero-vad or ddddocr, in a process of its own, and prints the worst relative error of the outputs,
the seconds of the import and of the compilation, and what was refused or wrong. Where ONNX Runtime
says otherwise, both are compared with the same model in double precision. A model is "unlike" if
ours agrees with that: ONNX Runtime's STFT of 400 elements is off by 3e-3. It is "unsteady" if ONNX
Runtime is off at least half as much: activations that are rounded to 8 bits go up or down by the
last bit of a sum.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.tools.cli import described

FLOAT, DOUBLE = 1, 11
"""ONNX's element types."""
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


def doubled(path: Path) -> Any:
    """The model in double precision."""
    import onnx

    model = onnx.load(str(path))
    _double_graph(model.graph)
    return model


def _double_graph(graph: Any) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    for tensor in graph.initializer:
        _double_tensor(tensor)
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        graph.node.append(node)
        for attribute in graph.node[-1].attribute:
            _double_attribute(attribute)
        if node.op_type == "DynamicQuantizeLinear":  # whose scale is of single precision
            single = f"{node.output[1]} of single precision"
            graph.node.add(op_type="Cast", input=[single], output=[node.output[1]])
            graph.node[-1].attribute.add(name="to", type=2, i=DOUBLE)
            graph.node[-2].output[1] = single


def _double_attribute(attribute: Any) -> None:
    if attribute.name == "to" and attribute.i == FLOAT:
        attribute.i = DOUBLE
    if attribute.HasField("t"):
        _double_tensor(attribute.t)
    for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
        _double_graph(inner)


def _double_tensor(tensor: Any) -> None:
    from onnx import numpy_helper

    if tensor.data_type == FLOAT:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def exactly(path: Path) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """What a model computes in double precision: by the interpreter, in NumPy."""
    import relax_mlir
    from relax_mlir.frontends.onnx import from_onnx

    imported = from_onnx(doubled(path))
    main = relax_mlir.interpret(imported.module)["main"]

    def run(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
        given = [arrays[name] for name in imported.inputs]
        given = [x.astype(np.float64) if x.dtype == np.float32 else x for x in given]
        results = main(*given, *imported.parameters.values())
        return list(results) if isinstance(results, tuple) else [results]

    return run


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest element; infinite for other shapes."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if expected.dtype == np.float64:  # of a model in double precision
        actual = actual.astype(np.float64)
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
        errors, ours, theirs = [], [], []
        for arrays, outputs in trials(session, path, count):
            actual = main(*(arrays[name] for name in imported.inputs))
            actual = actual if isinstance(actual, tuple) else (actual,)
            errors.append(max(map(error, actual, outputs)))
            if errors[-1] > TOLERANCE:
                exact = exactly(path)(arrays)
                ours.append(max(map(error, actual, exact)))
                theirs.append(max(map(error, outputs, exact)))
    except RelaxError as refusal:
        print(f"refused  {str(refusal).splitlines()[0]}")
        return
    word, note = "pass", ""
    if ours:
        off, their = max(ours), max(theirs)
        word = "unlike" if off <= TOLERANCE else "unsteady" if off <= 2 * their else "wrong"
        note = f"  {off:.1e} from double precision, ONNX Runtime {their:.1e}"
    print(f"{word:9}{max(errors):8.1e} {seconds}{note}")


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
