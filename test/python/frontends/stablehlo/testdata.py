"""Imports StableHLO's test data, runs it, and counts what passes, is refused or is wrong.

    python test/python/frontends/stablehlo/testdata.py PATH [--match TEXT] [--compile N] [--jobs N]

PATH is the folder `stablehlo/testdata` of github.com/openxla/stablehlo. Files with checks are
interpreted, and every Nth compiled too. Those without, in `dynamic/`, are run with random inputs of
two sizes and compared with StableHLO's own interpreter, once dims are constants.
"""

import argparse
import pickle
import re
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import ml_dtypes
import numpy as np

import relax_mlir
from relax_mlir.bindings import ir, stablehlo
from relax_mlir.child_process import run_in_child
from relax_mlir.data import elements_of
from relax_mlir.errors import ExecutionError, RelaxError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

_CHECK = re.compile(
    r"stablehlo\.custom_call @check\.(\w+)\((%[\w#]+), (%[\w#]+)\)( \{[^}]*\})? :"
    r" \((tensor<[^)]*>), (?:tensor<[^)]*>)\) -> (?:\(\)|tensor<i1>)"
)
_SPLIT = re.compile(r"^// -----$", re.MULTILINE)
_SUMS = re.compile(r"convolution|dot_general|reduce|scatter|fft|solve")
ULPS = 3


@dataclass(frozen=True)
class Check:
    """Two values of a file that should agree, and by how much they may differ."""

    kind: str
    options: str
    sums: bool
    chlo: bool = False


def with_results(text: str) -> tuple[str, list[Check]]:
    """The text with what it checks as the results of @main."""
    lines, checks, names, types = [], [], [], []
    in_main = False
    for line in text.splitlines():
        if "func.func" in line and "@main" in line:
            in_main = True
        match = _CHECK.search(line)
        if in_main and match:
            checks.append(
                Check(match[1], match[4] or "", bool(_SUMS.search(text)), "chlo." in text)
            )
            names += [match[2], match[3]]
            types += [match[5]] * 2
            continue
        if in_main and re.match(r"\s*(func\.)?return\b", line):
            in_main = False
            kinds = ", ".join(types)
            line = f"    return {', '.join(names)} : {kinds}" if names else "    return"
            header = next(
                i for i, each in enumerate(lines) if "func.func" in each and "@main" in each
            )
            lines[header] = f"  func.func public @main() -> ({kinds}) {{"
        lines.append(line)
    return "\n".join(lines), checks


def agree(check: Check, actual: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays agree as a check asks for.

    Sums may also differ by the order in which elements are added: by eps of the greatest. What is
    expected of CHLO's functions was computed in the type of the elements.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if actual.dtype.kind in "biu":
        return bool(np.array_equal(actual, expected))
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    if check.kind in ("expect_eq", "eq"):
        return bool(np.array_equal(a, b, equal_nan=True))
    if check.kind == "expect_almost_eq":
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True))
    most = re.search(r"max_ulp_difference = (\d+)", check.options)
    ulps = max(int(most[1]) if most else 0, 8 if check.chlo else ULPS)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        step = np.abs(np.spacing(np.abs(expected)).astype(np.float64))
        most_off = ulps * step
        if check.sums and np.isfinite(b).any():
            eps = float(ml_dtypes.finfo(expected.dtype).eps)
            most_off = np.maximum(most_off, 4 * eps * np.abs(b[np.isfinite(b)]).max())
        return bool(np.all(same | (np.abs(a - b) <= most_off)))


def run_file(path: Path, compiled: bool) -> tuple[str, str, str]:
    """The name, what became of a file, and why."""
    name = path.stem
    try:
        source = next(each for each in _SPLIT.split(path.read_text()) if "@main" in each)
        text, checks = with_results(source)
        if not checks:
            return name, *run_dynamic(source)
        imported = from_stablehlo(text)
        functions = [interpret(imported.module)["main"]]
        if compiled:
            functions.append(relax_mlir.compile(imported)["main"])
        for kind, function in zip(("interpreted", "compiled"), functions):
            results = list(map(np.asarray, _as_list(function())))
            for i, check in enumerate(checks):
                if not agree(check, results[2 * i], results[2 * i + 1]):
                    return name, "wrong", f"{kind}: {_difference(*results[2 * i : 2 * i + 2])}"
        return name, "passed", ""
    except ExecutionError as error:
        return name, "wrong", f"run: {_first(error)}"
    except RelaxError as error:
        return name, "refused", _first(error)
    except Exception as error:  # a fault of ours, which is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return (
            name,
            "crashed",
            f"{type(error).__name__}: {_first(error)} ({where.filename}:{where.lineno})",
        )


def run_dynamic(text: str) -> tuple[str, str]:
    """What became of a module with dims of run time, by StableHLO's interpreter at two sizes.

    Sizes that its assertions exclude are left out.
    """
    imported = from_stablehlo(text)
    main = interpret(imported.module)["main"]
    compared, why = 0, "no sizes that StableHLO's own interpreter runs"
    for size in (3, 5, 4, 8):
        try:
            inputs, expected = reference(text, size)
        except Unsupported as error:
            why = str(error)
            continue
        actual = [np.asarray(each) for each in _as_list(main(*inputs))]
        for a, e in zip(actual, expected, strict=True):
            if not agree(Check("expect_close", "", True), a, e):
                return "wrong", f"size {size}: {_difference(a, e)}"
        compared += 1
        if compared == 2:
            break
    return ("passed", "") if compared else ("unchecked", why)


class Unsupported(Exception):
    """What StableHLO's own interpreter does not run."""


