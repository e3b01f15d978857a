"""Plans of steps for random requests, checked at every step, without a model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.fairness import FairQueue
from relax_mlir.llm.batching.pages import Pages
from relax_mlir.llm.batching.scheduler import Scheduler, Step
from relax_mlir.llm.batching.sequence import Sequence
from relax_mlir.llm.modules.kv_cache import PAGE


class Simulation:
    """Runs plans on pages whose contents are the tokens themselves; ends answers at a length."""

    def __init__(self, pages: int, max_sequences: int, step_tokens: int) -> None:
        self.scheduler = Scheduler(Pages(pages), max_sequences, step_tokens)
        self.contents = [[-1] * PAGE for _ in range(pages)]
        self.limits: dict[Sequence, int] = {}
        self.bounds = (max_sequences, step_tokens)
        self.finished: list[Sequence] = []

    def add(self, tokens: list[int], new: int, client: str = "") -> Sequence:
        sequence = Sequence(tokens, client)
        self.limits[sequence] = len(tokens) + new
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> Step:
        """Plans, writes the tokens to their pages, and reads those before them."""
        step = self.scheduler.plan()
        for source, target in step.copies:
            self.contents[target] = list(self.contents[source])
        written = self._write(step)
        for sequence, count in step.parts:
            for i, token in enumerate(sequence.tokens[: sequence.length + count]):
                assert self.contents[sequence.pages[i // PAGE]][i % PAGE] == token
        self._check(step, written)
        ready = [sequence for sequence, count in step.parts if count == sequence.remaining]
        self.scheduler.complete(step)
        for sequence in ready:
            sequence.tokens.append(len(sequence.tokens) * 7 % 5)
            if len(sequence.tokens) >= self.limits[sequence]:
                self.scheduler.remove(sequence)
                self.finished.append(sequence)
        return step

    def _write(self, step: Step) -> list[int]:
        written = []
        for sequence, count in step.parts:
            pages = set()
            for i in range(sequence.length, sequence.length + count):
                self.contents[sequence.pages[i // PAGE]][i % PAGE] = sequence.tokens[i]
                pages.add(sequence.pages[i // PAGE])
            written += pages
        return written

    def _check(self, step: Step, written: list[int]) -> None:
        sequences = [sequence for sequence, _ in step.parts]
        assert sequences
        assert len(sequences) == len(set(sequences))
        assert len(self.scheduler.running) <= self.bounds[0]
        assert sum(count for _, count in step.parts) <= self.bounds[1]
        readers = [page for each in self.scheduler.running for page in each.pages]
        assert all(readers.count(page) == 1 for page in written)
        assert self.scheduler.pages.used == len(set(readers))

    def run(self) -> None:
        """Until all have finished; each is one day."""
        for _ in range(5000):
            if not (self.scheduler.running or self.scheduler.waiting):
                break
            self.step()
        assert len(self.finished) == len(self.limits)
        assert self.scheduler.pages.used == 0
        assert not self.scheduler._coming


REQUEST = st.tuples(
    st.integers(0, 2),  # which of three texts it begins with
    st.one_of(st.integers(1, 70), st.sampled_from([15, 16, 17, 31, 32, 33, 48, 64])),
    st.integers(1, 40),
    st.sampled_from("abc"),
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(REQUEST, st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(7, 20),
    st.integers(1, 6),
    st.integers(0, 30),
)
def test_all_are_finished_and_pages_are_right(requests, pages, max_sequences, more):
    """With arrivals between steps, and removals of every fifth."""
    simulation = Simulation(pages, max_sequences, max_sequences + more)
    for i, ((text, length, new, client), steps) in enumerate(requests):
        tokens = [(j * (text + 3)) % 11 for j in range(length)]
        new = min(new, pages * PAGE - length + 1)
        sequence = simulation.add(tokens, new, client)
        for _ in range(steps):
            if simulation.scheduler.running or simulation.scheduler.waiting:
                simulation.step()
        if i % 5 == 4 and sequence not in simulation.finished:
            simulation.scheduler.remove(sequence)
            del simulation.limits[sequence]
    simulation.run()


def test_prompts_run_in_chunks_beside_answers():
    simulation = Simulation(64, 4, 20)
    simulation.add([1] * 3, 30)
    simulation.step()
    long = simulation.add([2] * 50, 1)
    parts = [simulation.step().parts for _ in range(3)]
    assert [[count for _, count in each] for each in parts] == [[1, 19], [1, 19], [1, 12]]
    assert simulation.finished == [long]


def test_the_youngest_gives_up_its_pages():
    simulation = Simulation(6, 4, 64)
    old, young = (simulation.add([i] * 20, 60) for i in range(2))
    simulation.run()
    assert simulation.finished == [old, young]


def test_a_shared_page_is_copied_before_it_is_written():
    simulation = Simulation(10, 4, 64)
    simulation.add([3] * 32, 30)
    simulation.step()
    simulation.add([3] * 32, 5)
    step = simulation.step()
    assert len(step.copies) == 1
    assert [count for _, count in step.parts] == [1, 1]
    simulation.run()


def test_a_page_that_is_written_again_is_not_shared():
    simulation = Simulation(10, 4, 64)
    simulation.add([3] * 32, 1)
    simulation.run()
    again, longer = simulation.add([3] * 32, 5), simulation.add([3] * 40, 5)
    assert simulation.step().parts == [(again, 1)]
    assert simulation.step().parts == [(again, 1), (longer, 8)]
    simulation.run()


def take(queue: FairQueue[str]) -> str:
    """Takes the next item, which begins with the name of its client."""
    item = next(queue.in_order())
    queue.take(item.split()[0], item)
    return item


def test_others_overtake_who_waits_for_a_prompt():
    simulation = Simulation(20, 4, 32)
    first = simulation.add([3] * 80, 2)
    simulation.step()
    same, other = simulation.add([3] * 80, 2), simulation.add([4] * 5, 2)
    assert [part for part, _ in simulation.step().parts] == [first]
    assert [part for part, _ in simulation.step().parts] == [first, other]
    assert simulation.step().parts == [(first, 1), (other, 1), (same, 1)]


def test_clients_get_equal_shares():
    queue: FairQueue[str] = FairQueue()
    for i in range(6):
        queue.push("many", f"many {i}")
    order = [take(queue)]
    queue.charge("many", 100)
    queue.push("few", "few 0")
    queue.push("few", "few 1")
    while len(queue):
        order.append(take(queue))
        queue.charge(order[-1].split()[0], 100)
    assert order[:4] == ["many 0", "few 0", "many 1", "few 1"]


def test_a_client_that_was_away_saves_nothing():
    queue: FairQueue[str] = FairQueue()
    for i in range(9):
        queue.push("steady", f"steady {i}")
        if i < 5:
            take(queue)
            queue.charge("steady", 100)
    for i in range(4):
        queue.push("new", f"new {i}")
    order = []
    for _ in range(4):
        order.append(take(queue).split()[0])
        queue.charge(order[-1], 100)
    assert order.count("new") == 2


@pytest.mark.parametrize(("sequences", "tokens"), [(0, 5), (6, 5)])
def test_wrong_bounds(sequences, tokens):
    with pytest.raises(UsageError, match=f"steps of {tokens} tokens do not fit"):
        Scheduler(Pages(1), sequences, tokens)
