"""Plants the bugs of `bugs.txt`, one by one, in a copy, and says which of them are found.

    python test/planted/run.py --jobs 2                  all; about half a minute each
    python test/planted/run.py --only symbolic           those of files whose path has that

The quick tests that the list names for the file run first, if there are any. Where they pass, the
fuzzer's programs are taken to planned memory, then to machine code, until one fails.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
_FAILED = ("FAILED ", "ERROR ", "  relax-mlir :: ")
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
    """Runs the command; 1 if fewer than nine in ten are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of a file's path")
    parser.add_argument("--passes", type=int, default=16, help="batches to planned memory")
    parser.add_argument("--code", type=int, default=10, help="batches of machine code")
    parser.add_argument("--seconds", type=int, default=300, help="for each bug, at most")
    options = parser.parse_args()
    listed = [bug for bug in bugs() if options.only in bug.path]
    # A run that is stopped early has seen all parts.
    chosen = [bug for start in range(SPREAD) for bug in listed[start::SPREAD]]
    folders: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.jobs):
            folders.put(_copy(Path(scratch) / str(number)))
        _check_tests(Path(scratch) / "0", chosen)
        with ThreadPoolExecutor(options.jobs) as pool:
            found = list(pool.map(lambda bug: _planted(bug, folders, options), chosen))
    _report(chosen, found)
    return 0 if sum(found) >= 0.9 * len(found) else 1


def _copy(folder: Path) -> Path:
    for name in ("relax_mlir", "dialects", "test"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("pyproject.toml", "lit.cfg.py"):
        shutil.copy(ROOT / name, folder)
    return folder


def _planted(bug: Bug, folders: "SimpleQueue[Path]", options: argparse.Namespace) -> bool:
    folder, started = folders.get(), time.monotonic()
    path = folder / bug.path
    source = path.read_text()
    assert source.count(bug.old) == 1, f"{bug.path} has not one '{bug.old}'"
    _write(path, source.replace(bug.old, bug.new), folder)
    try:
        told = _run(folder, bug, options)
    finally:
        _write(path, source, folder)
        folders.put(folder)
    seconds = time.monotonic() - started
    print(f"{'found' if told else 'MISSED':7}{seconds:4.0f} s  {bug.path}: {bug.new}", flush=True)
    print(f"             {told}", flush=True)
    return bool(told)


def _write(path: Path, source: str, folder: Path) -> None:
    """Changes a file of a copy; the runtime is compiled anew where the file is one of its own."""
    path.write_text(source)
    if path.suffix == ".c":
        build = [sys.executable, "-m", "relax_mlir.runtime.build"]
        subprocess.run(build, cwd=folder, env=_environment(folder), check=True, capture_output=True)


def _run(folder: Path, bug: Bug, options: argparse.Namespace) -> str:
    """How the bug was found, or nothing."""
    environment = _environment(folder)
    commands = _commands(bug.tests)
    late = bug.path.startswith(LATE)
    child = CHILD.format(code=options.code, passes=options.passes, late=late)
    for command in (*commands, [sys.executable, "-c", child]):
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True,
                timeout=options.seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            continue
        if done.returncode < 0:
            return f"the process ends with signal {-done.returncode}"
        if done.returncode and command[-1] != child:
            # Wrong usage is no finding.
            assert done.returncode in (1, 2), done.stdout + done.stderr
            failed = [line for line in done.stdout.splitlines() if line.startswith(_FAILED)]
            return " | ".join(failed[:2]) or "the tests cannot be run"
        if done.returncode:
            return " | ".join(done.stdout.split("\n")[:2])
    return ""


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
    lit = [sys.executable, "-c", "import lit.main; lit.main.main()", "-q", "-j", "1"]
    pytest = [sys.executable, "-m", "pytest", *quick]
    commands = ((lit, checks), (pytest, functions))
    return [[*command, *given] for command, given in commands if given]


def _check_tests(folder: Path, chosen: Iterable[Bug]) -> None:
    """The named tests have to pass where nothing is planted."""
    tests = dict.fromkeys(test for bug in chosen for test in bug.tests)
    for command in _commands(tests):
        done = subprocess.run(
            command, cwd=folder, env=_environment(folder), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def _report(chosen: list[Bug], found: list[bool]) -> None:
    total, hit = Counter(bug.part for bug in chosen), Counter[str]()
    for bug, is_found in zip(chosen, found, strict=True):
        hit[bug.part] += is_found
    for part in total:
        print(f"{hit[part]:3} of {total[part]:3}  {part}")
    print(f"{sum(found):3} of {len(found):3}  in all")


if __name__ == "__main__":
    sys.exit(main())
