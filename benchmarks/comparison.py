"""Cases on which programs are compared, and the table of results: one for each thread count.

`kernels.py` and `models.py` define their cases; this is their common part.
"""

import argparse
import json
import statistics
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import interleaved
import numpy as np
from interleaved import OURS, Contender, Outcome

from relax_mlir.machine.limits import Limits
from relax_mlir.machine.measure import measure_machine
from relax_mlir.tools.cli import integers

RUNS = 3  # of a round, at least; after a warm-up run


@dataclass(frozen=True)
class Row:
    """A case, the outcome of each program, and the least seconds that the machine takes.

    `floor` is None if the machine has no instruction for the case's type.
    """

    case: dict
    threads: int
    outcomes: Mapping[str, Outcome]
    floor: float | None

    @property
    def ours(self) -> Outcome:
        """Ours, one compilation for all sizes."""
        return self.outcomes[OURS]

    def best_peer(self) -> str | None:
        """The fastest of the others."""
        others = {n: o for n, o in self.outcomes.items() if not n.startswith(OURS)}
        medians = {n: o.median for n, o in others.items() if o.median}
        return min(medians, key=medians.__getitem__) if medians else None

    def ratio(self) -> float | None:
        """How many times as long the best of the others takes."""
        best = self.best_peer()
        return self.ours.ratio(self.outcomes[best]) if best and self.ours.median else None

    def share(self) -> float | None:
        """Our share of the machine's limit."""
        return self.floor / self.ours.median if self.floor and self.ours.median else None

    def as_json(self) -> dict:
        """The row as JSON."""
        outcomes = {
            name: {"seconds": each.seconds, "error": each.error, "why_not": each.why_not}
            for name, each in self.outcomes.items()
        }
        return {"case": self.case, "threads": self.threads, "outcomes": outcomes,
                "ratio": self.ratio(), "share": self.share()}  # fmt: skip


class Comparison(ABC):
    """Cases of one kind; `heading` names what `begin` returns, `limit` what `floor` is about."""

    heading: Sequence[str]
    limit = "of limit"
    tolerance: Mapping[str, float]

    @abstractmethod
    def label(self, case: dict) -> str:
        """The case's name."""

    @abstractmethod
    def begin(self, case: dict) -> list[str]:
        """The row's first cells."""

    @abstractmethod
    def figure(self, case: dict, seconds: float) -> str:
        """The cell of a program that takes so long."""

    @abstractmethod
    def reference(self, case: dict) -> np.ndarray:
        """The reference result."""

    @abstractmethod
    def floor(self, case: dict, limits: Limits) -> float | None:
        """The least seconds that the machine takes, or None if it has no instruction for it."""

    @abstractmethod
    def groups(self, cases: Sequence[dict]) -> Iterable[Sequence[dict]]:
        """Cases that are prepared together, and then measured."""

    def main(self, specs: Mapping[str, str], options: argparse.Namespace) -> int:
        """Measures `options.cases`, prints tables; 1 if an answer of ours is wrong or missing."""
        measured: list[Row] = []
        for threads in options.threads:
            contenders, absent = interleaved.start(specs, threads, options.peers_python)
            try:
                rows = self.run(contenders, options, threads)
            finally:
                for each in contenders:
                    each.close()
            versions = ", ".join(f"{each.name} {each.version}" for each in contenders)
            print(f"\n{threads} thread{'s' * (threads > 1)}: {versions}")
            for name, reason in absent.items():
                print(f"{name} is absent: {reason.splitlines()[0]}")
            print(self.table(rows, [each.name for each in contenders]), flush=True)
            measured += rows
        if options.json:
            text = json.dumps([row.as_json() for row in measured], indent=1)
            Path(options.json).write_text(text, encoding="utf-8")
        return int(any(row.ours.why_not for row in measured))

    def run(
        self, contenders: Sequence[Contender], options: argparse.Namespace, threads: int
    ) -> list[Row]:
        """Prepares and measures the cases, a group of them at a time."""
        measured = []
        for group in self.groups(options.cases):
            ready = []
            for case in group:
                interleaved.progress(f"preparing {self.label(case)}")
                wanted, tolerance = self.reference(case), self.tolerance[case["dtype"]]
                ready.append((case, interleaved.prepare(contenders, case, wanted, tolerance)))
            limits = measure_machine((threads,), 0.1).at(threads)
            for case, outcomes in ready:
                interleaved.progress(f"measuring {self.label(case)}")
                interleaved.measure(
                    contenders, case, outcomes, options.rounds, options.seconds, RUNS, warm=1
                )
                measured.append(Row(case, threads, outcomes, self.floor(case, limits)))
            for case, _ in ready:
                interleaved.forget(contenders, case)
        interleaved.progress("")
        return measured

    def table(self, rows: Sequence[Row], names: Sequence[str]) -> str:
        """What all programs do, and how ours compares."""
        lines = [[*self.heading, *names, "best other", "ratio", "spread", self.limit]]
        notes: dict[str, list[str]] = {}
        for row in rows:
            cells = self.begin(row.case)
            for name in names:
                outcome = row.outcomes[name]
                cells.append(self.figure(row.case, outcome.median) if outcome.median else "-")
                if why := outcome.why_not:
                    note = f"{name}: {why.splitlines()[0]}"
                    notes.setdefault(note, []).append(self.label(row.case))
            ratio, share = row.ratio(), row.share()
            cells += [row.best_peer() or "-", f"{ratio:.2f}" if ratio else "-"]
            cells.append(f"{row.ours.spread:.2f}" if row.ours.median else "-")
            lines.append([*cells, f"{share:.0%}" if share else "-"])
        reasons = [f"{note} ({', '.join(labels)})" for note, labels in notes.items()]
        return "\n".join([aligned(lines), *_summary(rows), *reasons])


