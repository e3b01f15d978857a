"""Answers all jobs of a file that a journal does not have yet."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from relax_mlir.llm.offline.jobs import Job, read_jobs
from relax_mlir.llm.offline.journal import Journal

Answers = Callable[[Iterable[Job]], Iterator[dict[str, Any]]]
"""What answers jobs, in any order."""


def answers_of(begin: Callable[[Job], Callable[[], dict[str, Any]]], at_once: int) -> Answers:
    """Answers up to `at_once` jobs at a time: `begin` returns what waits for an answer."""

    def answers(jobs: Iterable[Job]) -> Iterator[dict[str, Any]]:
        threads = ThreadPoolExecutor(at_once)
        running: set[Future] = set()
        try:
            for job in jobs:
                running.add(threads.submit(begin(job)))
                if len(running) >= at_once:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        finally:  # an interrupt does not wait for answers
            threads.shutdown(wait=False, cancel_futures=True)

    return answers


def answer_all(path: Path, total: int, journal: Journal, answers: Answers) -> tuple[int, int, int]:
    """Appends the answers that are missing to the `total` jobs of a file.

    Returns their count, that of their tokens, and that of errors.
    """
    missing = (job for job in read_jobs(path) if job.id not in journal.answered)
    count = tokens = errors = 0
    with tqdm(total=total, disable=None, unit="line") as progress:
        progress.update(min(len(journal.answered), total))
        for answer in answers(missing):
            journal.append(answer)
            count += 1
            tokens += answer.get("tokens", 0)
            errors += "error" in answer
            progress.update()
            progress.set_postfix(tokens=tokens, errors=errors, refresh=False)
    return count, tokens, errors