def reference(text: str, size: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Random inputs whose unknown dims are of a size, and what StableHLO makes of them.

    Its interpreter ends the process where it has no way on, so it runs in a child.
    """
    with ir.Context() as context, ir.Location.unknown():
        stablehlo.load(context)
        module = ir.Module.parse(text)
        main = next(
            op for op in module.body.operations if op.attributes["sym_name"].value == "main"
        )
        block = main.operation.regions[0].blocks[0]
        rng, kinds = np.random.default_rng(size), [each.type for each in block.arguments]
        shapes = [[size if dim < 0 else dim for dim in kind.shape] for kind in kinds]
        inputs = [_random(rng, *each, size) for each in zip(shapes, kinds, strict=True)]

        def run(file: BinaryIO) -> int:
            try:
                _specialize(module, block, inputs, shapes, kinds)
                attributes = list(map(_attribute, inputs, kinds))
                results = [_elements(each) for each in stablehlo.evaluate(module, attributes)]
                parts = [(each.tobytes(), each.dtype.name, each.shape) for each in results]
                pickle.dump(parts, file)
            except (ValueError, RuntimeError, TypeError, ir.MLIRError) as error:
                file.write(_first(error).encode())
                return 1
            return 0

        ended = run_in_child(run, 60)
    if ended.status != 0:
        raise Unsupported(ended.data.decode(errors="replace") or "its interpreter aborts")
    parts = pickle.loads(ended.data)
    return inputs, [np.frombuffer(data, _dtype(kind)).reshape(dims) for data, kind, dims in parts]


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _attribute(array: np.ndarray, kind: ir.Type) -> ir.Attribute:
    if array.dtype.kind == "c":
        raise TypeError("complex arguments")
    raw = array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
    type_ = ir.RankedTensorType.get(array.shape, kind.element_type)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(raw), type=type_)


def _elements(attribute: ir.Attribute) -> np.ndarray:
    array = np.array(elements_of(attribute))
    is_bfloat = str(ir.ShapedType(attribute.type).element_type) == "bf16"
    return array.view(ml_dtypes.bfloat16) if is_bfloat else array


def _specialize(
    module: ir.Module,
    block: ir.Block,
    inputs: Sequence[np.ndarray],
    shapes: Sequence[Sequence[int]],
    kinds: Sequence[ir.Type],
) -> None:
    """Makes dims constants: those of arguments, and the sizes that are arguments."""
    for argument, array, kind in zip(block.arguments, inputs, kinds, strict=True):
        if array.shape == () and array.dtype.kind in "iu":
            with ir.InsertionPoint.at_block_begin(block):
                made = ir.Operation.create(
                    "stablehlo.constant", [kind], attributes={"value": _attribute(array, kind)}
                )
            argument.replace_all_uses_with(made.result)
    types = [
        str(ir.RankedTensorType.get(shape, kind.element_type))
        for shape, kind in zip(shapes, kinds, strict=True)
    ]
    stablehlo.run_passes(module, "inline")
    stablehlo.run_passes(module, f"stablehlo-refine-arguments{{types={','.join(types)}}}")
    stablehlo.run_passes(module, "stablehlo-refine-shapes")
    stablehlo.run_passes(module, "func.func(stablehlo-canonicalize-dynamism)")


def _random(rng: np.random.Generator, shape: list[int], kind: ir.Type, size: int) -> np.ndarray:
    """Random elements; integers of rank 0 are sizes, as JAX passes them."""
    element = str(kind.element_type)
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if element.startswith(("i", "ui")):
        dtype = np.dtype(("u" if element[0] == "u" else "") + "int" + element.lstrip("ui"))
        return np.full(shape, size, dtype) if not shape else rng.integers(0, 5, shape).astype(dtype)
    values = rng.standard_normal(shape)
    if element.startswith("complex"):
        dtype = np.complex64 if "f32" in element else np.complex128
        return (values + 1j * rng.standard_normal(shape)).astype(dtype)
    names = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    return values.astype(names[element])


def _as_list(results: object) -> list:
    return list(results) if isinstance(results, tuple | list) else [results]


def _first(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _difference(actual: np.ndarray, expected: np.ndarray) -> str:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{actual.shape} for {expected.dtype}{expected.shape}"
    a, b = actual.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    bad = np.flatnonzero(~((a == b) | (np.isnan(a) & np.isnan(b))))
    return f"{len(bad)} of {a.size} differ, as {a[bad[0]]!r} for {b[bad[0]]!r}" if len(bad) else "?"


def reason_of(text: str) -> str:
    """A reason without positions and names, by which refusals are counted."""
    return re.sub(r"^\S+: error: |line \d+|\d+", "", text)[:110]


def main() -> int:
    """Runs the files; returns 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--match", default="", help="a regular expression")
    parser.add_argument("--compile", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    files = sorted(args.path.glob("*.mlir"))
    files = [path for path in files if re.search(args.match, path.name)]
    counts: Counter[str] = Counter()
    reasons: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    chosen = [bool(args.compile) and i % args.compile == 0 for i in range(len(files))]
    with ProcessPoolExecutor(args.jobs) as pool:
        for name, end, why in pool.map(run_file, files, chosen, chunksize=8):
            is_complex = "complex" in name
            counts[f"{end}{' (complex)' if is_complex else ''}"] += 1
            if end != "passed":
                reasons[end, reason_of(why)].append(name)
                if args.verbose:
                    print(f"{end}: {name}: {why}", flush=True)
    for (end, why), names in sorted(reasons.items(), key=lambda each: -len(each[1])):
        print(f"{len(names):5} {end}: {why}   e.g. {names[0]}")
    print(dict(counts))
    return any(counts[end] for end in ("wrong", "crashed"))


if __name__ == "__main__":
    sys.exit(main())
