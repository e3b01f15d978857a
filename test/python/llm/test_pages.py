"""Pages against a model of who has what, for random calls."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.pages import Pages, first_key, page_key

COUNT = 7


class Calls(RuleBasedStateMachine):
    """Holders of pages: each has some, all of different contents."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = Pages(COUNT)
        self.holders: list[list[int]] = []
        self.contents: dict[int, bytes] = {}  # what was published of a page

    @rule(count=st.integers(0, 4))
    def allocate(self, count: int) -> None:
        available = self.pages.available
        new = self.pages.allocate(count)
        assert (new is None) == (count > available)
        if new is not None:
            held = {page for holder in self.holders for page in holder}
            assert not held & set(new)
            assert len(set(new)) == count
            for page in new:
                self.contents.pop(page, None)
            self.holders.append(new)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), key=st.integers(0, 5))
    def publish(self, data, key: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        if holder and holder[0] not in self.contents:
            name = bytes([key])
            if name not in self.contents.values():
                self.contents[holder[0]] = name
            self.pages.publish(holder[0], name)

    @rule(keys=st.lists(st.integers(0, 5), unique=True))
    def look_up(self, keys: list[int]) -> None:
        names = [bytes([key]) for key in keys]
        found = self.pages.look_up(names)
        assert [self.contents[page] for page in found] == names[: len(found)]
        if len(found) < len(names):
            assert names[len(found)] not in self.contents.values()
        self.holders.append(found)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders = [each for each in self.holders if each is not holder]
        self.pages.release(holder)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def write(self, data) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        if not holder:
            return
        users = sum(holder[-1] in each for each in self.holders)
        assert self.pages.is_shared(holder[-1]) == (users > 1)
        if users == 1:
            self.pages.withdraw(holder[-1])
            self.contents.pop(holder[-1], None)

    @invariant()
    def every_page_is_somewhere(self) -> None:
        held = {page for holder in self.holders for page in holder}
        assert self.pages.used == len(held)
        assert self.pages.free + self.pages.cached == COUNT - len(held)
        assert self.pages.cached == len(self.contents.keys() - held)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_the_least_recently_used_page_is_evicted_first():
    pages = Pages(3)
    for name in (b"a", b"b", b"c"):
        [page] = pages.allocate(1)
        pages.publish(page, name)
        pages.release([page])
    pages.release(pages.look_up([b"a"]))
    pages.allocate(1)
    assert (pages.look_up([b"b"]), len(pages.look_up([b"a"])), len(pages.look_up([b"c"]))) == (
        [],
        1,
        1,
    )


def test_the_beginning_of_a_text_stays_longest():
    pages = Pages(3)
    held = pages.allocate(3)
    for page, name in zip(held, (b"a", b"b", b"c")):
        pages.publish(page, name)
    pages.release(held)
    pages.allocate(1)
    assert pages.look_up([b"a", b"b", b"c"]) == held[:2]


def test_keys_depend_on_all_tokens_before():
    first = [page_key(first_key(0), tokens) for tokens in ([1] * 16, [1] * 15 + [2])]
    assert len({*first, *(page_key(key, [1] * 16) for key in first)}) == 4


def test_no_pages():
    with pytest.raises(UsageError, match="the count of pages is 0; expects an integer >= 1"):
        Pages(0)
