"""Plants the bugs of `bugs.txt`, one by one, in a copy, and says which of them are found.

    python test/planted/run.py --jobs 2                  all; about half a minute each
    python test/planted/run.py --only symbolic           those whose path or new text has that
    python test/planted/run.py --results FILE            appends outcomes; a next run skips them

The quick tests that the list names for the file run first, if there are any. Where they pass, the
fuzzer's programs are taken to planned memory, then to machine code, until one fails. What fails, or
takes too long, has to succeed without the bug: else it has found nothing, and that is an error.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
BUGS = Path(__file__).with_name("bugs.txt")
CHILD = """
import sys
from relax_mlir.testing.fuzz.batch import Work, check
from relax_mlir.testing.fuzz.program import weights_of

sys.stderr = open("/dev/null", "w")
groups = sorted(range(60), key=lambda g: -min(weights_of(g)["call"], 2 * weights_of(g)["control"]))
groups = [g for pair in zip(groups, range(60, 120)) for g in pair][: {passes}]
passes = [Work(64 * g, 10, 2, (1 + i // 2 % 2,), 0) for i, g in enumerate(groups)]
code = [Work(64 * s, 6, 2, (s % 3,), 1) for s in range(20, 20 + {code})]
works = code + passes if {late} else passes + code
for number, work in enumerate(works):
    outcome = check(work)
    found = outcome.failures
    if outcome.refused:
        print("what is right is refused:", next(iter(outcome.refused))[:100])
        sys.exit(1)
    if found:
        lines = found[0].text.strip().splitlines()
        print(f"{{found[0].setting}}, seed {{found[0].seed}}: {{lines[0][:80]}}")
        print(lines[-1][:100] if len(lines) > 1 else "")
        sys.exit(1)
"""
SPREAD = 5
LATE = ("relax_mlir/schedule/", "relax_mlir/host/", "relax_mlir/codegen/")
"""What only machine code shows."""
_FAILED = ("FAILED ", "ERROR", "  relax-mlir :: ")
"""How a line begins that names a test which has failed, of pytest and of lit."""


@dataclass(frozen=True)
class Bug:
    """A text of a file that is replaced; `part` is what it belongs to, `tests` are run on it."""

    part: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


def bugs() -> Iterator[Bug]:
    """The bugs of the list."""
    part = path = old = ""
    tests: tuple[str, ...] = ()
    for line in BUGS.read_text().splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("@ "):
            path, tests = line[2:], ()
        elif line.startswith("= "):
            tests = tuple(line[2:].split())
        elif line.startswith("- "):
            old = line[2:]
        elif line.startswith("+ "):
            yield Bug(part, path, old, line[2:], tests)


def main() -> int:
    """Runs the command; 1 if fewer than nine in ten are found, 2 if some could not be judged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of a file's path, or of the new text")
    parser.add_argument("--passes", type=int, default=16, help="batches to planned memory")
    parser.add_argument("--code", type=int, default=10, help="batches of machine code")
    parser.add_argument("--seconds", type=int, default=300, help="for each command, at most")
    parser.add_argument("--results", type=Path, help="a file of outcomes, which is continued")
    options = parser.parse_args()
    listed = [bug for bug in bugs() if options.only in f"{bug.path}: {bug.new}"]
    # A run that is stopped early has seen all parts.
    chosen = [bug for start in range(SPREAD) for bug in listed[start::SPREAD]]
    outcomes = _judged(options.results)
    left = [bug for bug in chosen if bug not in outcomes]
    with tempfile.TemporaryDirectory() as scratch:
        run = _Run(options, len(left))
        for number in range(options.jobs):
            run.folders.put(_copy(Path(scratch) / str(number)))
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes |= zip(left, pool.map(run.judge, left), strict=True)
    _report(chosen, [outcomes[bug] for bug in chosen])
    verdicts = Counter(outcomes[bug].verdict for bug in chosen)
    if verdicts["ERROR"]:
        return 2
    return 0 if verdicts["found"] >= 0.9 * len(chosen) else 1


@dataclass(frozen=True)
class Outcome:
    """`verdict` is found, MISSED or ERROR; `told` is what was printed about it."""

    verdict: str
    told: str


def _judged(results: Path | None) -> dict[Bug, Outcome]:
    """The outcomes in a file of results; errors are judged anew."""
    outcomes = {}
    for line in results.read_text().splitlines() if results and results.exists() else ():
        entry = json.loads(line)
        bug = entry["bug"]
        outcome = Outcome(entry["verdict"], entry["told"])
        if outcome.verdict != "ERROR":
            outcomes[Bug(**{**bug, "tests": tuple(bug["tests"])})] = outcome
    return outcomes


@dataclass
class _Run:
    """Judges bugs in `folders`, which are copies; `sound` has what commands say without a bug."""

    options: argparse.Namespace
    total: int
    folders: SimpleQueue[Path] = field(default_factory=SimpleQueue)
    sound: dict[tuple[str, ...], str] = field(default_factory=dict)
    done: int = 0

    def judge(self, bug: Bug) -> Outcome:
        """Plants one bug, prints what becomes of it, and appends that to the results."""
        folder, started = self.folders.get(), time.monotonic()
        try:
            outcome = self._outcome(folder, bug)
        finally:
            self.folders.put(folder)
        seconds = time.monotonic() - started
        self.done += 1
        at = f"{self.done:3} of {self.total}"
        print(f"{at}  {outcome.verdict:7}{seconds:4.0f} s  {bug.path}: {bug.new}", flush=True)
        print(f"             {outcome.told}", flush=True)
        if self.options.results:
            line = json.dumps({"bug": asdict(bug), **asdict(outcome)})
            with self.options.results.open("a") as file:
                file.write(line + "\n")
        return outcome

    def _outcome(self, folder: Path, bug: Bug) -> Outcome:
        for command in (*_commands(bug.tests), self._fuzzer(bug)):
            told = self._with_bug(folder, bug, command)
            if not told:
                continue
            if (key := tuple(command)) not in self.sound:
                self.sound[key] = self._failure(folder, command)
            if self.sound[key]:
                return Outcome("ERROR", f"without the bug, too: {self.sound[key]}")
            return Outcome("found", told)
        return Outcome("MISSED", "")

    def _with_bug(self, folder: Path, bug: Bug, command: Sequence[str]) -> str:
        path = folder / bug.path
        source = path.read_text()
        assert source.count(bug.old) == 1, f"{bug.path} has not one '{bug.old}'"
        _write(path, source.replace(bug.old, bug.new), folder)
        try:
            return self._failure(folder, command)
        finally:
            _write(path, source, folder)

    def _fuzzer(self, bug: Bug) -> list[str]:
        code, passes, late = self.options.code, self.options.passes, bug.path.startswith(LATE)
        return [sys.executable, "-c", CHILD.format(code=code, passes=passes, late=late)]

    def _failure(self, folder: Path, command: Sequence[str]) -> str:
        """How a command fails, or nothing."""
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=self.options.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what it has started holds the pipe open
            process.communicate()
            return f"takes more than {self.options.seconds} s"
        if process.returncode < 0:
            return f"the process ends with signal {-process.returncode}"
        if not process.returncode:
            return ""
        lines = [line for line in printed.splitlines() if line.strip()]
        failed = [line for line in lines if line.startswith(_FAILED)]
        return " | ".join(failed[:2] or lines[-2:]) or f"exit status {process.returncode}"


def _copy(folder: Path) -> Path:
    for name in ("relax_mlir", "dialects", "test"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("pyproject.toml", "lit.cfg.py"):
        shutil.copy(ROOT / name, folder)
    return folder


def _write(path: Path, source: str, folder: Path) -> None:
    """Changes a file of a copy; the runtime is compiled anew where the file is one of its own."""
    path.write_text(source)
    if path.suffix == ".c":
        build = [sys.executable, "-m", "relax_mlir.runtime.build"]
        subprocess.run(build, cwd=folder, env=_environment(folder), check=True, capture_output=True)


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(folder),
        "RELAX_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _commands(tests: Iterable[str]) -> list[list[str]]:
    """What runs FileCheck tests and Python tests, as far as there are any."""
    checks = [test for test in tests if test.endswith(".mlir")]
    functions = [test for test in tests if not test.endswith(".mlir")]
    quick = ["-q", "-x", "-n", "0", "-m", "not sweep", "-p", "no:cacheprovider"]
    quick += ["--rotation", "all"]  # a bug is found or not, whatever the day
    lit = [sys.executable, "-c", "import lit.main; lit.main.main()", "-q", "-j", "1"]
    pytest = [sys.executable, "-m", "pytest", *quick]
    commands = ((lit, checks), (pytest, functions))
    return [[*command, *given] for command, given in commands if given]


def _report(chosen: Sequence[Bug], outcomes: Sequence[Outcome]) -> None:
    total, hit = Counter(bug.part for bug in chosen), Counter[str]()
    for bug, outcome in zip(chosen, outcomes, strict=True):
        hit[bug.part] += outcome.verdict == "found"
    for part in total:
        print(f"{hit[part]:3} of {total[part]:3}  {part}")
    print(f"{hit.total():3} of {len(chosen):3}  in all")


if __name__ == "__main__":
    sys.exit(main())
