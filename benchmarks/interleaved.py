"""Interleaved measurements of programs in their own processes on the same cases.

A machine that gets slower for a while slows all programs alike, so figures are compared within a
round: every program runs the case once, then the next round begins. A program with a wrong result
is reported, and not used as a baseline.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from worker import THREAD_VARIABLES

FOLDER = Path(__file__).resolve().parent
OURS = "relax-mlir"
IDLE = 0.15
"""Seconds between programs, in which idle threads of the one before go to sleep."""
# All programs get memory as NumPy's large arrays do: on huge pages, and not returned once used.
MEMORY = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
}


class Contender:
    """One program in its own process."""

    def __init__(self, name: str, spec: str, threads: int, python: str, log: Path) -> None:
        """Starts `spec` (module:Class) under the interpreter `python`; its stderr goes to `log`.

        `absent` is the reason why it is not available, or None.
        """
        self.name = name
        environment = {**os.environ, **MEMORY}
        environment.update((key, str(threads)) for key in THREAD_VARIABLES)
        environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER.parent), str(FOLDER)])
        self._log = open(log, "w", encoding="utf-8")  # closed with the process
        self._process = subprocess.Popen(
            [python, str(FOLDER / "worker.py"), spec, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
        )
        first = self._read()
        self.absent: str | None = first.get("absent") or first.get("failed")
        self.version: str = first.get("version", "")

    def ask(self, **request: object) -> dict:
        """Sends a request and waits for its answer; `failed` in it says what went wrong."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"failed": "the process has ended"}
        return self._read()

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def _read(self) -> dict:
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"failed": f"exit status {self._process.wait()}"}


@dataclass
class Outcome:
    """The outcome of one program on one case: seconds of each round, or why there are none."""

    seconds: list[float] = field(default_factory=list)
    error: float | None = None
    why_not: str = ""
    prepared: float | None = None
    """The seconds until the first result."""

    @property
    def median(self) -> float | None:
        """The median over the rounds, in seconds."""
        return statistics.median(self.seconds) if self.seconds and not self.why_not else None

    @property
    def spread(self) -> float:
        """The longest round as a share of the shortest."""
        return max(self.seconds) / min(self.seconds)

    def quotients(self, other: "Outcome") -> list[float]:
        """How much longer the other one takes in each round."""
        return [b / a for a, b in zip(self.seconds, other.seconds, strict=True)]

    def ratio(self, other: "Outcome") -> float:
        """The median of the quotients."""
        return statistics.median(self.quotients(other))


def progress(text: str) -> None:
    """Replaces the progress line on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def start(
    specs: Mapping[str, str], threads: int, python: str = sys.executable
) -> tuple[list[Contender], dict[str, str]]:
    """Starts programs by name; returns those that are available, and why the others are not.

    Ours, whose names begin with "relax-mlir", always run under this interpreter, the others under
    `python`.
    """
    folder = Path(tempfile.mkdtemp(prefix="relax-bench-"))
    present, absent = [], {}
    for name, spec in specs.items():
        interpreter = sys.executable if name.startswith(OURS) else python
        contender = Contender(name, spec, threads, interpreter, folder / f"{name}.log")
        if contender.absent is None:
            present.append(contender)
        else:
            contender.close()
            absent[name] = contender.absent
    return present, absent


def prepare(
    contenders: Sequence[Contender],
    case: dict,
    reference: np.ndarray | None = None,
    tolerance: float = 1e-3,
) -> dict[str, Outcome]:
    """Has every program prepare a case, and compares its result with the reference."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for each in contenders:
            check = str(Path(folder) / f"{each.name}.npy") if reference is not None else None
            answer = each.ask(do="prepare", case=case, check=check)
            outcome = outcomes[each.name] = Outcome()
            outcome.why_not = answer.get("unsupported") or answer.get("failed") or ""
            outcome.prepared = answer.get("seconds")
            if check and reference is not None and not outcome.why_not:
                outcome.error = _error(np.load(check), reference)
                if not outcome.error <= tolerance:
                    outcome.why_not = f"wrong: off by {outcome.error:.2g}"
    return outcomes


def measure(
    contenders: Sequence[Contender],
    case: dict,
    outcomes: Mapping[str, Outcome],
    rounds: int,
    seconds: float = 0.1,
    runs: int = 3,
    warm: int = 0,
    idle: float = IDLE,
) -> None:
    """Adds the times of some rounds; each program starts with `warm` warm-up runs.

    `idle` seconds pass before each program.
    """
    for _ in range(rounds):
        for each in contenders:
            outcome = outcomes[each.name]
            if not outcome.why_not:
                time.sleep(idle)
                answer = each.ask(do="time", case=case, seconds=seconds, runs=runs, warm=warm)
                outcome.why_not = answer.get("failed", "")
                outcome.seconds += [answer["median"]] if "median" in answer else []


def forget(contenders: Sequence[Contender], case: dict) -> None:
    """Has every program free the memory of a case."""
    for each in contenders:
        each.ask(do="forget", case=case)


def _error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The maximum difference relative to the reference's maximum magnitude.

    A reference with fewer columns is compared with the first ones.
    """
    if actual.size != expected.size and actual.ndim == expected.ndim == 2:
        actual = actual[:, : expected.shape[1]]
    if actual.size != expected.size:
        return float("inf")
    difference = np.abs(actual.astype(np.float64).reshape(expected.shape) - expected).max(initial=0)
    return float(difference / max(np.abs(expected).max(initial=0), 1e-30))
