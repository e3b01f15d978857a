"""Which tokens a step takes: of sequences that generate, then of prompts, chunk by chunk.

    1. each sequence that generates takes one token; when there are no pages, the youngest ones give
       up theirs, and are computed again later
    2. prompts that were begun take a chunk of their tokens, the oldest first, up to the budget
    3. waiting sequences are admitted: those that gave up pages first, then clients evenly

A sequence is admitted once there are pages for all of its tokens, and one for each other sequence
to grow. Nothing overtakes the first one that waits, so none is starved, except while another one
computes the beginning of its prompt; the oldest one that
runs never gives up its pages, so that one is always finished.

Source: Yu et al. 2022 (Orca); Agrawal et al. 2024 (Sarathi-Serve); Kwon et al. 2023.
"""

from bisect import insort
from dataclasses import dataclass, field
from itertools import chain, islice

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.fairness import FairQueue
from relax_mlir.llm.batching.pages import Pages
from relax_mlir.llm.batching.sequence import Sequence, pages_of
from relax_mlir.llm.modules.kv_cache import PAGE

MOST_SEEN = 64
"""Sequences that are looked at to find one that waits for no other."""


@dataclass
class Step:
    """The next tokens of each sequence, after pages are copied: (source, target).

    `prompt_tokens` of them are of prompts; `reused_tokens` of new ones were in pages already.
    """

    parts: list[tuple[Sequence, int]] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    prompt_tokens: int = 0
    reused_tokens: int = 0
    preemptions: int = 0


class Scheduler:
    """Plans steps of up to `max_sequences` sequences and `step_tokens` tokens, over `pages`.

    Raises UsageError unless 1 <= max_sequences <= step_tokens.
    """

    def __init__(self, pages: Pages, max_sequences: int, step_tokens: int) -> None:
        if not 1 <= max_sequences <= step_tokens:
            raise UsageError(
                f"steps of {step_tokens} tokens do not fit up to {max_sequences} sequences; "
                "expects one sequence or more, and a token for each"
            )
        self.pages = pages
        self.running: list[Sequence] = []  # the oldest first
        self._max_sequences = max_sequences
        self._step_tokens = step_tokens
        self._preempted: list[Sequence] = []  # the oldest first
        self._waiting: FairQueue[Sequence] = FairQueue()
        self._coming: dict[bytes, Sequence] = {}  # who computes the pages with these keys
        self._admitted = 0

    @property
    def waiting(self) -> int:
        """The count of sequences that wait."""
        return len(self._preempted) + len(self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Adds a sequence, whose tokens fit into all pages together."""
        self._waiting.push(sequence.client, sequence)

    def remove(self, sequence: Sequence) -> None:
        """Removes a sequence, wherever it is, and releases its pages."""
        if sequence in self.running:
            self._release(sequence)
        elif sequence in self._preempted:
            self._preempted.remove(sequence)
        else:
            self._waiting.remove(sequence.client, sequence)

    def replace(self, old: Sequence, new: Sequence) -> None:
        """Lets a sequence wait in the turn of another one, which runs, and ends."""
        self._release(old)
        insort(self._preempted, new, key=lambda each: each.order)

    def plan(self) -> Step:
        """The next step; it has a part at least if any sequence runs or waits."""
        step = Step()
        for sequence in [each for each in self.running if each.remaining == 1]:
            if sequence in self.running and self._make_room(sequence, step):
                step.parts.append((sequence, 1))
        # A sequence that was preempted after its token was planned is in the step no more.
        step.parts = [part for part in step.parts if part[0] in self.running]
        budget = self._step_tokens - len(step.parts)
        for sequence in [each for each in self.running if each.remaining > 1]:
            budget -= self._add_chunk(sequence, budget, step)
        while budget and len(self.running) < self._max_sequences:
            admitted = self._admit(step)
            if admitted is None:
                break
            budget -= self._add_chunk(admitted, budget, step)
        for sequence, count in step.parts:
            self._waiting.charge(sequence.client, count)
        return step

    def complete(self, step: Step) -> None:
        """Takes the tokens of a step as computed."""
        for sequence, count in step.parts:
            sequence.length += count
            full = sequence.length // PAGE
            keys = sequence.keys()
            for i in range(sequence.published, full):
                self.pages.publish(sequence.pages[i], keys[i])
                self._came(keys[i], sequence)
            sequence.published = max(sequence.published, full)

    def _add_chunk(self, sequence: Sequence, budget: int, step: Step) -> int:
        """Adds tokens of a prompt; returns how many."""
        count = min(sequence.remaining, budget)
        if count:
            step.parts.append((sequence, count))
            step.prompt_tokens += count
        return count

    def _make_room(self, sequence: Sequence, step: Step) -> bool:
        """Gives a running sequence a page for its next token; false if it gives up its own."""
        if sequence.length < len(sequence.pages) * PAGE:
            return True
        while (new := self.pages.allocate(1)) is None:
            youngest = self.running[-1]
            self._preempt(youngest)
            step.preemptions += 1
            if youngest is sequence:
                return False
        sequence.pages += new
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._release(sequence)
        sequence.pages = []
        insort(self._preempted, sequence, key=lambda each: each.order)

    def _release(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.pages.release(sequence.pages)
        for key in sequence.keys()[sequence.published :]:
            self._came(key, sequence)

    def _came(self, key: bytes, sequence: Sequence) -> None:
        if self._coming.get(key) is sequence:
            del self._coming[key]

    def _admit(self, step: Step) -> Sequence | None:
        """Lets the first sequence run that waits for no other, if there are pages for it."""
        for sequence in islice(chain(self._preempted, self._waiting.in_order()), MOST_SEEN):
            keys = sequence.keys()
            pages = self.pages.look_up(keys)
            if len(pages) == len(keys) or keys[len(pages)] not in self._coming:
                return self._start(sequence, pages, step)
            self.pages.release(pages)  # another one is computing what comes next
        return None

    def _start(self, sequence: Sequence, pages: list[int], step: Step) -> Sequence | None:
        """Lets a sequence run from the `pages` that are known; None if there are too few others."""
        known = min(len(pages) * PAGE, len(sequence.tokens) - 1)
        if not self._complete_pages(sequence, pages, known, step):
            self.pages.release(pages)
            return None
        if sequence in self._preempted:
            self._preempted.remove(sequence)
        else:
            self._waiting.take(sequence.client, sequence)
        if sequence.order < 0:
            sequence.order, sequence.reused = self._admitted, known
            self._admitted += 1
        step.reused_tokens += known
        sequence.pages, sequence.length = pages, known
        sequence.published = known // PAGE
        for key in sequence.keys()[sequence.published :]:
            self._coming.setdefault(key, sequence)
        insort(self.running, sequence, key=lambda each: each.order)
        return sequence

    def _complete_pages(self, sequence: Sequence, pages: list[int], known: int, step: Step) -> bool:
        """Adds what a sequence needs to the pages that it has; false if there are too few.

        The page that its next token is written to becomes its own, by a copy if others read it.
        """
        written = known // PAGE
        is_shared = written < len(pages) and self.pages.is_shared(pages[written])
        needed = pages_of(len(sequence.tokens)) - len(pages) + is_shared
        growth = len(self.running)
        if self.pages.available < needed + growth:
            return False
        new = self.pages.allocate(needed)
        assert new is not None
        if is_shared:
            step.copies.append((pages[written], new[0]))
            self.pages.release(pages[written:])
            pages[written:] = new[:1]
            del new[0]
        elif written < len(pages):
            self.pages.withdraw(pages[written])
        pages += new
        return True
