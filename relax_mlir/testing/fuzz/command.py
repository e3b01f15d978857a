"""The command: writes programs, checks them, shrinks what fails, and says what was covered."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from . import PROG
from .batch import Outcome, Work, check_programs
from .check import Failure
from .pool import checked
from .program import GROUP, Program, program
from .recipes import FAMILIES, NOT_WRITTEN, operators
from .replay import read, shrunk
from .transformed import PASSES


def run(options: argparse.Namespace) -> int:
    """Runs the command with the options of `__main__.py`; 1 if a program failed."""
    if options.replay:
        return _replay(options)
    if options.seed is None:
        options.seed = today()
    started = time.monotonic()
    print(f"seeds from {options.seed} on")
    total = Outcome()
    for work, outcome in checked(_batches(options), options.jobs):
        _add(total, outcome)
        for failure in outcome.failures:
            _tell(failure, work, options)
        rate = total.programs / (time.monotonic() - started)
        print(f"{total.programs} programs, {rate:.1f} a second", file=sys.stderr, flush=True)
    _report(total, time.monotonic() - started)
    return 1 if total.failures else 0


def today() -> int:
    """The seed of the day: programs of different days differ."""
    return int(time.strftime("%Y%m%d")) * GROUP


def _work(options: argparse.Namespace, first: int, count: int) -> Work:
    levels = tuple(map(int, options.levels.split(",")))
    return Work(first, count, options.sizes, levels, options.compiled, options.target)


def _batches(options: argparse.Namespace) -> list[Work]:
    """Batches that begin and end where groups do."""
    found, first, end = [], options.seed, options.seed + options.programs
    while first < end:
        count = min(GROUP - first % GROUP, end - first)
        found.append(_work(options, first, count))
        first += count
    return found


def _add(total: Outcome, outcome: Outcome) -> None:
    total.failures += outcome.failures
    for text, seeds in outcome.refused.items():
        total.refused.setdefault(text, []).extend(seeds)
    total.ops += outcome.ops
    total.programs += outcome.programs
    total.calls += outcome.calls


def _tell(failure: Failure, work: Work, options: argparse.Namespace) -> None:
    """Prints a failure, and leaves a file that shows it."""
    print(f"seed {failure.seed}, {failure.setting}: {failure.text}", flush=True)
    if failure.setting == "generator":
        return
    path = options.failures / f"{failure.seed}.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = program(failure.seed).text
    if not options.no_shrink:
        written = shrunk(written, failure, replace(work, count=1))
    first = work.first // GROUP * GROUP
    head = (
        f"// {failure.setting}: {failure.text.splitlines()[0]}\n// seed {failure.seed} of {first}"
    )
    path.write_text(f"{head}\n{written}\n")
    print(f"  {PROG} --replay {path}", flush=True)


def _replay(options: argparse.Namespace) -> int:
    """Checks a file at all levels, and for its targets."""
    name, text = read(options.replay)
    work = replace(_work(options, 0, 1), compiled=-1)
    outcome = check_programs([Program(0, name, text, Counter())], work, Outcome())
    for failure in outcome.failures:
        print(f"{failure.setting}: {failure.text}")
    for text in outcome.refused:
        print(f"refused: {text}")
    return 1 if outcome.failures else 0


def _report(total: Outcome, seconds: float) -> None:
    known = [name for name, cls in operators().items() if cls not in NOT_WRITTEN]
    features = sorted(
        {op for recipes in FAMILIES.values() for op in recipes if isinstance(op, str)}
    )
    features += [*PASSES, *sorted(op for op in total.ops if op.startswith("("))]
    missing = [name for name in (*known, *features) if not total.ops[name]]
    print(
        f"{total.programs} programs, {total.calls} calls, {len(total.failures)} failures, ", end=""
    )
    print(f"{sum(map(len, total.refused.values()))} refused at every level; {seconds:.0f} s")
    print(f"programs with each operator: {_counts(total.ops, known)}")
    print(f"with other features: {_counts(total.ops, features)}")
    if missing:
        print(f"not covered: {', '.join(missing)}")
    for text, seeds in sorted(total.refused.items(), key=lambda item: -len(item[1]))[:20]:
        print(f"refused {len(seeds)} times, as seed {seeds[0]}: {text}")


def _counts(ops: Counter[str], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {ops[name]}" for name in names if ops[name])
