"""Imports StableHLO's test data, runs it, and counts what passes, is refused or is wrong.

    python test/python/frontends/stablehlo/testdata.py PATH [--match TEXT] [--compile N] [--jobs N]

PATH is the folder `stablehlo/testdata` of github.com/openxla/stablehlo. Files with checks are
interpreted, and every Nth compiled too. Those without, in `dynamic/`, are run with random inputs of
two sizes and compared with StableHLO's own interpreter, once dims are constants.
"""

import argparse
import re
import sys
import traceback
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

import relax_mlir
from relax_mlir.errors import ExecutionError, RelaxError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

_CHECK = re.compile(
    r"stablehlo\.custom_call @check\.(\w+)\((%[\w#]+), (%[\w#]+)\)( \{[^}]*\})? :"
    r" \((tensor<[^)]*>), (?:tensor<[^)]*>)\) -> \(\)"
)
_MAIN = re.compile(r"func\.func public @main\(\) -> \(?.*\)? \{$", re.MULTILINE)
_SUMS = re.compile(r"convolution|dot_general|reduce|scatter|fft|solve")
ULPS = 3


@dataclass(frozen=True)
class Check:
    """Two values of a file that should agree, and by how much they may differ."""

    kind: str
    options: str
    sums: bool


def with_results(text: str) -> tuple[str, list[Check]]:
    """The text with what it checks as the results of @main."""
    lines, checks, names, types = [], [], [], []
    in_main = False
    for line in text.splitlines():
        if "func.func" in line and "@main" in line:
            in_main = True
        match = _CHECK.search(line)
        if in_main and match:
            checks.append(Check(match[1], match[4] or "", bool(_SUMS.search(text))))
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

    Sums may also differ by the order in which elements are added: by eps of the greatest.
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
    ulps = max(int(most[1]) if most else 0, ULPS)
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
        text, checks = with_results(path.read_text())
        if not checks:
            return name, "unchecked", "no check"
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
