"""Kernels compiled once for all sizes, and for each size: the cost of dynamic dims.

    python benchmarks/dynamic.py --suite gemm,gemv --threads 1,2
    python benchmarks/dynamic.py --suite odd --only transpose --rounds 25

Both run in one process on the same arrays, interleaved. README.md says more.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping

import cases
import comparison
import interleaved
from interleaved import OURS, Contender, Outcome
from llm_results import quartiles

from relax_mlir.tools.cli import described, guard, integers

PROGRAM = {OURS: "peers.ours:Kernels"}
TARGET = 0.97


def main() -> int:
    """Runs the command; 1 if an answer is wrong or missing."""
    options = _options()
    is_wrong = False
    for threads in options.threads:
        (ours,), _ = interleaved.start(PROGRAM, threads)
        try:
            outcomes = {cases.label(case): _measure(ours, case, options) for case in options.cases}
        finally:
            ours.close()
        interleaved.progress("")
        print(f"\n{threads} thread{'s' * (threads > 1)}\n{_table(outcomes)}", flush=True)
        is_wrong |= any(each.why_not for pair in outcomes.values() for each in pair)
    return int(is_wrong)


def _measure(ours: Contender, case: dict, options: argparse.Namespace) -> tuple[Outcome, Outcome]:
    """The outcomes of the executable for all sizes, and of the one for the case's sizes."""
    interleaved.progress(cases.label(case))
    wanted, tolerance = cases.reference(case), cases.TOLERANCE[case["dtype"]]
    asked = [case, {**case, "specialised": True}]
    prepared = [interleaved.prepare([ours], each, wanted, tolerance) for each in asked]
    for _ in range(options.rounds):
        for each, outcomes in zip(asked, prepared, strict=True):
            interleaved.measure(
                [ours], each, outcomes, 1, options.seconds, comparison.RUNS, warm=1, idle=0
            )
    for each in asked:
        interleaved.forget([ours], each)
    first, second = (outcomes[OURS] for outcomes in prepared)
    return first, second


def _table(outcomes: Mapping[str, tuple[Outcome, Outcome]]) -> str:
    """Microseconds of both, and the time for static sizes as a share of that for dynamic ones."""
    lines = [["case, us", "any size", "its size", "share", "quartiles", ""]]
    shares, notes = [], []
    for label, (dynamic, specialised) in outcomes.items():
        if why_not := dynamic.why_not or specialised.why_not:
            notes.append(f"{label}: {why_not.splitlines()[0]}")
            continue
        if not dynamic.seconds:
            continue
        low, share, high = quartiles(dynamic.quotients(specialised))
        times = [f"{(each.median or 0) * 1e6:.2f}" for each in (dynamic, specialised)]
        short = f"below {TARGET}" if share < TARGET else ""
        lines.append([label, *times, f"{share:.3f}", f"{low:.2f} to {high:.2f}", short])
        shares.append(share)
    if shares:
        notes.append(f"geometric mean of the shares: {statistics.geometric_mean(shares):.3f}")
    return "\n".join([comparison.aligned(lines), *notes])


def _options() -> argparse.Namespace:
    parser = described(__doc__)
    add = parser.add_argument
    default = "gemm,gemv,rows,axes,odd"
    add("--suite", default=default, metavar="NAME,...",
        help=f"some of {','.join(cases.suites(0))} (default: {default})")  # fmt: skip
    comparison.add_seed(parser)
    add("--only", default="", metavar="TEXT", help="cases whose names have this in them")
    add("--threads", type=integers, default=[1], metavar="N,...", help="default: 1")
    add("--rounds", type=int, default=15, metavar="N",
        help="of both (default: 15); 0 compares answers alone")  # fmt: skip
    add("--seconds", type=float, default=0.01, metavar="S",
        help="of each round, at least (default: 0.01)")  # fmt: skip
    options = parser.parse_args()
    suites = cases.suites(options.seed)
    names = comparison.chosen(parser, "suite", options.suite, suites)
    wanted = [suites[name] for name in names]
    options.cases = comparison.of_suites(parser, wanted, options.only, cases.label)
    return options


if __name__ == "__main__":
    sys.exit(guard("dynamic.py", main))