def _summary(rows: Sequence[Row]) -> list[str]:
    ratios = [ratio for row in rows if (ratio := row.ratio())]
    if not ratios:
        return []
    return [
        f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}"
        f"; least {min(ratios):.2f}; below 1: {sum(r < 1 for r in ratios)}"
    ]


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser, peers: Iterable[str], seconds: float) -> None:
    """Adds what commands have in common: which programs, and how they are measured."""
    add = parser.add_argument
    known = ",".join(peers)
    add("--only", default="", metavar="TEXT", help="cases whose names have this in them")
    add("--threads", type=integers, default=[1], metavar="N,...", help="default: 1")
    add("--rounds", type=int, default=5, metavar="N",
        help="of all programs (default: 5); 0 compares answers alone")  # fmt: skip
    add("--seconds", type=float, default=seconds, metavar="S",
        help=f"of each round, at least (default: {seconds})")  # fmt: skip
    add("--peers", default=known, metavar="NAME,...", help=f"may be empty (default: {known})")
    add("--peers-python", default=sys.executable, metavar="PYTHON",
        help="the interpreter that has them (default: this one)")  # fmt: skip
    add("--json", metavar="FILE", help="writes the time of each round")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Adds the option that the suite of random sizes depends on."""
    text = "of the suite random (default: 0)"
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help=text)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of 0 or more, but got '{text}'")
    return int(text)


def of_suites(parser: argparse.ArgumentParser, suites: Iterable[Iterable[dict]], only: str,
              label: Callable[[dict], str]) -> list[dict]:  # fmt: skip
    """The cases of suites whose names have `only` in them, of which there has to be one."""
    selected = [case for suite in suites for case in suite if only in label(case)]
    if not selected:
        parser.error(f"no case has '{only}' in its name")
    return selected


def chosen(
    parser: argparse.ArgumentParser, kind: str, names: str, known: Mapping[str, object]
) -> list[str]:
    """Names of a list with commas, each of which has to be known."""
    wanted = list(filter(None, names.split(",")))
    for name in wanted:
        if name not in known:
            parser.error(f"no {kind} '{name}'; there are {', '.join(known)}")
    return wanted
