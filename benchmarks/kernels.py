"""Kernels beside other programs: one table for each number of threads.

    python benchmarks/kernels.py --suite gemm,gemv,rows --threads 1,2 --peers-python PYTHON
    python benchmarks/kernels.py --suite rows --dynamic
    python benchmarks/kernels.py --suite curve --shape 576x1536 --dtype bf16

README.md says what is compared and how.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cases
import turns
from turns import OURS, Contender, Outcome

from relax_mlir.limits import Limits
from relax_mlir.machine import measure_machine

PEERS = {
    "numpy": "peers.numpy_peer:Kernels",
    "torch": "peers.torch_peer:Eager",
    "torch-compile": "peers.torch_peer:Compiled",
    "onnxruntime": "peers.onnxruntime_peer:Kernels",
    "openvino": "peers.openvino_peer:Kernels",
    "onednn": "peers.onednn_peer:Kernels",
}
DYNAMIC = {OURS: "peers.ours:Kernels"}
SPECIALISED = {f"{OURS} static": "peers.ours:Specialised"}
GROUP_BYTES = 300 << 20
GROUP_CASES = 8
FLAT = 0.85


@dataclass
class Row:
    """A case, what each program made of it, and the machine's limits in those minutes."""

    case: dict
    outcomes: Mapping[str, Outcome]
    limits: Limits

    @property
    def ours(self) -> Outcome:
        """Ours, one compilation for all sizes."""
        return self.outcomes[OURS]

    def rate(self, outcome: Outcome) -> float | None:
        """Billions per second of what the case counts."""
        return outcome.median and cases.work(self.case).amount / outcome.median / 1e9

    def best_peer(self) -> str | None:
        """The fastest of the others."""
        found = {n: o.median for n, o in self.outcomes.items() if n != OURS and o.median}
        return min(found, key=found.__getitem__) if found else None

    def ratio(self) -> float | None:
        """How many times as long the best peer takes."""
        best = self.best_peer()
        return self.ours.ratio(self.outcomes[best]) if best and self.ours.median else None

    def share(self) -> float | None:
        """Ours as a share of what the machine can do."""
        rate = self.rate(self.ours)
        if not cases.work(self.case).is_compute:
            limit: float | None = self.limits.bandwidth
        else:
            limit = self.limits.peak({"q8_0": "int8"}.get(self.case["dtype"], self.case["dtype"]))
        return rate * 1e9 / limit if rate and limit else None


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    found: list[Row] = []
    failed = False
    for threads in options.threads:
        peers = {} if options.dynamic or options.curve else options.peers
        specs = {**DYNAMIC, **(SPECIALISED if options.dynamic else {}), **peers}
        contenders, absent = turns.start(specs, threads, options.peers_python)
        try:
            rows = run(contenders, options, threads)
        finally:
            for each in contenders:
                each.close()
        versions = ", ".join(f"{each.name} {each.version}" for each in contenders)
        print(f"\n{threads} thread{'s' if threads > 1 else ''}: {versions}")
        for name, reason in absent.items():
            print(f"{name} is absent: {reason.splitlines()[0]}")
        print(curve_table(rows) if options.curve else table(rows, contenders))
        failed |= any(row.ours.median is None for row in rows)
        found += rows
    if options.json:
        Path(options.json).write_text(json.dumps([_as_json(row) for row in found], indent=1))
    return int(failed)


def run(contenders: Sequence[Contender], options: argparse.Namespace, threads: int) -> list[Row]:
    """Prepares and measures the cases, a group of them at a time."""
    found = []
    for group in groups(options.cases):
        ready = []
        for case in group:
            print(f"preparing {cases.label(case)}", file=sys.stderr)
            wanted = cases.reference(case)
            tolerance = cases.TOLERANCE[case["dtype"]]
            ready.append(turns.prepare(contenders, case, wanted, tolerance))
        limits = measure_machine((threads,), 0.1).at(threads)
        for case, outcomes in zip(group, ready, strict=True):
            turns.measure(contenders, case, outcomes, options.rounds, options.seconds, 3, 1)
            found.append(Row(case, outcomes, limits))
        for case in group:
            turns.forget(contenders, case)
    return found


def groups(wanted: Sequence[dict]) -> Iterator[list[dict]]:
    """Cases that are prepared together: few, and small enough for memory."""
    group: list[dict] = []
    size = 0.0
    for case in wanted:
        arrays = case["n"] * case.get("k", 3 * case["m"]) * 4
        if group and (len(group) == GROUP_CASES or size + arrays > GROUP_BYTES):
            yield group
            group, size = [], 0.0
        group.append(case)
        size += arrays
    if group:
        yield group


