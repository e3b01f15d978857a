"""Models beside other programs: one table for each number of threads.

    python benchmarks/models.py --model minilm --threads 1,2 --peers-python PYTHON
    python benchmarks/models.py --model resnet --only bottleneck --peers openvino
    python benchmarks/models.py --specialised

README.md says what is compared and how.
"""

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import model_cases
import turns
from kernels import aligned
from turns import OURS, Contender, Outcome

from relax_mlir.machine import measure_machine

PEERS = {
    "torch": "peers.model_torch:Eager",
    "torch-compile": "peers.model_torch:Compiled",
    "onnxruntime": "peers.model_onnxruntime:Models",
    "openvino": "peers.model_openvino:Models",
}
STATIC = f"{OURS} static"
SPECIALISED = {STATIC: "peers.model_relax:Specialised"}


@dataclass
class Row:
    """A case, what each program made of it, and the machine's peak in those minutes."""

    case: dict
    outcomes: Mapping[str, Outcome]
    peak: float

    def best_peer(self) -> str | None:
        """The fastest of the others."""
        found = {n: o.median for n, o in self.outcomes.items() if n != OURS and o.median}
        return min(found, key=found.__getitem__) if found else None

    def ratio(self) -> float | None:
        """How many times as long the best of the others takes."""
        best, ours = self.best_peer(), self.outcomes[OURS]
        return ours.ratio(self.outcomes[best]) if best and ours.median else None

    def share(self) -> float | None:
        """Ours as a share of the products per second that the machine can do."""
        flops = model_cases.model(self.case).flops(self.case["sizes"])
        median = self.outcomes[OURS].median
        return flops / median / self.peak if median else None


def main() -> int:
    """Runs the command; 1 if an answer of ours is wrong or missing."""
    options = _options()
    found: list[Row] = []
    failed = False
    for threads in options.threads:
        others = SPECIALISED if options.specialised else options.peers
        specs = {OURS: "peers.model_relax:Models", **others}
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
        print(table(rows, contenders), flush=True)
        failed |= any(row.outcomes[OURS].median is None for row in rows)
        found += rows
    if options.json:
        Path(options.json).write_text(json.dumps([_as_json(row) for row in found], indent=1))
    return int(failed)


def run(contenders: Sequence[Contender], options: argparse.Namespace, threads: int) -> list[Row]:
    """Prepares and measures the cases, those of one model at a time."""
    found = []
    for _, group in itertools.groupby(options.cases, model_cases.key):
        ready = []
        for case in group:
            print(f"preparing {model_cases.label(case)}", file=sys.stderr)
            wanted = model_cases.reference(case)
            tolerance = model_cases.TOLERANCE[case["dtype"]]
            ready.append((case, turns.prepare(contenders, case, wanted, tolerance)))
        limits = measure_machine((threads,), 0.1).at(threads)
        for case, outcomes in ready:
            turns.measure(contenders, case, outcomes, options.rounds, options.seconds, 3, 1)
            found.append(Row(case, outcomes, limits.peak(case["dtype"])))
        for case, _ in ready:
            turns.forget(contenders, case)
    return found


def table(rows: Sequence[Row], contenders: Sequence[Contender]) -> str:
    """Milliseconds of all programs, and how ours compares."""
    names = [each.name for each in contenders]
    lines = [["case, ms", *names, "best other", "ratio", "spread", "of peak"]]
    notes = []
    for row in rows:
        cells = [model_cases.label(row.case)]
        for name in names:
            outcome = row.outcomes[name]
            cells.append(f"{outcome.median * 1e3:.3f}" if outcome.median else "-")
            if outcome.why_not:
                reason = outcome.why_not.splitlines()[0]
                notes.append(f"{cells[0]}, {name}: {reason}")
        ratio, share, ours = row.ratio(), row.share(), row.outcomes[OURS]
        cells += [row.best_peer() or "-", f"{ratio:.2f}" if ratio else "-"]
        cells.append(f"{ours.spread:.2f}" if ours.median else "-")
        lines.append([*cells, f"{share:.0%}" if share else "-"])
    ratios = [ratio for row in rows if (ratio := row.ratio())]
    text = aligned(lines)
    if ratios:
        text += f"\ngeometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}"
        text += f"; least {min(ratios):.2f}; below 1: {sum(r < 1 for r in ratios)}"
    return "\n".join([text, *notes])


def _as_json(row: Row) -> dict:
    outcomes = {
        name: {"seconds": each.seconds, "error": each.error, "why_not": each.why_not}
        for name, each in row.outcomes.items()
    }
    return {"case": row.case, "outcomes": outcomes, "ratio": row.ratio(), "share": row.share()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = ",".join(model_cases.CASES)
    parser.add_argument("--model", default=known, help=f"some of {known}")
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--threads", default="1", help="numbers of threads: 1,2")
    parser.add_argument("--rounds", type=int, default=5, help="0 prepares and compares answers")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each turn, at least")
    parser.add_argument("--peers", default=",".join(PEERS), help="which of them; may be empty")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has them")
    parser.add_argument(
        "--specialised", action="store_true", help="ours against ours for each size"
    )
    parser.add_argument("--json", metavar="FILE", help="writes the time of each round")
    options = parser.parse_args()
    options.threads = [int(number) for number in options.threads.split(",")]
    for names, there in ((options.peers, PEERS), (options.model, model_cases.CASES)):
        unknown = {name for name in names.split(",") if name} - {*there}
        if unknown:
            parser.error(f"no '{unknown.pop()}'; there are {', '.join(there)}")
    options.peers = {name: spec for name, spec in PEERS.items() if name in options.peers.split(",")}
    cases = [case for name in options.model.split(",") for case in model_cases.CASES[name]]
    options.cases = [case for case in cases if options.only in model_cases.label(case)]
    if not options.cases:
        parser.error(f"no case has '{options.only}' in its name")
    return options


if __name__ == "__main__":
    sys.exit(main())
