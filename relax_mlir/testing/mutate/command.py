"""Damages modules, and keeps the inputs that the compiler fails on: what the command runs."""

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from relax_mlir.testing.mutate.corpus import corpus
from relax_mlir.testing.mutate.pool import Pool
from relax_mlir.testing.mutate.shrink import shrink
from relax_mlir.testing.mutate.trial import Failure, Input, attempt, make_input


class Run:
    """A run: modules and a seed; a job is the number of an input, or an input itself."""

    def __init__(self, seed: int) -> None:
        self.seed, self.modules = seed, corpus()

    def input(self, number: int) -> Input:
        """The input of that number, the same in each run with the seed."""
        return make_input(self.modules, Random(f"{self.seed}/{number}"))

    def __call__(self, job: "int | Input", folder: Path) -> Failure | None:
        """What fails; the file `reached` says which pass was the last to run."""
        place = folder / "reached"
        place.write_text("damage")
        given = self.input(job) if isinstance(job, int) else job
        return attempt(given, place.write_text)


def save(given: Input, failure: Failure, folder: Path) -> Path:
    """Writes an input with the command that shows what fails."""
    name = re.sub(r"[^\w.]+", "-", failure.key)[:80].strip("-")
    file = folder / (name + (".mlir" if isinstance(given.data, str) else ".mlirbc"))
    head = f"// {failure.kind}: {failure.key}\n// {given.command(file)}\n"
    if isinstance(given.data, str):
        file.write_text(head + given.data, encoding="utf-8")
    else:
        file.write_bytes(given.data)
    file.with_suffix(".txt").write_text(f"{head}\n{failure.details}\n", encoding="utf-8")
    return file


def run(numbers: Iterable[int], seed: int, jobs: int, folder: Path) -> Counter[str]:
    """Runs the inputs of these numbers; keeps one small input for each way to fail."""
    found: Counter[str] = Counter()
    first: dict[str, tuple[Input, Failure]] = {}
    program, start = Run(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, Pool(program, Path(scratch), jobs) as pool:
        for done, (number, failure, place) in enumerate(pool.map(numbers), 1):
            if failure is not None and failure.kind in ("crash", "hang"):
                # Alone, in a new process: what was damaged before may have damaged that process.
                alone = Pool(program, Path(scratch) / "alone", 1)
                with alone:
                    failure = alone(number)
                place = Path(scratch) / "alone" / "0"
            if failure is not None and (place / "reached").read_text() != "damage":
                found[failure.key] += 1
                if failure.key not in first:
                    first[failure.key] = program.input(number), failure
                    save(*first[failure.key], folder)
                    print(f"\r{number}: {failure.kind}: {failure.key}", flush=True)
            if sys.stdout.isatty() or done % 1000 == 0:
                rate = done / (time.monotonic() - start)
                print(f"\r{done} inputs, {rate:.0f} a second, {len(first)} ways to fail", end="")
        print()
        for key, (given, failure) in first.items():

            def fails(smaller: Input, key: str = key) -> bool:
                answer = pool(smaller)
                return answer is not None and answer.key == key

            small = given if failure.kind == "hang" else shrink(given, fails)
            print(f"{found[key]:6} {failure.kind}: {key}\n       {save(small, failure, folder)}")
    return found