def table(rows: Sequence[Row], contenders: Sequence[Contender]) -> str:
    """Rates of all programs, and how ours compares."""
    names = [each.name for each in contenders]
    lines = [["case", "unit", *names, "best peer", "ratio", "spread", "of limit"]]
    notes = []
    for row in rows:
        cells = [cases.label(row.case), cases.work(row.case).unit]
        for name in names:
            rate = row.rate(row.outcomes[name])
            cells.append("-" if rate is None else f"{rate:.1f}")
            why = row.outcomes[name].why_not
            if why and (name == OURS or why.startswith("wrong") or "Error" in why):
                notes.append(f"{cases.label(row.case)}, {name}: {why.splitlines()[0]}")
        spread = f"{row.ours.spread:.2f}" if row.ours.median else "-"
        share = row.share()
        ratio = row.ratio()
        cells += [row.best_peer() or "-", f"{ratio:.2f}" if ratio else "-", spread]
        lines.append([*cells, f"{share:.0%}" if share else "-"])
    ratios = [ratio for row in rows if (ratio := row.ratio())]
    text = aligned(lines)
    if ratios:
        text += f"\ngeometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}"
        text += f"; least {min(ratios):.2f}; below 1: {sum(r < 1 for r in ratios)}"
    return "\n".join([text, *notes])


def curve_table(rows: Sequence[Row]) -> str:
    """Our own rate over the number of rows, and the points where it falls off.

    A point has to reach `FLAT` of the better of its neighbours among the powers of two.
    """
    rates = {row.case["m"]: (row.rate(row.ours) or 0.0) for row in rows}
    flops = {m: _per_row(row) / row.ours.median for m, row in zip(rates, rows) if row.ours.median}
    lines = [["m", "rate", "unit", "of limit", "of the better neighbour"]]
    below = []
    for row in rows:
        m, share = row.case["m"], row.share()
        near = [flops[p] for p in {1 << int(math.log2(m)), 1 << math.ceil(math.log2(m))} & {*flops}]
        flat = flops[m] / max(near) if near and m in flops else 1.0
        below += [m] if flat < FLAT else []
        lines.append([str(m), f"{rates[m]:.1f}", cases.work(row.case).unit,
                      f"{share:.0%}" if share else "-",
                      f"{flat:.2f}{' <-' if flat < FLAT else ''}"])  # fmt: skip
    verdict = f"below {FLAT} at m = {below}" if below else f"flat: every point reaches {FLAT}"
    return f"{cases.label(rows[0].case)}: ours over m\n{aligned(lines)}\n{verdict}"


def _per_row(row: Row) -> float:
    return 2.0 * row.case["m"] * row.case["n"] * row.case["k"]


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def _as_json(row: Row) -> dict:
    outcomes = {
        name: {"seconds": each.seconds, "error": each.error, "why_not": each.why_not}
        for name, each in row.outcomes.items()
    }
    return {"case": row.case, "threads": row.limits.threads, "outcomes": outcomes,
            "ratio": row.ratio(), "share": row.share()}  # fmt: skip


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--suite", default="gemm,gemv,rows", help=f"{', '.join(cases.SUITES)}, or curve"
    )
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--threads", default="1", help="numbers of threads: 1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each turn, at least")
    parser.add_argument("--peers", default=",".join(PEERS), help="which of them; may be empty")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has them")
    parser.add_argument("--dynamic", action="store_true", help="ours against ours for each size")
    parser.add_argument("--shape", default="1536x576", help="columns x contracted, of the curve")
    parser.add_argument(
        "--dtype", default="f32", choices=sorted(cases.TOLERANCE), help="of the curve"
    )
    parser.add_argument("--json", metavar="FILE", help="writes the time of each round")
    options = parser.parse_args()
    options.threads = [int(number) for number in options.threads.split(",")]
    unknown = {name for name in options.peers.split(",") if name} - {*PEERS}
    if unknown:
        parser.error(f"no peer '{unknown.pop()}'; there are {', '.join(PEERS)}")
    options.peers = {name: spec for name, spec in PEERS.items() if name in options.peers.split(",")}
    suites = options.suite.split(",")
    unknown = {*suites} - {*cases.SUITES, "curve"}
    if unknown or ("curve" in suites and len(suites) > 1):
        parser.error(f"--suite takes some of {', '.join(cases.SUITES)}, or curve alone")
    options.curve = suites == ["curve"]
    if options.curve:
        n, k = map(int, options.shape.split("x"))
        options.cases = [cases.matmul(m, n, k, options.dtype) for m in cases.CURVE]
    else:
        options.cases = [case for suite in suites for case in cases.SUITES[suite]]
    options.cases = [case for case in options.cases if options.only in cases.label(case)]
    if not options.cases:
        parser.error(f"no case has '{options.only}' in its name")
    return options


if __name__ == "__main__":
    sys.exit(main())
